// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/sighting"
)

// question is something that only a person can say.
type question struct {
	Key      string           `json:"key"`  // the same as long as the question is
	Kind     string           `json:"kind"` // stranger: who is it? still: is it that person? conflict: which label is wrong?
	At       time.Time        `json:"at,omitzero"`
	Stranger *stranger        `json:"stranger,omitempty"`
	Sighting *office.Sighting `json:"sighting,omitempty"`
	Conflict *contradiction   `json:"conflict,omitempty"`
}

// inbox returns the questions that are open: labels that contradict each other, as they spoil what is recognised, and
// then the newest first.
func inbox(w *office.Office) []question {
	all := []question{}
	for _, g := range strangers(w) {
		if !g.Ignored {
			all = append(all, question{Key: fmt.Sprintf("stranger-%d", g.ID), Kind: "stranger", At: g.Last, Stranger: &g})
		}
	}
	asked := make(map[string]bool)
	for _, s := range w.Sightings() { // the newest first
		if s.Name != "" && s.Trust == sighting.Learned && !asked[s.Name] {
			asked[s.Name] = true
			all = append(all, question{Key: fmt.Sprintf("still-%d", s.ID), Kind: "still", At: s.Last, Sighting: &s})
		}
	}
	slices.SortStableFunc(all, func(a, b question) int { return b.At.Compare(a.At) })
	first := []question{}
	for _, c := range contradictions(w) {
		key := fmt.Sprintf("conflict-%d-%d", c.A.ID, c.B.ID)
		first = append(first, question{Key: key, Kind: "conflict", Conflict: &c})
	}
	return append(first, all...)
}

// stranger is a group of unknown faces without the faces themselves.
type stranger struct {
	ID      uint64      `json:"id"`
	First   time.Time   `json:"first"`
	Last    time.Time   `json:"last"`
	Visits  int         `json:"visits"`
	Ignored bool        `json:"ignored"`
	Best    []uint64    `json:"best"` // of the faces, those by which one sees best who it is
	Faces   []faceShown `json:"faces"`
}

type faceShown struct {
	ID     uint64    `json:"id"`
	At     time.Time `json:"at"`
	Camera string    `json:"camera"`
}

// bestFaces is how many faces of a stranger are shown to somebody who is asked who it is.
const bestFaces = 4

func strangers(w *office.Office) []stranger {
	all := []stranger{}
	for _, g := range w.Strangers() {
		s := stranger{
			ID: g.ID, First: g.First, Last: g.Last, Visits: g.Visits, Ignored: g.Ignored, Best: w.Best(g.Album.Faces, bestFaces), Faces: []faceShown{},
		}
		for _, f := range g.Album.Faces {
			s.Faces = append(s.Faces, faceShown{f.ID, f.At, f.Camera})
		}
		all = append(all, s)
	}
	return all
}

// contradiction is two labelled faces that look like one person and cannot both be right: the nearest of two people, or
// of one and of faces that are not theirs.
type contradiction struct {
	A        side    `json:"a"`
	B        side    `json:"b"`
	Distance float64 `json:"distance"` // between them
	Pairs    int     `json:"pairs"`    // of faces of these two that contradict each other
}

// side is one of the two faces.
type side struct {
	ID       int64           `json:"id"` // to take it back
	Name     string          `json:"name"`
	Negative bool            `json:"not"` // the label says that it is not that person
	Portrait office.Portrait `json:"portrait"`
}

// contradictions returns the conflicts of an office with pictures, those with the nearest faces first.
func contradictions(w *office.Office) []contradiction {
	all := []contradiction{}
	var ids []int64
	for _, c := range w.Conflicts() {
		ids = append(ids, c.A.ID, c.B.ID)
		all = append(all, contradiction{
			A: side{ID: c.A.ID, Name: c.A.Name, Negative: c.A.Negative}, B: side{ID: c.B.ID, Name: c.B.Name, Negative: c.B.Negative},
			Distance: c.Distance, Pairs: c.Pairs,
		})
	}
	if len(all) == 0 {
		return all
	}
	pictures := w.Portraits(ids)
	for i := range all {
		all[i].A.Portrait, all[i].B.Portrait = pictures[2*i], pictures[2*i+1]
	}
	return all
}
