// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrFull is wrapped by the error of [Graph.Label].
var ErrFull = errors.New("too many labelled points")

// maxClass bounds the number of a class.
const maxClass = 1 << 24

// Graph is a compact graph of labelled vertices and at most k+1 learned vertices, and the harmonic
// solution on it.
type Graph struct {
	c       Config
	reach   float64 // edge radius
	r       float64 // R: learned vertices were at least this far apart at the last repartition
	spread  float64 // greatest distance of a point from its centroid
	classes int
	learned int  // vertices that are not labelled
	full    bool // no repartition within the edge radius makes room

	// Vertices in the order of their creation, as parallel arrays.
	points   points
	sketches sketches
	squares  []float64 // squared norms
	v        []float64 // multiplicities: numbers of points that the vertices stand for
	label    []int     // class of a labelled vertex, else unlabelled
	source   [][]int   // classes through which the points of a learned vertex were learned, sorted
	origin   []Origin  // where each vertex comes from
	edges    edgeLists

	contracted map[[2]int64]Link // by the IDs of their vertices

	journal journal
	lastID  int64

	probe    []float32 // the current point
	found    []edge    // edges of the current point
	enrolled []edge    // its edges to labelled vertices within sight
	apart    []edge    // edges of a trial on labelled vertices alone
	looked   looked    // the last trial of Look
	parts    [][]int   // vertices that sketches do not prove to be too far
	stamp    uint64    // number of the current trial and of the state of the graph
	solver   solver
}

const unlabelled = -1

// New returns an empty graph. The error wraps [ErrConfig] and names the setting that cannot be
// used.
func New(c Config) (*Graph, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return newGraph(c), nil
}

func newGraph(c Config) *Graph {
	return &Graph{
		c: c, reach: c.EdgeRadius(), points: newPoints(c.Dim), sketches: newSketches(c.Dim),
		probe: make([]float32, c.Dim),
	}
}

// Config returns the configuration of g.
func (g *Graph) Config() Config { return g.c }

// Len returns the number of vertices: the labelled vertices, and at most k+1 learned vertices.
func (g *Graph) Len() int { return len(g.v) }

// Labelled returns the number of labelled vertices.
func (g *Graph) Labelled() int { return len(g.v) - g.learned }

// Learned returns the number of vertices that are not labelled, at most k+1.
func (g *Graph) Learned() int { return g.learned }

// Full reports whether there is no room for another learned vertex: there are k+1 learned vertices,
// and no repartition with R up to the edge radius leaves at most k. Points are then judged, but
// kept only if a vertex takes them in.
func (g *Graph) Full() bool { return g.full && g.learned > g.c.K }

// R returns the radius below which learned points are merged.
func (g *Graph) R() float64 { return g.r }

// Point returns the coordinates of vertex i. The caller must not change them.
func (g *Graph) Point(i int) []float32 { return g.points.at(i) }

// Multiplicity returns the number of points that vertex i stands for.
func (g *Graph) Multiplicity(i int) float64 { return g.v[i] }

// Class returns the class of vertex i, and whether it is labelled.
func (g *Graph) Class(i int) (class int, ok bool) {
	return max(g.label[i], 0), g.label[i] != unlabelled
}

// Source returns the classes through which the points of vertex i were accepted, in ascending
// order. The caller must not change them. A labelled vertex has none.
func (g *Graph) Source(i int) []int { return g.source[i] }

// Origin returns the origin of vertex i.
func (g *Graph) Origin(i int) Origin { return g.origin[i] }

// Find returns the vertex with this ID, see [Origin]. Ok is false if there is none.
func (g *Graph) Find(id int64) (i int, ok bool) {
	i = g.vertex(id)
	return max(i, 0), i >= 0
}

// Neighbours calls visit for each neighbour of vertex i, in ascending order, with the distance. An
// edge longer than the edge radius joins points that follow each other.
func (g *Graph) Neighbours(i int, visit func(j int, distance float64)) {
	for _, e := range g.edges.of[i] {
		visit(e.to, e.d)
	}
}

// Label adds x as a new labelled vertex, also if other vertices are near. Classes count from 0.
//
// The error wraps [ErrFull] if the labelled points or all edges would take more than 1 GiB. On
// error g is unchanged. It panics if x has another dimension or a coordinate that is not finite,
// and on a class below 0 or above 2^24.
func (g *Graph) Label(x []float32, class int) error {
	if class < 0 || class > maxClass {
		panic("quantized: class out of range")
	}
	square := g.take(x)
	if g.LabelRoom() < 1 {
		return fmt.Errorf("%w: there are %d, and a graph holds no more", ErrFull, g.Labelled())
	}
	near := g.within(g.probe, square, g.reach, g.reach)
	if !g.edges.fit(len(near)) {
		return fmt.Errorf("%w: there are too many points within the edge radius of each other",
			ErrFull)
	}
	g.classes = max(g.classes, class+1)
	g.add(square, near, class)
	return nil
}

// LabelRoom returns the number of points that can still be labelled.
func (g *Graph) LabelRoom() int { return maxValues/max(g.c.Dim, 1) - g.Labelled() }

// take makes x the current point, and returns its squared norm.
func (g *Graph) take(x []float32) (square float64) {
	if len(x) != g.c.Dim {
		panic("quantized: dimension mismatch")
	}
	g.stamp++
	copy(g.probe, x)
	square = squaredNorm(g.probe)
	// The square of no float32 overflows a float64, so the sum is finite if all values are.
	if math.IsNaN(square) || math.IsInf(square, 0) {
		panic("quantized: coordinate that is not finite")
	}
	return square
}

// add appends a vertex of multiplicity 1 at the current point, with edges to the vertices of near.
func (g *Graph) add(square float64, near []edge, class int) {
	n := g.Len()
	g.stamp++
	g.points.push(g.probe)
	g.sketches.push(g.probe, square)
	g.squares = append(g.squares, square)
	g.v = append(g.v, 1)
	g.label = append(g.label, class)
	g.source = append(g.source, nil)
	g.lastID++
	g.origin = append(g.origin, Origin{ID: g.lastID})
	g.edges.push()
	for _, e := range near {
		g.edges.join(n, e.to, e.d, e.w)
	}
	if class == unlabelled {
		g.learned++
	}
}

// keep removes all vertices except kept, which is in ascending order, and erases them from memory.
// Distances are moved, not computed.
func (g *Graph) keep(kept []int) {
	g.stamp++
	if len(kept) == g.Len() {
		return
	}
	g.full = false
	for q, i := range kept {
		g.v[q], g.squares[q] = g.v[i], g.squares[i]
		g.label[q], g.origin[q], g.source[q] = g.label[i], g.origin[i], g.source[i]
	}
	g.edges.keep(kept)
	g.points.keep(kept)
	g.sketches.keep(kept)
	n := len(kept)
	clear(g.source[n:])
	g.squares, g.v, g.label = g.squares[:n], g.v[:n], g.label[:n]
	clear(g.origin[n:])
	g.origin, g.source = g.origin[:n], g.source[:n]
	g.learned = 0
	for _, c := range g.label {
		if c == unlabelled {
			g.learned++
		}
	}
	g.lose()
	if g.learned == 0 { // R begins anew
		g.r, g.spread = 0, 0
	}
}

// erase removes all vertices that do not stay from memory and from the journal.
func (g *Graph) erase(stays func(i int) bool) {
	var kept []int
	for i := range g.v {
		if stays(i) {
			kept = append(kept, i)
		}
	}
	g.keep(kept)
	g.journal.entries = slices.DeleteFunc(g.journal.entries, func(e Entry) bool {
		return g.vertex(e.Vertex) < 0
	})
}

// Remove removes vertices with all points that they stand for, by their IDs. Points accepted
// through them stay.
func (g *Graph) Remove(ids ...int64) {
	gone := make(map[int64]bool, len(ids))
	for _, id := range ids {
		gone[id] = true
	}
	g.erase(func(i int) bool { return !gone[g.origin[i].ID] })
}

// Forget removes the labelled points of different classes, and every vertex into which a point
// accepted through one of them was merged. It returns the number of removed vertices and renumbers
// the other classes, in their order. Points of other classes in such a vertex are removed, too. It
// costs one pass over the vertices, however many classes go. Forget panics if there is no such
// class.
func (g *Graph) Forget(classes ...int) int {
	gone := make([]bool, g.classes)
	for _, c := range classes {
		if c < 0 || c >= g.classes {
			panic("quantized: class out of range")
		}
		gone[c] = true
	}
	before := g.Len()
	g.erase(func(i int) bool {
		c := g.label[i]
		return (c == unlabelled || !gone[c]) &&
			!slices.ContainsFunc(g.source[i], func(c int) bool { return gone[c] })
	})
	left := 0
	number := make([]int, g.classes) // from now on
	for c := range number {
		number[c] = left
		if !gone[c] {
			left++
		}
	}
	g.classes = left
	for i, c := range g.label {
		if c != unlabelled {
			g.label[i] = number[c]
		}
		for q, s := range g.source[i] {
			g.source[i][q] = number[s]
		}
	}
	return before - g.Len()
}

// Configure replaces the configuration. Points stay. Weights and edges follow the new
// configuration. If there are more learned vertices than the new k, they are merged at once. Longer
// edges cost a distance pass for each vertex.
//
// The error wraps [ErrConfig] if a setting cannot be used, or if the learned vertices cannot be
// merged to k within the edge radius. On error g is unchanged. It panics if the dimension or the
// scale changes.
func (g *Graph) Configure(c Config) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Dim != g.c.Dim || c.Scale != g.c.Scale {
		panic("quantized: another space")
	}
	is, ok := c.restore(g.State())
	if !ok {
		return fmt.Errorf("%w: edges of a length of %.3g would be too many for the points that "+
			"there are; use a shorter reach", ErrConfig, c.EdgeRadius())
	}
	is.stamp, is.full = g.stamp+1, false
	if c.K > g.c.K {
		is.r = 0 // there is room to tell points apart again
	}
	if is.learned > c.K+1 {
		p, ok := is.plan(c.K)
		if !ok {
			n := is.cover(make([]bool, is.Len()), is.order(), is.reach) // at the edge radius
			return fmt.Errorf(
				"%w: k is %d, and the %d learned centroids cannot be merged to fewer than %d "+
					"without joining faces that have no edge; use k of at least %d, or undo "+
					"learned faces", ErrConfig, c.K,
				is.learned, n, n)
		}
		is.apply(p)
	}
	*g = *is
	return nil
}

// resized returns s with length n, and reuses its storage if this is large enough.
func resized[S ~[]E, E any](s S, n int) S {
	return slices.Grow(s[:0], n)[:n]
}
