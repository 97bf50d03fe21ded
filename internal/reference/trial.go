// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"math"
	"slices"

	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

// Trial is a point that was tried on the graph.
type Trial struct {
	X       []float32
	Outlier bool
	Far     bool                // it has no edge, and is judged by vertices in sight
	Linked  bool                // it follows a vertex to which it has an edge
	Home    *Vertex             // or nil
	Edges   map[*Vertex]float64 // weights, also of a point that is merged into Home
	Values  []float64           // by class
}

// edges returns the ordinary edges of a point, and its edges to the vertices that it follows.
func (g *Graph) edges(x []float32, among []*Vertex, follows []int64) map[*Vertex]float64 {
	e := map[*Vertex]float64{}
	for _, v := range among {
		if w := g.weight(x, v.X); w > 0 {
			e[v] = w
		} else if slices.ContainsFunc(follows, func(id int64) bool { return g.standIn(id) == v }) {
			if w := g.link(x, v.X); w > 0 {
				e[v] = w
			}
		}
	}
	return e
}

// standIn returns the vertex with this ID, or the vertex into which it was merged as far as the
// journal knows, or nil.
func (g *Graph) standIn(id int64) *Vertex {
	for _, v := range g.Vertices {
		for _, p := range v.Points {
			if id > 0 && p.ID == id && (v.ID == id || slices.Contains(g.Journal, p)) {
				return v
			}
		}
	}
	return nil
}

// sight returns the edges with which a point without ordinary edges is judged.
func (g *Graph) sight(x []float32, labelled, learned float64) map[*Vertex]float64 {
	e := map[*Vertex]float64{}
	r := g.Config.EdgeRadius()
	for _, v := range g.Vertices {
		bound := max(labelled, r)
		if v.Class < 0 {
			bound = max(learned, r)
		}
		if d := g.Distance(x, v.X); !g.less(bound, d) {
			shrunk := math.Pow(r/bound, 2)
			e[v] = g.Config.Kernel.Weight(math.Sqrt(r*r + shrunk*(d*d-r*r)))
		}
	}
	return e
}

// Look tries a point on the present graph.
func (g *Graph) Look(x []float32, labelled, learned float64, follows ...int64) Trial {
	t := g.follow(Trial{X: x, Edges: g.edges(x, g.Vertices, follows)}, follows)
	if len(t.Edges) == 0 {
		t.Edges = g.sight(x, labelled, learned)
		t.Far = len(t.Edges) > 0
	}
	return g.try(t)
}

// Enrolled tries a point on the labelled vertices alone.
func (g *Graph) Enrolled(x []float32, labelled float64) Trial {
	alone := &Graph{Config: g.Config, Classes: g.Classes}
	of := make(map[*Vertex]*Vertex)
	for _, v := range g.Vertices {
		if v.Class >= 0 {
			u := &Vertex{X: v.X, Class: v.Class, Points: []*Point{{X: v.X, Label: true}}}
			alone.Vertices, of[u] = append(alone.Vertices, u), v
		}
	}
	t := alone.Look(x, labelled, 0)
	edges := make(map[*Vertex]float64)
	for u, w := range t.Edges {
		edges[of[u]] = w
	}
	t.Edges = edges
	g.Delicate = g.Delicate || alone.Delicate
	return t
}

// follow notes whether the point follows one of the vertices to which it has an edge.
func (g *Graph) follow(t Trial, follows []int64) Trial {
	t.Linked = false
	for _, id := range follows {
		if v := g.standIn(id); v != nil && t.Edges[v] > 0 {
			t.Linked = true
		}
	}
	return t
}

func (g *Graph) try(t Trial) Trial {
	t.Values = make([]float64, g.Classes)
	t.Outlier = len(t.Edges) == 0
	if t.Outlier {
		return t
	}
	for _, v := range g.Vertices {
		if d := g.Distance(t.X, v.X); !t.Far && v.Class < 0 && g.weight(t.X, v.X) > 0 &&
			(g.less(d, g.R) || d == 0) &&
			(t.Home == nil || g.less(d, g.Distance(t.X, t.Home.X))) {
			t.Home = v
		}
	}
	p := &Point{X: t.X}
	at := t.Home
	if at == nil {
		at = &Vertex{X: t.X, Class: -1, Points: []*Point{p}}
		g.Vertices = append(g.Vertices, at)
		defer func() { g.Vertices = g.Vertices[:len(g.Vertices)-1] }()
	} else {
		at.Points = append(at.Points, p)
		defer func() { at.Points = at.Points[:len(at.Points)-1] }()
	}
	t.Values = mat.Row(nil, slices.Index(g.Vertices, at), g.solution(func(v, u *Vertex) float64 {
		switch {
		case at == t.Home || v != at && u != at:
			return g.Edge(v, u)
		case v == at:
			return t.Edges[u]
		}
		return t.Edges[v]
	}))
	return t
}

// Place tries a point, after a repartition if there is a vertex too many.
func (g *Graph) Place(x []float32, follows ...int64) Trial {
	t := g.follow(Trial{X: x, Edges: g.edges(x, g.Vertices, follows)}, follows)
	if len(t.Edges) == 0 {
		return g.try(t)
	}
	if g.Learned() > g.Config.K && !g.Full {
		r, to := g.partition(g.Config.K)
		if to == nil {
			g.Full = true
			return g.try(t)
		}
		for v := range t.Edges {
			if to[v] != v {
				delete(t.Edges, v)
			}
		}
		if len(t.Edges) == 0 {
			return g.try(g.follow(t, follows))
		}
		g.repartition(r, to)
		t = g.follow(t, follows)
	}
	return g.try(t)
}

// Keep keeps a point that was placed, and reports whether there was room. If there is none, the
// class with the most learned vertices gives one up, if it has two more than the class of the
// point.
func (g *Graph) Keep(t Trial, class int, m quantized.Moment) (id int64, ok bool) {
	if t.Outlier {
		return 0, false
	}
	if t.Home == nil && g.Learned() > g.Config.K {
		v := g.given(t, class)
		if v == nil {
			return 0, false
		}
		g.Remove(v)
		g.Shared++
	}
	p := &Point{X: t.X, When: m}
	var hops int
	p.Via, hops = g.Via(t, class)
	if t.Home != nil {
		p.At = t.Home
		g.record(p)
	} else {
		g.LastID++
		p.ID = g.LastID
		p.At = &Vertex{ID: g.LastID, X: t.X, Class: -1, Hops: hops, Via: p.Via,
			Source: map[int]bool{}, Linked: map[*Vertex]bool{}}
		for v := range t.Edges {
			if g.weight(t.X, v.X) == 0 {
				p.At.Linked[v] = true
			}
		}
		g.Vertices = append(g.Vertices, p.At)
	}
	p.At.Points = append(p.At.Points, p)
	if class >= 0 {
		p.At.Source[class] = true
	}
	return p.At.ID, true
}

// given returns the vertex that is given up for a point of a class, or nil: of the class with the
// most vertices, the one that is furthest from its labelled vertices, if every other vertex keeps
// its path to a labelled vertex.
func (g *Graph) given(t Trial, class int) (v *Vertex) {
	of := make([][]*Vertex, g.Classes)
	for _, v := range g.Vertices {
		for c := range v.Source {
			if v.Class < 0 && len(v.Source) == 1 {
				of[c] = append(of[c], v)
			}
		}
	}
	most := 0
	for c := range of {
		if len(of[c]) > len(of[most]) {
			most = c
		}
	}
	if class < 0 || len(of[most]) < len(of[class])+2 {
		return nil
	}
	far := func(v *Vertex) float64 {
		d := math.Inf(1)
		for _, u := range g.Vertices {
			if u.Class == most {
				d = min(d, g.Distance(v.X, u.X))
			}
		}
		return d
	}
	lost := func(without *Vertex) map[*Vertex]bool {
		lost := make(map[*Vertex]bool)
		for _, v := range g.Vertices {
			lost[v] = v.Class < 0 && v != without
		}
		for again := true; again; {
			again = false
			for _, v := range g.Vertices {
				for _, u := range g.Vertices {
					if v != without && u != without && lost[v] && !lost[u] && g.Edge(v, u) > 0 {
						lost[v], again = false, true
					}
				}
			}
		}
		return lost
	}
	before := lost(nil)
	for _, u := range of[most] {
		without := lost(u)
		needed := slices.ContainsFunc(g.Vertices, func(w *Vertex) bool {
			return w != u && without[w] && !before[w]
		})
		if t.Edges[u] == 0 && !needed && (v == nil || g.less(far(v), far(u))) {
			v = u
		}
	}
	return v
}

// Via returns the vertex through which a point would be accepted as a class, and its hops.
func (g *Graph) Via(t Trial, class int) (id int64, hops int) {
	if t.Home != nil {
		return t.Home.ID, t.Home.Hops
	}
	heaviest := func(among func(*Vertex) bool) (best *Vertex) {
		most := 0.
		for _, v := range g.Vertices {
			if w := t.Edges[v] * v.Sum(); among(v) && g.less(most, w) {
				best, most = v, w
			}
		}
		return best
	}
	best := heaviest(func(v *Vertex) bool {
		return class >= 0 && (v.Class == class || v.Source[class])
	})
	if best == nil {
		best = heaviest(func(*Vertex) bool { return true })
	}
	return best.ID, best.Hops + 1
}
