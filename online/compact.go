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

// DefaultPull is that of a [Compaction].
const DefaultPull = 20

// Compaction says how a learner is made of recordings.
type Compaction struct {
	// Pull holds centroids where the faces are, against labels that push them apart; see [quantized.Offline]. Default:
	// [DefaultPull].
	Pull float64
	// Seed draws the faces at which centroids begin. Default 0.
	Seed uint64
}

// Compacted says what became of the faces.
type Compacted struct {
	Faces     int `json:"faces"`     // without a label
	Centroids int `json:"centroids"` // that are kept of them
	Kept      int `json:"kept"`      // faces that these stand for
	Rounds    int `json:"rounds"`
}

// Compact returns a learner that has been shown labelled faces, and that knows faces without a label by as many
// centroids as K leaves room for: found offline from all of them at once (elastic-joint; package quantized), and not in
// the order in which they came. A centroid that has no path of edges to a labelled face is an outlier and is left out,
// as [Learner.Observe] leaves a stranger's face out.
//
// The error is that of [face.Space.Check] for a face, or of the context, or wraps [ErrSettings], [ErrName] or
// [ErrFull].
func Compact(ctx context.Context, space face.Space, s Settings, labelled []Example, faces [][]float32, how Compaction) (*Learner, Compacted, error) {
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
		return nil, report, fmt.Errorf("%w: nobody is labelled", ErrSettings)
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
	// Whatever is near what is there already is taken in, until nothing more is.
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
	report.Centroids = l.graph.Len() - len(labelled) // two at the same place are one
	return l, report, nil
}

// offline returns what the thesis sets for elastic-joint, with the weights that the learner has.
func offline(space face.Space, s Settings, pull float64) quantized.Offline {
	k := graph.Heat(s.Sigma)
	k.Denominator /= space.Scale * space.Scale
	return quantized.Offline{Kernel: k, Neighbours: 3, Fit: 10, Doubt: .1, Gamma: s.Gamma, Rounds: 10, Pull: pull}
}
