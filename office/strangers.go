// SPDX-License-Identifier: Apache-2.0

package office

import (
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
)

// changeGroup makes a correction to a group of unknown faces. The error wraps [ErrNoGroup].
func (w *book) changeGroup(group uint64, do func(t *gallery.Tx, g *Stranger) error) error {
	return w.change(func(t *gallery.Tx) error {
		g := w.unknown.Get(group)
		if g == nil {
			return fmt.Errorf("%w: %d; it may have been named, merged or forgotten", ErrNoGroup, group)
		}
		return do(t, g)
	})
}

// Ignore sets whether a group of unknown faces is ignored. The error wraps [ErrNoGroup], or comes from the database.
func (w *book) Ignore(group uint64, ignored bool) error {
	return w.changeGroup(group, func(t *gallery.Tx, g *Stranger) error {
		if g.Ignored == ignored {
			return nil
		}
		kind := Ignored
		if !ignored {
			kind = Noticed
		}
		said := w.state(t, Correction{Kind: kind, Group: group})
		return t.Say(said, gallery.IgnoredOf, []uint64{group}, gallery.Value{Value: ignored})
	})
}

// Merge merges two groups of unknown faces that show one person. The error wraps [ErrNoGroup], or comes from the
// database.
func (w *book) Merge(into, from uint64) error {
	return w.changeGroup(from, func(t *gallery.Tx, g *Stranger) error {
		switch {
		case w.unknown.Get(into) == nil:
			return fmt.Errorf("%w: %d", ErrNoGroup, into)
		case into == from:
			return nil
		}
		said := w.state(t, Correction{Kind: Merged, Group: into})
		t.Exec("update stranger set last = max(last, ?) where id = ?", nanoseconds(g.Last), int64(into))
		for _, what := range []string{gallery.FaceGroup, gallery.GroupOf, gallery.EventGroup} {
			t.SayOf(said, what, "stranger = ?1", int64(from), gallery.Value{Value: int64(into)})
		}
		return nil
	})
}

// Split moves some faces of a group into a new group: they show another person. The error wraps [ErrNoGroup],
// [ErrNotInGroup], or [ErrAll] if one of the two groups would be empty, or comes from the database.
func (w *book) Split(group uint64, faces []uint64) error {
	return w.changeGroup(group, func(t *gallery.Tx, g *Stranger) error {
		stay := numbersOf(g.Faces)
		for _, f := range faces {
			if !slices.Contains(numbersOf(g.Faces), f) {
				return fmt.Errorf("%w: %d", ErrNotInGroup, f)
			}
			stay = slices.DeleteFunc(stay, func(x uint64) bool { return x == f })
		}
		if len(stay) == 0 || len(faces) == 0 {
			return ErrAll
		}
		made := w.newGroup(t, g.Last, g.Ignored)
		said := w.state(t, Correction{Kind: Split, Group: group})
		return t.Say(said, gallery.FaceGroup, faces, gallery.Value{Value: made})
	})
}

// newGroup makes a group of unknown faces, and returns its number.
func (w *book) newGroup(t *gallery.Tx, last time.Time, ignored bool) int64 {
	made, _ := t.Next("stranger", 1)
	t.Exec("insert into stranger(id, office, last, ignored) values(?, ?, ?, ?)", made, w.past.id,
		nanoseconds(last), ignored)
	return made
}

// ForgetGroup removes a group of unknown faces and its past sightings. It cannot be undone. The error wraps
// [ErrNoGroup], or comes from the database.
func (w *book) ForgetGroup(group uint64) error {
	return w.changeGroup(group, func(t *gallery.Tx, _ *Stranger) error {
		w.forgetGroup(t, group)
		w.state(t, Correction{Kind: ForgotGroup, Group: group})
		return nil
	})
}

// forgetGroup removes a group of unknown faces with its sightings and everything that was said about it.
func (w *book) forgetGroup(t *gallery.Tx, group uint64) {
	w.erase(t, "stranger = ?2", int64(group))
	t.Exec("delete from face where stranger = ?", int64(group))
	t.Exec("delete from stranger where id = ?", int64(group))
	// What was said about its faces, while they were in it or before.
	said, _ := t.Ints(`select id from statement where stranger = ?1 or id in (select statement from said where
		what in ('face', 'group', 'egroup') and value = ?1) order by id`, int64(group))
	t.Settle(said...)
}

// erase removes the sightings for which a condition holds, with their faces and what was said about them.
func (w *book) erase(t *gallery.Tx, condition string, args ...any) {
	t.Erase()
	all, _ := t.Ints("select id from sighting where office = ?1 and "+condition, append([]any{w.past.id}, args...)...)
	if len(all) == 0 {
		return
	}
	these := ids(all)
	said, _ := t.Ints("select id from statement where sighting in (select value from json_each(?)) order by id", these)
	t.Settle(said...)
	t.Exec(`delete from face where sighting in (select value from json_each(?)) and
		not exists (select 1 from label where label.number = face.number and valid)`, these)
	t.Exec("delete from sighting where id in (select value from json_each(?))", these)
}

// KeepUnknown sets whether faces of strangers are kept. Switching it off also removes those of the past. The error comes
// from the database.
func (w *book) KeepUnknown(on bool) error {
	return w.change(func(t *gallery.Tx) error {
		if err := t.Exec("update office set off = ? where id = ?", !on, w.past.id); err != nil || on {
			return err
		}
		for _, g := range w.unknown.groups {
			if !g.Ignored {
				w.forgetGroup(t, g.ID)
			}
		}
		w.erase(t, "person is null and stranger not in (select id from stranger where ignored)")
		return nil
	}, func() { w.past.off = !on })
}

// Forget removes a person with all learned faces, and the person's name, faces, sightings and events of the past, and
// strangers who look like this person. It cannot be undone. The error wraps [online.ErrUnknown], or comes from the
// database; nothing has changed then.
func (w *book) Forget(name string) error {
	return w.change(func(t *gallery.Tx) error {
		person, err := w.gallery.Find(name)
		if err != nil {
			return err
		}
		for _, g := range w.unknown.groups {
			if w.seems(g.Faces) == person {
				w.forgetGroup(t, g.ID)
			}
		}
		w.erase(t, "person = ?2", person)
		t.Forget(person)
		w.state(t, Correction{Kind: Forgot})
		return nil
	})
}
