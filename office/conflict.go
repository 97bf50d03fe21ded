// SPDX-License-Identifier: Apache-2.0

package office

import (
	"fmt"

	"github.com/faceauth/faceauth/online"
)

// ConflictFace is one of two labelled faces that contradict each other.
type ConflictFace struct {
	Name     string `json:"name"`
	Negative bool   `json:"not,omitempty"` // the face was rejected: it is not this person's
	Face     uint64 `json:"face"`          // number of the face, for [Office.Unlabel] and [Office.Face]
	Stored   int64  `json:"stored"`        // for [Office.Portraits]
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
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Conflict{}
	at := make(map[[2]ConflictFace]int)
	labels := w.gallery.Labels()
	of := func(l online.Label) ConflictFace { return ConflictFace{l.Name, l.Negative, labels[l.ID].Face, l.ID} }
	for _, c := range w.gallery.Learner().Conflicts(.75 * w.gallery.Space().ImpostorRadius) { // the nearest first
		a := ConflictFace{Name: c.A.Name, Negative: c.A.Negative}
		b := ConflictFace{Name: c.B.Name, Negative: c.B.Negative}
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

// Unlabel removes a label: one of the two of a conflict. The error wraps [online.ErrUnknown].
func (w *Office) Unlabel(face uint64, name string, negative bool) error {
	defer w.correcting()()
	s := statement{Kind: Unlabelled}
	newest := int64(0)
	for id, x := range w.gallery.Labels() {
		if x.Face == face && x.Name == name && x.Negative == negative {
			newest = max(newest, id)
		}
	}
	if newest == 0 {
		return fmt.Errorf("%w: face %d has no such label; it may have been taken back already", online.ErrUnknown, face)
	}
	if !negative {
		if s.Was = name; w.picture(face) != nil {
			s.Face = face
		}
	}
	q := w.newDraft(s)
	if _, err := w.gallery.Learner().Unlabel(newest); err != nil {
		return err
	}
	return w.commit(q)
}
