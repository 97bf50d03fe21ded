// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"math"
	"slices"
)

// Trial is a point that was tried on the graph. The graph has not changed, so a Trial can simply be
// dropped. It is valid until the next point is tried or the graph changes.
type Trial struct {
	g      *Graph
	stamp  uint64
	square float64
	near   []edge
	home   int  // vertex that takes the point in, or -1
	far    bool // the point has no edge, and is judged by the vertices of near
	alone  bool // only labelled vertices judge the point
	linked bool // the point follows one of near
}

// looked is a trial that [Graph.Place] can take over.
type looked struct {
	stamp   uint64
	square  float64
	near    []edge // ordinary edges and links
	follows []int64
}

// Candidate is a [Trial] whose point can be kept.
type Candidate struct{ Trial }

// Look tries the point x. Follows has the IDs of vertices that are known to be the same person or
// thing, such as earlier points of the same track. The point gets edges to them, up to
// [Config].Link long.
//
// A point without an edge is judged by the labelled and the learned vertices within these
// distances, but cannot be kept.
//
// It panics if x has another dimension, or a coordinate that is not finite.
func (g *Graph) Look(x []float32, labelled, learned float64, follows ...int64) Trial {
	square := g.take(x)
	near := g.within(g.probe, square, max(labelled, g.reach), max(learned, g.reach))
	g.enrolled = g.enrolled[:0]
	for _, e := range near {
		if g.label[e.to] != unlabelled {
			g.enrolled = append(g.enrolled, e)
		}
	}
	vertices := g.standIns(follows)
	links := g.links(square, vertices)
	g.looked = looked{stamp: g.stamp, square: square,
		follows: append(g.looked.follows[:0], follows...)}
	if len(links) == 0 && !slices.ContainsFunc(near, g.ordinary) {
		return Trial{g: g, stamp: g.stamp, square: square, near: near, home: -1, far: len(near) > 0}
	}
	near = slices.DeleteFunc(near, func(e edge) bool { return !g.ordinary(e) })
	t := g.try(square, merge(near, links), vertices)
	g.looked.near = t.near
	return t
}

// Labelled returns the trial of the same point on the labelled vertices alone: the trial that Look
// returns on a graph that has learned nothing.
func (t Trial) Labelled() Trial {
	g := t.g
	ordinary := slices.ContainsFunc(g.enrolled, g.ordinary)
	t.near, t.home, t.alone, t.far, t.linked = g.apart[:0], -1, true, !ordinary &&
		len(g.enrolled) > 0, false
	for _, e := range g.enrolled {
		if !ordinary || g.ordinary(e) {
			t.near = append(t.near, e)
		}
	}
	g.apart = t.near
	return t
}

func (g *Graph) try(square float64, near []edge, follows []int) Trial {
	linked := slices.ContainsFunc(near, func(e edge) bool { return slices.Contains(follows, e.to) })
	return Trial{g: g, stamp: g.stamp, square: square, near: near, home: g.home(near),
		linked: linked}
}

// ordinary reports whether an edge is no longer than the edge radius.
func (g *Graph) ordinary(e edge) bool { return e.d <= g.reach }

// links returns the edges beyond the edge radius from the current point to the vertices that it
// follows.
func (g *Graph) links(square float64, follows []int) (links []edge) {
	if g.c.Link <= g.reach {
		return nil
	}
	for _, i := range follows {
		if slices.ContainsFunc(links, func(e edge) bool { return e.to == i }) {
			continue
		}
		if d := g.measure(g.probe, square, i); d > g.reach && d <= g.c.Link {
			links = append(links, edge{i, g.c.linkWeight(d), d})
		}
	}
	return links
}

// standIns returns the vertices with these IDs, or the vertices into which they were merged as far
// as the journal knows. It leaves out removed vertices.
func (g *Graph) standIns(ids []int64) (vertices []int) {
	for _, id := range ids {
		i := g.vertex(id)
		if e, merged := g.Merged(id); i < 0 && merged {
			i = g.vertex(e.Vertex)
		}
		if i >= 0 {
			vertices = append(vertices, i)
		}
	}
	return vertices
}

// merge returns one ascending list of both lists. List a is in ascending order, and no vertex is in
// both.
func merge(a, b []edge) []edge {
	if len(b) == 0 {
		return a
	}
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(a, b edge) int { return a.to - b.to })
	return all
}

// Place tries the point x as [Graph.Look] does, with ordinary edges and links only, so that it can
// be kept. If there is a vertex too many, the graph is repartitioned first, as at the start of a
// step in the thesis's listing, unless x is an outlier before or after that.
func (g *Graph) Place(x []float32, follows ...int64) Candidate {
	square, near := g.looked.square, g.looked.near
	if g.looked.stamp != g.stamp || !slices.Equal(g.probe, x) ||
		!slices.Equal(g.looked.follows, follows) {
		square = g.take(x)
		near = merge(g.within(g.probe, square, g.reach, g.reach),
			g.links(square, g.standIns(follows)))
	} // else Look has just tried this point
	if len(near) > 0 && g.learned > g.c.K && !g.full {
		p, ok := g.plan(g.c.K)
		// the next attempt waits until a vertex was removed: an attempt takes time and seldom helps
		g.full = !ok
		if ok {
			near = p.survivors(near)
		}
		if ok && len(near) > 0 {
			g.apply(p)
		}
	}
	return Candidate{g.try(square, near, g.standIns(follows))}
}

// home returns the nearest learned vertex closer than R among the neighbours, which takes the point
// in, or -1.
func (g *Graph) home(near []edge) int {
	best, d := -1, math.Inf(1)
	for _, e := range near {
		if g.label[e.to] == unlabelled && (e.d < g.r || e.d == 0) && g.ordinary(e) && e.d < d {
			best, d = e.to, e.d
		}
	}
	return best
}

// Same reports whether both are the trial of one point on one state of the graph, with the same
// vertices to judge it.
func (t Trial) Same(u Trial) bool {
	return t.g == u.g && t.stamp == u.stamp && t.far == u.far && t.alone == u.alone
}

// Outlier reports whether the point has no edge to any vertex, because all its compact weights are
// below epsilon, and no vertex within sight: see [Graph.Look].
func (t Trial) Outlier() bool { return len(t.near) == 0 }

// Home returns the vertex that would take the point in. Ok is false if there is none.
func (t Trial) Home() (vertex int, ok bool) { return max(t.home, 0), t.home >= 0 }

// Closest returns the distances to the nearest labelled and to the nearest learned vertex among the
// vertices that judge the point, or +Inf. Linked is true if the point follows one of them.
func (t Trial) Closest() (labelled, learned float64, linked bool) {
	labelled, learned, linked = math.Inf(1), math.Inf(1), t.linked
	for _, e := range t.near {
		if t.g.label[e.to] == unlabelled {
			learned = min(learned, e.d)
		} else {
			labelled = min(labelled, e.d)
		}
	}
	return labelled, learned, linked
}

// Nearest returns the distance to the nearest vertex of a class among the vertices that judge the
// point, or +Inf: a labelled vertex, or a learned one of which all points were accepted as this
// class.
func (t Trial) Nearest(class int) float64 {
	d := math.Inf(1)
	for _, e := range t.near {
		if class >= 0 && (t.g.label[e.to] == class || t.g.only(e.to) == class) {
			d = min(d, e.d)
		}
	}
	return d
}

// Anchor returns the distance from the point to the nearest labelled vertex of a class, with or
// without an edge, or +Inf if the class has none.
func (t Trial) Anchor(class int) float64 {
	g, d, square := t.g, math.Inf(1), squaredNorm(t.g.probe)
	for i, c := range g.label {
		if c == class && class >= 0 {
			d = min(d, g.measure(g.probe, square, i))
		}
	}
	return d
}

// via returns the ID of the vertex through which the point would be accepted as a class, which is
// negative for none, and the resulting hops. This is the vertex that takes the point in. If there
// is none, it is the neighbour with the largest weight among vertices that were labelled or learned
// as this class, or else among all neighbours.
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

// room reports whether there is room for the point: a vertex takes it in, or the graph is not
// [Graph.Full].
func (c Candidate) room() bool {
	return len(c.near) > 0 && (c.home >= 0 || c.g.learned <= c.g.c.K && c.g.edges.fit(len(c.near)))
}

// Keep ends the trial and keeps the point. Class is the class through which the point was accepted,
// for [Graph.Forget], or negative if no class claimed it. Keep returns the ID of the vertex where
// the point is now. It reports false and changes nothing for an outlier, and without room, unless
// the class with the most learned vertices has two more than this class and can give one up.
func (c Candidate) Keep(class int, m Moment) (id int64, ok bool) {
	if !c.room() && !c.share(class) {
		return 0, false
	}
	g, i := c.g, c.home
	via, hops := c.via(class)
	if i >= 0 {
		g.stamp++
		g.v[i]++
		g.journal.add(g.c.Journal, Entry{Moment: m, Vertex: g.origin[i].ID, Via: via})
	} else {
		i = g.Len()
		g.add(c.square, c.near, unlabelled)
		o := &g.origin[i]
		o.Moment, o.Via, o.Hops = m, via, hops
	}
	if class >= 0 {
		g.accept(i, class)
	}
	return g.origin[i].ID, true
}

// accept adds a class to those through which the points of a vertex were learned.
func (g *Graph) accept(i, class int) {
	if at, found := slices.BinarySearch(g.source[i], class); !found {
		g.source[i] = slices.Insert(g.source[i], at, class)
	}
}
