// SPDX-License-Identifier: Apache-2.0

package online

import (
	"maps"
	"math"
	"slices"

	"github.com/faceauth/faceauth/quantized"
)

// shared is the union of all lessons, with which l judges.
type shared struct {
	union  *quantized.Union
	merged quantized.Merged
	from   [][]part      // for each kept centroid, the parts of it
	names  []string      // all sources, and those through which their lessons were learned, in ascending order
	aided  map[int64]int // places of aided faces, by their numbers
	clock  float64       // half-lives that had passed when the centroids were weighed
	until  float64       // half-lives after which the first centroid has faded
	faded  int           // centroids that have faded
	err    error         // why there is no usable union
}

// part is the share of one source in a centroid.
type part struct {
	multiplicity, clock float64
}

// until returns the half-lives after which the part has faded.
func (p part) until() float64 { return p.clock + math.Log2(p.multiplicity) - math.Log2(leastTaken) }

// Taken describes the union of the lessons of all sources, merged within K.
type Taken struct {
	Centroids int `json:"centroids"` // centroids in all lessons
	Kept      int `json:"kept"`      // centroids and aided faces that are used; at most K
	Left      int `json:"left"`      // centroids for which there was no room
	Faded     int `json:"faded"`     // that have faded
	// bound of merging: no centroid was merged into one as far away as this; see [quantized.Config.Merge]
	R      float64 `json:"r"`
	Radius float64 `json:"radius"` // greatest distance of a face from its centroid
}

// Taken returns the state of the union of all lessons.
func (l *Learner) Taken() Taken {
	s := l.share()
	if s == nil {
		return Taken{}
	}
	t := Taken{Centroids: l.taken, Faded: s.faded, Kept: len(s.merged.Kept), Left: s.merged.Left, R: s.merged.R}
	for _, k := range s.merged.Kept {
		t.Radius = max(t.Radius, k.Radius)
	}
	if s.err != nil {
		t.Kept, t.Left = 0, len(s.merged.To)
	}
	return t
}

// share returns the union of all lessons and aided faces, or nil without lessons.
func (l *Learner) share() *shared {
	if len(l.given) == 0 {
		return nil
	}
	clock := l.graph.Clock()
	if s := l.shared; s != nil && clock <= s.until {
		if s.union != nil && s.clock != clock {
			s.weigh(clock)
		}
		return s
	}
	s := &shared{until: math.Inf(1)}
	l.shared = s
	var all []quantized.Summary
	var parts []part
	add := func(c quantized.Summary, born float64) (place int) {
		p := part{c.Multiplicity, born}
		if until := p.until(); until < clock {
			s.faded++
			return -1
		} else {
			s.until = min(s.until, until)
		}
		all, parts = append(all, c), append(parts, p)
		return len(all) - 1
	}
	for _, source := range slices.Sorted(maps.Keys(l.given)) {
		g := l.given[source]
		s.names = append(s.names, source)
		for _, lesson := range g.Lessons {
			s.names = append(s.names, lesson.Through...)
			group := l.class(lesson.Name, false)
			at := make([]int, len(lesson.Centroids))
			for i, c := range lesson.Centroids {
				given := quantized.Summary{Point: c.Vector, Multiplicity: c.Multiplicity, Radius: c.Radius,
					Group: group}
				at[i] = add(given, g.Clock)
			}
			for _, link := range lesson.Links {
				if early, late := at[link[0]], at[link[1]]; early >= 0 && late >= 0 {
					all[late].Links = append(all[late].Links, early)
				}
			}
		}
	}
	slices.Sort(s.names)
	s.names = slices.Compact(s.names)
	at := make(map[int64]int)
	for _, a := range l.aided {
		summary := quantized.Summary{Point: a.Vector, Multiplicity: 1, Group: l.class(a.Name, false)}
		for _, id := range a.Links {
			if id > 0 {
				summary.Follows = append(summary.Follows, id)
			} else if other, there := at[id]; there {
				summary.Links = append(summary.Links, other)
			}
		}
		if place := add(summary, a.Clock); place >= 0 {
			at[a.ID] = place
		}
	}
	s.merged = l.graph.Config().Merge(all)
	s.aided = make(map[int64]int)
	for id, i := range at {
		if to := s.merged.To[i]; to >= 0 {
			s.aided[id] = to
		}
	}
	s.from = make([][]part, len(s.merged.Kept))
	for i, to := range s.merged.To {
		if to >= 0 {
			s.from[to] = append(s.from[to], parts[i])
		}
	}
	s.union, s.err = l.graph.Union(slices.Clone(s.merged.Kept))
	if s.err == nil {
		s.weigh(clock)
	}
	return s
}

// weigh ages lessons as the learner ages its own faces.
func (s *shared) weigh(clock float64) {
	s.clock = clock
	for i, parts := range s.from {
		sum := 0.
		for _, p := range parts {
			sum += p.multiplicity * math.Exp2(p.clock-clock)
		}
		s.union.Weigh(i, sum)
	}
}

// look tries a face on the union of the learner's own graph and the lessons.
func (s *shared) look(l *Learner, o Observation) (quantized.Trial, error) {
	var others []int
	for _, id := range o.Follows {
		if i, there := s.aided[id]; there {
			others = append(others, i)
		}
	}
	return s.union.Look(o.Vector, l.Radii().sight(), o.Follows, others)
}
