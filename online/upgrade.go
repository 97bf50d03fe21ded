// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"
	"math"

	"github.com/faceauth/faceauth/face"
)

// snapshot4 is versions 3 and 4: K counted labelled faces, too, the solution was kept, and the journal did not know
// through which vertex a face had come. Version 3 had no negative labels.
type snapshot4 struct {
	Version  int               `cbor:"version"`
	Space    face.Space        `cbor:"space"`
	Settings Settings          `cbor:"settings"`
	Names    []string          `cbor:"names"`
	Not      []bool            `cbor:"not"`
	Counts   Counts            `cbor:"counts"`
	R        float64           `cbor:"r"`
	Vertices []snapshotVertex4 `cbor:"vertices"`
	LastID   int64             `cbor:"last_id"`
	Journal  []int64           `cbor:"journal"` // an observation, its time, and the ID of the vertex that took it in; and so on
	Lost     snapshotMoment    `cbor:"lost"`
	Aged     int64             `cbor:"aged"`
	Stale    bool              `cbor:"stale"`
	Window   int64             `cbor:"window"`
	Spent    []int             `cbor:"spent"`
}

type snapshotVertex4 struct {
	_            struct{} `cbor:",toarray"`
	Point        []byte
	Multiplicity float64
	Points       float64
	Class        int
	Source       []int
	Values       []float64
	Origin       snapshotOrigin4
}

type snapshotOrigin4 struct {
	_                          struct{} `cbor:",toarray"`
	ID, Observation, Time, Via int64
	Hops                       int
}

// upgrade returns the snapshot as the present version writes it. After a half-life had been set or changed, an undo
// could leave a vertex with a larger weight than it had points: such weights are repaired, and counted.
func (old snapshot4) upgrade() (s snapshot, repaired int, err error) {
	s = snapshot{
		Version: unassisted, Space: old.Space, Settings: old.Settings.defaults(old.Space), Names: old.Names, Negative: old.Not,
		Counts: old.Counts, R: old.R, LastID: old.LastID, Lost: old.Lost, Aged: old.Aged, Window: old.Window, Spent: old.Spent,
	}
	if old.Version == 3 {
		s.Negative = make([]bool, len(old.Names))
	}
	if err := s.check(); err != nil {
		return s, 0, err
	}
	c := s.Settings.graph(s.Space)
	s.Spread = min(old.R*c.Multiplier/(c.Multiplier-1), math.MaxFloat64)
	if old.R > c.EdgeRadius() {
		s.R = 0 // it had outgrown the edges, and begins anew
	}
	// Half-lives that have passed at an observation, counted in steps as ageing goes.
	born := func(observation int64) float64 {
		if c.HalfLife == 0 {
			return 0
		}
		period := int64(max(1, c.HalfLife/64))
		return max(float64(observation/period)*float64(period)/float64(c.HalfLife), 0)
	}
	s.Clock = born(old.Aged)
	room := make(map[int64]float64) // points of each vertex that are not its own
	for _, v := range old.Vertices {
		o := snapshotOrigin{
			ID: v.Origin.ID, Observation: v.Origin.Observation, Time: v.Origin.Time, Via: v.Origin.Via, Hops: v.Origin.Hops,
		}
		if v.Class < 0 {
			o.Own, o.Born = 1, min(born(o.Observation), s.Clock)
		}
		room[o.ID] = v.Points - 1
		multiplicity := min(v.Multiplicity, v.Points)
		if multiplicity < v.Multiplicity*(1-1e-9) {
			repaired++
		}
		s.Vertices = append(s.Vertices, snapshotVertex{
			Point: v.Point, Multiplicity: multiplicity, Points: v.Points, Class: v.Class, Source: v.Source, Origin: o,
		})
	}
	if len(old.Journal)%3 != 0 {
		return s, 0, fmt.Errorf("journal of %d numbers", len(old.Journal))
	}
	for q := 0; q < len(old.Journal); q += 3 {
		e := snapshotEntry{
			Observation: old.Journal[q], Time: old.Journal[q+1], Vertex: old.Journal[q+2], Via: old.Journal[q+2],
			Count: 1, Born: min(born(old.Journal[q]), s.Clock),
		}
		if room[e.Vertex]--; room[e.Vertex] < 0 {
			return s, 0, fmt.Errorf("vertex %d has taken in fewer faces than the journal says", e.Vertex)
		}
		s.Journal = append(s.Journal, e)
	}
	return s, repaired, nil
}
