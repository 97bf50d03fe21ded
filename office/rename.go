// SPDX-License-Identifier: Apache-2.0

package office

import (
	"fmt"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
)

// Rename gives a person a new name. If another person has it, the two become one person: the labels, sightings and
// events of the first are the other's, and the learner learns the first person's faces again. The error wraps
// [online.ErrUnknown] or [face.ErrName], is [ErrSame] or [gallery.ErrAlike], or comes from the database; nothing has
// changed then.
func (w *book) Rename(from, to string) error {
	var person, other int64
	return w.change(func(t *gallery.Tx) (err error) {
		person, err = w.gallery.Find(from)
		other = w.gallery.Number(to)
		alike := w.gallery.Alike(to)
		switch {
		case err != nil:
			return err
		case from == to:
			return fmt.Errorf("%w: %s", ErrSame, to)
		case other == 0 && alike != "" && alike != from:
			return fmt.Errorf("%w: %s; use this spelling to make them one person", gallery.ErrAlike, alike)
		}
		if err := face.CheckName(to); err != nil {
			return err
		}
		if other == 0 {
			said := w.state(t, statement{kind: Renamed, person: person, name: to, was: from})
			return t.Say(said, gallery.NameOf, []int64{person}, gallery.Value{Text: to})
		}
		gone := t.Join(person, other)
		said := w.state(t, statement{kind: Renamed, person: other, other: person, name: to, was: from})
		t.Say(said, gallery.ValidLabel, gone, gallery.Value{Value: int64(0)})
		t.SayOf(said, gallery.WhoOf, "person = ?1", person, gallery.Value{Person: other})
		return t.SayOf(said, gallery.EventWho, "person = ?1", person, gallery.Value{Person: other})
	}, func() {
		if other != 0 {
			w.room.Join(person, other)
			w.record(nil)
		}
	})
}
