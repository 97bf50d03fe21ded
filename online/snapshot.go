// SPDX-License-Identifier: Apache-2.0

package online

import (
	"errors"
	"fmt"
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

// version is the version of the snapshot format. No other version is read.
const version = 4

// snapshot is the format of [Learner.MarshalBinary]: a CBOR map (RFC 8949, core deterministic
// encoding). Coordinates are little-endian float32. Structs without names of fields are arrays.
type snapshot struct {
	Version  int             `cbor:"version"`
	Space    face.Space      `cbor:"space"`
	Settings Settings        `cbor:"settings"`
	Classes  []class         `cbor:"classes"`
	Counts   Counts          `cbor:"counts"`
	Time     int64           `cbor:"time"`
	Graph    quantized.State `cbor:"graph"`

	Portraits map[int64]portrait `cbor:"portraits,omitempty"` // by the number of the learned face
}

var (
	encoding cbor.EncMode
	decoding cbor.DecMode
	// anyVersion reads what all versions have. A learner has more labels than cbor allows of
	// itself.
	anyVersion cbor.DecMode
)

func init() {
	// These calls cannot fail: the options are constants, and the tests of the package use them.
	encoding, _ = cbor.CoreDetEncOptions().EncMode()
	decoding, _ = cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxArrayElements:  1 << 24,
		MaxMapPairs:       1 << 24,
		MaxNestedLevels:   9,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
	}.DecMode()
	anyVersion, _ = cbor.DecOptions{MaxArrayElements: 1 << 24, MaxMapPairs: 1 << 24}.DecMode()
}

// MarshalBinary returns a snapshot of l. A restored learner continues, and writes the same bytes.
func (l *Learner) MarshalBinary() ([]byte, error) { return l.marshal(false) }

// MarshalLearned returns a snapshot of l without the vectors of labelled and rejected faces, for a
// program that keeps these itself. [Learner.UnmarshalLearned] reads it.
func (l *Learner) MarshalLearned() ([]byte, error) { return l.marshal(true) }

func (l *Learner) marshal(learned bool) ([]byte, error) {
	l.dropPortraits()
	s := snapshot{
		Version: version, Space: l.space, Settings: l.settings, Classes: l.classes,
		Counts: l.counts, Time: l.time, Graph: l.graph.State(), Portraits: l.portraits,
	}
	for i := range s.Graph.Vertices {
		if v := &s.Graph.Vertices[i]; learned && v.Class >= 0 {
			v.Point = nil
		}
	}
	return encoding.Marshal(s)
}

// UnmarshalBinary restores l from a snapshot. It checks everything except the completeness of the
// list of edges: a file that hides some makes a learner that knows less. Its memory is bounded by
// the size of data; no number in data makes l take more. The error wraps [ErrVersion] or
// [ErrDamaged]. On error l is unchanged.
func (l *Learner) UnmarshalBinary(data []byte) error { return l.UnmarshalLearned(data, nil) }

// UnmarshalLearned restores l from a snapshot of [Learner.MarshalLearned], as
// [Learner.UnmarshalBinary] does. The function returns the vector of a labelled or rejected face by
// its number, or nil if there is none. Numbers that l has given before are not given again.
func (l *Learner) UnmarshalLearned(data []byte, labelled func(id int64) []float32) error {
	var head struct {
		Version int `cbor:"version"`
	}
	if err := anyVersion.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch is := head.Version; {
	case is > version:
		return fmt.Errorf(
			"%w: a newer program wrote version %d, and this one reads %d; update this program",
			ErrVersion, is, version)
	case is < version:
		return fmt.Errorf("%w: it has version %d, and this program reads %d", ErrVersion, is,
			version)
	}
	var s snapshot
	if err := decoding.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if labelled != nil {
		for i := range s.Graph.Vertices {
			if v := &s.Graph.Vertices[i]; v.Class >= 0 && len(v.Point) == 0 {
				v.Point = labelled(v.Origin.ID)
			}
		}
		s.Graph.LastID = max(s.Graph.LastID, l.graph.State().LastID)
	}
	back, err := s.learner()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	back.learned, back.restored = l.learned, l.restored+1
	*l = *back
	return nil
}

// Restored returns how often l was read from a snapshot. Numbers of faces and observations from
// before may then be those of others.
func (l *Learner) Restored() int { return l.restored }

// check returns an error if the settings, people and counts of a snapshot cannot belong to a
// learner.
func (s *snapshot) check() error {
	if s.Settings != s.Settings.defaults(s.Space) {
		return errors.New("settings are not complete")
	}
	if err := s.Settings.check(); err != nil {
		return err
	}
	if len(s.Classes) != s.Graph.Classes {
		return fmt.Errorf("it has %d people, and %d have labels", len(s.Classes), s.Graph.Classes)
	}
	c := s.Counts
	for _, n := range []int64{c.Labelled, c.Observed, c.Outliers, c.Learned, c.PassedOver} {
		if n < 0 || n > mostObserved {
			return fmt.Errorf("counts are %+v", c)
		}
	}
	return nil
}

// learner returns the learner of the snapshot.
func (s *snapshot) learner() (*Learner, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	l := &Learner{
		space: s.Space, settings: s.Settings, classes: s.Classes, index: make(map[class]int),
		counts: s.Counts, time: s.Time, looks: slices.Repeat([]int{notCounted}, len(s.Classes)),
	}
	for i, c := range s.Classes {
		if _, twice := l.index[c]; twice || c.Person == 0 {
			return nil, fmt.Errorf("person %d is there twice, or nobody", c.Person)
		}
		l.index[c] = i
	}
	for _, c := range l.classes {
		if !l.Knows(c.Person) {
			return nil, fmt.Errorf("it has rejected faces of person %d, who is not known", c.Person)
		}
	}
	for i, v := range s.Graph.Vertices {
		if err := s.Space.Check(v.Point); err != nil {
			return nil, fmt.Errorf("vertex %d: %w", i, err)
		}
	}
	g, err := quantized.Restore(s.Settings.graph(s.Space), s.Graph)
	if err != nil {
		return nil, err
	}
	l.graph, l.portraits = *g, s.Portraits
	return l, checkPortraits(g, s.Portraits)
}
