// SPDX-License-Identifier: Apache-2.0

package office

import (
	"fmt"
	"maps"
	"slices"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// Rename gives a person another name, everywhere: in the gallery, in sightings and events of the past. Under the name
// of somebody who is known, the two are one person from now on: labelled faces go over, and what was learned of the
// first is learned anew. The error wraps [online.ErrUnknown] or [online.ErrName], or is [ErrSame]; nothing has changed
// then, but for an error of saving.
func (w *Office) Rename(from, to string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	learner := w.gallery.Learner()
	if from == to && learner.Knows(from) {
		return fmt.Errorf("%w: %s", ErrSame, to)
	}
	if err := online.CheckName(to); err != nil {
		return err
	}
	pure := !learner.Knows(to)
	q := w.say(statement{Kind: Renamed, Name: to, Was: from, Pure: pure})
	if pure {
		if err := w.gallery.Rename(from, to); err != nil {
			return err
		}
	} else if err := w.join(q, from, to); err != nil {
		return err
	}
	w.renamed(q)
	return w.done(q)
}

// renamed gives the person of a statement the other name in sightings, presence and events.
func (w *Office) renamed(q *saying) {
	w.room.Rename(q.Was, q.Name)
	q.heads = w.all(func(s *visit, v *view) bool {
		if s.Known == q.Was || slices.Contains(s.Denied, q.Was) {
			q.holds(s)
		}
		return w.called(s, v, q.Was, q.Name)
	})
	for _, e := range w.events() {
		if e.Name == q.Was {
			q.renames(e)
		}
	}
}

// join labels the faces of a person with another name. On error the learner is as it was.
func (w *Office) join(q *saying, from, to string) error {
	learner := w.gallery.Learner()
	if !learner.Knows(from) {
		return fmt.Errorf("%w: %s", online.ErrUnknown, from)
	}
	var faces, rejected [][]float32
	for _, id := range slices.Sorted(maps.Keys(q.before)) {
		switch x := q.before[id]; {
		case x.Name == from && x.Negative:
			rejected = append(rejected, x.Vector)
		case x.Name == from:
			faces = append(faces, x.Vector)
		}
	}
	return w.gallery.Attempt(func() error {
		if err := w.gallery.Remove(from); err != nil {
			return err
		}
		if _, err := w.gallery.Enroll(to, faces, w.o.Now(), gallery.Enrolment{Add: true, Force: true}); err != nil {
			return err
		}
		for _, x := range rejected {
			if err := learner.Reject(x, to); err != nil {
				return err
			}
		}
		return nil
	})
}
