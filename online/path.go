// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"
	"time"

	"github.com/faceauth/faceauth/graph"
)

// Step is one face on the path by which another face was assigned to a person.
type Step struct {
	Stored int64     // number of the stored face that is this face, or into which this face was merged
	Merged bool      // the face was merged into Stored
	Label  Label     // of a labelled face
	At     time.Time // when the face was learned; the zero time for a labelled face, or if unknown
	// Distance is the distance of the stored face to the stored face of the step before, in units of the space's
	// distance. It is 0 for the first step.
	Distance float64
}

// Path returns the path by which a stored face was assigned to a person: the face itself, the face through which it was
// accepted, and so on. Whole is true if the path ends at a labelled face, and false if its beginning is not stored any
// more. The error wraps [ErrUnknown].
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
