// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"
	"math"

	"github.com/faceauth/faceauth/face"
)

// snapshot4 is the format of versions 3 and 4. There K counted labelled faces, too, the solution was stored, and the
// journal did not have the vertex through which a face was accepted. Version 3 had no negative labels.
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
	// Journal has three numbers for each entry: observation, time, and the ID of the vertex that took the face in.
	Journal []int64        `cbor:"journal"`
	Lost    snapshotMoment `cbor:"lost"`
	Aged    int64          `cbor:"aged"`
	Stale   bool           `cbor:"stale"`
	Window  int64          `cbor:"window"`
	Spent   []int          `cbor:"spent"`
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

// upgrade returns the snapshot in the present format. In these versions an undo after a change of the half-life could
// leave a vertex with more weight than points. Such weights are repaired and counted.
func (old snapshot4) upgrade() (s snapshot, repaired int, err error) {
	s = snapshot{
		Version: unassisted, Space: old.Space, Settings: old.Settings.defaults(old.Space), Names: old.Names,
		Negative: old.Not,
		Counts:   old.Counts, R: old.R, LastID: old.LastID, Lost: old.Lost, Aged: old.Aged, Window: old.Window,
		Spent: old.Spent,
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
		s.R = 0 // it was larger than the edges, and begins anew
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
	room := make(map[int64]float64) // points of each vertex that were merged into it
	for _, v := range old.Vertices {
		o := snapshotOrigin{
			ID: v.Origin.ID, Observation: v.Origin.Observation, Time: v.Origin.Time, Via: v.Origin.Via,
			Hops: v.Origin.Hops,
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
