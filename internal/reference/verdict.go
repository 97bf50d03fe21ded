// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"math"
	"slices"
	"sort"

	"github.com/faceauth/faceauth/online"
)

// claim is the class with the largest value for a face, and this value; nil for none.
type claim struct {
	class    *Class
	value    float64
	enrolled bool // only the enrolled faces make the claim
}

// radii follows the documentation of [online.Learner.Radii].
func (l *Learner) radii() online.Radii {
	edge := l.Graph.Config.EdgeRadius()
	r := online.Radii{Anchor: edge, Enrolled: edge, Learned: edge, Learn: edge,
		Link: max(edge, l.Settings.Link)}
	if l.Space.Stills.Distances[1] == 0 {
		return r
	}
	n, m, people := 0., 0., 0.
	looks := make(map[int][]*Vertex)
	for _, v := range l.Graph.Vertices {
		if v.Class < 0 || l.People[v.Class].Negative {
			continue
		}
		near := func(u *Vertex) bool {
			return l.Graph.less(l.Graph.Distance(u.X, v.X), .5/1.153*l.Space.Stills.Within(1e-3))
		}
		n++
		if !slices.ContainsFunc(looks[v.Class], near) {
			looks[v.Class] = append(looks[v.Class], v)
			m++
		}
	}
	for _, c := range l.People {
		if !c.Negative {
			people++
		}
	}
	n, m, people = max(n, 1), max(m, 1), max(people, 1)
	rate := l.Settings.Strangers
	r.Anchor, r.Enrolled = l.Space.Stills.Within(min(1e-4, rate)/n), l.Space.Stills.Within(rate/m)
	r.Learned = l.Space.Stills.Within(min(1e-3, rate) / (10 * people))
	if l.Space.Streams.Distances[1] > 0 {
		r.Learned = l.Space.Streams.Within(min(1e-3, rate) / (10 * people))
	}
	r.Learn = min(edge, r.Learned)
	return r
}

// strays reports whether a point is beyond the limit for a person.
func (l *Learner) strays(x []float32, p online.Person) bool {
	limit := max(l.Space.GenuineRadius, l.radii().Enrolled)
	return l.Space.GenuineRadius > 0 && l.Graph.less(limit, l.Nearest(x, p))
}

// verdict returns the verdict on a face. If the graph does not tell who it is, the enrolled faces
// alone may.
func (l *Learner) verdict(o online.Observation) (online.Verdict, claim) {
	v, c := l.judge(l.look(o))
	switch v.Reason {
	case online.Outlier, online.NoPath, online.Tie, online.Strayed:
		r := l.radii()
		t := l.Graph.Enrolled(o.Vector, r.Enrolled)
		if w, d := l.judge(t); w.Person != 0 {
			d.enrolled = true
			return w, d
		}
	}
	return v, c
}

// look tries a face that is only judged.
func (l *Learner) look(o online.Observation) Trial {
	r := l.radii()
	return l.Graph.Look(o.Vector, r.Enrolled, r.Learned, o.Follows...)
}

// near reports whether a stored face that judges t is near enough for its kind, or t follows one.
func (l *Learner) near(t Trial, enrolled, learned float64) bool {
	for v := range t.Edges {
		bound := enrolled
		if v.Class < 0 {
			bound = learned
		}
		if !l.Graph.less(bound, l.Graph.Distance(t.X, v.X)) {
			return true
		}
	}
	return t.Linked
}

// judge returns the verdict and the claim for a trial.
func (l *Learner) judge(t Trial) (online.Verdict, claim) {
	if r := l.radii(); !l.near(t, r.Enrolled, r.Learned) {
		return online.Verdict{Sink: 1, Reason: online.Outlier}, claim{}
	}
	v := online.Verdict{Sink: 1}
	if len(l.People) == 0 { // only faces that nobody claimed are left
		v.Reason = online.NoPath
		return v, claim{}
	}
	var values []float64
	var people []*Class
	for c, class := range l.People {
		if class.Negative {
			continue
		}
		value := min(max(t.Values[c], 0), 1)
		values, people = append(values, value), append(people, class)
		v.Sink -= value
	}
	v.Sink = min(max(v.Sink, 0), 1)
	best := slices.Index(values, slices.Max(values))
	top := claim{class: people[best], value: values[best]}
	v.Best, v.Confidence = top.class.Person, top.value
	sort.Float64s(values)
	slices.Reverse(values)
	second := 0.
	if len(values) > 1 {
		second = values[1]
	}
	// A value, or a difference of two, of at most 1e-9 is 0.
	zero := func(x float64) bool {
		if x > 1e-10 && x < 1e-8 {
			l.Graph.Delicate = true
		}
		return x <= 1e-9
	}
	switch {
	case zero(top.value):
		v.Best, v.Confidence, v.Reason = 0, 0, online.NoPath
		return v, claim{}
	case zero(top.value - second):
		v.Best, v.Reason = 0, online.Tie
		return v, claim{value: top.value}
	}
	switch {
	case l.rejects(t, top.class.Person):
		v.Reason = online.Rejected
	case !t.Linked && l.strays(t.X, top.class.Person):
		v.Reason = online.Strayed
	case l.Settings.Accept > 0 && l.Graph.below(v.Confidence, l.Settings.Accept):
		v.Reason = online.Unsure
	default:
		v.Person = v.Best
		v.Distance = math.Inf(1)
		for _, u := range l.Labelled(v.Person, false) {
			v.Distance = min(v.Distance, l.Graph.Distance(t.X, u.X))
		}
		v.Anchored = !l.Graph.less(l.radii().Anchor, v.Distance)
	}
	return v, top
}

// rejects reports whether t has an edge to a face rejected as this person's that is as near as each
// labelled and learned face of the person.
func (l *Learner) rejects(t Trial, p online.Person) bool {
	nearest := func(negative bool) float64 {
		d, class := math.Inf(1), l.class(p, negative)
		for _, v := range l.Graph.Vertices {
			of := v.Class
			if of < 0 && len(v.Source) == 1 && v.Source[class] {
				of = class
			}
			if t.Edges[v] > 0 && of == class {
				d = min(d, l.Graph.Distance(t.X, v.X))
			}
		}
		return d
	}
	if l.class(p, true) < 0 {
		return false
	}
	rejected := nearest(true)
	return !math.IsInf(rejected, 1) && !l.Graph.less(nearest(false), rejected)
}

// Judge returns the verdict on a face, and changes nothing.
func (l *Learner) Judge(x []float32) online.Verdict {
	v, _ := l.verdict(online.Observation{Vector: x})
	return v
}
