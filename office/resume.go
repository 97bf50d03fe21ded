// SPDX-License-Identifier: Apache-2.0

package office

import (
	"slices"

	"github.com/faceauth/faceauth/office/unknown"
)

// settle completes the work of a killed program. A statement may be written without all its changes: it is completed if
// it had begun to change the gallery or the strangers, and dropped otherwise, because nobody was told that it was done.
// A statement whose undoing had begun is undone.
func (w *Office) settle() {
	for _, id := range w.o.Past.said.Before(0) {
		r, _ := w.o.Past.said.Get(id)
		if r.Head.Settled {
			continue
		}
		s, p, err := w.statement(id)
		switch {
		case err != nil:
			w.noteUnkept(err)
		case s.UndoneAt > 0:
			w.noteUnkept(w.takeBack(id, s, p))
		case s.final():
			w.noteUnkept(w.forgotten(id, s))
		case !w.began(s, p):
			w.noteUnkept(w.o.Past.said.Delete(id))
		default:
			w.noteUnkept(w.resume(id, s, p))
		}
	}
}

// began reports whether the gallery or the strangers already have a statement's changes.
func (w *Office) began(s statement, p proof) bool {
	switch s.Kind {
	case Renamed:
		if s.Pure {
			return w.gallery.Learner().Knows(s.Name) && !w.gallery.Learner().Knows(s.Was)
		}
	case Merged:
		return !w.unknown.Has(s.Other)
	case Split:
		return w.unknown.Has(s.Made)
	case Ignored, Noticed:
		return w.unknown.Ignored(s.Group) == (s.Kind == Ignored)
	}
	labels := w.labels()
	has := func(x label) bool {
		y, there := labels[x.ID]
		return there && y.Name == x.Name && slices.Equal(y.Vector, x.Vector)
	}
	for _, x := range p.Added {
		if !has(x) {
			return false
		}
	}
	return !slices.ContainsFunc(p.Removed, has)
}

// resume completes a statement whose changes are in the gallery.
func (w *Office) resume(id uint64, s statement, p proof) error {
	switch {
	case s.Kind == Named && w.unknown.Has(s.Group):
		w.unknown.Forget(s.Group) // no error: the group exists
	case s.Kind == Denied && s.Made != 0 && len(p.Faces) > 0:
		first, last := p.Faces[0].At, p.Faces[len(p.Faces)-1].At
		w.unknown.Restore(
			unknown.Group{ID: s.Made, Album: unknown.Album{Faces: p.Faces}, First: first, Last: last, Visits: 1})
	}
	heads := make(map[uint64]stay)
	for sighting, x := range s.Stays {
		v := w.past(sighting)
		if v == nil {
			continue
		}
		v.Known, v.Trust, v.Denied, v.Wrong, v.Group = x.Is.Known, x.Is.Trust, x.Is.Denied, x.Is.Wrong, x.Is.Group
		if s.Kind == Denied && sighting == s.Sighting {
			v.Learned = nil
		}
		heads[sighting] = v.stay
	}
	if !s.Foreign {
		s.Merge = w.said(s, p)
	}
	return w.complete(id, s, heads)
}
