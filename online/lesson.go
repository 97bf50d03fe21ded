// SPDX-License-Identifier: Apache-2.0

package online

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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
	// MaxThrough is the largest number of sources of [Lesson].Through.
	MaxThrough = 256

	mostTaken        = 1 << 26 // coordinates of all sources together: 256 MiB
	mostLinks        = 16      // earlier centroids that one centroid follows
	mostMultiplicity = 1 << 30
	leastGiven       = 0x1p-10 // a centroid with a smaller weight is not given
	leastTaken       = 0x1p-20 // a centroid with a smaller weight is not taken, and not used
	mostRadius       = 1e30
)

// Lesson is what one learner has learned of a person from faces that it saw itself, for other learners: the centroids
// of faces that it accepted as this person, and as nobody else. It holds no labelled face. In CBOR it is an array.
type Lesson struct {
	_         struct{} `cbor:",toarray"`
	Space     string   `cbor:"-"` // ID of the feature space
	Name      string
	Centroids []Centroid
	// Through are the sources whose lessons helped to accept these faces, and the sources that helped those, in
	// ascending order. It is empty for faces that were accepted without lessons. If one of these sources is withdrawn,
	// so is this lesson.
	Through []string
	// Links are pairs of centroids, the smaller index first. One centroid of a pair follows the other on a track over
	// more than the length of an edge ([Observation].Follows). The pairs are in ascending order.
	Links [][2]int
}

// Centroid stands for faces.
type Centroid struct {
	_            struct{} `cbor:",toarray"`
	Vector       quantized.Point
	Multiplicity float64 // weight of the faces together, after ageing
	Radius       float64 // greatest distance of a face from Vector, in units of the space's distance
}

// given holds the lessons of one source. In CBOR it is an array.
type given struct {
	_       struct{} `cbor:",toarray"`
	Lessons []Lesson // sorted by name; not empty
	Clock   float64  // half-lives that had passed when the lessons were taken
}

// Lessons returns the lessons of the faces that l has learned, sorted by name. The lesson of a person has the centroids
// to which only faces accepted as this person have gone. Faces that l learned with the help of lessons are a second
// lesson of the person, with the sources that helped in [Lesson].Through; they are left out if these are more than
// [MaxThrough]. No lesson holds a centroid that l took from others ([Learner.TakeLessons]). If there are more than
// [MaxCentroids] centroids, the heaviest are returned, and aided faces only where there is room.
func (l *Learner) Lessons() []Lesson {
	g := l.graph
	var own []int
	for i := range g.Len() {
		if via := g.Source(i); len(via) == 1 && !l.classes[via[0]].Negative && g.Multiplicity(i) >= leastGiven {
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
		name := l.classes[g.Source(i)[0]].Name
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
				l.classes[g.Source(j)[0]].Name == name {
				links = append(links, [2]int{p, place[i]})
			}
		})
		s.Links = append(s.Links, links...)
		s.Centroids = append(s.Centroids, c)
	}
	all := l.aidedLessons(MaxCentroids - len(own))
	for _, s := range of {
		slices.SortFunc(s.Links, compareLinks)
		all = append(all, *s)
	}
	slices.SortFunc(all, compareLessons)
	return all
}

// compareLessons orders lessons by name, and those of one name by the sources through which they were learned.
func compareLessons(a, b Lesson) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), slices.Compare(a.Through, b.Through))
}

func compareLinks(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }

// TakeLessons takes the lessons of a source, another learner. They replace all earlier lessons of this source. Without
// lessons it does the same as [Learner.WithdrawLessons].
//
// The lessons of all sources together are merged to at most K centroids, beside at most K own centroids. A face that l
// names without lessons, or knows not to be a person's, keeps that verdict. Every other face is judged by own centroids
// and lessons together ([quantized.Union]), and Verdict.Lent says so. The names of lessons decide which centroids are
// merged and which are forgotten; they give no face a name: a centroid is a vertex without a label, and its person
// follows from its paths to labelled faces of l. No face is anchored to a lesson.
//
// Lessons may be wrong: invented centroids can lead from a person to a stranger in small steps, and bounds on their
// weight or distance do not stop them (docs/results.md). They never remove a name that l gives without lessons. A name
// that only lessons support is as good as their source; sighting.Rules.Own asks for more.
//
// What l learns does not depend on lessons, except aided faces: faces that only lessons reach, which are learned if the
// caller names the person ([Observation].As) and the verdict with lessons says the same. They are stored apart, and
// become lessons whose [Lesson].Through names every source of lessons that l had. So when all sources are withdrawn, l
// is bit for bit the learner that has seen the same faces and never had lessons, except for [Counts]; with one source
// withdrawn, all verdicts are as if it had never given a lesson, nor helped others to learn one; and the order of
// sources and their earlier lessons make no difference. With Settings.HalfLife, lessons lose weight from the moment
// when they were taken. They can be taken while Settings.Freeze is on.
//
// The error wraps [ErrName] for a bad name of the source, [ErrUnknown] for a lesson about a person that l does not
// know, [ErrLesson], or [ErrFull] beyond [MaxSources] or 256 MiB of coordinates. On error l is unchanged.
func (l *Learner) TakeLessons(source string, lessons []Lesson) error {
	wrong := func(err error) error { return fmt.Errorf("taking lessons of %s: %w", source, err) }
	if err := l.admit(source, lessons); err != nil {
		return err
	}
	if len(lessons) == 0 {
		if err := l.WithdrawLessons(source); !errors.Is(err, ErrUnknown) {
			return err
		}
		return nil
	}
	g := given{Lessons: tidy(lessons), Clock: l.graph.Clock()}
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
	if l.given[source] = g; len(g.Lessons) == 0 {
		delete(l.given, source)
	}
	l.shared = nil
}

// WithdrawLessons removes all lessons of a source, as if it had never given any, and all lessons of others that were
// learned through it. The error wraps [ErrUnknown] if there are no such lessons, and no face was learned with their
// help.
func (l *Learner) WithdrawLessons(source string) error {
	dropped := l.drop(func(other string, s Lesson) bool {
		return other == source || slices.Contains(s.Through, source)
	})
	if !dropped && !slices.Contains(l.through, source) {
		return fmt.Errorf("%w: there are no lessons of %s", ErrUnknown, source)
	}
	l.unaid()
	return nil
}

// drop removes the lessons for which gone is true, and reports whether there were any.
func (l *Learner) drop(gone func(source string, s Lesson) bool) (dropped bool) {
	for source, g := range l.given {
		kept := slices.DeleteFunc(slices.Clone(g.Lessons), func(s Lesson) bool { return gone(source, s) })
		if len(kept) < len(g.Lessons) {
			l.put(source, given{Lessons: kept, Clock: g.Clock})
			dropped = true
		}
	}
	return dropped
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
		for _, lesson := range l.given[name].Lessons {
			if n := len(s.People); n == 0 || s.People[n-1] != lesson.Name {
				s.People = append(s.People, lesson.Name)
			}
			for _, c := range lesson.Centroids {
				s.Faces += c.Multiplicity
			}
		}
		all = append(all, s)
	}
	return all
}

// helped reports whether there are lessons.
func (l *Learner) helped() bool { return len(l.given) > 0 }

// forgetLessons removes the lessons about a person.
func (l *Learner) forgetLessons(name string) {
	l.drop(func(_ string, s Lesson) bool { return s.Name == name })
	if l.unaidOf(name); !l.helped() {
		l.unaid()
	}
	l.shared = nil // the person's centroids are gone, and classes have other numbers now
}

// renameLessons gives the person in lessons another name.
func (l *Learner) renameLessons(from, to string) {
	for source, g := range l.given {
		g.Lessons = slices.Clone(g.Lessons)
		for i := range g.Lessons {
			if g.Lessons[i].Name == from {
				g.Lessons[i].Name = to
			}
		}
		g.Lessons = tidy(g.Lessons)
		l.given[source] = g
	}
	for i := range l.aided {
		if l.aided[i].Name == from {
			l.aided[i].Name = to
		}
	}
	l.shared = nil
}

// centroids returns the number of centroids of a source.
func (g given) centroids() (n int) {
	for _, s := range g.Lessons {
		n += len(s.Centroids)
	}
	return n
}

// tidy returns a copy of lessons, sorted, with one lesson for each person and sources through which it was learned.
func tidy(lessons []Lesson) (all []Lesson) {
	sorted := slices.Clone(lessons)
	slices.SortStableFunc(sorted, compareLessons)
	for _, s := range sorted {
		if n := len(all); n == 0 || compareLessons(all[n-1], s) != 0 {
			all = append(all, Lesson{Space: s.Space, Name: s.Name, Through: slices.Clone(s.Through)})
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

// checkThrough returns an error if sources through which something was learned have bad names or are not in order.
func checkThrough(sources []string) error {
	for i, source := range sources {
		if err := CheckName(source); err != nil {
			return fmt.Errorf("through source %d: %w", i+1, err)
		}
		if i > 0 && sources[i-1] >= source {
			return fmt.Errorf("through %s and %s, which are not in order", sources[i-1], source)
		}
	}
	return nil
}

func (s Lesson) check(space face.Space) error {
	if err := CheckName(s.Name); err != nil {
		return err
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: the lesson of %s %w", ErrLesson, s.Name, fmt.Errorf(format, args...))
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
	if len(s.Through) > MaxThrough {
		return wrong("was learned through %d sources; there may be %d", len(s.Through), MaxThrough)
	}
	if err := checkThrough(s.Through); err != nil {
		return wrong("was learned %w", err)
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

// restoreLessons takes in the lessons of a snapshot.
func (l *Learner) restoreLessons(all map[string]given) error {
	if len(all) > MaxSources {
		return fmt.Errorf("it has lessons of %d sources", len(all))
	}
	for _, source := range slices.Sorted(maps.Keys(all)) {
		g := all[source]
		if len(g.Lessons) == 0 || !(g.Clock >= 0 && g.Clock <= l.graph.Clock()) {
			return fmt.Errorf("there are %d lessons of %.100q, from half-life %g of %g", len(g.Lessons), source,
				g.Clock, l.graph.Clock())
		}
		for i := range g.Lessons {
			g.Lessons[i].Space = l.space.ID
			if i > 0 && compareLessons(g.Lessons[i-1], g.Lessons[i]) >= 0 {
				return fmt.Errorf("the lessons of %.100q are not in order", source)
			}
		}
		if err := l.admit(source, g.Lessons); err != nil {
			return err
		}
		if l.given == nil {
			l.given = make(map[string]given)
		}
		if l.put(source, g); l.taken > mostTaken/l.space.Dim {
			return fmt.Errorf("lessons of all sources have more than %d centroids", mostTaken/l.space.Dim)
		}
	}
	return nil
}
