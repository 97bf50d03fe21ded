// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
)

// Given holds the lessons of a source.
type Given struct {
	Lessons []online.Lesson
	Clock   float64
}

// Aided is a face that was learned with the help of lessons.
type Aided struct {
	ID    int64
	Name  string
	X     []float32
	Clock float64
	Links []int64
}

// TakeLessons takes the lessons of a source, at most one for each person and sources through which it was learned.
func (l *Learner) TakeLessons(source string, lessons []online.Lesson) {
	if l.Given == nil {
		l.Given = make(map[string]Given)
	}
	l.Given[source] = Given{sortLessons(lessons), l.Graph.Clock}
}

// sortLessons sorts lessons by name, and those of one person by the sources through which they were learned.
func sortLessons(lessons []online.Lesson) []online.Lesson {
	sorted := slices.Clone(lessons)
	slices.SortStableFunc(sorted, func(a, b online.Lesson) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), slices.Compare(a.Through, b.Through))
	})
	return sorted
}

// WithdrawLessons removes the lessons of a source, and those that were learned through it. It reports whether there
// were any, or whether the source may have helped.
func (l *Learner) WithdrawLessons(source string) bool {
	there := l.Through[source]
	for other := range l.Given {
		l.drop(other, func(s online.Lesson) bool {
			gone := other == source || slices.Contains(s.Through, source)
			there = there || gone
			return gone
		})
	}
	if there {
		l.unaid()
	}
	return there
}

// drop removes the lessons of a source for which gone is true.
func (l *Learner) drop(source string, gone func(online.Lesson) bool) {
	g := l.Given[source]
	g.Lessons = slices.DeleteFunc(slices.Clone(g.Lessons), gone)
	if l.Given[source] = g; len(g.Lessons) == 0 {
		delete(l.Given, source)
	}
}

func (l *Learner) unaid() {
	l.Aided, l.Through = nil, nil
	if len(l.Given) == 0 {
		l.lastID = 0
	}
}

func (l *Learner) forgetLessons(name string) {
	for source := range l.Given {
		l.drop(source, func(s online.Lesson) bool { return s.Name == name })
	}
	l.Aided = slices.DeleteFunc(slices.Clone(l.Aided), func(a Aided) bool { return a.Name == name })
	if len(l.Aided) == 0 {
		l.Through = nil
	}
	if len(l.Given) == 0 {
		l.unaid()
	}
}

func (l *Learner) renameLessons(from, to string) {
	for source, g := range l.Given {
		lessons := slices.Clone(g.Lessons)
		for i := range lessons {
			if lessons[i].Name == from {
				lessons[i].Name = to
			}
		}
		l.Given[source] = Given{sortLessons(lessons), g.Clock}
	}
	for i := range l.Aided {
		if l.Aided[i].Name == from {
			l.Aided[i].Name = to
		}
	}
}

// guest is a centroid from a lesson, or an aided face.
type guest struct {
	vertex       *Vertex
	multiplicity float64 // when it was given
	weight       float64 // now
	name         string
	links        []int   // earlier guests
	follows      []int64 // own vertices
	home         int     // the guest into which it is merged, or -1
}

// guests returns all guests, merged as [quantized.Config.Merge] documents, and the places of aided faces.
func (l *Learner) guests() (all []*guest, place map[int64]int) {
	g := l.Graph
	for _, source := range slices.Sorted(maps.Keys(l.Given)) {
		given := l.Given[source]
		for _, s := range given.Lessons {
			at := map[int]int{}
			for i, c := range s.Centroids {
				if given.Clock+math.Log2(c.Multiplicity)+20 < g.Clock { // it has faded
					continue
				}
				at[i] = len(all)
				all = append(all, &guest{
					vertex: &Vertex{X: c.Vector, Class: -1, Linked: map[*Vertex]bool{}}, multiplicity: c.Multiplicity,
					weight: c.Multiplicity * math.Exp2(given.Clock-g.Clock), name: s.Name,
				})
			}
			for _, link := range s.Links {
				early, a := at[link[0]]
				if late, b := at[link[1]]; a && b {
					all[late].links = append(all[late].links, early)
				}
			}
		}
	}
	place = make(map[int64]int)
	for _, a := range l.Aided {
		if a.Clock+20 < g.Clock {
			continue
		}
		q := &guest{
			vertex: &Vertex{X: a.X, Class: -1, Linked: map[*Vertex]bool{}}, multiplicity: 1,
			weight: math.Exp2(a.Clock - g.Clock), name: a.Name,
		}
		for _, id := range a.Links {
			if other, there := place[id]; there {
				q.links = append(q.links, other)
			} else if id > 0 {
				q.follows = append(q.follows, id)
			}
		}
		place[a.ID] = len(all)
		all = append(all, q)
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].multiplicity, all[a].multiplicity) })
	reach, m := g.Config.EdgeRadius(), g.Config.Multiplier
	radii := []float64{0}
	for j := int(math.Log(1000) / math.Log(m)); j >= 0; j-- {
		radii = append(radii, reach/math.Pow(m, float64(j)))
	}
	closer := func(i, j int, r float64) bool {
		d := g.Distance(all[i].vertex.X, all[j].vertex.X)
		return all[i].name == all[j].name && (d == 0 || g.less(d, r))
	}
	var kept []int
	r := 0.
	for _, r = range radii {
		kept = nil
		for _, i := range order {
			if !slices.ContainsFunc(kept, func(j int) bool { return closer(i, j, r) }) {
				kept = append(kept, i)
			}
		}
		if len(kept) <= g.Config.K {
			break
		}
	}
	kept = kept[:min(len(kept), g.Config.K)]
	for i, q := range all {
		q.home = -1
		for _, j := range kept {
			if i == j || closer(i, j, r) && (q.home < 0 ||
				g.less(g.Distance(q.vertex.X, all[j].vertex.X), g.Distance(q.vertex.X, all[q.home].vertex.X))) {
				q.home = j
			}
			if i == j {
				break
			}
		}
		if slices.Contains(kept, i) {
			q.home = i
		}
	}
	return all, place
}

// union returns the graph with all guests, and the vertices of aided faces.
func (l *Learner) union() (*Graph, map[int64]*Vertex) {
	all, place := l.guests()
	u := *l.Graph
	u.Vertices = nil
	for i, q := range all {
		if q.home == i {
			u.Vertices = append(u.Vertices, q.vertex)
		}
	}
	u.Vertices = append(u.Vertices, l.Graph.Vertices...)
	for _, q := range all {
		if q.home < 0 {
			continue
		}
		at := all[q.home].vertex
		at.Weight += q.weight
		for _, j := range q.links {
			if all[j].home >= 0 && all[j].home != q.home {
				at.Linked[all[all[j].home].vertex] = true
			}
		}
		for _, id := range q.follows {
			if v := l.Find(id); v != nil {
				at.Linked[v] = true
			}
		}
	}
	where := make(map[int64]*Vertex)
	for id, i := range place {
		if h := all[i].home; h >= 0 {
			where[id] = all[h].vertex
		}
	}
	return &u, where
}

// show returns the verdict on a face without lessons if it gives or denies a name, and else the verdict with lessons.
func (l *Learner) show(o online.Observation) online.Verdict {
	v, _ := l.own(o)
	if len(l.Given) > 0 && v.Label == "" && v.Reason != online.Rejected {
		v, _ = l.judge(l.see(o))
		v.Lent, v.Anchored = true, false
	}
	return v
}

// see tries a face with lessons.
func (l *Learner) see(o online.Observation) Trial {
	if len(l.Given) == 0 {
		return l.look(o)
	}
	u, where := l.union()
	t := Trial{X: o.Vector, Edges: u.edges(o.Vector, u.Vertices, o.Follows)}
	for _, id := range o.Follows {
		if v := where[id]; v != nil && t.Edges[v] == 0 {
			if w := u.link(o.Vector, v.X); w > 0 {
				t.Edges[v] = w
			}
		}
	}
	if len(t.Edges) == 0 {
		r := l.radii()
		t.Edges = u.sight(o.Vector, quantized.Sight{Labelled: r.Enrolled, Learned: r.Learned})
		t.Far = len(t.Edges) > 0
	}
	t = u.try(t)
	l.Graph.Delicate = l.Graph.Delicate || u.Delicate
	return t
}

// aid learns a face with the help of lessons.
func (l *Learner) aid(o online.Observation, v online.Verdict) online.Verdict {
	s := l.Settings
	if len(l.Given) == 0 || o.Hold || s.Freeze || o.As == "" || v.Learned || v.Label != o.As ||
		s.MaxHops > 0 || s.LearnCap > 0 || len(l.Aided) >= s.K {
		return v
	}
	if s.Learn > 0 && l.Graph.below(v.Confidence, s.Learn) {
		return v
	}
	t := l.see(o)
	if r := l.radii(); t.Outlier || !l.near(t, r.Learn, r.Learn) {
		return v
	}
	for u := range t.Edges {
		if l.Graph.less(l.Graph.Distance(o.Vector, u.X), .3*l.Graph.Config.EdgeRadius()) {
			return v
		}
	}
	_, where := l.union()
	l.lastID--
	a := Aided{ID: l.lastID, Name: o.As, X: slices.Clone(o.Vector), Clock: l.Graph.Clock}
	for _, id := range o.Follows {
		if (l.Find(id) != nil || where[id] != nil) && !slices.Contains(a.Links, id) {
			a.Links = append(a.Links, id)
		}
	}
	l.Aided = append(l.Aided, a)
	through := make(map[string]bool)
	maps.Copy(through, l.Through) // a copy of the learner shares the old one
	for source, g := range l.Given {
		through[source] = true
		for _, s := range g.Lessons {
			for _, other := range s.Through {
				through[other] = true
			}
		}
	}
	l.Through = through
	v.Learned, v.NoRoom, v.Stored = true, false, a.ID
	return v
}

// Lessons returns the lessons of the faces that the learner saw itself, without radii.
func (l *Learner) Lessons() (all []online.Lesson) {
	g := l.Graph
	for _, name := range slices.Sorted(slices.Values(l.Names())) {
		class := l.class(name, false)
		s := online.Lesson{Space: l.Space.ID, Name: name}
		var own []*Vertex
		for _, v := range g.Vertices {
			if v.Class >= 0 || len(v.Source) != 1 || !v.Source[class] || g.less(v.Weight, 0x1p-10) {
				continue
			}
			own = append(own, v)
			s.Centroids = append(s.Centroids, online.Centroid{Vector: v.X, Multiplicity: v.Weight})
		}
		for i, v := range own {
			for j, u := range own[i+1:] {
				if g.weight(v.X, u.X) == 0 && g.Edge(v, u) > 0 {
					s.Links = append(s.Links, [2]int{i, i + 1 + j})
				}
			}
		}
		if len(own) > 0 {
			all = append(all, s)
		}
		if s := l.aidedLesson(name); len(s.Centroids) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// aidedLesson returns the lesson of the faces of a person that were learned with help.
func (l *Learner) aidedLesson(name string) online.Lesson {
	s := online.Lesson{Space: l.Space.ID, Name: name, Through: slices.Sorted(maps.Keys(l.Through))}
	var given []Aided
	for _, a := range l.Aided {
		weight := math.Exp2(a.Clock - l.Graph.Clock)
		if a.Name != name || weight < 0x1p-10 {
			continue
		}
		s.Centroids = append(s.Centroids, online.Centroid{Vector: a.X, Multiplicity: weight})
		given = append(given, a)
	}
	for i, early := range given {
		for j, late := range given {
			if slices.Contains(late.Links, early.ID) {
				s.Links = append(s.Links, [2]int{i, j})
			}
		}
	}
	return s
}
