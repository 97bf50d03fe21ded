// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"
	"time"

	"github.com/faceauth/faceauth/graph"
)

// Step is a face on the way by which another one came to be a person's.
type Step struct {
	Stored int64     // number of the stored face that it is, or that has taken it in since
	Merged bool      // the latter
	Label  Label     // of a labelled face
	At     time.Time // when it was learned; the zero time for a labelled face, and where that is not known
	// Distance is that to the face before it on the way, in units of the space's distance: between the stored faces. It is
	// 0 for the first one.
	Distance float64
}

// Path returns the way by which a stored face came to be a person's: the face itself, the one through which it was
// accepted, and so on. Whole is true where the way ends at a labelled face, and false where what came before is not kept
// any more. The error wraps [ErrUnknown].
func (l *Learner) Path(id int64) (path []Step, whole bool, err error) {
	i, ok := l.graph.Find(id)
	if !ok {
		return nil, false, fmt.Errorf("%w: no stored face has the number %d", ErrUnknown, id)
	}
	steps, whole := l.graph.Path(i)
	for n, s := range steps {
		step := Step{Stored: l.graph.Origin(s.Vertex).ID, Merged: s.Merged}
		if !s.Merged {
			step.Label, _ = l.labelAt(s.Vertex)
		}
		if s.Time != 0 {
			step.At = time.Unix(s.Time, 0)
		}
		if n > 0 {
			step.Distance = graph.Distance(l.graph.Point(steps[n-1].Vertex), l.graph.Point(s.Vertex), l.space.Scale)
		}
		path = append(path, step)
	}
	return path, whole, nil
}
