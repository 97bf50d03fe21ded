// SPDX-License-Identifier: Apache-2.0

package office

import (
	"errors"
	"slices"

	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/office/unknown"
)

// Forget removes a person with all learned faces, and the person's name, faces, sightings and events of the past. It
// cannot be undone. The error wraps [online.ErrUnknown].
func (w *Office) Forget(name string) error {
	defer w.correcting()()
	if !w.gallery.Learner().Knows(name) {
		return w.gallery.Forget(name)
	}
	return w.forget(statement{Kind: Forgot, Name: name, Alike: w.resembling(name)})
}

// resembling returns the groups of unknown faces that look like a person.
func (w *Office) resembling(name string) (groups []uint64) {
	for _, g := range w.unknown.All() {
		if w.seems(g.Album.Faces) == name {
			groups = append(groups, g.ID)
		}
	}
	return groups
}

// forget first records the forgetting, so that a killed program continues it at its next start, and then forgets.
func (w *Office) forget(s statement) error {
	w.turn++
	w.latest = latestFaces{}
	err := w.o.Past.said.Put(w.turn, w.o.Now(), s, nil)
	return errors.Join(err, w.forgotten(w.turn, s))
}

// forgotten does the work of [Office.Forget] and [Office.ForgetGroup]. It skips everything that is gone already.
func (w *Office) forgotten(id uint64, s statement) (err error) {
	name, groups := s.Name, s.Alike
	switch {
	case s.Kind == ForgotGroup:
		groups = []uint64{s.Group}
	case !s.Foreign: // a foreign statement: the gallery has forgotten the person already
		w.o.Said(Said{Forgotten: name})
		if w.gallery.Learner().Knows(name) {
			err = w.gallery.Forget(name)
		}
	}
	for _, g := range groups {
		w.unknown.Forget(g) // the group may be gone: no error
	}
	of := func(v *visit) bool {
		return name != "" && v.Known == name || v.Group != 0 && slices.Contains(groups, v.Group)
	}
	about := make(map[uint64]bool) // sightings
	for _, id := range w.o.Past.seen.Before(0) {
		if of(w.past(id)) {
			about[id] = true
		}
	}
	w.profiled = nil
	w.live(func(v *visit, in *view) {
		if of(v) {
			about[v.id] = true
			v.stay = stay{Camera: v.Camera, First: v.First, Last: v.Last}
			v.album, v.film = unknown.Album{}, film{}
			v.ungroup()
			w.rejudge(v, in)
		}
	})
	among := func(group uint64) bool { return group != 0 && slices.Contains(groups, group) }
	err = errors.Join(err, w.save(), w.erase(of), w.unsay(func(x statement) bool {
		return name != "" && (x.Name == name || x.Was == name) || among(x.Group) || among(x.Other) || among(x.Made) ||
			about[x.Sighting]
	}))
	err = errors.Join(err, w.rewrite(w.all(func(v *visit, _ *view) bool {
		if !slices.Contains(v.Denied, name) {
			return false
		}
		v.Denied = slices.DeleteFunc(slices.Clone(v.Denied), func(n string) bool { return n == name })
		return true
	})), w.o.Past.seen.Purge())
	if name != "" {
		w.tell(w.room.Leave(name))
		err = errors.Join(err, w.forgetEvents(name))
	}
	if err != nil {
		return unsaved(err) // the next start of the program continues it
	}
	s.Name, s.Alike, s.Settled = "", nil, true
	err = w.o.Past.said.Change(map[uint64]statement{id: s})
	return errors.Join(err, w.o.Past.said.Purge())
}

// forgetEvents removes the events of a person.
func (w *Office) forgetEvents(name string) error {
	if w.o.Book != nil {
		return w.o.Book.Forget(name)
	}
	w.recent = slices.DeleteFunc(w.recent,
		func(e presence.Event) bool { return e.Name == name && e.Kind != presence.Unknown })
	for i := range w.recent {
		if w.recent[i].Name == name {
			w.recent[i].Name = ""
		}
	}
	return nil
}

// erase removes sightings of the past.
func (w *Office) erase(gone func(*visit) bool) error {
	var ids []uint64
	for _, id := range w.o.Past.seen.Before(0) {
		if gone(w.past(id)) {
			ids = append(ids, id)
		}
	}
	return errors.Join(w.o.Past.seen.Delete(ids...), w.unclip())
}

// unsay removes corrections.
func (w *Office) unsay(gone func(statement) bool) error {
	var ids []uint64
	for _, id := range w.o.Past.said.Before(0) {
		r, _ := w.o.Past.said.Get(id)
		if s := r.Head; s.Kind != Forgot && s.Kind != ForgotGroup &&
			(gone(s) || s.Name != "" && gone(statement{Name: w.nameNow(s.Name, id)})) {
			ids = append(ids, id)
		}
	}
	return w.o.Past.said.Delete(ids...)
}
