// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/faceauth/faceauth/internal/vector"
)

// lessonVersion is the format version of a lesson on its own.
const lessonVersion = 2

// snapshotLesson is a lesson in a snapshot.
type snapshotLesson struct {
	_         struct{} `cbor:",toarray"`
	Name      string
	Centroids []snapshotCentroid
	Links     [][2]int
	Through   []string
}

type snapshotCentroid struct {
	_                    struct{} `cbor:",toarray"`
	Point                []byte
	Multiplicity, Radius float64
}

func (s Lesson) snapshot() snapshotLesson {
	kept := snapshotLesson{Name: s.Name, Links: s.Links, Through: s.Through}
	for _, c := range s.Centroids {
		kept.Centroids = append(kept.Centroids, snapshotCentroid{Point: vector.Bytes(c.Vector),
			Multiplicity: c.Multiplicity, Radius: c.Radius})
	}
	return kept
}

// lesson returns the stored lesson.
func (s snapshotLesson) lesson(space string) (Lesson, error) {
	l := Lesson{Space: space, Name: s.Name, Through: s.Through, Links: s.Links}
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
func (l *Learner) restoreLessons(all []snapshotSource) error {
	if len(all) > MaxSources {
		return fmt.Errorf("it has lessons of %d sources", len(all))
	}
	last := ""
	for _, s := range all {
		if s.Name <= last || len(s.Lessons) == 0 {
			return fmt.Errorf("the lessons of source %.100q are empty or not in order", s.Name)
		}
		last = s.Name
		g := given{clock: s.Clock}
		if !(g.clock >= 0 && g.clock <= l.graph.Clock()) {
			return fmt.Errorf("the lessons of %.100q are from half-life %g of %g", s.Name, g.clock, l.graph.Clock())
		}
		for i, kept := range s.Lessons {
			lesson, err := kept.lesson(l.space.ID)
			if err != nil {
				return err
			}
			if i > 0 && compareLessons(g.lessons[i-1], lesson) >= 0 {
				return fmt.Errorf("the lessons of %.100q are not in order", s.Name)
			}
			g.lessons = append(g.lessons, lesson)
		}
		if err := l.admit(s.Name, g.lessons); err != nil {
			return err
		}
		if l.given == nil {
			l.given = make(map[string]given)
		}
		if l.put(s.Name, g); l.taken > mostTaken/l.space.Dim {
			return fmt.Errorf("lessons of all sources have more than %d centroids", mostTaken/l.space.Dim)
		}
	}
	return nil
}

// fileLesson is a lesson on its own.
type fileLesson struct {
	Version int            `cbor:"version"`
	Space   string         `cbor:"space"`
	Lesson  snapshotLesson `cbor:"lesson"`
}

// MarshalBinary returns s as CBOR (RFC 8949, core deterministic encoding): a map of the version, now 2, the ID of the
// space, and the lesson. The lesson is an array of the name, the centroids (coordinates as little-endian float32,
// multiplicity, radius), the links, and the sources through which it was learned. The same lesson gives the same bytes.
func (s Lesson) MarshalBinary() ([]byte, error) {
	return encoding.Marshal(fileLesson{lessonVersion, s.Space, s.snapshot()})
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
	if err := checkVersion(head.Version, lessonVersion); err != nil {
		return fmt.Errorf("reading a lesson: %w", err)
	}
	var f fileLesson
	if err := decoding.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("reading a lesson: %w: %w", ErrDamaged, err)
	}
	lesson, err := f.Lesson.lesson(f.Space)
	if err != nil {
		return fmt.Errorf("reading a lesson: %w", err)
	}
	*s = lesson
	return nil
}
