// SPDX-License-Identifier: Apache-2.0

package office

import "github.com/faceauth/faceauth/gallery"

// Choose sets the picture of a person: the number of one of the enrolled faces, or 0 for none. The error wraps
// [online.ErrUnknown], is [ErrNoFaces] for a face without a picture, or comes from the database.
func (w *book) Choose(name string, face uint64) error {
	return w.change(func(t *gallery.Tx) error {
		person, err := w.gallery.Find(name)
		if err != nil {
			return err
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

// Probably is the known person who comes nearest to a stranger, beyond the limit of a name.
type Probably struct {
	Name   string `json:"name"`
	Person int64  `json:"person"`
	Near
}

// guess is the nearest person of the first faces of a stranger, as long as nobody changes.
type guess struct {
	faces int
	is    *Probably // nil: nobody
}

// mostAsked is the number of faces of a stranger that are compared, and farthest the distance up to which somebody is
// named, in units of the impostor radius.
const (
	mostAsked = 2
	farthest  = 1.25
)

// probable returns the known person who comes nearest to a stranger, or nil.
func (w *pictures) probable(g *Stranger) *Probably {
	if w.guessed != w.gallery.Turn() || w.guesses == nil {
		w.guessed, w.guesses = w.gallery.Turn(), make(map[uint64]guess)
	}
	asked := g.Faces[:min(mostAsked, len(g.Faces))]
	known, there := w.guesses[g.ID]
	if there && known.faces == len(asked) {
		return known.is
	}
	person, distance := int64(0), farthest*w.gallery.Space().ImpostorRadius
	for _, f := range asked {
		if p, d := w.gallery.Learner().Closest(f.Vector, distance); p != 0 {
			person, distance = p, d
		}
	}
	known = guess{faces: len(asked)}
	if name := w.gallery.Name(person); name != "" {
		known.is = &Probably{name, person, nearAt(w.gallery.Space(), distance)}
	}
	w.guesses[g.ID] = known
	return known.is
}
