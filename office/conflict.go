// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// ConflictFace is one of two labelled faces that contradict each other.
type ConflictFace struct {
	Name     string   `json:"name"`
	Negative bool     `json:"not"`  // the face was rejected: it is not this person's
	Face     uint64   `json:"face"` // number of the face, for [Office.Unlabel] and [Office.Face]
	Portrait Portrait `json:"portrait"`
}

// Conflict is a contradiction between the labels of two people, or between labels and negative labels of one person:
// the faces look alike, so one label must be wrong.
type Conflict struct {
	A        ConflictFace `json:"a"` // the nearest pair of faces
	B        ConflictFace `json:"b"`
	Distance float64      `json:"distance"` // between them, in units of the space's distance
	Pairs    int          `json:"pairs"`    // number of contradicting pairs of faces
}

// side is one side of a contradiction: the labels of a person, or the negative ones.
type side struct {
	person   int64
	negative bool
}

func sideOf(l online.Label) side { return side{l.Person, l.Negative} }

// Conflicts returns the contradictions between labelled faces: the nearest pair of each two people, the nearest pair
// first.
func (w *pictures) Conflicts() []Conflict {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Conflict{}
	alike := make(map[[2]int64]bool)
	w.note(w.past.look(func(t *gallery.Tx) error {
		return t.Query("select person, other from statement where kind = 'alike' and not undone", func(r gallery.Row) error {
			a, b := r.ColumnInt64(0), r.ColumnInt64(1)
			alike[[2]int64{a, b}], alike[[2]int64{b, a}] = true, true
			return nil
		})
	}))
	at := make(map[[2]side]int)
	var pictures *pictured
	of := func(l online.Label) ConflictFace {
		label, _ := w.gallery.LabelOf(l.ID)
		return ConflictFace{w.gallery.Name(l.Person), l.Negative, label.Face, pictures.find(w.gallery.Learner().Vector(l.ID))}
	}
	for _, c := range w.contradictions() { // the nearest first
		if c.A.Person != c.B.Person && alike[[2]int64{c.A.Person, c.B.Person}] {
			continue
		}
		i, there := at[[2]side{sideOf(c.A), sideOf(c.B)}]
		if !there {
			if i = len(all); i == 0 {
				pictures = w.pictured()
			}
			at[[2]side{sideOf(c.A), sideOf(c.B)}], at[[2]side{sideOf(c.B), sideOf(c.A)}] = i, i
			all = append(all, Conflict{A: of(c.A), B: of(c.B), Distance: c.Distance})
		}
		all[i].Pairs++
	}
	return all
}

// contradictions returns the contradicting pairs of labels.
func (w *memory) contradictions() []online.Conflict {
	return w.gallery.Learner().Conflicts(.75 * w.gallery.Space().ImpostorRadius)
}

// Same says that two people with names are one: the other one gets the name. The errors are those of [Office.Rename].
func (w *book) Same(name, other string) error {
	if w.Number(name) == 0 {
		return fmt.Errorf("%w: %s", online.ErrUnknown, name)
	}
	return w.Rename(other, name)
}

// Alike says that two people look alike and are two: that their faces contradict each other is no question any more. The
// error wraps [online.ErrUnknown], is [ErrSame], or comes from the database.
func (w *book) Alike(name, other string) error {
	return w.change(func(t *gallery.Tx) error {
		a, err := w.gallery.Find(name)
		b, none := w.gallery.Find(other)
		switch {
		case err != nil || none != nil:
			return cmp.Or(err, none)
		case a == b:
			return fmt.Errorf("%w: %s", ErrSame, name)
		}
		w.state(t, statement{kind: Alike, person: a, other: b})
		return nil
	})
}

// Against is the other side of a [Conflict].
type Against struct {
	Name     string
	Negative bool
}

// Unlabel removes a label: one of the two of a conflict. With the other side, all labels of this side that contradict it
// are removed in one correction. The error wraps [online.ErrUnknown], or comes from the database.
func (w *book) Unlabel(face uint64, name string, negative bool, all ...Against) error {
	return w.change(func(t *gallery.Tx) error {
		person := w.gallery.Number(name)
		row, err := t.Int("select max(id) from label where number = ? and person = ? and rejected = ? and valid",
			int64(face), person, negative)
		if err == nil && row == 0 {
			err = fmt.Errorf("%w: face %d has no such label; it may have been taken back already", online.ErrUnknown, face)
		}
		if err != nil {
			return err
		}
		rows := []int64{row}
		for _, other := range all {
			mine, theirs := side{person, negative}, side{w.gallery.Number(other.Name), other.Negative}
			for _, c := range w.contradictions() {
				if sideOf(c.B) == mine {
					c.A, c.B = c.B, c.A
				}
				if sideOf(c.A) != mine || sideOf(c.B) != theirs {
					continue
				}
				if label, there := w.gallery.LabelOf(c.A.ID); there && !slices.Contains(rows, label.Row) {
					rows = append(rows, label.Row)
				}
			}
		}
		return w.unlabel(t, gallery.Label{Row: row, Face: face, Person: person, Negative: negative}, rows)
	})
}

// unlabel removes labels, of which one is shown.
func (w *book) unlabel(t *gallery.Tx, x gallery.Label, rows []int64) error {
	s := statement{kind: Unlabelled}
	if !x.Negative {
		s.other = x.Person
		n, _ := t.Int("select count(*) from face where number = ? and jpeg is not null", int64(x.Face))
		if n > 0 {
			s.face = x.Face
		}
	}
	return t.Say(w.state(t, s), gallery.ValidLabel, rows, gallery.Value{Value: int64(0)})
}

// TakeBack removes a face of a [Profile] by its number: a labelled face as [Office.Unlabel] does, and a learned face
// with all faces that were accepted through it, of which it returns the number. An undo gives labels back, and no
// learned faces. The error wraps [online.ErrUnknown], or comes from the database.
func (w *book) TakeBack(stored int64) (learned int, err error) {
	err = w.change(func(t *gallery.Tx) error {
		if x, labelled := w.gallery.LabelOf(stored); labelled {
			return w.unlabel(t, x, []int64{x.Row})
		}
		learned, err = t.Learner().Remove(stored)
		return err
	})
	return learned, err
}
