// SPDX-License-Identifier: Apache-2.0

package office

import (
	"fmt"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// Choose sets the picture of a person: the number of one of the enrolled faces, or 0 for none. The error wraps
// [online.ErrUnknown], is [ErrNoFaces] for a face without a picture, or comes from the database.
func (w *book) Choose(name string, face uint64) error {
	return w.change(func(t *gallery.Tx) error {
		person := w.gallery.Number(name)
		if person == 0 {
			return fmt.Errorf("%w: %s", online.ErrUnknown, name)
		}
		n, err := t.Int(`select count(*) from label join face on face.number = label.number where label.number = ? and
			person = ? and not rejected and valid and jpeg is not null`, int64(face), person)
		if err != nil {
			return err
		}
		if n == 0 && face != 0 {
			return ErrNoFaces
		}
		w.state(t, statement{kind: Pictured, person: person, face: face})
		return nil
	})
}

// Chosen returns the numbers of the pictures that users chose for people, by number of the person.
func (w *pictures) Chosen() map[int64]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[int64]uint64)
	w.note(w.past.look(func(t *gallery.Tx) error {
		return t.Query(`select s.person, s.face from statement s join face on face.number = s.face where kind = 'pictured' and
			not undone and jpeg is not null and s.id = (select max(id) from statement x where x.kind = 'pictured' and
			not x.undone and x.person = s.person)`, func(r gallery.Row) error {
			all[r.ColumnInt64(0)] = uint64(r.ColumnInt64(1))
			return nil
		})
	}))
	return all
}

// Probably is the known person who comes nearest to a stranger, beyond the limit of a name.
type Probably struct {
	Name   string `json:"name"`
	Person int64  `json:"person"`
	Near
}

// guesses are the people who come nearest to strangers, by group, as long as nobody changes.
type guesses struct {
	turn uint64
	of   map[uint64]guess
}

// guess is the nearest person of the first faces of a group.
type guess struct {
	faces    int
	person   int64
	distance float64
}

// mostAsked is the number of faces of a stranger that are compared, and farthest the distance up to which somebody is
// named, in units of the impostor radius.
const (
	mostAsked = 2
	farthest  = 1.25
)

// Probable returns, for groups of unknown faces, the known person who comes nearest, if anybody does.
func (w *pictures) Probable(groups []Group) map[uint64]Probably {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, space := make(map[uint64]Probably), w.gallery.Space()
	if w.guesses.turn != w.gallery.Turn() || w.guesses.of == nil {
		w.guesses = guesses{w.gallery.Turn(), make(map[uint64]guess)}
	}
	for _, g := range groups {
		asked := g.Album.Faces[:min(mostAsked, len(g.Album.Faces))]
		is, there := w.guesses.of[g.ID]
		if !there || is.faces != len(asked) {
			is = guess{len(asked), 0, farthest * space.ImpostorRadius}
			for _, f := range asked {
				if p, d := w.gallery.Learner().Closest(f.Vector, is.distance); p != 0 {
					is.person, is.distance = p, d
				}
			}
			w.guesses.of[g.ID] = is
		}
		if name := w.gallery.Name(is.person); name != "" {
			all[g.ID] = Probably{name, is.person, nearAt(space, is.distance)}
		}
	}
	return all
}
