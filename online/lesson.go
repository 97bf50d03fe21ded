// SPDX-License-Identifier: Apache-2.0

package online

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/quantized"
)

// ErrLesson is wrapped by the error of [Learner.TakeLessons] for lessons that no learner can have made.
var ErrLesson = errors.New("unusable lesson")

const (
	// MaxCentroids is the largest number of centroids of a source.
	MaxCentroids = 4096
	// MaxSources is the largest number of sources of a learner.
	MaxSources = 1 << 14

	mostTaken        = 1 << 26 // coordinates of all sources together: 256 MiB
	mostLinks        = 16      // earlier centroids that one centroid follows
	mostMultiplicity = 1 << 30
	leastGiven       = 0x1p-10 // a centroid with a smaller weight is not given
	leastTaken       = 0x1p-20 // a centroid with a smaller weight is not taken, and not used
	mostRadius       = 1e30
)

// Lesson is what one learner has learned of a person by itself, for other learners: the centroids of faces that it
// accepted as this person, and as nobody else. It holds no labelled face.
type Lesson struct {
	Space     string // ID of the feature space
	Name      string
	Centroids []Centroid
	// Links are pairs of centroids, the smaller index first. One centroid of a pair follows the other on a track over
	// more than the length of an edge ([Observation].Follows). The pairs are in ascending order.
	Links [][2]int
}

// Centroid stands for faces.
type Centroid struct {
	Vector       []float32
	Multiplicity float64 // weight of the faces together, after ageing
	Radius       float64 // greatest distance of a face from Vector, in units of the space's distance
}

// given holds the lessons of one source.
type given struct {
	lessons []Lesson // sorted by name
	clock   float64  // half-lives that had passed when the lessons were taken
}

// shared is the union of all lessons, with which l judges.
type shared struct {
	union  *quantized.Union
	merged quantized.Merged
	from   [][]part      // for each kept centroid, the parts of it
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

// Lessons returns the lessons that l has learned itself, sorted by name. The lesson of a person has the centroids to
// which only faces accepted as this person have gone. It holds nothing from lessons of others ([Learner.TakeLessons])
// and no aided face. If there are more than [MaxCentroids] centroids, the heaviest are returned.
func (l *Learner) Lessons() []Lesson {
	g := l.graph
	var own []int
	for i := range g.Len() {
		if via := g.Source(i); len(via) == 1 && !l.classes[via[0]].negative && g.Multiplicity(i) >= leastGiven {
			if _, labelled := g.Class(i); !labelled {
				own = append(own, i)
			}
		}
	}
	if len(own) > MaxCentroids {
		slices.SortStableFunc(own, func(a, b int) int { return cmp.Compare(g.Multiplicity(b), g.Multiplicity(a)) })
		own = own[:MaxCentroids]
		slices.Sort(own)
	}
	of := make(map[string]*Lesson)
	place := make(map[int]int)
	for _, i := range own {
		name := l.classes[g.Source(i)[0]].name
		s := of[name]
		if s == nil {
			s = &Lesson{Space: l.space.ID, Name: name}
			of[name] = s
		}
		c := Centroid{Vector: slices.Clone(g.Point(i)), Multiplicity: min(g.Multiplicity(i), mostMultiplicity)}
		if g.Points(i) > g.Origin(i).Own { // other faces were merged into it
			c.Radius = min(g.Bound(), mostRadius)
		}
		place[i] = len(s.Centroids)
		var links [][2]int
		g.Neighbours(i, func(j int, d float64) {
			p, there := place[j]
			if there && d > g.Config().EdgeRadius() && len(links) < mostLinks &&
				l.classes[g.Source(j)[0]].name == name {
				links = append(links, [2]int{p, place[i]})
			}
		})
		s.Links = append(s.Links, links...)
		s.Centroids = append(s.Centroids, c)
	}
	var all []Lesson
	for _, name := range slices.Sorted(maps.Keys(of)) {
		s := of[name]
		slices.SortFunc(s.Links, compareLinks)
		all = append(all, *s)
	}
	return all
}

func compareLinks(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }

// TakeLessons takes the lessons of a source, another learner. They replace all earlier lessons of this source. Without
// lessons it does the same as [Learner.WithdrawLessons]. See "Lessons" in the package's description.
//
// The error wraps [ErrName] for a bad name of the source, [ErrUnknown] for a lesson about a person that l does not
// know, [ErrLesson], or [ErrFull] beyond [MaxSources] or 256 MiB of coordinates. On error l is unchanged.
func (l *Learner) TakeLessons(source string, lessons []Lesson) error {
	wrong := func(err error) error { return fmt.Errorf("taking lessons of %s: %w", source, err) }
	if err := l.admit(source, lessons); err != nil {
		return err
	}
	if len(lessons) == 0 {
		if _, there := l.given[source]; there {
			return l.WithdrawLessons(source)
		}
		return nil
	}
	g := given{lessons: tidy(lessons), clock: l.graph.Clock()}
	taken := l.taken + g.centroids() - l.given[source].centroids()
	if _, there := l.given[source]; !there && len(l.given) >= MaxSources {
		return wrong(fmt.Errorf("%w: there are lessons of %d sources; withdraw some", ErrFull, len(l.given)))
	}
	if taken > mostTaken/l.space.Dim {
		return wrong(fmt.Errorf("%w: lessons of all sources have %d centroids, and may have %d; withdraw some", ErrFull,
			taken, mostTaken/l.space.Dim))
	}
	if l.given == nil {
		l.given = make(map[string]given)
	}
	l.put(source, g)
	return nil
}

// put sets the lessons of a source.
func (l *Learner) put(source string, g given) {
	l.taken += g.centroids() - l.given[source].centroids()
	if l.given[source] = g; len(g.lessons) == 0 {
		delete(l.given, source)
	}
	l.shared = nil
}

// WithdrawLessons removes all lessons of a source, as if it had never given any. The error wraps [ErrUnknown] if there
// are no lessons of this source.
func (l *Learner) WithdrawLessons(source string) error {
	if _, there := l.given[source]; !there {
		return fmt.Errorf("%w: there are no lessons of %s", ErrUnknown, source)
	}
	l.put(source, given{})
	l.unaid()
	return nil
}

// Source describes the lessons of one source.
type Source struct {
	Name      string   `json:"name"`
	People    []string `json:"people"`
	Centroids int      `json:"centroids"`
	Faces     float64  `json:"faces"` // weight of its faces when they were taken
}

// Sources returns the sources of lessons, sorted by name.
func (l *Learner) Sources() (all []Source) {
	for _, name := range slices.Sorted(maps.Keys(l.given)) {
		s := Source{Name: name, Centroids: l.given[name].centroids()}
		for _, lesson := range l.given[name].lessons {
			s.People = append(s.People, lesson.Name)
			for _, c := range lesson.Centroids {
				s.Faces += c.Multiplicity
			}
		}
		all = append(all, s)
	}
	return all
}

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
		for _, lesson := range g.lessons {
			group := l.class(lesson.Name, false)
			at := make([]int, len(lesson.Centroids))
			for i, c := range lesson.Centroids {
				given := quantized.Summary{Point: c.Vector, Multiplicity: c.Multiplicity, Radius: c.Radius,
					Group: group}
				at[i] = add(given, g.clock)
			}
			for _, link := range lesson.Links {
				if early, late := at[link[0]], at[link[1]]; early >= 0 && late >= 0 {
					all[late].Links = append(all[late].Links, early)
				}
			}
		}
	}
	at := make(map[int64]int)
	for _, a := range l.aided {
		summary := quantized.Summary{Point: a.vector, Multiplicity: 1, Group: l.class(a.name, false)}
		for _, id := range a.links {
			if id > 0 {
				summary.Follows = append(summary.Follows, id)
			} else if other, there := at[id]; there {
				summary.Links = append(summary.Links, other)
			}
		}
		if place := add(summary, a.clock); place >= 0 {
			at[a.id] = place
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

// see judges a face without lessons. If that gives no name and denies none, it judges with lessons. It changes nothing.
func (l *Learner) see(o Observation) (Verdict, claim, error) {
	own, c, err := l.look(o)
	if err != nil {
		return own, c, err
	}
	return l.lend(o, own, c)
}

// lend returns the verdict with lessons on a face that has a verdict without lessons.
func (l *Learner) lend(o Observation, own Verdict, c claim) (Verdict, claim, error) {
	if own.Label != "" || own.Reason == Rejected || !l.helped() {
		return own, c, nil
	}
	s := l.share()
	if s == nil || s.err != nil {
		return own, c, nil
	}
	t, err := s.look(l, o)
	var v Verdict
	var lent claim
	if err == nil {
		v, lent, err = l.judge(t)
	}
	// There may be too many enrolled faces since then, or weights that cannot be solved with. Lessons must not prevent
	// l from judging by itself. Warnings says so.
	if errors.Is(err, ErrFull) || errors.Is(err, quantized.ErrUnsolved) {
		s.err = err
		return own, c, nil
	}
	v.Lent, v.Anchored = true, false // a name that rests on lessons confirms nobody
	return v, lent, err
}

// helped reports whether there are lessons.
func (l *Learner) helped() bool { return len(l.given) > 0 }

// forgetLessons removes the lessons about a person.
func (l *Learner) forgetLessons(name string) {
	for source, g := range l.given {
		g.lessons = slices.DeleteFunc(slices.Clone(g.lessons), func(s Lesson) bool { return s.Name == name })
		l.put(source, g)
	}
	if l.unaidOf(name); !l.helped() {
		l.unaid()
	}
	l.shared = nil // the person's centroids are gone, and classes have other numbers now
}

// renameLessons gives the person in lessons another name.
func (l *Learner) renameLessons(from, to string) {
	for source, g := range l.given {
		g.lessons = slices.Clone(g.lessons)
		for i := range g.lessons {
			if g.lessons[i].Name == from {
				g.lessons[i].Name = to
			}
		}
		g.lessons = tidy(g.lessons)
		l.given[source] = g
	}
	for i := range l.aided {
		if l.aided[i].name == from {
			l.aided[i].name = to
		}
	}
	l.shared = nil
}

// centroids returns the number of centroids of a source.
func (g given) centroids() (n int) {
	for _, s := range g.lessons {
		n += len(s.Centroids)
	}
	return n
}

// tidy returns a copy of lessons, sorted by name, with one lesson for each person.
func tidy(lessons []Lesson) (all []Lesson) {
	sorted := slices.Clone(lessons)
	slices.SortStableFunc(sorted, func(a, b Lesson) int { return cmp.Compare(a.Name, b.Name) })
	for _, s := range sorted {
		if n := len(all); n == 0 || all[n-1].Name != s.Name {
			all = append(all, Lesson{Space: s.Space, Name: s.Name})
		}
		own := &all[len(all)-1]
		first := len(own.Centroids)
		for _, c := range s.Centroids {
			c.Vector = slices.Clone(c.Vector)
			own.Centroids = append(own.Centroids, c)
		}
		for _, link := range s.Links {
			own.Links = append(own.Links, [2]int{first + link[0], first + link[1]})
		}
	}
	return all
}

// admit returns an error if the lessons cannot come from a source, or do not fit l.
func (l *Learner) admit(source string, lessons []Lesson) error {
	if err := CheckName(source); err != nil {
		return fmt.Errorf("taking lessons: source: %w", err)
	}
	if err := l.check(lessons); err != nil {
		return fmt.Errorf("taking lessons of %s: %w", source, err)
	}
	return nil
}

func (l *Learner) check(lessons []Lesson) error {
	n := 0
	for _, s := range lessons {
		if n += len(s.Centroids); n > MaxCentroids {
			return fmt.Errorf("%w: it has more than %d centroids", ErrLesson, MaxCentroids)
		}
	}
	for _, s := range lessons {
		if err := s.check(l.space); err != nil {
			return err
		}
		if !l.Knows(s.Name) {
			return fmt.Errorf("%w: %s; enrol them here first", ErrUnknown, s.Name)
		}
	}
	return nil
}

func (s Lesson) check(space face.Space) error {
	if err := CheckName(s.Name); err != nil {
		return err
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: the lesson of %s %s", ErrLesson, s.Name, fmt.Sprintf(format, args...))
	}
	if s.Space != space.ID {
		return wrong("is of the feature space %.100q, and this is %s", s.Space, space.ID)
	}
	if len(s.Centroids) == 0 {
		return wrong("has no centroids")
	}
	for i, c := range s.Centroids {
		if err := space.Check(c.Vector); err != nil {
			return fmt.Errorf("%w: centroid %d of %s: %w", ErrLesson, i+1, s.Name, err)
		}
		if !(c.Multiplicity >= leastTaken && c.Multiplicity <= mostMultiplicity) {
			return wrong("has a centroid of multiplicity %g; it must lie between 2^-20 and 2^30", c.Multiplicity)
		}
		if !(c.Radius >= 0 && c.Radius <= mostRadius) {
			return wrong("has a centroid of radius %g; it must be a number that is not negative", c.Radius)
		}
	}
	if len(s.Links) > mostLinks*len(s.Centroids) {
		return wrong("joins %d pairs of %d centroids; it may be %d a centroid", len(s.Links), len(s.Centroids),
			mostLinks)
	}
	for i, link := range s.Links {
		unsorted := i > 0 && compareLinks(s.Links[i-1], link) >= 0
		if link[0] < 0 || link[0] >= link[1] || link[1] >= len(s.Centroids) || unsorted {
			return wrong("joins centroids %d and %d, which are not there or not in order", link[0], link[1])
		}
	}
	return nil
}
