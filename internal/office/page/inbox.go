// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/sighting"
)

// question is a question that only a user can answer.
type question struct {
	Key string `json:"key"` // stays the same while the question exists
	// Kind is "stranger" (who is it?), "still" (is it still this person?) or "conflict" (which
	// label is wrong?).
	Kind     string           `json:"kind"`
	At       time.Time        `json:"at,omitzero"`
	Stranger *office.Stranger `json:"stranger,omitempty"`
	Sighting *office.Sighting `json:"sighting,omitempty"`
	Conflict *office.Conflict `json:"conflict,omitempty"`
}

// inbox returns the open questions: first contradictions between labels, because they disturb
// recognition, then the others, the newest first.
func (p *Page) inbox() []question {
	w := p.office
	all := []question{}
	for _, g := range p.strangers() {
		if !g.Ignored {
			all = append(all,
				question{Key: fmt.Sprintf("stranger-%d", g.ID), Kind: "stranger", At: g.Last,
					Stranger: &g})
		}
	}
	asked := make(map[string]bool)
	for _, s := range w.Sightings(0, 64) { // the newest first
		if s.Name != "" && s.Trust == sighting.Likely && !asked[s.Name] {
			asked[s.Name] = true
			all = append(all, question{Key: fmt.Sprintf("still-%d", s.ID), Kind: "still",
				At: s.Last, Sighting: &s})
		}
	}
	slices.SortStableFunc(all, func(a, b question) int { return b.At.Compare(a.At) })
	first := []question{}
	for _, c := range w.Conflicts() {
		key := fmt.Sprintf("conflict-%d-%d", c.A.ID, c.B.ID)
		first = append(first, question{Key: key, Kind: "conflict", Conflict: &c})
	}
	return append(first, all...)
}
