package online

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/quantized"
	"github.com/fxamacker/cbor/v2"
)

// Errors of [Learner.UnmarshalBinary].
var (
	ErrVersion = errors.New("snapshot of another version")
	ErrDamaged = errors.New("damaged snapshot")
)

// version of the snapshot format that MarshalBinary writes.
const version = 4

type snapshot struct {
	Version  int              `cbor:"version"`
	Space    face.Space       `cbor:"space"`
	Settings Settings         `cbor:"settings"`
	Names    []string         `cbor:"names"`
	Not      []bool           `cbor:"not"`
	Counts   Counts           `cbor:"counts"`
	R        float64          `cbor:"r"`
	Vertices []snapshotVertex `cbor:"vertices"`
	LastID   int64            `cbor:"last_id"`
	Journal  []int64          `cbor:"journal"` // an observation, its time, and the ID of the vertex that took it in; and so on
	Lost     snapshotMoment   `cbor:"lost"`
	Aged     int64            `cbor:"aged"`
	Stale    bool             `cbor:"stale"`
	Window   int64            `cbor:"window"`
	Spent    []int            `cbor:"spent"`
}

type snapshotVertex struct {
	_            struct{} `cbor:",toarray"`
	Point        []byte
	Multiplicity float64
	Points       float64
	Class        int
	Source       []int
	Values       []float64
	Origin       snapshotOrigin
}

type snapshotMoment struct {
	_                 struct{} `cbor:",toarray"`
	Observation, Time int64
}

type snapshotOrigin struct {
	_                          struct{} `cbor:",toarray"`
	ID, Observation, Time, Via int64
	Hops                       int
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
		Version: version, Space: l.space, Settings: l.settings, Names: l.names, Not: l.not, Counts: l.counts,
		R: state.R, Vertices: make([]snapshotVertex, len(state.Vertices)),
		LastID: state.LastID, Journal: make([]int64, 0, 3*len(state.Journal)),
		Lost: snapshotMoment{Observation: state.Lost.Observation, Time: state.Lost.Time}, Aged: state.Aged, Stale: state.Stale,
		Window: l.budget.window, Spent: l.budget.used,
	}
	for _, e := range state.Journal {
		s.Journal = append(s.Journal, e.Observation, e.Time, e.Vertex)
	}
	for i, v := range state.Vertices {
		point := make([]byte, 0, 4*len(v.Point))
		for _, x := range v.Point {
			point = binary.LittleEndian.AppendUint32(point, math.Float32bits(x))
		}
		o := v.Origin
		s.Vertices[i] = snapshotVertex{
			Point: point, Multiplicity: v.Multiplicity, Points: v.Points, Class: v.Class, Source: v.Source, Values: v.Values,
			Origin: snapshotOrigin{ID: o.ID, Observation: o.Observation, Time: o.Time, Via: o.Via, Hops: o.Hops},
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
	switch head.Version {
	case 1:
		var old snapshot1
		err = decoding.Unmarshal(data, &old)
		s = old.upgrade().upgrade()
	case 2:
		var old snapshot2
		err = decoding.Unmarshal(data, &old)
		s = old.upgrade()
	default:
		err = decoding.Unmarshal(data, &s)
		if head.Version == 3 { // which could reject nobody
			s.Not = make([]bool, len(s.Names))
		}
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
	if len(s.Not) != len(s.Names) {
		return damaged(fmt.Errorf("%d classes, and %d names", len(s.Not), len(s.Names)))
	}
	for i, name := range s.Names {
		if err := CheckName(name); err != nil {
			return damaged(err)
		}
		for j := range i {
			if s.Names[j] == name && s.Not[j] == s.Not[i] {
				return damaged(fmt.Errorf("the name %q is there twice", name))
			}
		}
	}
	people := make(map[string]bool)
	for i, name := range s.Names {
		if !s.Not[i] {
			people[name] = true
		}
	}
	for _, name := range s.Names {
		if !people[name] {
			return damaged(fmt.Errorf("it has faces that are not those of %q, who is not known", name))
		}
	}
	state := quantized.State{
		R: s.R, Classes: len(s.Names), Vertices: make([]quantized.Vertex, len(s.Vertices)),
		LastID: s.LastID, Lost: quantized.Moment{Observation: s.Lost.Observation, Time: s.Lost.Time}, Aged: s.Aged, Stale: s.Stale,
	}
	if len(s.Journal)%3 != 0 {
		return damaged(fmt.Errorf("journal of %d numbers", len(s.Journal)))
	}
	for q := 0; q < len(s.Journal); q += 3 {
		state.Journal = append(state.Journal, quantized.Entry{
			Moment: quantized.Moment{Observation: s.Journal[q], Time: s.Journal[q+1]}, Vertex: s.Journal[q+2],
		})
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
			Point: point, Multiplicity: v.Multiplicity, Points: v.Points, Class: v.Class, Source: v.Source, Values: v.Values,
			Origin: quantized.Origin{ID: o.ID, Moment: quantized.Moment{Observation: o.Observation, Time: o.Time}, Via: o.Via, Hops: o.Hops},
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
		space: s.Space, settings: s.Settings, names: s.Names, not: s.Not, counts: s.Counts, graph: g,
		budget: budget{window: s.Window, used: s.Spent},
	}
	return nil
}
