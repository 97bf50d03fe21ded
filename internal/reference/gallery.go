// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/online"
)

// Gallery is a slow model of [gallery.Gallery]. Both must agree.
type Gallery struct {
	Learner  *Learner
	Enrolled map[string]time.Time
	Numbers  map[string]online.Person
	given    online.Person
}

// Number returns the number of a person whom the learner knows, or 0.
func (g *Gallery) Number(name string) online.Person {
	if p := g.Numbers[name]; g.Learner.Knows(p) {
		return p
	}
	return 0
}

// Knows reports whether the learner knows a person.
func (g *Gallery) Knows(name string) bool { return g.Number(name) != 0 }

// Name returns the name of a person, or "".
func (g *Gallery) Name(p online.Person) string {
	for name, q := range g.Numbers {
		if p == q {
			return name
		}
	}
	return ""
}

// People returns the people of the learner, with the dates of their enrolment.
func (g *Gallery) People() (all []gallery.Person) {
	known := make(map[string]time.Time)
	for _, p := range g.Learner.Known() {
		name := g.Name(p)
		known[name] = g.Enrolled[name]
		all = append(all, gallery.Person{
			ID: p, Name: name, Faces: len(g.Learner.Labelled(p, false)), Enrolled: g.Enrolled[name],
		})
	}
	g.Enrolled = known
	return all
}

// Resembles returns the other person whom most of the faces look like, if more than half look like
// others, and how many look like the person of this name.
func (g *Gallery) Resembles(name string, faces [][]float32) (best string, own int) {
	like, most, total := g.likeness(faces), 0, 0
	for _, p := range slices.Sorted(maps.Keys(like)) {
		if p == g.Number(name) {
			own = like[p]
			continue
		}
		total += like[p]
		if like[p] > most {
			best, most = g.Name(p), like[p]
		}
	}
	if 2*total <= len(faces) {
		best = ""
	}
	return best, own
}

func (g *Gallery) likeness(faces [][]float32) map[online.Person]int {
	n := make(map[online.Person]int)
	for _, x := range faces {
		v := g.Learner.Judge(x)
		is, least := v.Person, g.Learner.Space.ImpostorRadius
		shared := v.Person == 0 && (v.Best != 0 || v.Reason == online.Tie)
		for _, y := range g.Learner.Stored() {
			if !shared || !y.Labelled || y.Negative {
				continue
			}
			if d := g.Learner.Graph.Distance(x, y.Vector); g.Learner.Graph.less(d, least) {
				is, least = y.Person, d
			}
		}
		if is != 0 {
			n[is]++
		}
	}
	return n
}

// Enroll labels faces. The error is the error that the gallery's error wraps.
func (g *Gallery) Enroll(name string, faces [][]float32, now time.Time,
	how gallery.Enrolment) (string, error) {
	l := g.Learner
	if len(faces) == 0 {
		return "", gallery.ErrNoFaces
	}
	if g.Knows(name) && !how.Add {
		return "", gallery.ErrExists
	}
	for i, x := range faces {
		near := len(faces) == 1
		for j, y := range faces {
			near = near || i != j && !l.Graph.less(l.Space.GenuineRadius, l.Graph.Distance(x, y))
		}
		if !near && !how.Force {
			return "", gallery.ErrMixed
		}
	}
	resembles, own := g.Resembles(name, faces)
	if g.Knows(name) && !how.Force && own == 0 {
		return "", gallery.ErrMismatch
	}
	if !g.Knows(name) {
		g.given++
		g.Numbers[name] = g.given
	}
	l.LabelAll(faces, g.Numbers[name])
	g.Enrolled[name] = now.UTC().Truncate(time.Second)
	return resembles, nil
}

// Unconfirmed returns the learned faces that Confirm would enrol.
func (g *Gallery) Unconfirmed(name string) (far []gallery.Offered) {
	l, person := g.Learner, g.Number(name)
	var own []online.Stored
	for _, s := range l.Stored() {
		if !s.Labelled && s.Person == person {
			own = append(own, s)
		}
	}
	slices.SortStableFunc(own, func(a, b online.Stored) int {
		switch {
		case l.Graph.less(b.Points, a.Points):
			return -1
		case l.Graph.less(a.Points, b.Points):
			return 1
		}
		return 0
	})
	anchor, measured := l.radii().Anchor, l.Space.Stills.Distances[1] > 0
	for _, s := range own {
		near := !l.Graph.less(anchor, l.Nearest(s.Vector, person)) ||
			s.Frontal && measured
		for _, f := range far {
			near = near || !l.Graph.less(anchor, l.Graph.Distance(s.Vector, f.Vector))
		}
		if !near && len(far) < 8 {
			far = append(far, gallery.Offered{Stored: s, Distance: l.Nearest(s.Vector, person)})
		}
	}
	slices.SortStableFunc(far, func(a, b gallery.Offered) int {
		switch {
		case l.Graph.less(b.Distance, a.Distance):
			return -1
		case l.Graph.less(a.Distance, b.Distance):
			return 1
		}
		return 0
	})
	return far
}

// Confirm enrols these faces.
func (g *Gallery) Confirm(name string, far []gallery.Offered, now time.Time) {
	var faces [][]float32
	for _, s := range far {
		faces = append(faces, slices.Clone(s.Vector))
	}
	if len(faces) > 0 {
		g.Enroll(name, faces, now, gallery.Enrolment{Add: true, Force: true})
	}
}

// Rename gives a person a new name.
func (g *Gallery) Rename(from, to string) {
	g.Numbers[to], g.Enrolled[to] = g.Numbers[from], g.Enrolled[from]
	delete(g.Numbers, from)
	delete(g.Enrolled, from)
}
