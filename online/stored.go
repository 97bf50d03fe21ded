// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"
	"time"
)

// Stored is a face that a learner keeps: one that it was shown with a name, or one that stands for faces it has
// learned.
type Stored struct {
	ID       int64     // for [Learner.Remove]
	Vector   []float32 // must not be changed
	Labelled bool
	Name     string  // of the label, or of the person through whom it was learned; "" where nobody claimed it, or several did
	Negative bool    // the label says that it is not that person's
	Points   float64 // faces that it stands for
	Weight   float64 // what they count together, as they age
	// At is when it was learned: the zero time for a labelled face, and where that is not known.
	At   time.Time
	Hops int // faces on the way from a labelled one, as [Learner.Path] goes; 0 for a labelled one
	// Margin is the harmonic value of the person who was asked for, minus the values of all other people and of rejected faces: in
	// [-1,1], and 0 where nothing is known.
	Margin float64
}

// Stored returns the faces that l keeps, the oldest first, with the margins for the named person; "" is for no margins.
// It changes nothing. The error wraps [ErrUnknown].
func (l *Learner) Stored(name string) ([]Stored, error) {
	class := -1
	if name != "" {
		if class = l.class(name, false); class < 0 {
			return nil, fmt.Errorf("%w: %s", ErrUnknown, name)
		}
	}
	all := make([]Stored, l.graph.Len())
	for i := range all {
		o := l.graph.Origin(i)
		all[i] = Stored{
			ID: o.ID, Hops: o.Hops, Vector: l.graph.Point(i), Points: l.graph.Points(i), Weight: l.graph.Multiplicity(i),
		}
		if o.Time != 0 {
			all[i].At = time.Unix(o.Time, 0)
		}
		if label, ok := l.labelAt(i); ok {
			all[i].Labelled, all[i].Name, all[i].Negative = true, label.Name, label.Negative
		} else if via := l.graph.Source(i); len(via) == 1 && !l.classes[via[0]].negative {
			all[i].Name = l.classes[via[0]].name
		}
	}
	if class < 0 {
		return all, nil
	}
	own, err := l.graph.Values(nil, func(c int) bool { return c == class })
	if err != nil {
		return nil, err
	}
	every, err := l.graph.Values(nil, func(int) bool { return true })
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Margin = 2*own[i] - every[i]
	}
	return all, nil
}

// Remove takes back a face that l keeps: a labelled one, as [Learner.Unlabel] does, or a learned one, and with it what
// it stands for and what was accepted through it, as [Learner.Unlearn] does. It returns how many learned faces are
// gone. The error wraps [ErrUnknown]; l has then not changed.
func (l *Learner) Remove(id int64) (faces int, err error) {
	i, ok := l.graph.Find(id)
	if !ok {
		return 0, fmt.Errorf("%w: no stored face has the number %d", ErrUnknown, id)
	}
	if _, labelled := l.labelAt(i); labelled {
		_, err := l.Unlabel(id)
		return 0, err
	}
	l.unaid()
	return int(l.graph.UnlearnVertex(i)), nil // others may be of the same observation in old snapshots
}

// mostObserved bounds the observations of a learner: float64 holds whole numbers up to that.
const mostObserved = 1 << 53

// Adopt takes in a face that stands for n others which were seen elsewhere, such as a centroid that was found offline:
// as [Learner.Observe] does with one face, as that many observations, and with their multiplicity. Where the face is an
// outlier, or not to be learned, nothing is.
//
// The error is that of [face.Space.Check], or wraps [ErrSettings] for n < 1, or for more observations than can be
// counted without rounding, 2^53; l has then not changed.
func (l *Learner) Adopt(x []float32, n int) (Verdict, error) {
	if err := l.space.Check(x); err != nil {
		return Verdict{}, err
	}
	if n < 1 || n > 1<<40 {
		return Verdict{}, fmt.Errorf("%w: a face that stands for %d", ErrSettings, n)
	}
	if l.counts.Observed > mostObserved-int64(n) {
		return Verdict{}, fmt.Errorf("%w: a face that stands for %d, after %d observations, is beyond %d", ErrSettings, n,
			l.counts.Observed, int64(mostObserved))
	}
	v, err := l.step(Observation{Vector: x}, n, l.counts.Observed+1)
	if err == nil && v.Learned {
		l.counts.Observed += int64(n)
		l.counts.Learned += int64(n)
	}
	return v, err
}
