// SPDX-License-Identifier: Apache-2.0

package online

import (
	"time"
)

// Forget removes a person: the labelled faces, the faces rejected as this person's, and every
// centroid into which a face accepted as this person was merged, even if that face was taken back
// later. Labelled faces of others stay, without the faces merged into them together with such a
// face. The error wraps [ErrUnknown]; l is unchanged then.
func (l *Learner) Forget(p Person) error {
	if !l.Knows(p) {
		return unknown(p)
	}
	l.forget(l.of(p))
	return nil
}

// of returns the classes of a person.
func (l *Learner) of(p Person) []int {
	classes := []int{l.class(p, false)}
	if rejected := l.class(p, true); rejected >= 0 {
		classes = append(classes, rejected)
	}
	return classes
}

// forget removes classes, in one pass over the faces.
func (l *Learner) forget(classes []int) {
	if len(classes) == 0 {
		return
	}
	l.graph.Forget(classes...)
	gone := make(map[int]bool)
	for _, c := range classes {
		gone[c] = true
	}
	left := 0
	for c, is := range l.classes {
		if gone[c] {
			delete(l.index, is)
			continue
		}
		l.classes[left], l.looks[left], l.index[is] = is, l.looks[c], left
		left++
	}
	l.classes, l.looks, l.radii = l.classes[:left], l.looks[:left], Radii{}
	l.dropPortraits()
}

// Undo takes back the faces learned after an observation, and returns their number. The observation
// is a value of [Counts].Observed. A stored face that came later is removed with all faces that it
// stands for. Labelled faces stay, and the radius R stays as large as learned faces made it.
//
// The error wraps [ErrJournal] if the journal does not reach back so far. On error l is unchanged.
func (l *Learner) Undo(since int64) (faces int, err error) {
	n, err := l.graph.Undo(since)
	return int(n), err
}

// SetTime sets the time of the faces that l learns from now on, for [Learner.UndoSince]. The zero
// time means unknown.
func (l *Learner) SetTime(t time.Time) {
	l.time = 0
	if !t.IsZero() {
		l.time = t.Unix()
	}
}

// Time returns the time of the faces that l learns, as SetTime has set it.
func (l *Learner) Time() time.Time {
	if l.time == 0 {
		return time.Time{}
	}
	return time.Unix(l.time, 0)
}

// UndoSince takes back the faces learned after a time, in whole seconds, and all later faces, as
// [Learner.Undo] does, with its error. A face that was learned without a time does not count as
// later, nor one with a time after now, from a clock that was wrong, if a face with a right time
// was learned after it.
func (l *Learner) UndoSince(t, now time.Time) (faces int, err error) {
	return l.Undo(l.graph.Since(t.Unix(), now.Unix()))
}
