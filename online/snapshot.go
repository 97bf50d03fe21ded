// SPDX-License-Identifier: Apache-2.0

package online

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/quantized"
	"github.com/fxamacker/cbor/v2"
)

// Errors of [Learner.UnmarshalBinary].
var (
	ErrVersion = errors.New("snapshot of another version")
	ErrDamaged = errors.New("damaged snapshot")
)

// version is the version of the snapshot format. No other version is read.
const version = 8

type snapshot struct {
	Version  int              `cbor:"version"`
	Space    face.Space       `cbor:"space"`
	Settings Settings         `cbor:"settings"`
	Names    []string         `cbor:"names"`
	Negative []bool           `cbor:"negative"`
	Counts   Counts           `cbor:"counts"`
	Time     int64            `cbor:"time"`
	R        float64          `cbor:"r"`
	Spread   float64          `cbor:"spread"`
	Full     bool             `cbor:"full"`
	Reach    float64          `cbor:"reach"`
	Vertices []snapshotVertex `cbor:"vertices"`
	LastID   int64            `cbor:"last_id"`
	Links    []snapshotLink   `cbor:"links"`
	Journal  []snapshotEntry  `cbor:"journal"`
	Lost     snapshotMoment   `cbor:"lost"`
	Aged     int64            `cbor:"aged"`
	Clock    float64          `cbor:"clock"`
	Window   int64            `cbor:"window"`
	Spent    []int            `cbor:"spent"`
	Given    []snapshotSource `cbor:"given,omitempty"`
	Aided    []snapshotAided  `cbor:"aided,omitempty"`
	LastAid  int64            `cbor:"last_aided,omitempty"`
	Through  []string         `cbor:"through,omitempty"`

	Portraits []snapshotPortrait `cbor:"portraits,omitempty"`
}

type snapshotVertex struct {
	_            struct{} `cbor:",toarray"`
	Point        []byte
	Multiplicity float64
	Points       float64
	Class        int
	Source       []int
	Origin       snapshotOrigin
	Neighbours   []int
	Links        []int
}

type snapshotSource struct {
	_       struct{} `cbor:",toarray"`
	Name    string
	Clock   float64
	Lessons []snapshotLesson
}

// snapshotLink is a contracted edge.
type snapshotLink struct {
	_          struct{} `cbor:",toarray"`
	A, B, P, Q int64
}

type snapshotMoment struct {
	_                 struct{} `cbor:",toarray"`
	Observation, Time int64
}

type snapshotOrigin struct {
	_                          struct{} `cbor:",toarray"`
	ID, Observation, Time, Via int64
	Hops                       int
	Own, Born                  float64
}

type snapshotEntry struct {
	_                                  struct{} `cbor:",toarray"`
	Observation, Time, Vertex, ID, Via int64
	Count, Born                        float64
}

var (
	encoding cbor.EncMode
	decoding cbor.DecMode
)

func init() {
	// These calls cannot fail: the options are constants, and the tests of the package use them.
	encoding, _ = cbor.CoreDetEncOptions().EncMode()
	decoding, _ = cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxArrayElements:  1 << 24,
		MaxNestedLevels:   8,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
	}.DecMode()
}

// MarshalBinary returns a snapshot of l. The same learner gives the same bytes.
func (l *Learner) MarshalBinary() ([]byte, error) { return l.marshal(vector.Bytes) }

// MarshalLearned returns a snapshot of l without the vectors of labelled and rejected faces, for a program that keeps
// these itself. [Learner.UnmarshalLearned] reads it.
func (l *Learner) MarshalLearned() ([]byte, error) {
	return l.marshal(func([]float32) []byte { return nil })
}

// marshal returns a snapshot, with the points of labelled vertices as the function gives them.
func (l *Learner) marshal(labelled func([]float32) []byte) ([]byte, error) {
	state := l.graph.State()
	s := snapshot{
		Version: version, Space: l.space, Settings: l.settings, Counts: l.counts, Time: l.time,
		Names: make([]string, len(l.classes)), Negative: make([]bool, len(l.classes)),
		R: state.R, Spread: state.Spread, Full: state.Full, Reach: state.Reach,
		Vertices: make([]snapshotVertex, len(state.Vertices)),
		LastID:   state.LastID, Journal: make([]snapshotEntry, len(state.Journal)),
		Lost: snapshotMoment{Observation: state.Lost.Observation,
			Time: state.Lost.Time}, Aged: state.Aged, Clock: state.Clock,
		Window: l.budget.window, Spent: l.budget.used,
	}
	for c, class := range l.classes {
		s.Names[c], s.Negative[c] = class.name, class.negative
	}
	for i, e := range state.Journal {
		s.Journal[i] = snapshotEntry{
			Observation: e.Observation, Time: e.Time, Vertex: e.Vertex, ID: e.ID, Via: e.Via, Count: e.Count,
			Born: e.Born,
		}
	}
	for i, v := range state.Vertices {
		o, point := v.Origin, vector.Bytes
		if v.Class >= 0 {
			point = labelled
		}
		s.Vertices[i] = snapshotVertex{
			Point: point(v.Point), Multiplicity: v.Multiplicity, Points: v.Points, Class: v.Class,
			Source: v.Source,
			Origin: snapshotOrigin{
				ID: o.ID, Observation: o.Observation, Time: o.Time, Via: o.Via, Hops: o.Hops, Own: o.Own, Born: o.Born,
			},
			Neighbours: v.Neighbours, Links: v.Links,
		}
	}
	for _, k := range state.Links {
		s.Links = append(s.Links, snapshotLink{A: k.A, B: k.B, P: k.P, Q: k.Q})
	}
	for _, source := range slices.Sorted(maps.Keys(l.given)) {
		g := l.given[source]
		kept := snapshotSource{Name: source, Clock: g.clock}
		for _, lesson := range g.lessons {
			kept.Lessons = append(kept.Lessons, lesson.snapshot())
		}
		s.Given = append(s.Given, kept)
	}
	s.Through = l.through
	s.LastAid = l.lastAided
	s.Portraits = l.snapshotPortraits()
	for _, a := range l.aided {
		s.Aided = append(s.Aided, snapshotAided{ID: a.id, Name: a.name, Point: vector.Bytes(a.vector), Clock: a.clock,
			Links: a.links})
	}
	return encoding.Marshal(s)
}

// UnmarshalBinary restores l from a snapshot. Its memory is bounded by the size of data; no number in data makes l take
// more. The error wraps [ErrVersion] or [ErrDamaged]. On error l is unchanged.
func (l *Learner) UnmarshalBinary(data []byte) error { return l.UnmarshalLearned(data, nil) }

// UnmarshalLearned restores l from a snapshot of [Learner.MarshalLearned], as [Learner.UnmarshalBinary] does. The
// function returns the vector of a labelled or rejected face by its number, or nil if there is none. Numbers that l has
// given before are not given again.
func (l *Learner) UnmarshalLearned(data []byte, labelled func(id int64) []float32) error {
	var head struct {
		Version int `cbor:"version"`
	}
	if err := cbor.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err := checkVersion(head.Version, version); err != nil {
		return err
	}
	var s snapshot
	if err := decoding.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for i, v := range s.Vertices {
		if labelled != nil && v.Class >= 0 && v.Point == nil {
			s.Vertices[i].Point = vector.Bytes(labelled(v.Origin.ID))
		}
	}
	if labelled != nil && l.graph != nil {
		s.LastID = max(s.LastID, l.graph.State().LastID)
	}
	back, err := s.learner()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	back.learned = l.learned
	*l = *back
	return nil
}

// checkVersion returns an error if a file has another version than this program reads.
func checkVersion(is, want int) error {
	switch {
	case is > want:
		return fmt.Errorf("%w: a newer program wrote version %d, and this one reads %d; update this program",
			ErrVersion, is, want)
	case is < want:
		return fmt.Errorf("%w: an older program wrote version %d, and this one reads only %d; make it again with "+
			"this one", ErrVersion, is, want)
	}
	return nil
}

// check returns an error if the settings and names of a snapshot cannot belong to a learner.
func (s *snapshot) check() error {
	if s.Settings != s.Settings.defaults(s.Space) {
		return errors.New("settings are not complete")
	}
	if err := s.Settings.check(); err != nil {
		return err
	}
	if len(s.Negative) != len(s.Names) {
		return fmt.Errorf("%d classes, and %d names", len(s.Negative), len(s.Names))
	}
	if len(s.Spent) > len(s.Names) {
		return errors.New("more people have been learned than there are")
	}
	for _, n := range s.Spent {
		if n < 0 || n > mostObserved {
			return fmt.Errorf("%d faces of somebody have been learned", n)
		}
	}
	c := s.Counts
	for _, n := range []int64{c.Labelled, c.Observed, c.Outliers, c.Learned, c.PassedOver, s.Window} {
		if n >= 0 && n <= mostObserved {
			continue
		}
		return fmt.Errorf("counts are %+v in window %d", c, s.Window)
	}
	return nil
}

// learner returns the learner of the snapshot.
func (s *snapshot) learner() (*Learner, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	l := &Learner{
		space: s.Space, settings: s.Settings, index: make(map[class]int), counts: s.Counts, time: s.Time,
		budget: budget{window: s.Window, used: s.Spent},
	}
	for i, name := range s.Names {
		if err := CheckName(name); err != nil {
			return nil, err
		}
		c := class{name, s.Negative[i]}
		if _, twice := l.index[c]; twice {
			return nil, fmt.Errorf("the name %q is there twice", name)
		}
		l.index[c] = i
		l.classes = append(l.classes, c)
	}
	for _, c := range l.classes {
		if !l.Knows(c.name) {
			return nil, fmt.Errorf("it has rejected faces of %q, who is not known", c.name)
		}
	}
	state := quantized.State{
		R: s.R, Spread: s.Spread, Full: s.Full, Reach: s.Reach, Classes: len(s.Names),
		Vertices: make([]quantized.Vertex, len(s.Vertices)),
		LastID:   s.LastID, Lost: quantized.Moment{Observation: s.Lost.Observation, Time: s.Lost.Time},
		Aged: s.Aged, Clock: s.Clock, Journal: make([]quantized.Entry, len(s.Journal)),
	}
	for i, e := range s.Journal {
		state.Journal[i] = quantized.Entry{
			Moment: quantized.Moment{Observation: e.Observation, Time: e.Time},
			Vertex: e.Vertex, ID: e.ID, Via: e.Via, Count: e.Count, Born: e.Born,
		}
	}
	for _, k := range s.Links {
		state.Links = append(state.Links, quantized.Link{A: k.A, B: k.B, P: k.P, Q: k.Q})
	}
	dim := s.Space.Dim
	for i, v := range s.Vertices {
		if dim < 1 || len(v.Point) != 4*dim {
			return nil, fmt.Errorf("vertex %d has %d bytes, want %d", i, len(v.Point), 4*dim)
		}
		point := vector.Floats(v.Point)
		if err := s.Space.Check(point); err != nil {
			return nil, fmt.Errorf("vertex %d: %w", i, err)
		}
		s.Vertices[i].Point = nil // the coordinates are not needed twice
		o := v.Origin
		state.Vertices[i] = quantized.Vertex{
			Point: point, Multiplicity: v.Multiplicity, Points: v.Points, Class: v.Class, Source: v.Source,
			Origin: quantized.Origin{
				ID: o.ID, Moment: quantized.Moment{Observation: o.Observation, Time: o.Time}, Via: o.Via, Hops: o.Hops,
				Own: o.Own, Born: o.Born,
			},
			Neighbours: v.Neighbours, Links: v.Links,
		}
	}
	var err error
	if l.graph, err = quantized.Restore(s.Settings.graph(s.Space), state); err != nil {
		return nil, err
	}
	if err := l.restorePortraits(s.Portraits); err != nil {
		return nil, err
	}
	if err := l.restoreLessons(s.Given); err != nil {
		return nil, err
	}
	return l, l.restoreAided(s.Aided, s.LastAid, s.Through)
}
