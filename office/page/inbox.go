// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/sighting"
)

// question is a question that only a user can answer.
type question struct {
	Key string `json:"key"` // stays the same while the question exists
	// Kind is "stranger" (who is it?), "still" (is it still this person?) or "conflict" (which label is wrong?).
	Kind     string           `json:"kind"`
	At       time.Time        `json:"at,omitzero"`
	Stranger *stranger        `json:"stranger,omitempty"`
	Sighting *office.Sighting `json:"sighting,omitempty"`
	Conflict *contradiction   `json:"conflict,omitempty"`
}

// inbox returns the open questions: first contradictions between labels, because they disturb recognition, then the
// others, the newest first.
func inbox(w *office.Office) []question {
	all := []question{}
	for _, g := range strangers(w) {
		if !g.Ignored {
			all = append(all,
				question{Key: fmt.Sprintf("stranger-%d", g.ID), Kind: "stranger", At: g.Last, Stranger: &g})
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
		key := fmt.Sprintf("conflict-%d-%d", c.A.Face, c.B.Face)
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
	Best    []uint64    `json:"best"` // numbers of the faces that show the person best
	Faces   []faceShown `json:"faces"`
}

type faceShown struct {
	ID     uint64    `json:"id"`
	At     time.Time `json:"at"`
	Camera string    `json:"camera"`
}

// bestFaces is the number of faces of a stranger that the question shows.
const bestFaces = 4

func strangers(w *office.Office) []stranger {
	all := []stranger{}
	for _, g := range w.Strangers() {
		s := stranger{
			ID: g.ID, First: g.First, Last: g.Last, Visits: g.Visits, Ignored: g.Ignored,
			Best: w.Best(g.Album.Faces, bestFaces), Faces: []faceShown{},
		}
		for _, f := range g.Album.Faces {
			s.Faces = append(s.Faces, faceShown{f.ID, f.At, f.Camera})
		}
		all = append(all, s)
	}
	return all
}

// contradiction is a pair of labelled faces that look like one person and cannot both be right.
type contradiction struct {
	A        side    `json:"a"`
	B        side    `json:"b"`
	Distance float64 `json:"distance"` // between the two faces
	Pairs    int     `json:"pairs"`    // number of contradicting pairs of these two people
}

// side is one of the two faces.
type side struct {
	Face     uint64          `json:"face"` // for /api/unlabel
	Name     string          `json:"name"`
	Negative bool            `json:"not"` // a negative label: the face is not this person's
	Portrait office.Portrait `json:"portrait"`
}

// contradictions returns the conflicts of an office with pictures, the nearest faces first.
func contradictions(w *office.Office) []contradiction {
	all := []contradiction{}
	var ids []int64
	for _, c := range w.Conflicts() {
		ids = append(ids, c.A.Stored, c.B.Stored)
		all = append(all, contradiction{
			A:        side{Face: c.A.Face, Name: c.A.Name, Negative: c.A.Negative},
			B:        side{Face: c.B.Face, Name: c.B.Name, Negative: c.B.Negative},
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
