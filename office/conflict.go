// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"fmt"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// ConflictFace is one of two labelled faces that contradict each other.
type ConflictFace struct {
	Name     string   `json:"name"`
	Negative bool     `json:"not"` // the face was rejected: it is not this person's
	ID       int64    `json:"id"`  // for [Office.TakeBack]
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
	w.look(func(t *gallery.Tx) error {
		return t.Query("select person, other from statement where kind = 'alike' and not undone", func(r gallery.Row) error {
			a, b := r.ColumnInt64(0), r.ColumnInt64(1)
			alike[[2]int64{a, b}], alike[[2]int64{b, a}] = true, true
			return nil
		})
	})
	at := make(map[[2]side]int)
	of := func(l online.Label) ConflictFace {
		return ConflictFace{w.gallery.Name(l.Person), l.Negative, l.ID, w.portraits(l.ID)[l.ID]}
	}
	for _, c := range w.contradictions() { // the nearest first
		if c.A.Person != c.B.Person && alike[[2]int64{c.A.Person, c.B.Person}] {
			continue
		}
		i, there := at[[2]side{sideOf(c.A), sideOf(c.B)}]
		if !there {
			i = len(all)
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
		w.state(t, Correction{Kind: Alike, Person: a, Other: b})
		return nil
	})
}

// TakeBack removes a face of a [Profile] or a [Conflict] by its number: a label, or a learned face with all faces that
// were accepted through it, of which it returns the number. Against is the other face of a conflict, or 0: then all
// labels of this side that contradict the other side are removed. An undo gives labels back, and no learned faces. The
// error wraps [online.ErrUnknown], or comes from the database.
func (w *book) TakeBack(stored, against int64) (learned int, err error) {
	err = w.change(func(t *gallery.Tx) error {
		x, labelled := w.gallery.LabelOf(stored)
		if !labelled {
			learned, err = t.Learner().Remove(stored)
			return err
		}
		rows := []int64{x.Row}
		if y, there := w.gallery.LabelOf(against); there {
			mine, theirs := side{x.Person, x.Negative}, side{y.Person, y.Negative}
			for _, c := range w.contradictions() {
				if sideOf(c.B) == mine {
					c.A, c.B = c.B, c.A
				}
				if sideOf(c.A) == mine && sideOf(c.B) == theirs {
					label, _ := w.gallery.LabelOf(c.A.ID)
					rows = append(rows, label.Row)
				}
			}
		}
		s := Correction{Kind: Unlabelled}
		if !x.Negative {
			s.Other = x.Person
		}
		return t.Say(w.state(t, s), gallery.ValidLabel, rows, gallery.Value{Value: int64(0)})
	})
	return learned, err
}
