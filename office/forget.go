// SPDX-License-Identifier: Apache-2.0

package office

import (
	"fmt"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// Forget removes a person with all learned faces, and the person's name, faces, sightings and events of the past, and
// strangers who look like this person. It cannot be undone. The error wraps [online.ErrUnknown], or comes from the
// database; nothing has changed then.
func (w *book) Forget(name string) error {
	return w.change(func(t *gallery.Tx) error {
		person := w.gallery.Number(name)
		if person == 0 {
			return fmt.Errorf("%w: %s", online.ErrUnknown, name)
		}
		for _, g := range w.unknown.All() {
			if w.seems(g.Faces) != person {
				continue
			}
			w.forgetGroup(t, g.ID)
		}
		w.erase(t, "person = ?2", person)
		t.Forget(person)
		w.state(t, statement{kind: Forgot})
		return nil
	})
}
