// SPDX-License-Identifier: Apache-2.0

package online

import (
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/quantized"
)

// aided is a face that was learned with the help of lessons, because the learner's own centroids do not reach it. It is
// stored separately from the graph, and becomes a lesson that names the sources of these lessons. In CBOR it is an
// array.
type aided struct {
	_      struct{} `cbor:",toarray"`
	ID     int64    // negative, and never used again
	Name   string
	Vector quantized.Point
	Clock  float64 // half-lives that had passed
	Links  []int64 // stored faces that it follows: learned faces, or earlier aided faces
}

// apart is the least distance of an aided face from every other vertex, as a share of the length of an edge. A nearer
// face would add little.
const apart = .3

// aid learns a face with the help of lessons if the caller names the person, as in a confirmed sighting, and the
// verdict says the same. MaxHops and LearnCap do not bound aided faces, so aid does nothing if either is set.
func (l *Learner) aid(o Observation, v *Verdict) error {
	s := l.share()
	if s == nil || s.err != nil || o.Hold || o.As == "" || v.Learned || v.Label != o.As ||
		v.Confidence < l.settings.Learn ||
		l.settings.Freeze || l.settings.MaxHops > 0 || l.settings.LearnCap > 0 || len(l.aided) >= l.settings.K {
		return nil
	}
	t, err := s.look(l, o)
	if err != nil {
		return err
	}
	labelled, learned, _ := t.Closest()
	if t.Outlier() || !l.Radii().teaches(t) || min(labelled, learned) < apart*l.graph.Config().EdgeRadius() {
		return nil
	}
	through := union(l.through, s.names)
	if len(through) > MaxSources {
		return nil
	}
	l.lastAided--
	// The vector is copied, so that o does not escape to the heap for every face that is judged.
	a := aided{
		ID: l.lastAided, Name: l.classes[l.class(o.As, false)].Name, Clock: l.graph.Clock(),
		Vector: make([]float32, len(o.Vector)),
	}
	copy(a.Vector, o.Vector)
	for _, id := range o.Follows {
		_, own := l.graph.Find(id)
		_, other := s.aided[id]
		if (own || other) && len(a.Links) < mostLinks && !slices.Contains(a.Links, id) {
			a.Links = append(a.Links, id)
		}
	}
	l.aided = append(l.aided, a)
	l.through = through
	l.shared = nil
	v.Learned, v.NoRoom, v.Stored = true, false, a.ID
	return nil
}

// union returns the strings of both lists, which are in ascending order, as is the result.
func union(a, b []string) []string {
	if slices.Equal(a, b) {
		return a
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// aidedLessons returns a lesson for each person who has aided faces, with at most most faces together. All lessons name
// the same sources: each source may have had a share in each of these faces, as it may change which centroids are
// merged.
func (l *Learner) aidedLessons(most int) (all []Lesson) {
	if len(l.through) > MaxThrough {
		return nil
	}
	clock := l.graph.Clock()
	type place struct{ lesson, centroid int }
	lessons, placed := make(map[string]int), make(map[int64]place)
	for _, a := range l.aided {
		weight := math.Exp2(a.Clock - clock)
		if weight < leastGiven || len(placed) >= most {
			continue
		}
		at, there := lessons[a.Name]
		if !there {
			at, lessons[a.Name] = len(all), len(all)
			all = append(all, Lesson{Space: l.space.ID, Name: a.Name, Through: slices.Clone(l.through)})
		}
		s := &all[at]
		for _, id := range a.Links {
			if early, there := placed[id]; there && early.lesson == at {
				s.Links = append(s.Links, [2]int{early.centroid, len(s.Centroids)})
			}
		}
		placed[a.ID] = place{at, len(s.Centroids)}
		s.Centroids = append(s.Centroids, Centroid{Vector: slices.Clone(a.Vector), Multiplicity: weight})
	}
	for i := range all {
		slices.SortFunc(all[i].Links, compareLinks)
	}
	return all
}

// Aided returns the number of faces that were learned with the help of lessons.
func (l *Learner) Aided() int { return len(l.aided) }

// Through returns the sources whose lessons helped to learn aided faces, and the sources that helped those, in
// ascending order. See [Lesson].Through.
func (l *Learner) Through() []string { return slices.Clone(l.through) }

// unaid takes back all aided faces.
func (l *Learner) unaid() {
	if len(l.aided) > 0 {
		l.aided, l.shared = nil, nil
	}
	l.through = nil
	if !l.helped() { // as if there had never been lessons
		l.lastAided = 0
	}
}

// unaidOf takes back the aided faces of a person.
func (l *Learner) unaidOf(name string) {
	l.aided = slices.DeleteFunc(slices.Clone(l.aided), func(a aided) bool { return a.Name == name })
	if l.shared = nil; len(l.aided) == 0 {
		l.through = nil
	}
}

// restoreAided takes in the aided faces of a snapshot.
func (l *Learner) restoreAided(all []aided, last int64, through []string) error {
	if last > 0 || last < -maxAided || len(all) > l.settings.K {
		return fmt.Errorf("%d faces were learned with the help of others, the last one with the number %d",
			len(all), last)
	}
	l.lastAided = last
	before := int64(0)
	for _, a := range all {
		bad := a.ID >= before || a.ID < last || !(a.Clock >= 0 && a.Clock <= l.graph.Clock()) ||
			len(a.Links) > mostLinks ||
			!l.Knows(a.Name)
		for _, id := range a.Links {
			bad = bad || id == 0 || id <= a.ID
		}
		if bad {
			return fmt.Errorf("face %d, which was learned with the help of others, is impossible", a.ID)
		}
		before = a.ID
		if err := l.space.Check(a.Vector); err != nil {
			return err
		}
	}
	l.aided = all
	if len(all) > 0 && len(l.given) == 0 {
		return fmt.Errorf("%d faces were learned with the help of others, who gave nothing", len(all))
	}
	if len(through) > MaxSources || (len(through) > 0) != (len(all) > 0) {
		return fmt.Errorf("%d sources helped to learn %d faces", len(through), len(all))
	}
	if err := checkThrough(through); err != nil {
		return fmt.Errorf("faces were learned %w", err)
	}
	l.through = through
	return nil
}

// maxAided bounds the absolute value of the numbers of aided faces.
const maxAided = 1 << 60
