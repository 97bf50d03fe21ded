// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"
	"time"

	"github.com/faceauth/faceauth/quantized"
)

// Step is one face on the path by which another face was assigned to a person.
type Step struct {
	// number of the stored face that is this face, or into which this face was merged
	Stored int64
	Merged bool      // the face was merged into Stored
	Label  Label     // of a labelled face
	At     time.Time // when the face was learned; the zero time for a labelled face, or if unknown
	// Distance is the distance of the stored face to the stored face of the step before, in units
	// of the space's distance. It is 0 for the first step.
	Distance float64
}

// Path returns the path by which a stored face was assigned to a person: the face itself, the face
// through which it was accepted, and so on. Whole is true if the path ends at a labelled face, and
// false if its beginning is not stored any more. The error wraps [ErrUnknown].
func (l *Learner) Path(id int64) (path []Step, whole bool, err error) {
	if _, ok := l.graph.Find(id); !ok {
		return nil, false, fmt.Errorf("%w: no stored face has the number %d", ErrUnknown, id)
	}
	before := -1 // the vertex of the step before
	// a face is younger than the one through which it was accepted, so the loop ends
	for next := id; next > 0; {
		id = next
		step, when, via := Step{Stored: id}, int64(0), int64(0)
		i, there := l.graph.Find(id)
		if there {
			o := l.graph.Origin(i)
			when, via = o.Time, o.Via
			step.Label, whole = l.labelAt(i)
		} else {
			e, merged := l.graph.Merged(id)
			if !merged {
				break
			}
			when, via = e.Time, e.Via
			step.Stored, step.Merged = e.Vertex, true
			i, _ = l.graph.Find(e.Vertex)
		}
		if when != 0 {
			step.At = time.Unix(when, 0)
		}
		if before >= 0 {
			step.Distance = quantized.Distance(l.graph.Point(before), l.graph.Point(i),
				l.space.Scale)
		}
		path, before, next = append(path, step), i, 0
		if via < id {
			next = via
		}
	}
	return path, whole, nil
}
