// SPDX-License-Identifier: Apache-2.0

package office

import (
	"fmt"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// ConflictFace is one of two labelled faces that contradict each other.
type ConflictFace struct {
	Name     string   `json:"name"`
	Negative bool     `json:"not"`  // the face was rejected: it is not this person's
	Face     uint64   `json:"face"` // number of the face, for [Office.Unlabel] and [Office.Face]
	Stored   int64    `json:"-"`    // for [Office.Portraits]
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

// Conflicts returns the contradictions between labelled faces: the nearest pair of each two people, the nearest pair
// first.
func (w *Office) Conflicts() []Conflict {
	all := w.conflicts()
	if len(all) == 0 {
		return all
	}
	var ids []int64
	for _, c := range all {
		ids = append(ids, c.A.Stored, c.B.Stored)
	}
	pictures := w.Portraits(ids)
	for i := range all {
		all[i].A.Portrait, all[i].B.Portrait = pictures[2*i], pictures[2*i+1]
	}
	return all
}

// conflicts returns the contradictions without pictures.
func (w *Office) conflicts() []Conflict {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Conflict{}
	at := make(map[[2]ConflictFace]int)
	of := func(l online.Label) ConflictFace {
		label, _ := w.gallery.LabelOf(l.ID)
		return ConflictFace{w.gallery.Name(l.Person), l.Negative, label.Face, l.ID, Portrait{}}
	}
	for _, c := range w.gallery.Learner().Conflicts(.75 * w.gallery.Space().ImpostorRadius) { // the nearest first
		a := ConflictFace{Name: w.gallery.Name(c.A.Person), Negative: c.A.Negative}
		b := ConflictFace{Name: w.gallery.Name(c.B.Person), Negative: c.B.Negative}
		if b.Name < a.Name || b.Name == a.Name && a.Negative {
			a, b = b, a
		}
		i, there := at[[2]ConflictFace{a, b}]
		if !there {
			i = len(all)
			at[[2]ConflictFace{a, b}] = i
			all = append(all, Conflict{A: of(c.A), B: of(c.B), Distance: c.Distance})
		}
		all[i].Pairs++
	}
	return all
}

// Unlabel removes a label: one of the two of a conflict. The error wraps [online.ErrUnknown], or comes from the database.
func (w *Office) Unlabel(face uint64, name string, negative bool) error {
	return w.change(func(t *gallery.Tx) error {
		row, err := t.Int("select max(id) from label where number = ? and person = ? and rejected = ? and valid",
			int64(face), w.gallery.Number(name), negative)
		if err == nil && row == 0 {
			err = fmt.Errorf("%w: face %d has no such label; it may have been taken back already", online.ErrUnknown, face)
		}
		if err != nil {
			return err
		}
		return w.unlabel(t, gallery.Label{Row: row, Face: face, Person: w.gallery.Number(name), Negative: negative})
	})
}

// unlabel removes a label.
func (w *Office) unlabel(t *gallery.Tx, x gallery.Label) error {
	s := statement{kind: Unlabelled}
	if !x.Negative {
		s.other = x.Person
		n, err := t.Int("select count(*) from face where number = ? and jpeg is not null", int64(x.Face))
		if err != nil {
			return err
		}
		if n > 0 {
			s.face = x.Face
		}
	}
	said, err := w.state(t, s)
	if err == nil {
		err = t.Say(said, gallery.ValidLabel, []int64{x.Row}, gallery.Value{Value: int64(0)})
	}
	return err
}

// TakeBack removes a face of a [Profile] by its number: a labelled face as [Office.Unlabel] does, and a learned face
// with all faces that were accepted through it, of which it returns the number. An undo gives labels back, and no
// learned faces. The error wraps [online.ErrUnknown], or comes from the database.
func (w *Office) TakeBack(stored int64) (learned int, err error) {
	err = w.change(func(t *gallery.Tx) error {
		if x, labelled := w.gallery.LabelOf(stored); labelled {
			return w.unlabel(t, x)
		}
		learned, err = t.Learner().Remove(stored)
		return err
	})
	return learned, err
}
