// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
)

// Learner is a slow model of [online.Learner], written from its documentation on a [Graph] that
// keeps everything. Both must agree. Its settings must be complete. It does not check faces.
type Learner struct {
	Space    face.Space
	Settings online.Settings
	Graph    *Graph
	People   []*Class // in the order of their first label
	Counts   online.Counts
	Time     int64
	looks    map[int64]online.Observation // learned faces, by the number of the vertex
}

// Class holds the faces of a person, or the faces rejected as this person's.
type Class struct {
	Person   online.Person
	Negative bool
}

// NewLearner returns a learner without people.
func NewLearner(space face.Space, s online.Settings) *Learner {
	l := &Learner{Space: space, Settings: s}
	l.Graph = &Graph{Config: l.config(s)}
	return l
}

func (l *Learner) config(s online.Settings) quantized.Config {
	return quantized.Config{
		K: s.K, Multiplier: 1.2, Dim: l.Space.Dim, Scale: l.Space.Scale,
		Kernel:  quantized.Heat(s.Sigma),
		Epsilon: .1 * s.Gamma, Reach: max(s.Reach, 0), Link: max(s.Link, 0), Gamma: s.Gamma,
		Journal: 1 << 14,
	}
}

// Configure replaces the settings. It reports false if the centroids cannot be merged to K.
func (l *Learner) Configure(s online.Settings) bool {
	if s == l.Settings {
		return true
	}
	if !l.Graph.Configure(l.config(s)) {
		return false
	}
	l.Settings = s
	return true
}

// SetMeasured replaces the tables of impostors, and the length of a link if that is the default. It
// reports false if edges of the new length are too many.
func (l *Learner) SetMeasured(stills, streams face.Impostors) bool {
	byDefault := func(m face.Impostors) float64 {
		if m.Distances[1] > 0 {
			return m.Within(1e-2)
		}
		return online.Off
	}
	s := l.Settings
	if s.Link == byDefault(l.Space.Stills) {
		s.Link = byDefault(stills)
	}
	if !l.Configure(s) {
		return false
	}
	l.Space.Stills, l.Space.Streams = stills, streams
	return true
}

func (l *Learner) class(p online.Person, negative bool) int {
	return slices.IndexFunc(l.People, func(c *Class) bool {
		return c.Person == p && c.Negative == negative
	})
}

// Knows reports whether this person is labelled.
func (l *Learner) Knows(p online.Person) bool { return l.class(p, false) >= 0 }

// Known returns the people.
func (l *Learner) Known() (all []online.Person) {
	for _, c := range l.People {
		if !c.Negative {
			all = append(all, c.Person)
		}
	}
	return all
}

// Labelled returns the vertices with labels of a person, or with faces rejected as this person's.
func (l *Learner) Labelled(p online.Person, negative bool) (all []*Vertex) {
	class := l.class(p, negative)
	for _, v := range l.Graph.Vertices {
		if class >= 0 && v.Class == class {
			all = append(all, v)
		}
	}
	return all
}

// LabelAll labels faces. If another person's rejected face is at the same place, this rejection is
// removed.
func (l *Learner) LabelAll(faces [][]float32, p online.Person) {
	for _, x := range faces {
		l.label(x, p, false)
		for _, v := range slices.Clone(l.Graph.Vertices) {
			if v.Class < 0 || !slices.Contains(l.Graph.Vertices, v) {
				continue
			}
			if c := l.People[v.Class]; c.Negative && c.Person != p && slices.Equal(v.X, x) {
				l.Unlabel(v.ID)
			}
		}
		l.Counts.Labelled++
	}
}

func (l *Learner) label(x []float32, p online.Person, negative bool) {
	if l.class(p, negative) < 0 {
		l.People = append(l.People, &Class{p, negative})
	}
	l.Graph.Label(slices.Clone(x), l.class(p, negative))
}

// Reject labels a face as not this person's. The person must be known.
func (l *Learner) Reject(x []float32, p online.Person) {
	l.label(x, p, true)
}

// Find returns the vertex with this ID, or nil.
func (l *Learner) Find(id int64) *Vertex {
	for _, v := range l.Graph.Vertices {
		if v.ID == id {
			return v
		}
	}
	return nil
}

// Stored returns the stored faces.
func (l *Learner) Stored() (all []online.Stored) {
	for _, v := range l.Graph.Vertices {
		s := online.Stored{ID: v.ID, Vector: v.X, Points: v.Sum(), Hops: v.Hops}
		for _, q := range v.Points {
			if q.ID == v.ID && !q.Label && q.When.Time != 0 {
				s.At = time.Unix(q.When.Time, 0)
			}
		}
		if v.Class >= 0 {
			s.Labelled, s.Person, s.Negative = true, l.People[v.Class].Person,
				l.People[v.Class].Negative
		} else if len(v.Source) == 1 {
			for c := range v.Source {
				if !l.People[c].Negative {
					s.Person = l.People[c].Person
				}
			}
		}
		if o, noted := l.looks[v.ID]; v.Class < 0 {
			s.Frontal, s.Picture = o.Frontal || !noted, o.Picture
		}
		all = append(all, s)
	}
	return all
}

// Labels returns the labelled faces, the oldest first.
func (l *Learner) Labels() (all []online.Label) {
	for _, v := range l.Graph.Vertices {
		if v.Class >= 0 {
			all = append(all,
				online.Label{ID: v.ID, Person: l.People[v.Class].Person,
					Negative: l.People[v.Class].Negative})
		}
	}
	return all
}

// Conflicts returns the pairs of labels that contradict each other.
func (l *Learner) Conflicts(within float64) (all []online.Conflict) {
	labels := l.Labels()
	for i, b := range labels {
		for _, a := range labels[:i] {
			people := !a.Negative && !b.Negative && a.Person != b.Person
			rejected := a.Negative != b.Negative && a.Person == b.Person
			if d := l.Graph.Distance(l.Find(a.ID).X, l.Find(b.ID).X); (people || rejected) &&
				!l.Graph.less(within, d) {
				all = append(all, online.Conflict{A: a, B: b, Distance: d})
			}
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		return l.Graph.less(all[i].Distance, all[j].Distance)
	})
	return all
}

// Nearest returns the distance to the nearest labelled face of a person.
func (l *Learner) Nearest(x []float32, p online.Person) float64 {
	d := math.Inf(1)
	for _, v := range l.Labelled(p, false) {
		d = min(d, l.Graph.Distance(x, v.X))
	}
	return d
}

// Full reports whether the last search found no room for another centroid.
func (l *Learner) Full() bool { return l.Graph.Full && l.Graph.Learned() > l.Settings.K }

// Drift returns the drift of a known person.
func (l *Learner) Drift(p online.Person) online.Drift {
	var d online.Drift
	class := l.class(p, false)
	var learned []*Vertex
	for _, v := range l.Graph.Vertices {
		if v.Class < 0 && len(v.Source) == 1 && v.Source[class] {
			learned = append(learned, v)
			d.Learned += v.Sum()
		}
	}
	if len(learned) == 0 {
		return d
	}
	sort.SliceStable(learned, func(i, j int) bool {
		return learned[i].Points[0].When.Observation < learned[j].Points[0].When.Observation
	})
	centre := func(of []*Vertex) []float32 {
		c := make([]float32, l.Space.Dim)
		for q := range c {
			sum, mass := 0., 0.
			for _, v := range of {
				sum += v.Sum() * float64(v.X[q])
				mass += v.Sum()
			}
			c[q] = float32(sum / mass)
		}
		return c
	}
	start := centre(l.Labelled(p, false))
	d.Distance = l.Graph.Distance(start, centre(learned))
	older, half := 0., 0
	for half < len(learned) && l.Graph.less(2*older, d.Learned) {
		older += learned[half].Sum()
		half++
	}
	if half < len(learned) {
		a, b := centre(learned[:half]), centre(learned[half:])
		var aa, bb, ab float64
		for q := range a {
			u, w := float64(a[q])-float64(start[q]), float64(b[q])-float64(a[q])
			aa, bb, ab = aa+u*u, bb+w*w, ab+u*w
		}
		if aa > 0 && aa < 1e-10 || bb > 0 && bb < 1e-10 { // a direction that comes from rounding
			l.Graph.Delicate = true
		}
		if aa > 0 && bb > 0 {
			d.Constancy = ab / math.Sqrt(aa*bb)
		}
	}
	d.Alarm = l.Settings.DriftDistance > 0 && d.Distance > l.Settings.DriftDistance &&
		d.Constancy > .5
	return d
}
