// SPDX-License-Identifier: Apache-2.0

package office

import (
	"fmt"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// Rename gives a person a new name. If another person has it, the two become one person: the labels, sightings and
// events of the first are the other's, and the learner learns the first person's faces again. The error wraps
// [online.ErrUnknown] or [face.ErrName], is [ErrSame] or [gallery.ErrAlike], or comes from the database; nothing has
// changed then.
func (w *book) Rename(from, to string) error {
	var person, other int64
	return w.change(func(t *gallery.Tx) error {
		person, other = w.gallery.Number(from), w.gallery.Number(to)
		alike := w.gallery.Alike(to)
		switch {
		case person == 0:
			return fmt.Errorf("%w: %s", online.ErrUnknown, from)
		case from == to:
			return fmt.Errorf("%w: %s", ErrSame, to)
		case other == 0 && alike != "" && alike != from:
			return fmt.Errorf("%w: %s; use this spelling to make them one person", gallery.ErrAlike, alike)
		}
		if err := face.CheckName(to); err != nil {
			return err
		}
		if other != 0 {
			w.join(t, person, other, from, to)
			return nil
		}
		said := w.state(t, statement{kind: Renamed, person: person, name: to, was: from})
		return t.Say(said, gallery.NameOf, []int64{person}, gallery.Value{Text: to})
	}, func() {
		if other != 0 {
			w.room.Join(person, other)
			w.record(nil)
		}
	})
}

// join makes a person another one.
func (w *book) join(t *gallery.Tx, from, to int64, was, name string) {
	gone, made, _ := t.Join(from, to)
	said := w.state(t, statement{kind: Renamed, person: to, other: from, name: name, was: was})
	t.Say(said, gallery.ValidLabel, gone, gallery.Value{Value: int64(0)})
	t.Made(said, made)
	for _, of := range []struct{ what, sql string }{
		{gallery.WhoOf, "select id from sighting where person = ?"},
		{gallery.EventWho, "select id from event where person = ?"},
	} {
		all, _ := t.Ints(of.sql, from)
		t.Say(said, of.what, all, gallery.Value{Person: to})
	}
}
