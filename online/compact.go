// SPDX-License-Identifier: Apache-2.0

package online

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/quantized"
)

// Example is a face with the name of its person.
type Example struct {
	Vector []float32
	Name   string
}

// DefaultPull is the default of Compaction.Pull.
const DefaultPull = 20

// Compaction holds the options of [Compact].
type Compaction struct {
	// Pull holds centroids near the faces, against labels that push them apart; see [quantized.Offline]. Default:
	// [DefaultPull].
	Pull float64
	// Seed chooses the faces at which centroids begin. Default 0.
	Seed uint64
}

// Compacted counts the faces that [Compact] got and kept.
type Compacted struct {
	Faces     int `json:"faces"`     // without a label
	Centroids int `json:"centroids"` // centroids that were kept
	Kept      int `json:"kept"`      // faces that these centroids stand for
	Rounds    int `json:"rounds"`
}

// Compact returns a learner with labelled faces, and with centroids for faces without a label. It finds the centroids
// offline from all faces at once (elastic-joint; package quantized); K bounds their number. A centroid without a path
// of edges to a labelled face is an outlier and is left out, as [Learner.Observe] leaves out the face of a stranger.
//
// The error comes from [face.Space.Check] for a face, or from the context, or wraps [ErrSettings], [ErrName] or
// [ErrFull].
func Compact(ctx context.Context, space face.Space, s Settings, labelled []Example, faces [][]float32,
	how Compaction) (*Learner, Compacted, error) {
	report := Compacted{Faces: len(faces)}
	l, err := New(space, s)
	if err != nil {
		return nil, report, err
	}
	var x [][]float32
	var classes []int
	for _, e := range labelled {
		if err := l.Label(e.Vector, e.Name); err != nil {
			return nil, report, err
		}
		x, classes = append(x, e.Vector), append(classes, l.class(e.Name, false))
	}
	if len(labelled) == 0 {
		return nil, report, fmt.Errorf("%w: there are no labelled faces", ErrSettings)
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
	room := l.settings.K
	r := rand.New(rand.NewPCG(how.Seed, 0))
	b, err := offline(space, l.settings, how.Pull).Joint(ctx, x, classes, quantized.Seeds(r, x, classes, room), r)
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
	report.Centroids = l.graph.Len() - len(labelled) // two centroids at the same place are one
	return l, report, nil
}

// offline returns the settings of the thesis for elastic-joint, with the weights of the learner.
func offline(space face.Space, s Settings, pull float64) quantized.Offline {
	k := graph.Heat(s.Sigma)
	k.Denominator /= space.Scale * space.Scale
	return quantized.Offline{Kernel: k, Neighbours: 3, Fit: 10, Doubt: .1, Gamma: s.Gamma, Rounds: 10, Pull: pull}
}
