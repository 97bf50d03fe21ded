// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/faceauth/faceauth/internal/vector"
)

// lessonVersion is the format version of a lesson on its own.
const lessonVersion = 1

// snapshotLesson is a lesson in a snapshot.
type snapshotLesson struct {
	_         struct{} `cbor:",toarray"`
	Name      string
	Centroids []snapshotCentroid
	Links     [][2]int
}

type snapshotCentroid struct {
	_                    struct{} `cbor:",toarray"`
	Point                []byte
	Multiplicity, Radius float64
}

func (s Lesson) snapshot() snapshotLesson {
	kept := snapshotLesson{Name: s.Name, Links: s.Links}
	for _, c := range s.Centroids {
		kept.Centroids = append(kept.Centroids, snapshotCentroid{Point: vector.Bytes(c.Vector),
			Multiplicity: c.Multiplicity, Radius: c.Radius})
	}
	return kept
}

// lesson returns the stored lesson.
func (s snapshotLesson) lesson(space string, through []string) (Lesson, error) {
	l := Lesson{Space: space, Name: s.Name, Through: through, Links: s.Links}
	if len(s.Centroids) > MaxCentroids {
		return l, fmt.Errorf("%w: it has more than %d centroids", ErrLesson, MaxCentroids)
	}
	for i, c := range s.Centroids {
		if len(c.Point)%4 != 0 {
			return l, fmt.Errorf("%w: centroid %d has %d bytes", ErrLesson, i+1, len(c.Point))
		}
		l.Centroids = append(l.Centroids, Centroid{Vector: vector.Floats(c.Point), Multiplicity: c.Multiplicity,
			Radius: c.Radius})
	}
	return l, nil
}

// restoreLessons takes in the lessons of a snapshot.
func (l *Learner) restoreLessons(all []snapshotSource, onward []snapshotOnward) error {
	sources, err := l.sourcesOf(all, onward)
	if err != nil || len(sources) == 0 {
		return err
	}
	l.given = make(map[string]given)
	for _, source := range slices.Sorted(maps.Keys(sources)) {
		g := sources[source]
		if !(g.clock >= 0 && g.clock <= l.graph.Clock()) {
			return fmt.Errorf("the lessons of %.100q are from half-life %g of %g", source, g.clock, l.graph.Clock())
		}
		if err := l.admit(source, g.lessons); err != nil {
			return err
		}
		if l.put(source, g); l.taken > mostTaken/l.space.Dim {
			return fmt.Errorf("lessons of all sources have more than %d centroids", mostTaken/l.space.Dim)
		}
	}
	return nil
}

// sourcesOf returns the lessons of a snapshot, by source.
func (l *Learner) sourcesOf(all []snapshotSource, onward []snapshotOnward) (map[string]given, error) {
	sources := make(map[string]given)
	last := ""
	for _, s := range all {
		if s.Name <= last || len(s.Lessons) == 0 {
			return nil, fmt.Errorf("the lessons of source %.100q are empty or not in order", s.Name)
		}
		last = s.Name
		g := given{clock: s.Clock}
		for i, kept := range s.Lessons {
			if i > 0 && kept.Name <= s.Lessons[i-1].Name {
				return nil, fmt.Errorf("the lessons of %.100q are not in order", s.Name)
			}
			lesson, err := kept.lesson(l.space.ID, nil)
			if err != nil {
				return nil, err
			}
			g.lessons = append(g.lessons, lesson)
		}
		sources[s.Name] = g
	}
	for i, s := range onward {
		lesson, err := s.Lesson.lesson(l.space.ID, s.Through)
		if err != nil {
			return nil, err
		}
		g, there := sources[s.Source]
		sorted := i == 0 || onward[i-1].Source < s.Source || onward[i-1].Source == s.Source &&
			compareLessons(g.lessons[len(g.lessons)-1], lesson) < 0
		if len(s.Through) == 0 || there && g.clock != s.Clock || !sorted {
			return nil, fmt.Errorf("the lessons of %.100q through others are not in order", s.Source)
		}
		sources[s.Source] = given{append(g.lessons, lesson), s.Clock}
	}
	for source, g := range sources {
		slices.SortFunc(g.lessons, compareLessons)
		sources[source] = g
	}
	if len(sources) > MaxSources {
		return nil, fmt.Errorf("it has lessons of %d sources", len(sources))
	}
	return sources, nil
}

// fileLesson is a lesson on its own.
type fileLesson struct {
	Version int            `cbor:"version"`
	Space   string         `cbor:"space"`
	Lesson  snapshotLesson `cbor:"lesson"`
	Through []string       `cbor:"through,omitempty"`
}

// MarshalBinary returns s as CBOR (RFC 8949, core deterministic encoding): a map of the version, now 1, the ID of the
// space, the lesson, and the sources through which it was learned, if there are any. The lesson is an array of the
// name, the centroids (coordinates as little-endian float32, multiplicity, radius), and the links. The same lesson
// gives the same bytes.
func (s Lesson) MarshalBinary() ([]byte, error) {
	return encoding.Marshal(fileLesson{lessonVersion, s.Space, s.snapshot(), s.Through})
}

// UnmarshalBinary reads a lesson into s. [Learner.TakeLessons] checks whether it can be used. The error wraps
// [ErrVersion], [ErrDamaged] or [ErrLesson]. On error s is unchanged.
func (s *Lesson) UnmarshalBinary(data []byte) error {
	var head struct {
		Version int `cbor:"version"`
	}
	if err := cbor.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("reading a lesson: %w: %w", ErrDamaged, err)
	}
	if head.Version != lessonVersion {
		return fmt.Errorf("reading a lesson: %w: it is %d, and this program reads %d", ErrVersion, head.Version,
			lessonVersion)
	}
	var f fileLesson
	if err := decoding.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("reading a lesson: %w: %w", ErrDamaged, err)
	}
	lesson, err := f.Lesson.lesson(f.Space, f.Through)
	if err != nil {
		return fmt.Errorf("reading a lesson: %w", err)
	}
	*s = lesson
	return nil
}
