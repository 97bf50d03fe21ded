// SPDX-License-Identifier: Apache-2.0

package office

import (
	"errors"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/sighting"
)

// Undo takes back a correction: labelled faces and everything that was learned through them, names of past sightings
// and events, and groups of unknown faces. It does not bring back faces that the learner forgot because of the
// correction.
//
// The error wraps [ErrNoCorrection], [ErrUndone], [ErrFinal], [ErrElsewhere], [ErrSettled] or [ErrLater]; nothing has
// changed then. After an error of saving, the change holds in memory.
func (w *Office) Undo(id uint64) error {
	defer w.correcting()()
	s, p, err := w.statement(id)
	switch {
	case err != nil:
		return err
	case s.UndoneAt > 0:
		return fmt.Errorf("%w: %d", ErrUndone, id)
	case s.final():
		return ErrFinal
	case s.elsewhere():
		return ErrElsewhere
	case s.Settled:
		return fmt.Errorf("%w: %s", ErrSettled, s.Was)
	case s.Kind == Renamed && s.Pure && w.gallery.Learner().Knows(s.Was):
		return fmt.Errorf("%w: %s", ErrLater, s.Was)
	}
	return w.undo(id, s, p)
}

// undo records that a statement is undone, and takes it back.
func (w *Office) undo(id uint64, s statement, p proof) error {
	w.turn++
	s.UndoneAt = w.turn
	w.o.Past.said.Change(map[uint64]statement{id: s})
	w.reserve()
	err := w.takeBack(id, s, p)
	return errors.Join(err, w.save())
}

// takeBack does the work of [Office.Undo] in memory.
func (w *Office) takeBack(id uint64, s statement, p proof) error {
	name := w.nameNow(s.Name, id)
	if s.Kind == Renamed && s.Pure {
		return w.renameBack(s)
	}
	err := w.relabelBack(id, s, p)
	switch s.Kind {
	case Split:
		w.unknown.Merge(s.Group, s.Made)
	case Ignored, Noticed:
		w.unknown.Ignore(s.Group, s.Kind == Noticed)
	case Denied:
		w.unknown.Forget(s.Made) // the group may be gone: no error
	}
	for _, j := range s.Joined {
		// An error means that the group is gone.
		w.unknown.Take(j.Group, func(f Face) bool { return slices.Contains(j.Faces, f.ID) })
	}
	for _, g := range p.Groups {
		w.unknown.Restore(g)
	}
	if s.Kind == Named {
		w.mergeDenied(id, s)
	}
	for _, g := range p.Groups {
		w.unknown.Own(g.ID)
	}
	w.restoreNames(id, s, name)
	return err
}

// restoreNames restores the names of sightings and events from before a statement.
func (w *Office) restoreNames(id uint64, s statement, name string) {
	w.opinionsBack(id, s, name)
	names := make(map[uint64]string)
	for _, e := range w.events() {
		if was, changed := s.Events[e.ID]; changed && e.Name == name {
			names[e.ID] = was
		}
	}
	w.o.Past.Rename(names, w.gallery.Number)
}

// renameBack gives a person the old name back, also in newer sightings and events with the new name.
func (w *Office) renameBack(s statement) error {
	if w.gallery.Learner().Knows(s.Name) && !w.gallery.Learner().Knows(s.Was) {
		if err := w.gallery.Rename(s.Name, s.Was); err != nil {
			return err
		}
	}
	w.renameSaid(s.Name, s.Was, 0)
	w.room.Rename(s.Name, s.Was)
	heads := w.all(func(v *visit, in *view) bool { return w.changeName(v, in, s.Name, s.Was) })
	names := make(map[uint64]string)
	for _, e := range w.events() {
		if e.Name == s.Name {
			names[e.ID] = s.Was
		}
	}
	w.o.Past.seen.Change(heads)
	w.o.Past.Rename(names, w.gallery.Number)
	return nil
}

// changeName changes a person's name in a sighting, and reports whether the name was there.
func (w *Office) changeName(s *visit, in *view, from, to string) (changed bool) {
	if at := slices.Index(s.Denied, from); at >= 0 {
		s.Denied = slices.Clone(s.Denied)
		s.Denied[at] = to
		changed = true
	}
	if s.Known == from {
		s.Known = to
		w.rejudge(s, in)
		changed = true
	}
	return changed
}

// relabelBack takes back the labels of a statement.
func (w *Office) relabelBack(id uint64, s statement, p proof) (err error) {
	learner := w.gallery.Learner()
	now := func(name string) string { return w.nameNow(name, id) }
	labels := w.gallery.Labels()
	// find returns the learner's number of an existing label, the newest first, each once.
	find := func(x gallery.Label) (newest int64, there bool) {
		for id, y := range labels {
			if y.Face == x.Face && y.Negative == x.Negative && y.Name == now(x.Name) && (!there || id > newest) {
				newest, there = id, true
			}
		}
		delete(labels, newest)
		return newest, there
	}
	var gone []int64
	for _, x := range p.Added {
		if number, there := find(x); there {
			gone = append(gone, number)
		}
	}
	var withdrawn map[uint64]bool
	if slices.ContainsFunc(p.Removed, func(x gallery.Label) bool { return !x.Negative }) {
		withdrawn = w.withdrawn(id)
	}
	learner.Unlearn(s.Learned)
	learner.Retract(gone...)
	for _, negative := range []bool{false, true} { // positive labels first: only a known person can have negative ones
		for _, x := range p.Removed {
			name := now(x.Name)
			if x.Negative != negative || withdrawn[x.Face] && !negative {
				continue
			}
			if _, there := find(x); there {
				continue
			}
			if negative {
				if learner.Knows(name) {
					err = errors.Join(err, w.gallery.Reject(x.Vector, name, x.Face))
				}
				continue
			}
			err = errors.Join(err, w.gallery.Label(name, [][]float32{x.Vector}, w.o.Now(), x.Face))
		}
	}
	return err
}

// withdrawn returns the faces that earlier statements named and whose naming was undone since.
func (w *Office) withdrawn(before uint64) map[uint64]bool {
	all := make(map[uint64]bool)
	ids := w.o.Past.said.Before(before)
	slices.Reverse(ids) // the last statement about a face counts
	for _, id := range ids {
		s, p, err := w.statement(id)
		if err != nil || s.Kind == Renamed {
			continue
		}
		for _, x := range p.Added {
			if !x.Negative {
				all[x.Face] = s.UndoneAt > 0
			}
		}
	}
	return all
}

// mergeDenied merges groups into the restored group of a naming: sightings with the wrong name that were denied since.
// They show the same stranger.
func (w *Office) mergeDenied(named uint64, s statement) {
	for _, id := range w.o.Past.said.Before(0) {
		r, _ := w.o.Past.said.Get(id)
		d := r.Head
		since := id > named && d.Kind == Denied && d.UndoneAt == 0 && d.Made != 0 && d.Was == s.Name
		if since && w.unknown.Alike(s.Group, d.Made) &&
			w.unknown.Merge(s.Group, d.Made) == nil {
			w.o.Past.seen.Change(w.all(func(v *visit, _ *view) bool {
				if v.Group != d.Made {
					return false
				}
				v.Group, v.began = s.Group, false
				return true
			}))
		}
	}
}

// opinionsBack restores the opinions about sightings from before a statement, unless a later statement changed them.
func (w *Office) opinionsBack(id uint64, s statement, name string) {
	known := w.gallery.Learner()
	w.o.Past.seen.Change(w.all(func(v *visit, in *view) bool {
		x, changed := s.Stays[v.id]
		was := x.Was
		if !changed {
			if in != nil && v.Known != "" && !known.Knows(v.Known) {
				v.Known, v.Trust = "", sighting.Nobody
				w.rejudge(v, in)
			} else if in != nil && v.Known == name {
				w.rejudge(v, in)
			}
			return false
		}
		if s.Kind == Renamed {
			if v.Known == name {
				v.Known = was.Known
			}
			if slices.Equal(v.Denied, x.Is.Denied) {
				v.Denied = was.Denied
			}
			return true
		}
		if s.Kind == Denied {
			v.Denied = slices.DeleteFunc(slices.Clone(v.Denied), func(n string) bool { return n == s.Was })
		}
		before := w.nameNow(was.Known, id)
		if v.Known == name && (before == "" || known.Knows(before)) || s.Kind == Merged {
			if s.Kind != Merged {
				v.Known, v.Trust, v.Wrong = before, was.Trust, was.Wrong
			}
			v.ungroup()
			if w.unknown.Has(was.Group) {
				v.Group = was.Group
				if n := len(v.album.Faces); n > 0 {
					v.grouped = v.album.Faces[n-1].ID
				}
			}
		}
		if in != nil {
			if s.Kind == Denied {
				in.people.Allow(v.track, s.Was)
			}
			w.rejudge(v, in)
		}
		return true
	}))
}
