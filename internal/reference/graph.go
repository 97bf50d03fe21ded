// SPDX-License-Identifier: Apache-2.0

// Package reference is a slow model of package quantized: the listing "Online quantized harmonic
// solution", written in the most obvious way. Both must agree. It keeps every point, measures every
// distance again, and solves by dense Cholesky. It is for tests. On its own mistakes it panics.
package reference

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/faceauth/faceauth/quantized"
)

// Graph is a graph of labelled vertices and learned centroids.
type Graph struct {
	Config   quantized.Config
	R        float64
	Vertices []*Vertex
	Classes  int
	Full     bool
	LastID   int64
	Journal  []*Point // merged points, the oldest first
	Lost     quantized.Moment
	// Delicate says that a decision depended on less than rounding errors: another way to compute
	// it may decide otherwise.
	Delicate bool
	Links    []Link
	// Numbers of edges ever contracted, and of vertices that were given up for a point of another
	// class.
	Contracted, Shared int
}

// Link is an edge of two points, at least one of which was merged into another vertex. It joins the
// vertices where the points are now.
type Link struct {
	A, B *Vertex
	P, Q *Point // at A and at B
}

// Vertex is one vertex.
type Vertex struct {
	ID     int64
	X      []float32
	Class  int // -1 for learned
	Points []*Point
	Hops   int
	Via    int64            // of its own point
	Source map[int]bool     // classes through which its points were accepted
	Linked map[*Vertex]bool // vertices that it follows, or that follow it, beyond the edge radius
}

// Point is a point that was kept.
type Point struct {
	X    []float32
	When quantized.Moment
	// present or former vertex ID, or 0; ID of the vertex through which it was accepted
	ID, Via int64
	At      *Vertex
	Lost    bool // the journal does not have it any more
	Label   bool
}

// Sum returns the number of points at a vertex.
func (v *Vertex) Sum() float64 { return float64(len(v.Points)) }

// Distance returns the distance of two points.
func (g *Graph) Distance(a, b []float32) float64 {
	return g.Config.Scale * math.Sqrt(quantized.SquaredDistance(a, b))
}

// less reports whether a is less than b. If two faces are near each other and far from the origin,
// the relative error of their distance is about 1e-9.
func (g *Graph) less(a, b float64) bool {
	if a != b && math.Abs(a-b) <= 1e-8*max(math.Abs(a), math.Abs(b)) {
		g.Delicate = true
	}
	return a < b
}

// below reports whether a harmonic value, or a difference of two, is below a threshold.
func (g *Graph) below(value, threshold float64) bool {
	if math.Abs(value-threshold) < 1e-7 {
		g.Delicate = true
	}
	return value < threshold
}

// weight returns the weight of an edge between two points, or 0.
func (g *Graph) weight(a, b []float32) float64 {
	d := g.Distance(a, b)
	if g.Config.Reach > 0 && g.less(g.Config.Reach, d) {
		return 0
	}
	if w := g.Config.Kernel.Weight(d); !g.less(w, g.Config.Epsilon) {
		return w
	}
	return 0
}

// Edge returns the weight of the edge between two vertices, or 0: an ordinary edge, or one between
// successive points.
func (g *Graph) Edge(v, u *Vertex) float64 {
	if w := g.weight(v.X, u.X); w > 0 {
		return w
	}
	if v.Linked[u] || u.Linked[v] || g.contracted(v, u) != nil {
		return g.link(v.X, u.X)
	}
	return 0
}

// contracted returns the link between two vertices, or nil.
func (g *Graph) contracted(v, u *Vertex) *Link {
	for i, l := range g.Links {
		if l.A == v && l.B == u || l.A == u && l.B == v {
			return &g.Links[i]
		}
	}
	return nil
}

// contract returns the links for the edges that a repartition loses.
func (g *Graph) contract(to map[*Vertex]*Vertex) (links []Link) {
	for i, v := range g.Vertices {
		for _, u := range g.Vertices[:i] {
			a, b := to[v], to[u]
			known := a == b || g.Edge(a, b) > 0 || slices.ContainsFunc(links, func(l Link) bool {
				return l.A == a && l.B == b || l.A == b && l.B == a
			})
			if g.Edge(v, u) == 0 || known || a.Class >= 0 && b.Class >= 0 || !akin(v, u) ||
				g.link(a.X, b.X) == 0 {
				continue
			}
			l := Link{a, b, v.Points[0], u.Points[0]}
			if old := g.contracted(v, u); old != nil {
				l.P, l.Q = old.P, old.Q
				if old.A != v {
					l.P, l.Q = old.Q, old.P
				}
			}
			links = append(links, l)
		}
	}
	return links
}

// akin reports whether two vertices share a class.
func akin(v, u *Vertex) bool {
	classes := func(v *Vertex) map[int]bool {
		all := maps.Clone(v.Source)
		if v.Class >= 0 {
			all[v.Class] = true
		}
		return all
	}
	for c := range classes(v) {
		if classes(u)[c] {
			return true
		}
	}
	return false
}

// tidy drops the links whose vertices or points are gone.
func (g *Graph) tidy() {
	g.Links = slices.DeleteFunc(slices.Clone(g.Links), func(l Link) bool {
		return !slices.Contains(g.Vertices, l.A) || !slices.Contains(g.Vertices, l.B) ||
			!slices.Contains(l.A.Points, l.P) || !slices.Contains(l.B.Points, l.Q)
	})
}

// link returns the weight of an edge between two successive points without an ordinary edge, or 0.
func (g *Graph) link(a, b []float32) float64 {
	d := g.Distance(a, b)
	if g.Config.Link <= g.Config.EdgeRadius() || g.less(g.Config.Link, d) {
		return 0
	}
	return g.Config.Kernel.Weight(d * g.Config.EdgeRadius() / g.Config.Link)
}

// Label adds a labelled vertex.
func (g *Graph) Label(x []float32, class int) {
	g.Classes = max(g.Classes, class+1)
	g.LastID++
	v := &Vertex{ID: g.LastID, X: x, Class: class, Source: map[int]bool{}}
	v.Points = []*Point{{X: x, ID: v.ID, At: v, Label: true}}
	g.Vertices = append(g.Vertices, v)
}

// Learned returns the number of learned vertices.
func (g *Graph) Learned() (n int) {
	for _, v := range g.Vertices {
		if v.Class < 0 {
			n++
		}
	}
	return n
}

// record adds a merged point to the journal.
func (g *Graph) record(p *Point) {
	g.Journal = append(g.Journal, p)
	g.trim()
}

func (g *Graph) trim() {
	for len(g.Journal) > g.Config.Journal {
		p := g.Journal[0]
		p.Lost = true
		g.Lost.Observation = max(g.Lost.Observation, p.When.Observation)
		g.Lost.Time = max(g.Lost.Time, p.When.Time)
		g.Journal = g.Journal[1:]
	}
}

// partition returns the new vertex of each vertex, so that at most k learned vertices are left, and
// R for it. It returns nil if there is none.
func (g *Graph) partition(k int) (r float64, to map[*Vertex]*Vertex) {
	reach := g.Config.EdgeRadius()
	r = g.R
	if r == 0 {
		r = reach
		for i, v := range g.Vertices {
			for _, w := range g.Vertices[:i] {
				if d := g.Distance(v.X, w.X); d > 0 && g.weight(v.X, w.X) > 0 &&
					(v.Class < 0 || w.Class < 0) {
					r = min(r, d)
				}
			}
		}
	}
	order := slices.Clone(g.Vertices)
	sort.SliceStable(order, func(i, j int) bool {
		a, b := order[i], order[j]
		if (a.Class >= 0) != (b.Class >= 0) {
			return a.Class >= 0
		}
		return a.Sum() > b.Sum()
	})
	for last := false; !last; {
		// it exceeds the edge radius if that became smaller
		r = max(r, min(r*g.Config.Multiplier, reach))
		last = r >= reach
		var kept []*Vertex
		learned := 0
		for _, v := range order {
			near := func(w *Vertex) bool {
				return w.Class < 0 && g.weight(v.X, w.X) > 0 && g.less(g.Distance(v.X, w.X), r)
			}
			if v.Class >= 0 {
				kept = append(kept, v)
			} else if !slices.ContainsFunc(kept, near) {
				kept = append(kept, v)
				learned++
			}
		}
		if learned > k {
			continue
		}
		to = make(map[*Vertex]*Vertex)
		for _, v := range order {
			if slices.Contains(kept, v) {
				to[v] = v
				continue
			}
			for _, w := range kept {
				if w.Class < 0 && g.weight(v.X, w.X) > 0 &&
					(to[v] == nil || g.less(g.Distance(v.X, w.X), g.Distance(v.X, to[v].X))) {
					to[v] = w
				}
			}
		}
		return r, to
	}
	return 0, nil
}

// repartition carries out a partition.
func (g *Graph) repartition(r float64, to map[*Vertex]*Vertex) {
	g.R = r
	links := g.contract(to)
	for _, v := range g.Vertices {
		w := to[v]
		if w == v {
			continue
		}
		for _, p := range v.Points {
			p.At = w
		}
		w.Points = append(w.Points, v.Points...)
		for c := range v.Source {
			w.Source[c] = true
		}
	}
	for _, v := range slices.Clone(g.Vertices) {
		if to[v] != v {
			g.record(v.Points[0]) // its own
		}
	}
	// The points of older links have moved, too: each link that is left joins the vertices where
	// they are.
	g.Links = slices.DeleteFunc(slices.Clone(g.Links), func(l Link) bool {
		return to[l.A] != l.A || to[l.B] != l.B
	})
	g.remove(func(v *Vertex) bool { return to[v] != v })
	g.Links = append(g.Links, links...)
	g.Contracted += len(links)
}

// remove removes vertices, and the journal entries of their points.
func (g *Graph) remove(gone func(*Vertex) bool) {
	n := len(g.Vertices)
	g.Vertices = slices.DeleteFunc(slices.Clone(g.Vertices), gone)
	if len(g.Vertices) < n {
		g.Full = false
	}
	if g.Learned() == 0 {
		g.R = 0
	}
	g.tidy()
	g.Journal = slices.DeleteFunc(slices.Clone(g.Journal),
		func(p *Point) bool { return !slices.Contains(g.Vertices, p.At) })
}

// Remove removes a vertex.
func (g *Graph) Remove(v *Vertex) { g.remove(func(w *Vertex) bool { return w == v }) }

// Forget removes a class, and renumbers the others.
func (g *Graph) Forget(class int) {
	g.remove(func(v *Vertex) bool { return v.Class == class || v.Source[class] })
	g.Classes--
	for _, v := range g.Vertices {
		if v.Class > class {
			v.Class--
		}
		source := map[int]bool{}
		for c := range v.Source {
			if c > class {
				c--
			}
			source[c] = true
		}
		v.Source = source
	}
}

// Unlearn takes back the points for which gone returns true, and the points accepted through them,
// and returns their number. A vertex is removed with its own point.
func (g *Graph) Unlearn(gone func(quantized.Moment) bool) (points float64) {
	return g.UnlearnPoints(func(p *Point) bool { return gone(p.When) })
}

// UnlearnPoints is Unlearn with a function of points.
func (g *Graph) UnlearnPoints(gone func(*Point) bool) (points float64) {
	before := g.points()
	spoilt := map[int64]bool{}
	taken := func(p *Point) bool { return !p.Label && !p.Lost && (gone(p) || spoilt[p.Via]) }
	for again := true; again; {
		again = false
		for _, v := range g.Vertices {
			for _, p := range v.Points {
				if p.ID != 0 && !spoilt[p.ID] && taken(p) {
					spoilt[p.ID], again = true, true
				}
			}
		}
	}
	for _, p := range slices.Clone(g.Journal) {
		if v := p.At; taken(p) && !spoilt[v.ID] {
			v.Points = slices.DeleteFunc(v.Points, func(q *Point) bool { return p == q })
			g.Journal = slices.DeleteFunc(slices.Clone(g.Journal), func(q *Point) bool {
				return p == q
			})
		}
	}
	g.remove(func(v *Vertex) bool { return spoilt[v.ID] })
	g.tidy()
	return before - g.points()
}

// points returns the number of learned points.
func (g *Graph) points() (n float64) {
	for _, v := range g.Vertices {
		for _, p := range v.Points {
			if !p.Label {
				n++
			}
		}
	}
	return n
}

// Undo takes back the points after an observation. Ok is false if the journal may have lost some of
// them.
func (g *Graph) Undo(since int64) (points float64, ok bool) {
	if since < g.Lost.Observation {
		return 0, false
	}
	return g.Unlearn(func(m quantized.Moment) bool { return m.Observation > since }), true
}

// Since returns the last observation before the first point after a time. A point after now counts
// only if all points with a known time after it are later than now, too.
func (g *Graph) Since(time, now int64) int64 {
	all := []quantized.Moment{g.Lost}
	for _, v := range g.Vertices {
		for _, p := range v.Points {
			if !p.Label && !p.Lost {
				all = append(all, p.When)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b quantized.Moment) int {
		return cmp.Compare(b.Observation, a.Observation)
	})
	since, right := int64(math.MaxInt64), false
	for i := 0; i < len(all); { // from the last one, all of one observation together
		end := i
		for ; end < len(all) && all[end].Observation == all[i].Observation; end++ {
			right = right || all[end].Time != 0 && all[end].Time <= now
		}
		for _, m := range all[i:end] {
			if m.Time != 0 && m.Time > time && (m.Time <= now || !right) {
				since = m.Observation - 1
			}
		}
		i = end
	}
	return since
}

// Configure sets another configuration. If there are then too many learned vertices, it changes
// nothing and reports false.
func (g *Graph) Configure(c quantized.Config) bool {
	old, links := g.Config, g.Links
	g.Config = c
	g.Links = slices.DeleteFunc(slices.Clone(g.Links), func(l Link) bool {
		return g.weight(l.A.X, l.B.X) > 0 || g.link(l.A.X, l.B.X) == 0
	})
	if g.Learned() > c.K+1 {
		r, to := g.partition(c.K)
		if to == nil {
			g.Config, g.Links = old, links
			return false
		}
		g.repartition(r, to)
	}
	if c.K > old.K {
		g.R = 0
	}
	g.Full = false
	g.trim()
	for _, v := range g.Vertices { // ordinary edges, and vertices too far away, are no longer links
		for u := range v.Linked {
			if g.weight(v.X, u.X) > 0 || g.link(v.X, u.X) == 0 {
				delete(v.Linked, u)
			}
		}
	}
	return true
}
