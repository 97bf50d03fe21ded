// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
)

// Forget removes a known person.
func (l *Learner) Forget(p online.Person) {
	l.forget(l.class(p, false))
	if c := l.class(p, true); c >= 0 {
		l.forget(c)
	}
}

func (l *Learner) forget(class int) {
	l.Graph.Forget(class)
	l.People = slices.Delete(l.People, class, class+1)
}

// LabelsOf returns the numbers of the labels of a person, the oldest first.
func (l *Learner) LabelsOf(p online.Person) (all []int64) {
	for _, x := range l.Labels() {
		if x.Person == p {
			all = append(all, x.ID)
		}
	}
	return all
}

// Unlabel removes a labelled face. Ok is false if there is none with this ID.
func (l *Learner) Unlabel(id int64) (gone online.Label, ok bool) {
	v := l.Find(id)
	if v == nil || v.Class < 0 {
		return gone, false
	}
	c := l.People[v.Class]
	switch last := len(l.Labelled(c.Person, c.Negative)) == 1; {
	case last && c.Negative:
		l.forget(v.Class)
	case last:
		l.Forget(c.Person)
	default:
		l.Graph.Remove(v)
	}
	return online.Label{ID: id, Person: c.Person, Negative: c.Negative}, true
}

// Unlearn takes back the faces learned from a source.
func (l *Learner) Unlearn(source int64) int {
	return int(l.Graph.Unlearn(func(m quantized.Moment) bool { return m.Source == source }))
}

// Retract removes labelled faces, and takes back the faces learned through them.
func (l *Learner) Retract(ids ...int64) int {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id int64) bool {
		v := l.Find(id)
		return v == nil || v.Class < 0
	})
	n := int(l.Graph.UnlearnPoints(func(p *Point) bool { return slices.Contains(ids, p.Via) }))
	before := l.Graph.Learned()
	for _, id := range ids {
		l.Unlabel(id)
	}
	return n + before - l.Graph.Learned()
}

// Remove takes back a stored face. Ok is false if there is none with this ID.
func (l *Learner) Remove(id int64) (faces int, ok bool) {
	v := l.Find(id)
	if v == nil {
		return 0, false
	}
	if v.Class >= 0 {
		l.Unlabel(id)
		return 0, true
	}
	return int(l.Graph.UnlearnPoints(func(p *Point) bool { return p == v.Points[0] })), true
}

// Undo takes back the faces learned after an observation. Ok is false if the journal does not reach
// back so far.
func (l *Learner) Undo(since int64) (faces int, ok bool) {
	n, ok := l.Graph.Undo(since)
	return int(n), ok
}

// UndoSince takes back the faces learned after a time, in seconds since 1970.
func (l *Learner) UndoSince(time, now int64) (faces int, ok bool) {
	return l.Undo(l.Graph.Since(time, now))
}
