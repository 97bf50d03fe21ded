package online

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/quantized"
	"github.com/fxamacker/cbor/v2"
)

// Errors of [Learner.UnmarshalBinary].
var (
	ErrVersion = errors.New("snapshot of another version")
	ErrDamaged = errors.New("damaged snapshot")
)

// version of the snapshot format that MarshalBinary writes. Version 1 had no longest edge.
const version = 2

type snapshot struct {
	Version  int              `cbor:"version"`
	Space    face.Space       `cbor:"space"`
	Settings Settings         `cbor:"settings"`
	Names    []string         `cbor:"names"`
	Counts   Counts           `cbor:"counts"`
	R        float64          `cbor:"r"`
	Vertices []snapshotVertex `cbor:"vertices"`
	LastID   int64            `cbor:"last_id"`
	Journal  []int64          `cbor:"journal"`
	Lost     int64            `cbor:"lost"`
	Window   int64            `cbor:"window"`
	Spent    []int            `cbor:"spent"`
}

type snapshotVertex struct {
	_            struct{} `cbor:",toarray"`
	Point        []byte
	Multiplicity float64
	Class        int
	Source       []int
	Values       []float64
	Origin       snapshotOrigin
}

type snapshotOrigin struct {
	_                    struct{} `cbor:",toarray"`
	ID, Observation, Via int64
	Hops                 int
}

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

// upgrade returns the snapshot as version 2 writes it. Its vertices are numbered by their age, and
// nothing in it can be undone.
func (s snapshot1) upgrade() snapshot {
	later := Settings{}.defaults(s.Space)
	s.Settings.Journal, s.Settings.LearnWindow, s.Settings.DriftConstancy = later.Journal, later.LearnWindow, later.DriftConstancy
	t := snapshot{
		Version: version, Space: s.Space, Settings: s.Settings, Names: s.Names, Counts: s.Counts, R: s.R,
		LastID: int64(len(s.Vertices)), Lost: s.Counts.Observed,
	}
	for i, v := range s.Vertices {
		t.Vertices = append(t.Vertices, snapshotVertex{
			Point: v.Point, Multiplicity: v.Multiplicity, Class: v.Class, Source: v.Source, Values: v.Values,
			Origin: snapshotOrigin{ID: int64(i + 1)},
		})
	}
	return t
}

var (
	encoding cbor.EncMode
	decoding cbor.DecMode
)

func init() {
	// Neither fails: the options are constants that the package's tests have seen.
	encoding, _ = cbor.CoreDetEncOptions().EncMode()
	decoding, _ = cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxArrayElements:  1 << 22,
		MaxNestedLevels:   8,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
	}.DecMode()
}

// MarshalBinary returns a snapshot of l. The same learner gives the same bytes.
func (l *Learner) MarshalBinary() ([]byte, error) {
	state := l.graph.State()
	s := snapshot{
		Version: version, Space: l.space, Settings: l.settings, Names: l.names, Counts: l.counts,
		R: state.R, Vertices: make([]snapshotVertex, len(state.Vertices)),
		LastID: state.LastID, Journal: state.Journal, Lost: state.Lost,
		Window: l.budget.window, Spent: l.budget.used,
	}
	for i, v := range state.Vertices {
		point := make([]byte, 0, 4*len(v.Point))
		for _, x := range v.Point {
			point = binary.LittleEndian.AppendUint32(point, math.Float32bits(x))
		}
		o := v.Origin
		s.Vertices[i] = snapshotVertex{
			Point: point, Multiplicity: v.Multiplicity, Class: v.Class, Source: v.Source, Values: v.Values,
			Origin: snapshotOrigin{ID: o.ID, Observation: o.Observation, Via: o.Via, Hops: o.Hops},
		}
	}
	return encoding.Marshal(s)
}

// UnmarshalBinary makes l the learner of which data is a snapshot. The error wraps [ErrVersion] or
// [ErrDamaged]; l has then not changed.
func (l *Learner) UnmarshalBinary(data []byte) error {
	var head struct {
		Version int `cbor:"version"`
	}
	if err := cbor.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if head.Version < 1 || head.Version > version {
		return fmt.Errorf("%w: it is %d, and this program reads 1 to %d", ErrVersion, head.Version, version)
	}
	var s snapshot
	var err error
	if head.Version == 1 {
		var old snapshot1
		err = decoding.Unmarshal(data, &old)
		s = old.upgrade()
	} else {
		err = decoding.Unmarshal(data, &s)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	damaged := func(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }
	if s.Settings != s.Settings.defaults(s.Space) {
		return damaged(errors.New("settings are not complete"))
	}
	if err := s.Settings.check(); err != nil {
		return damaged(err)
	}
	for i, name := range s.Names {
		if err := CheckName(name); err != nil {
			return damaged(err)
		}
		if slices.Contains(s.Names[:i], name) {
			return damaged(fmt.Errorf("the name %q is there twice", name))
		}
	}
	state := quantized.State{
		R: s.R, Classes: len(s.Names), Vertices: make([]quantized.Vertex, len(s.Vertices)),
		LastID: s.LastID, Journal: s.Journal, Lost: s.Lost,
	}
	for i, v := range s.Vertices {
		if len(v.Point) != 4*s.Space.Dim {
			return damaged(fmt.Errorf("vertex %d has %d bytes, want %d", i, len(v.Point), 4*s.Space.Dim))
		}
		point := make([]float32, s.Space.Dim)
		for q := range point {
			point[q] = math.Float32frombits(binary.LittleEndian.Uint32(v.Point[4*q:]))
		}
		if err := s.Space.Check(point); err != nil {
			return damaged(fmt.Errorf("vertex %d: %w", i, err))
		}
		o := v.Origin
		state.Vertices[i] = quantized.Vertex{
			Point: point, Multiplicity: v.Multiplicity, Class: v.Class, Source: v.Source, Values: v.Values,
			Origin: quantized.Origin{ID: o.ID, Observation: o.Observation, Via: o.Via, Hops: o.Hops},
		}
	}
	if n := len(state.Vertices); n > s.Settings.K+1 {
		return damaged(fmt.Errorf("%d vertices for k = %d", n, s.Settings.K))
	}
	g, err := quantized.Restore(s.Settings.graph(s.Space), state)
	if err != nil {
		return damaged(err)
	}
	if len(s.Spent) > len(s.Names) {
		return damaged(errors.New("more people have been learned than there are"))
	}
	*l = Learner{
		space: s.Space, settings: s.Settings, names: s.Names, counts: s.Counts, graph: g,
		budget: budget{window: s.Window, used: s.Spent},
	}
	return nil
}
