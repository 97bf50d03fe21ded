// SPDX-License-Identifier: Apache-2.0

package office

import (
	"github.com/faceauth/faceauth/online"
)

// ConflictFace is one of two labelled faces that contradict each other.
type ConflictFace struct {
	online.Label
	Face uint64 `json:"face,omitempty"` // number of a picture for [Office.Face]; 0 for none
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
	learner := w.gallery.Learner()
	all := []Conflict{}
	at := make(map[[2]online.Label]int)
	for _, c := range learner.Conflicts(.75 * w.gallery.Space().ImpostorRadius) { // the nearest first
		a, b := c.A, c.B
		a.ID, b.ID = 0, 0
		if b.Name < a.Name || b.Name == a.Name && a.Negative {
			a, b = b, a
		}
		i, there := at[[2]online.Label{a, b}]
		if !there {
			i = len(all)
			at[[2]online.Label{a, b}] = i
			all = append(all, Conflict{A: ConflictFace{Label: c.A}, B: ConflictFace{Label: c.B}, Distance: c.Distance})
		}
		all[i].Pairs++
	}
	if len(all) == 0 {
		return all
	}
	pictures := w.pictured()
	for i := range all {
		for _, f := range []*ConflictFace{&all[i].A, &all[i].B} {
			f.Face = pictures[key(learner.Vector(f.ID))]
		}
	}
	return all
}

// Unlabel removes one of the faces of a conflict. The error wraps [online.ErrUnknown].
func (w *Office) Unlabel(face int64) error {
	defer w.correcting()()
	s := statement{Kind: Unlabelled}
	if x, there := w.labels()[face]; there && !x.Negative {
		s.Was, s.Face = x.Name, w.pictured()[key(x.Vector)]
	}
	q := w.newDraft(s)
	if _, err := w.gallery.Learner().Unlabel(face); err != nil {
		return err
	}
	return w.commit(q)
}
