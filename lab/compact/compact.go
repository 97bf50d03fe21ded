// SPDX-License-Identifier: Apache-2.0

// Package compact makes a learner of long recordings at once: [Learner] replaces all faces without a label by
// centroids, which it finds offline (elastic-joint; package joint). lab/NOTES.md compares it with learning face
// after face.
package compact

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/lab/joint"
	"github.com/faceauth/faceauth/online"
)

// Example is a face with its person.
type Example struct {
	Vector []float32
	Person online.Person
}

// DefaultPull is the default of Options.Pull.
const DefaultPull = 20

// Options of [Learner].
type Options struct {
	// Pull holds centroids near the faces, against labels that push them apart; see [joint.Offline]. Default:
	// [DefaultPull].
	Pull float64
	// Seed chooses the faces at which centroids begin. Default 0.
	Seed uint64
}

// Report counts the faces that [Learner] got and kept.
type Report struct {
	Faces     int // without a label
	Centroids int // centroids that were kept
	Kept      int // faces that these centroids stand for
	Rounds    int
}

// Learner returns a learner with labelled faces, and with centroids for faces without a label. It finds the centroids
// offline from all faces at once (elastic-joint; package joint); K bounds their number. A centroid without a path
// of edges to a labelled face is an outlier and is left out, as [online.Learner.Observe] leaves out the face of a
// stranger.
//
// The error comes from [face.Space.Check] for a face, or from the context, or wraps [online.ErrSettings],
// [online.ErrUnknown] or [online.ErrFull].
func Learner(ctx context.Context, space face.Space, s online.Settings, labelled []Example, faces [][]float32,
	how Options) (*online.Learner, Report, error) {
	report := Report{Faces: len(faces)}
	l, err := online.New(space, s)
	if err != nil {
		return nil, report, err
	}
	s = l.Settings()
	var x [][]float32
	var classes []int
	numbers := make(map[online.Person]int) // of the people
	for _, e := range labelled {
		if err := l.Label(e.Vector, e.Person); err != nil {
			return nil, report, err
		}
		if _, known := numbers[e.Person]; !known {
			numbers[e.Person] = len(numbers)
		}
		x, classes = append(x, e.Vector), append(classes, numbers[e.Person])
	}
	if len(labelled) == 0 {
		return nil, report, fmt.Errorf("%w: there are no labelled faces", online.ErrSettings)
	}
	for _, f := range faces {
		if err := space.Check(f); err != nil {
			return nil, report, err
		}
		x, classes = append(x, f), append(classes, -1)
	}
	if how.Pull == 0 {
		how.Pull = DefaultPull
	}
	room := s.K
	r := rand.New(rand.NewPCG(how.Seed, 0))
	b, err := offline(space, s, how.Pull).Joint(ctx, x, classes, joint.Seeds(r, x, classes, room), r)
	if err != nil {
		return nil, report, err
	}
	report.Rounds = b.Rounds
	// Add centroids that have an edge to the learner until none is left to add.
	var waiting []int
	for i := b.Labelled; i < len(b.Vertices); i++ {
		if b.Points[i] > 0 && space.Project(b.Vertices[i]) {
			waiting = append(waiting, i)
		}
	}
	for again := true; again; {
		again = false
		var rest []int
		for _, i := range waiting {
			if err := ctx.Err(); err != nil {
				return nil, report, err
			}
			v, err := l.Adopt(b.Vertices[i], b.Points[i])
			if err != nil {
				return nil, report, err
			}
			if !v.Learned {
				rest = append(rest, i)
				continue
			}
			again = true
			report.Kept += b.Points[i]
		}
		waiting = rest
	}
	report.Centroids = l.Graph().Len() - len(labelled) // two centroids at the same place are one
	return l, report, nil
}

// offline returns the settings of the thesis for elastic-joint, with the weights of the learner.
func offline(space face.Space, s online.Settings, pull float64) joint.Offline {
	k := graph.Heat(s.Sigma)
	k.Denominator /= space.Scale * space.Scale
	return joint.Offline{Kernel: k, Neighbours: 3, Fit: 10, Doubt: .1, Gamma: s.Gamma, Rounds: 10, Pull: pull}
}
