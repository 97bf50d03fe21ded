// SPDX-License-Identifier: Apache-2.0

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
	home   int  // vertex that takes the point in, or -1
	far    bool // it has no edge, and sees the vertices of near
}

// Candidate is a [Trial] whose point may be kept.
type Candidate struct{ Trial }

// Sight says how far from a labelled vertex, and from a learned one, a point may be and still be judged by it. Zero is
// the edge radius.
type Sight struct{ Labelled, Learned float64 }

// Look tries the point x. Follows are the IDs of vertices that are known to be of the same person or thing, such as the
// points before it on the way of something that moves: it has edges to those, up to [Config].Link long.
//
// A point that has no edge is joined to what it sees: to the vertices within s. Such a point can be judged, and that is
// all.
//
// The error wraps [ErrPoint]. It panics when x has another dimension.
func (g *Graph) Look(x []float32, s Sight, follows ...int64) (Trial, error) {
	return g.look(x, s, g.standIns(follows))
}

// look is Look with the vertices that x follows.
func (g *Graph) look(x []float32, s Sight, follows []int) (Trial, error) {
	square, err := g.take(x)
	if err != nil {
		return Trial{}, err
	}
	near := g.within(g.probe, square, max(s.Labelled, g.reach), max(s.Learned, g.reach))
	links := g.links(square, follows)
	if len(links) == 0 && !slices.ContainsFunc(near, g.ordinary) {
		return Trial{g: g, stamp: g.stamp, square: square, near: near, home: -1, far: len(near) > 0}, nil
	}
	near = slices.DeleteFunc(near, func(e edge) bool { return !g.ordinary(e) })
	return g.try(square, merge(near, links)), nil
}

func (g *Graph) try(square float64, near []edge) Trial {
	return Trial{g: g, stamp: g.stamp, square: square, near: near, home: g.home(near)}
}

// ordinary reports whether an edge is no longer than the edge radius.
func (g *Graph) ordinary(e edge) bool { return e.d <= g.reach }

// links returns the edges beyond the edge radius from the point at hand to the vertices that it follows.
func (g *Graph) links(square float64, follows []int) (links []edge) {
	if g.c.Link <= g.reach {
		return nil
	}
	for _, i := range follows {
		if slices.ContainsFunc(links, func(e edge) bool { return e.to == i }) {
			continue
		}
		if d := g.measure(g.probe, square, i); d > g.reach && d <= g.c.Link {
			links = append(links, edge{i, g.c.LinkWeight(d), d})
		}
	}
	return links
}

// standIns returns the vertices of these IDs, or those that stand in for them, without what is gone.
func (g *Graph) standIns(ids []int64) (vertices []int) {
	for _, id := range ids {
		if i := g.standIn(id); i >= 0 {
			vertices = append(vertices, i)
		}
	}
	return vertices
}

// standIn returns the vertex of that ID, or the one that it was merged into as far back as the journal reaches, or -1.
func (g *Graph) standIn(id int64) int {
	if i := g.vertex(id); i >= 0 || id < 1 {
		return i
	}
	for _, e := range g.journal.entries {
		if e.id == id {
			return g.vertex(e.vertex)
		}
	}
	return -1
}

// merge returns both lists, of which a ascends, as one that does. No vertex is in both.
func merge(a, b []edge) []edge {
	if len(b) == 0 {
		return a
	}
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(a, b edge) int { return a.to - b.to })
	return all
}

// Place tries the point x as [Graph.Look] does, as one that may be kept, and with ordinary edges and links alone. Where
// there is a vertex too many the graph is repartitioned first, as the thesis's listing does at the start of a step,
// unless x is an outlier before that or after.
func (g *Graph) Place(x []float32, follows ...int64) (Candidate, error) {
	square, err := g.take(x)
	if err != nil {
		return Candidate{}, err
	}
	near := merge(g.near(g.probe, square), g.links(square, g.standIns(follows)))
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
		if g.mergeable(e.to) && (e.d < g.r || e.d == 0) && g.ordinary(e) && e.d < d {
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

// Far reports whether the point has no edge to any vertex, and is judged by those within its [Sight].
func (t Trial) Far() bool {
	t.mustBeOn()
	return t.far
}

// Outlier reports whether the point has no edge to any vertex, as all its compact weights are below epsilon, and sees
// none.
func (t Trial) Outlier() bool {
	t.mustBeOn()
	return len(t.near) == 0
}

// Home returns the vertex that would take the point in, and whether there is one.
func (t Trial) Home() (vertex int, ok bool) {
	t.mustBeOn()
	return max(t.home, 0), t.home >= 0
}

// Closest returns the distances to the nearest labelled and to the nearest learned vertex among those that the point
// has an edge to or sees, or +Inf, and whether one of them is a vertex that it follows.
func (t Trial) Closest() (labelled, learned float64, linked bool) {
	t.mustBeOn()
	labelled, learned = math.Inf(1), math.Inf(1)
	for _, e := range t.near {
		if t.g.label[e.to] == unlabelled {
			learned = min(learned, e.d)
		} else {
			labelled = min(labelled, e.d)
		}
		linked = linked || !t.far && !t.g.ordinary(e)
	}
	return labelled, learned, linked
}

// Nearest returns the distance to the nearest labelled vertex of a class that the point has an edge to or sees, or
// +Inf.
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

// Anchor returns the distance from the point to the nearest labelled vertex of a class, whether there is an edge or not;
// +Inf where the class has none.
func (t Trial) Anchor(class int) float64 {
	t.mustBeOn()
	return t.g.Nearest(class)
}

// Nearest returns the distance from the point that was tried last to the nearest labelled vertex of a class, whether
// there is an edge or not; +Inf where the class has none.
func (g *Graph) Nearest(class int) float64 {
	d, square := math.Inf(1), squaredNorm(g.probe)
	for i, c := range g.label {
		if c == class && class >= 0 {
			d = min(d, g.measure(g.probe, square, i))
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
// class it was accepted, for [Graph.Forget]; it is negative for a point that no class claimed. It returns the ID of the
// vertex where the point is now. It reports false, and changes nothing, for an outlier and where there is no
// [Candidate.Room]. It panics unless n is positive.
func (c Candidate) Keep(class, n int, m Moment) (id int64, ok bool) {
	if !c.Room() {
		return 0, false
	}
	if n < 1 {
		panic("quantized: a point that stands for none")
	}
	g, i := c.g, c.home
	via, hops := c.via(class)
	if i >= 0 {
		g.stamp++
		g.v[i] += float64(n)
		g.count[i] += float64(n)
		g.journal.add(g.c.Journal, entry{Moment: m, vertex: g.origin[i].ID, via: via, count: float64(n), born: g.clock})
	} else {
		i = g.Len()
		g.add(c.square, c.near, unlabelled)
		g.v[i], g.count[i] = float64(n), float64(n)
		o := &g.origin[i]
		o.Moment, o.Via, o.Hops, o.Own, o.Born = m, via, hops, float64(n), g.clock
	}
	if class >= 0 {
		if at, found := slices.BinarySearch(g.source[i], class); !found {
			g.source[i] = slices.Insert(g.source[i], at, class)
		}
	}
	return g.origin[i].ID, true
}
