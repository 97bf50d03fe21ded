// SPDX-License-Identifier: Apache-2.0

package office

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// Rename gives a person a new name in the gallery and in past sightings and events. If another person has the new name,
// the two become one person: the labels move, and the learner learns the first person's faces again. The error wraps
// [online.ErrUnknown] or [online.ErrName], or is [ErrSame] or [gallery.ErrAlike]; nothing has changed then. After an
// error of saving, the change holds in memory.
func (w *Office) Rename(from, to string) error {
	defer w.correcting()()
	learner := w.gallery.Learner()
	if from == to && learner.Knows(from) {
		return fmt.Errorf("%w: %s", ErrSame, to)
	}
	if err := online.CheckName(to); err != nil {
		return err
	}
	pure := !learner.Knows(to)
	if other := w.gallery.Alike(to); pure && other != "" && other != from {
		return fmt.Errorf("%w: %s; use this spelling to make them one person", gallery.ErrAlike, other)
	}
	q := w.newDraft(statement{Kind: Renamed, Name: to, Was: from, Pure: pure})
	if pure {
		if err := w.gallery.Rename(from, to); err != nil {
			return err
		}
		w.settle(to)
	} else if err := w.join(q, from, to); err != nil {
		return err
	}
	w.renamed(q)
	return w.commit(q)
}

// renamed gives the new name of a statement to sightings, presence and events.
func (w *Office) renamed(q *draft) {
	if q.Pure {
		q.Person = q.Name
		w.renameSaid(q.Was, q.Name, 0)
	}
	w.room.Rename(q.Was, q.Name)
	q.heads = w.all(func(s *visit, v *view) bool {
		if s.Known == q.Was || slices.Contains(s.Denied, q.Was) {
			q.recordOpinion(s)
		}
		return w.changeName(s, v, q.Was, q.Name)
	})
	for _, e := range w.events() {
		if e.Name == q.Was {
			q.renames(e)
		}
	}
}

// join moves the labels of one person to another. On error the learner is unchanged.
func (w *Office) join(q *draft, from, to string) error {
	learner := w.gallery.Learner()
	if !learner.Knows(from) {
		return fmt.Errorf("%w: %s", online.ErrUnknown, from)
	}
	var faces [][]float32
	var numbers []uint64
	var rejected []gallery.Label
	for _, id := range slices.Sorted(maps.Keys(q.before)) {
		switch x := q.before[id]; {
		case x.Name == from && x.Negative:
			rejected = append(rejected, x)
		case x.Name == from:
			faces, numbers = append(faces, x.Vector), append(numbers, x.Face)
		}
	}
	return w.gallery.Attempt(func() error {
		if err := learner.Forget(from); err != nil { // what is known of this person stays
			return err
		}
		if err := w.gallery.Label(to, faces, w.o.Now(), numbers...); err != nil {
			return err
		}
		for _, x := range rejected {
			if err := w.gallery.Reject(x.Vector, to, x.Face); err != nil {
				return err
			}
		}
		return nil
	})
}

// settle makes the merge of a person final whose name another person gets now.
func (w *Office) settle(name string) {
	for _, id := range w.o.Past.said.Before(0) {
		r, _ := w.o.Past.said.Get(id)
		if s := r.Head; s.joins() && s.Was == name {
			s.Settled, s.Person = true, s.Name
			w.o.Past.said.Change(map[uint64]statement{id: s})
			w.renameSaid(name, s.Name, id)
		}
	}
}

// joins reports whether a statement made two people one, and can be undone.
func (s statement) joins() bool { return s.Kind == Renamed && !s.Pure && !s.Settled && s.UndoneAt == 0 }

// renameSaid gives a person the present name in all statements before one (0: in all).
func (w *Office) renameSaid(from, to string, before uint64) {
	heads := make(map[uint64]statement)
	for _, id := range w.o.Past.said.Before(before) {
		r, _ := w.o.Past.said.Get(id)
		found := false
		h, _ := r.Head.Mapped(func(name string, _ bool) string {
			if name == from {
				found, name = true, to
			}
			return name
		}, math.MaxInt64)
		if found {
			heads[id] = h
		}
	}
	w.o.Past.said.Change(heads)
}
