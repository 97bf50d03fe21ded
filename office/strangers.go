// SPDX-License-Identifier: Apache-2.0

package office

import (
	"slices"
)

// strangers changes the groups of unknown faces, and completes the statement.
func (w *Office) strangers(q *draft, change func(*groups) error) error {
	if err := change(w.unknown); err != nil {
		return err
	}
	w.leaveGroups()
	return w.commit(q)
}

// leaveGroups removes sightings in view from groups that no longer exist.
func (w *Office) leaveGroups() {
	w.live(func(s *visit, _ *view) {
		if !w.unknown.Has(s.Group) {
			s.ungroup()
		}
	})
}

// Ignore sets whether a group of unknown faces is ignored. The error wraps [ErrNoGroup].
func (w *Office) Ignore(group uint64, ignored bool) error {
	defer w.correcting()()
	g, err := w.unknown.Get(group)
	if err != nil {
		return err
	}
	kind := Ignored
	if !ignored {
		kind = Noticed
	}
	if g.Ignored == ignored {
		return w.save()
	}
	q := w.newDraft(statement{Kind: kind, Group: group, Face: g.Album.Faces[0].ID})
	return w.strangers(q, func(all *groups) error { return all.Ignore(group, ignored) })
}

// Merge merges two groups of unknown faces that show one person. The error wraps [ErrNoGroup].
func (w *Office) Merge(into, from uint64) error {
	defer w.correcting()()
	a, err := w.unknown.Get(into)
	if err != nil {
		return err
	}
	_, err = w.unknown.Get(from)
	if err != nil || into == from {
		return err
	}
	q := w.newDraft(statement{Kind: Merged, Group: into, Other: from, Face: a.Album.Faces[0].ID})
	if err := w.unknown.Merge(into, from); err != nil {
		return err
	}
	q.heads = w.all(func(s *visit, _ *view) bool {
		if s.Group != from {
			return false
		}
		q.recordOpinion(s)
		s.Group, s.began = into, false
		return true
	})
	return w.commit(q)
}

// Split moves some faces of a group into a new group: they show another person. The error comes from
// Split.
func (w *Office) Split(group uint64, faces []uint64) error {
	defer w.correcting()()
	q := w.newDraft(statement{Kind: Split, Group: group})
	return w.strangers(q, func(all *groups) error {
		made, err := all.Split(group, faces)
		q.Made, q.Face = made, slices.Min(append(faces, 1<<63))
		return err
	})
}

// ForgetGroup removes a group of unknown faces and its past sightings. It cannot be undone. The error wraps
// [ErrNoGroup].
func (w *Office) ForgetGroup(group uint64) error {
	defer w.correcting()()
	if !w.unknown.Has(group) {
		return w.unknown.Forget(group)
	}
	return w.forget(statement{Kind: ForgotGroup, Group: group})
}

// KeepUnknown sets whether faces of strangers are kept. Switching it off also removes those of the past.
func (w *Office) KeepUnknown(on bool) error {
	defer w.correcting()()
	w.unknown.Keep(on)
	w.leaveGroups()
	if !on {
		w.o.Past.Purge()
		w.erase(func(s *visit) bool { return s.Known == "" && !w.unknown.Ignored(s.Group) })
		w.unsay(func(s statement) bool {
			return s.Kind == Merged || s.Kind == Split || s.Kind == Denied && s.Name == ""
		})
	}
	return w.save()
}
