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
	Conflict *office.Conflict `json:"conflict,omitempty"`
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
		if s.Name != "" && s.Trust == sighting.Likely && !asked[s.Name] {
			asked[s.Name] = true
			all = append(all, question{Key: fmt.Sprintf("still-%d", s.ID), Kind: "still", At: s.Last, Sighting: &s})
		}
	}
	slices.SortStableFunc(all, func(a, b question) int { return b.At.Compare(a.At) })
	first := []question{}
	for _, c := range w.Conflicts() {
		key := fmt.Sprintf("conflict-%d-%d", c.A.Face, c.B.Face)
		first = append(first, question{Key: key, Kind: "conflict", Conflict: &c})
	}
	return append(first, all...)
}

// stranger is a group of unknown faces without the faces themselves.
type stranger struct {
	ID      uint64    `json:"id"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Visits  int       `json:"visits"`
	Ignored bool      `json:"ignored"`
	// Probably is the known person who comes nearest, beyond the limit of a name.
	Probably *office.Probably `json:"probably,omitempty"`
	Best     []uint64         `json:"best"` // numbers of the faces that show the person best
	Faces    []faceShown      `json:"faces"`
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
	groups := w.Strangers()
	probable := w.Probable(groups)
	for _, g := range groups {
		s := stranger{
			ID: g.ID, First: g.First, Last: g.Last, Visits: g.Visits, Ignored: g.Ignored,
			Best: w.Best(g.Album.Faces, bestFaces), Faces: []faceShown{},
		}
		if is, there := probable[g.ID]; there {
			s.Probably = &is
		}
		for _, f := range g.Album.Faces {
			s.Faces = append(s.Faces, faceShown{f.ID, f.At, f.Camera})
		}
		all = append(all, s)
	}
	return all
}
