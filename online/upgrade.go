package online

import "github.com/faceauth/faceauth/face"

// snapshot1 is version 1: no vertex knew where it came from.
type snapshot1 struct {
	Version  int               `cbor:"version"`
	Space    face.Space        `cbor:"space"`
	Settings Settings          `cbor:"settings"`
	Names    []string          `cbor:"names"`
	Counts   Counts            `cbor:"counts"`
	R        float64           `cbor:"r"`
	Vertices []snapshotVertex1 `cbor:"vertices"`
}

type snapshotVertex1 struct {
	_            struct{} `cbor:",toarray"`
	Point        []byte
	Multiplicity float64
	Class        int
	Source       []int
	Values       []float64
}

// upgrade returns the snapshot as version 2 wrote it. Its vertices are numbered by their age, and nothing
// in it can be undone.
func (s snapshot1) upgrade() snapshot2 {
	later := Settings{}.defaults(s.Space)
	s.Settings.Journal, s.Settings.LearnWindow, s.Settings.DriftConstancy = later.Journal, later.LearnWindow, later.DriftConstancy
	t := snapshot2{
		Space: s.Space, Settings: s.Settings, Names: s.Names, Counts: s.Counts, R: s.R,
		LastID: int64(len(s.Vertices)), Lost: s.Counts.Observed,
	}
	for i, v := range s.Vertices {
		t.Vertices = append(t.Vertices, snapshotVertex2{
			Point: v.Point, Multiplicity: v.Multiplicity, Class: v.Class, Source: v.Source, Values: v.Values,
			Origin: snapshotOrigin2{ID: int64(i + 1)},
		})
	}
	return t
}

// snapshot2 is version 2: nothing aged, and no time was known.
type snapshot2 struct {
	Version  int               `cbor:"version"`
	Space    face.Space        `cbor:"space"`
	Settings Settings          `cbor:"settings"`
	Names    []string          `cbor:"names"`
	Counts   Counts            `cbor:"counts"`
	R        float64           `cbor:"r"`
	Vertices []snapshotVertex2 `cbor:"vertices"`
	LastID   int64             `cbor:"last_id"`
	Journal  []int64           `cbor:"journal"`
	Lost     int64             `cbor:"lost"`
	Window   int64             `cbor:"window"`
	Spent    []int             `cbor:"spent"`
}

type snapshotVertex2 struct {
	_            struct{} `cbor:",toarray"`
	Point        []byte
	Multiplicity float64
	Class        int
	Source       []int
	Values       []float64
	Origin       snapshotOrigin2
}

type snapshotOrigin2 struct {
	_                    struct{} `cbor:",toarray"`
	ID, Observation, Via int64
	Hops                 int
}

// upgrade returns the snapshot as the present version writes it. Since version 3 there is an alarm for drift by default.
func (s snapshot2) upgrade() snapshot {
	if s.Settings.DriftDistance == 0 {
		s.Settings.DriftDistance = s.Settings.Reach
	}
	t := snapshot{
		Version: version, Space: s.Space, Settings: s.Settings, Names: s.Names, Not: make([]bool, len(s.Names)), Counts: s.Counts, R: s.R,
		LastID: s.LastID, Lost: snapshotMoment{Observation: s.Lost}, Window: s.Window, Spent: s.Spent, Stale: true,
	}
	for q, x := range s.Journal {
		t.Journal = append(t.Journal, x)
		if q%2 == 0 {
			t.Journal = append(t.Journal, 0)
		}
	}
	for _, v := range s.Vertices {
		o := v.Origin
		t.Vertices = append(t.Vertices, snapshotVertex{
			Point: v.Point, Multiplicity: v.Multiplicity, Points: v.Multiplicity, Class: v.Class, Source: v.Source, Values: v.Values,
			Origin: snapshotOrigin{ID: o.ID, Observation: o.Observation, Via: o.Via, Hops: o.Hops},
		})
	}
	return t
}
