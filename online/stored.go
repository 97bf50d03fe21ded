// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"
	"time"

	"github.com/faceauth/faceauth/quantized"
)

// Stored is a face that a learner keeps: a labelled face, or a centroid of learned faces.
type Stored struct {
	ID       int64     // for [Learner.Remove]
	Vector   []float32 // the caller must not change it
	Labelled bool
	// Person is the person of the label, or through whom the face was learned. It is 0 if nobody or
	// several people claimed the face.
	Person   Person
	Negative bool    // the face was rejected: it is not this person's
	Points   float64 // faces that it stands for
	// At is when the face was learned: the zero time for a labelled face, or if unknown.
	At time.Time
	// number of faces between this face and a labelled face, see [Learner.Path]; 0 for a labelled
	// face
	Hops int
	// Frontal says that the head of a learned face is not known to be turned; see [Observation]. It
	// is true if nothing was noted about the face.
	Frontal bool
	Picture []byte // of a learned face: a small JPEG, or nil; the caller must not change it
}

// Stored returns the faces that l keeps, the oldest first.
func (l *Learner) Stored() []Stored {
	all := make([]Stored, l.graph.Len())
	for i := range all {
		o := l.graph.Origin(i)
		all[i] = Stored{
			ID: o.ID, Hops: o.Hops, Vector: l.graph.Point(i), Points: l.graph.Multiplicity(i),
		}
		if o.Time != 0 {
			all[i].At = time.Unix(o.Time, 0)
		}
		if label, ok := l.labelAt(i); ok {
			all[i].Labelled, all[i].Person, all[i].Negative = true, label.Person, label.Negative
		} else if via := l.graph.Source(i); len(via) == 1 && !l.classes[via[0]].Negative {
			all[i].Person = l.classes[via[0]].Person
		}
		if !all[i].Labelled {
			p, noted := l.portraits[o.ID]
			all[i].Frontal, all[i].Picture = p.Frontal || !noted, p.Picture
		}
	}
	return all
}

// Remove takes back a face that l keeps. Faces that were learned through a labelled face stay,
// except after the last label of the person: then all faces are removed, as with [Learner.Forget].
// The last rejected face of a person takes with it the faces learned through rejections. A learned
// face goes with all faces merged into it or accepted through it, as with [Learner.Unlearn]. The
// result is the number of learned faces that were removed, 0 for a labelled face. The error wraps
// [ErrUnknown]. On error l is unchanged.
func (l *Learner) Remove(id int64) (faces int, err error) {
	i, ok := l.graph.Find(id)
	if !ok {
		return 0, fmt.Errorf("%w: no stored face has the number %d", ErrUnknown, id)
	}
	if _, labelled := l.labelAt(i); labelled {
		l.unlabel(id)
		return 0, nil
	}
	return int(l.graph.Unlearn(func(x int64, _ quantized.Moment) bool { return x == id })), nil
}

// mostObserved bounds the number of observations: float64 holds all whole numbers up to it.
const mostObserved = 1 << 53

// Picture returns the picture of a learned face, or nil. The caller must not change it.
func (l *Learner) Picture(id int64) []byte {
	if l.Vector(id) == nil { // the portrait of a face that is gone may stay for a while
		return nil
	}
	return l.portraits[id].Picture
}

// Vector returns the vector of the stored face with this number, or nil if there is none. The
// caller must not change it.
func (l *Learner) Vector(id int64) []float32 {
	if i, ok := l.graph.Find(id); ok {
		return l.graph.Point(i)
	}
	return nil
}
