package quantized

import (
	"math"
	"slices"
)

// Trial is a point that was put into the graph to see how it would fare there. The graph has not changed, and a Trial
// that is not wanted is forgotten. It can be asked until the next point is tried or the graph changes; after that its
// methods panic with "quantized: this trial is over".
type Trial struct {
	g      *Graph
	stamp  uint64
	square float64
	near   []edge
	home   int // vertex that takes the point in, or -1
}

// Candidate is a [Trial] whose point may be kept.
type Candidate struct{ Trial }

// Look tries the point x. The error wraps [ErrPoint]. It panics when x has another dimension.
func (g *Graph) Look(x []float32) (Trial, error) {
	square, err := g.take(x)
	if err != nil {
		return Trial{}, err
	}
	return g.try(square, g.near(g.probe, square)), nil
}

func (g *Graph) try(square float64, near []edge) Trial {
	return Trial{g: g, stamp: g.stamp, square: square, near: near, home: g.home(near)}
}

// Place tries the point x as [Graph.Look] does, as one that may be kept. Where there is a vertex too many the graph is
// repartitioned first, as the thesis's listing does at the start of a step, unless x is an outlier before that or
// after.
func (g *Graph) Place(x []float32) (Candidate, error) {
	square, err := g.take(x)
	if err != nil {
		return Candidate{}, err
	}
	near := g.near(g.probe, square)
	if len(near) > 0 && g.learned > g.c.K && !g.full {
		p, ok := g.plan(g.c.K)
		if !ok {
			// It is not planned again before a vertex has gone: that takes time, and seldom helps.
			g.full = true
			return Candidate{g.try(square, near)}, nil
		}
		left := p.survivors(near)
		if len(left) == 0 {
			// All that the point is near to would be merged away. The others still know nothing of it.
			return Candidate{g.try(square, left)}, nil
		}
		near = left
		g.apply(p)
	}
	return Candidate{g.try(square, near)}, nil
}

// home returns the vertex that takes in a point with these neighbours, the nearest one closer than R, or -1.
func (g *Graph) home(near []edge) int {
	best, d := -1, math.Inf(1)
	for _, e := range near {
		if g.mergeable(e.to) && (e.d < g.r || e.d == 0) && e.d < d {
			best, d = e.to, e.d
		}
	}
	return best
}

func (g *Graph) mergeable(i int) bool { return g.label[i] == unlabelled || g.c.Absorb }

func (t Trial) mustBeOn() {
	if t.g == nil || t.stamp != t.g.stamp {
		panic("quantized: this trial is over")
	}
}

// Outlier reports whether the point has no edge to any vertex: all its compact weights are below epsilon.
func (t Trial) Outlier() bool {
	t.mustBeOn()
	return len(t.near) == 0
}

// Home returns the vertex that would take the point in, and whether there is one.
func (t Trial) Home() (vertex int, ok bool) {
	t.mustBeOn()
	return max(t.home, 0), t.home >= 0
}

// Nearest returns the distance to the nearest labelled vertex of a class that the point has an edge to, or +Inf.
func (t Trial) Nearest(class int) float64 {
	t.mustBeOn()
	d := math.Inf(1)
	for _, e := range t.near {
		if t.g.label[e.to] == class && class >= 0 {
			d = min(d, e.d)
		}
	}
	return d
}

// Hops returns how many vertices the point is away from a labelled one, along those through which it and they were
// accepted as a class: 1 where a labelled vertex speaks for it. Class is negative for none.
func (t Trial) Hops(class int) int {
	t.mustBeOn()
	_, hops := t.via(class)
	return hops
}

// via returns the ID of the vertex through which the point would be accepted as a class, and its hops then: the vertex
// that takes it in, or else the neighbour with the largest weight among those that are labelled so or were learned so,
// or among all where there is none.
func (t Trial) via(class int) (id int64, hops int) {
	if t.home >= 0 {
		o := t.g.origin[t.home]
		return o.ID, o.Hops
	}
	best, own := 0., false
	for _, e := range t.near {
		is := class >= 0 && (t.g.label[e.to] == class || slices.Contains(t.g.source[e.to], class))
		if w := e.w * t.g.v[e.to]; is && !own || is == own && w > best {
			best, own = w, is
			id, hops = t.g.origin[e.to].ID, t.g.origin[e.to].Hops+1
		}
	}
	return id, hops
}

// Room reports whether [Candidate.Keep] would keep the point: a vertex takes it in, or the graph is not [Graph.Full].
func (c Candidate) Room() bool {
	c.mustBeOn()
	return len(c.near) > 0 && (c.home >= 0 || c.g.learned <= c.g.c.K && c.g.edges.fit(len(c.near)))
}

// Keep ends the trial: the point stays, as one that stands for n points of the same moment. Class says through which
// class it was accepted, for [Graph.Forget]; it is negative for a point that no class claimed. It reports false, and
// changes nothing, for an outlier and where there is no [Candidate.Room]. It panics unless n is positive.
func (c Candidate) Keep(class, n int, m Moment) bool {
	if !c.Room() {
		return false
	}
	if n < 1 {
		panic("quantized: a point that stands for none")
	}
	g, i := c.g, c.home
	id, hops := c.via(class)
	if i >= 0 {
		g.stamp++
		g.v[i] += float64(n)
		g.count[i] += float64(n)
		g.journal.add(g.c.Journal, entry{Moment: m, vertex: g.origin[i].ID, via: id, count: float64(n), born: g.clock})
	} else {
		i = g.Len()
		g.add(c.square, c.near, unlabelled)
		g.v[i], g.count[i] = float64(n), float64(n)
		o := &g.origin[i]
		o.Moment, o.Via, o.Hops, o.Own, o.Born = m, id, hops, float64(n), g.clock
	}
	if class >= 0 {
		if at, found := slices.BinarySearch(g.source[i], class); !found {
			g.source[i] = slices.Insert(g.source[i], at, class)
		}
	}
	return true
}
