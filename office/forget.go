// SPDX-License-Identifier: Apache-2.0

package office

import (
	"slices"
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

// forget forgets, and saves.
func (w *Office) forget(s statement) error {
	w.forgotten(s)
	return w.save()
}

// forgotten does the work of [Office.Forget] and [Office.ForgetGroup] in memory. The journal keeps that somebody was
// forgotten.
func (w *Office) forgotten(s statement) {
	name, groups := s.Name, s.Alike
	if s.Kind == ForgotGroup {
		groups = []uint64{s.Group}
	} else {
		if !s.Foreign { // a foreign statement: the gallery has forgotten the person already
			w.gallery.Forget(name) // an error means that the person is gone
		}
		w.gallery.Erase(name)
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
	w.profiled, w.latest = nil, latestFaces{}
	w.live(func(v *visit, in *view) {
		if of(v) {
			about[v.id] = true
			v.stay = stay{Camera: v.Camera, First: v.First, Last: v.Last}
			v.album, v.film = Album{}, film{}
			v.ungroup()
			w.rejudge(v, in)
		}
	})
	among := func(group uint64) bool { return group != 0 && slices.Contains(groups, group) }
	w.erase(of)
	w.unsay(func(x statement) bool {
		return name != "" && (x.Name == name || x.Was == name || x.Person == name || slices.Contains(x.Labels, name)) ||
			among(x.Group) || among(x.Other) || among(x.Made) || about[x.Sighting]
	})
	w.o.Past.seen.Change(w.all(func(v *visit, _ *view) bool {
		if !slices.Contains(v.Denied, name) {
			return false
		}
		v.Denied = slices.DeleteFunc(slices.Clone(v.Denied), func(n string) bool { return n == name })
		return true
	}))
	if name != "" {
		w.tell(w.room.Leave(name))
		w.o.Past.Forget(name)
	}
	w.o.Past.Purge()
	w.turn++
	s.Name, s.Alike = "", nil
	w.o.Past.said.Put(w.turn, w.o.Now(), s, nil)
	w.reserve()
}

// erase removes sightings of the past.
func (w *Office) erase(gone func(*visit) bool) {
	var ids []uint64
	for _, id := range w.o.Past.seen.Before(0) {
		if gone(w.past(id)) {
			ids = append(ids, id)
		}
	}
	w.o.Past.seen.Delete(ids...)
	w.unclip()
}

// unsay removes corrections.
func (w *Office) unsay(gone func(statement) bool) {
	var ids []uint64
	for _, id := range w.o.Past.said.Before(0) {
		r, _ := w.o.Past.said.Get(id)
		if s := r.Head; s.Kind != Forgot && s.Kind != ForgotGroup &&
			(gone(s) || s.Name != "" && gone(statement{Name: w.nameNow(s.Name, id)})) {
			ids = append(ids, id)
		}
	}
	w.o.Past.said.Delete(ids...)
}
