package quantized

import (
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/graph"
	"gonum.org/v1/gonum/mat"
)

// Graph is a compact graph of at most k+1 vertices, and its harmonic solution.
type Graph struct {
	c Config
	r float64 // R: unlabelled vertices are at least this far apart

	// Vertices in the order in which they came, as parallel arrays. Their capacity is reserved once,
	// for k+1 vertices and one on trial.
	x       []float32   // n x Dim coordinates
	squares []float64   // their squared norms
	v       []float64   // multiplicities; whole numbers where nothing ages
	points  []float64   // numbers of points that the vertices stand for
	label   []int       // class of a labelled vertex, else unlabelled
	source  [][]int     // classes through which the points of an unlabelled vertex were learned, sorted
	origin  []Origin    // where each vertex comes from
	dist    []float64   // stride x stride, symmetric, or unmeasured: repartitions work on these
	edges   [][]edge    // neighbours with a weight of at least epsilon
	l       [][]float64 // harmonic solution, a row for each class
	stale   bool        // more than the point on trial has changed since l was solved for

	journal journal
	lastID  int64
	aged    int64 // observation up to which multiplicities are aged

	trial    trial
	reach    float64   // edge radius
	d        []float64 // of the point at hand to every vertex
	products []float32 // of the point at hand with every vertex
	square   float64   // squared norm of the point at hand
	solver   solver
	eviction eviction
}

// An edge leads to vertex to with compact weight w.
type edge struct {
	to int
	w  float64
}

const unlabelled = -1

// A trial is a point that was placed and neither kept nor dropped.
type trial struct {
	on     bool
	vertex int
	merged bool
	solved bool
	stale  bool        // as of before the trial
	v      float64     // multiplicity of the vertex before the trial, where merged
	before [][]float64 // solution before the trial
}

// New returns an empty graph. Its error wraps [ErrConfig] and says which setting cannot be used.
func New(c Config) (*Graph, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	n := c.K + 2
	store := make([]edge, n*n)
	edges := make([][]edge, n)
	for i := range edges {
		edges[i] = store[i*n : i*n : (i+1)*n]
	}
	source := make([][]int, n)
	for i := range source {
		source[i] = make([]int, 0, 2)
	}
	return &Graph{
		c:       c,
		x:       make([]float32, 0, n*c.Dim),
		squares: make([]float64, 0, n),
		v:       make([]float64, 0, n),
		points:  make([]float64, 0, n),
		label:   make([]int, 0, n),
		source:  source[:0],
		origin:  make([]Origin, 0, n),
		dist:    make([]float64, n*n),
		edges:   edges[:0],
		journal: journal{entries: make([]entry, 0, c.Journal)},
		reach:   c.EdgeRadius(),
	}, nil
}

// Config returns the configuration of g.
func (g *Graph) Config() Config { return g.c }

// Len returns the number of vertices, at most k+1, and one more during a trial.
func (g *Graph) Len() int { return len(g.v) }

// Labelled returns the number of labelled vertices.
func (g *Graph) Labelled() int {
	n := 0
	for _, c := range g.label {
		if c != unlabelled {
			n++
		}
	}
	return n
}

// Classes returns the number of classes seen so far: one more than the largest class labelled.
func (g *Graph) Classes() int { return len(g.l) }

// R returns the radius below which unlabelled points are merged.
func (g *Graph) R() float64 { return g.r }

// Bound returns R·m/(m-1): no point lies further from its centroid.
func (g *Graph) Bound() float64 { return g.r * g.c.Multiplier / (g.c.Multiplier - 1) }

// Shattered reports whether R has grown beyond the longest edge, so that unlabelled vertices are no
// longer joined to each other. Only a larger k, or a wider kernel, mends it.
func (g *Graph) Shattered() bool { return g.r > g.c.EdgeRadius() }

// Mass returns the sum of the multiplicities of unlabelled vertices: the number of points learned, where
// nothing ages.
func (g *Graph) Mass() float64 { return g.sumUnlabelled(g.v) }

// sumUnlabelled sums x, a value for each vertex, over the unlabelled ones.
func (g *Graph) sumUnlabelled(x []float64) float64 {
	var sum float64
	for i, c := range g.label {
		if c == unlabelled {
			sum += x[i]
		}
	}
	return sum
}

// Point returns the coordinates of vertex i, which must not be changed.
func (g *Graph) Point(i int) []float32 { return g.x[i*g.c.Dim : (i+1)*g.c.Dim : (i+1)*g.c.Dim] }

// Multiplicity returns what the points at vertex i count together: their number, where nothing ages.
func (g *Graph) Multiplicity(i int) float64 { return g.v[i] }

// Points returns the number of points that vertex i stands for.
func (g *Graph) Points(i int) float64 { return g.points[i] }

// Class returns the class of vertex i, and whether it is labelled.
func (g *Graph) Class(i int) (class int, ok bool) {
	return max(g.label[i], 0), g.label[i] != unlabelled
}

// Source returns the classes through which the points of vertex i were accepted, ascending, which must
// not be changed. A labelled vertex has none unless it absorbs.
func (g *Graph) Source(i int) []int { return g.source[i] }

// Distance returns the stored distance between vertices i and j, or +Inf where it exceeds the edge
// radius and no repartition has needed it.
func (g *Graph) Distance(i, j int) float64 { return g.dist[i*g.stride()+j] }

func (g *Graph) stride() int { return g.c.K + 2 }

// Label adds x as a fresh labelled vertex, whatever is near it. Classes count from 0. It returns an
// error that wraps [ErrFull] when no vertex would be left for what is not labelled. It panics when x
// has another dimension, on a class below 0 or above k, and during a trial.
func (g *Graph) Label(x []float32, class int) error {
	g.mustBeSettled()
	if class < 0 || class > g.c.K {
		panic("quantized: class out of range")
	}
	if n := g.Labelled() + 1; n >= g.c.K {
		return fmt.Errorf("%w: this would be number %d and k is %d; use a larger k", ErrFull, n, g.c.K)
	}
	if g.Len() > g.c.K {
		g.apply(g.plan(g.c.K))
	}
	for len(g.l) <= class {
		g.l = append(g.l, make([]float64, g.Len(), g.stride()))
	}
	g.add(x, g.distances(x), class)
	g.stale = true
	return nil
}

// Place puts x into the graph on trial and reports whether it belongs to it. A point all of whose
// compact weights are below epsilon is an outlier: it does not, and nothing has changed.
//
// When the set is full it is repartitioned first, as the thesis's listing does at the start of a
// step. With look set it is not: then [Graph.Drop] leaves the graph as it was to the last bit.
//
// It panics when x has another dimension, or when a trial is on already.
func (g *Graph) Place(x []float32, look bool) bool {
	g.mustBeSettled()
	d := g.distances(x)
	if !g.reaches(d) {
		return false
	}
	if g.Len() > g.c.K && !look {
		p := g.plan(g.c.K)
		d = p.survivors(d)
		if !g.reaches(d) {
			return false // all that it was near to would be merged away
		}
		g.apply(p)
		if g.r > g.reach {
			d = g.distances(x) // R now takes in what was too far to be measured
		}
	}
	g.trial.on, g.trial.solved, g.trial.stale = true, false, g.stale
	g.copySolution(&g.trial.before)
	g.trial.vertex = g.home(d)
	g.trial.merged = g.trial.vertex >= 0
	if g.trial.merged {
		g.trial.v = g.v[g.trial.vertex]
		g.v[g.trial.vertex]++
		g.points[g.trial.vertex]++
		// A labelled vertex that pulls harder does so on all sides.
		g.stale = g.stale || g.label[g.trial.vertex] != unlabelled
	} else {
		g.trial.vertex = g.Len()
		g.add(x, d, unlabelled)
	}
	return true
}

// reaches reports whether a point at distances d from the vertices has an edge to one of them. Only the
// nearest one is asked: weights fall with the distance.
func (g *Graph) reaches(d []float64) bool {
	if len(d) == 0 {
		return false
	}
	return g.c.Weight(slices.Min(d)) > 0
}

// home returns the vertex that takes in a point at distances d, the nearest one closer than R, or -1.
func (g *Graph) home(d []float64) int {
	best := -1
	for i := range d {
		if g.mergeable(i) && (d[i] < g.r || d[i] == 0) && (best < 0 || d[i] < d[best]) {
			best = i
		}
	}
	return best
}

func (g *Graph) mergeable(i int) bool { return g.label[i] == unlabelled || g.c.Absorb }

// Keep ends the trial: the point stays. Class says through which class it was accepted, for
// [Graph.Forget]; it is negative for a point that no class claimed. M says when, for [Graph.Undo].
func (g *Graph) Keep(class int, m Moment) {
	g.mustBeOnTrial()
	i := g.trial.vertex
	if g.trial.merged {
		g.record(m, i)
	} else {
		g.origin[i].Moment = m
		g.origin[i].Via, g.origin[i].Hops = g.via(i, class)
	}
	if class >= 0 {
		if at, found := slices.BinarySearch(g.source[i], class); !found {
			g.source[i] = slices.Insert(g.source[i], at, class)
		}
	}
	g.stale = g.stale || !g.trial.solved
	g.trial.on = false
}

// KeepMany ends the trial as [Graph.Keep] does, with a point that stands for n > 0: the others are of the same moment, and
// go with it.
func (g *Graph) KeepMany(n int, class int, m Moment) {
	g.Keep(class, m)
	if n > 1 {
		g.v[g.trial.vertex] += float64(n - 1)
		g.points[g.trial.vertex] += float64(n - 1)
		g.stale = true
	}
}

// Hops returns how many vertices the point on trial is away from a labelled one, along those through
// which it and they were accepted as class: 1 where a labelled vertex speaks for it.
func (g *Graph) Hops(class int) int {
	g.mustBeOnTrial()
	if g.trial.merged {
		return g.origin[g.trial.vertex].Hops
	}
	_, hops := g.via(g.trial.vertex, class)
	return hops
}

// via returns the neighbour of vertex i that contributes most to its value for a class, or most weight
// where class is negative, and the hops of i if it was accepted through it.
func (g *Graph) via(i, class int) (id int64, hops int) {
	best := 0.
	for _, e := range g.edges[i] {
		x := e.w * g.v[e.to]
		if class >= 0 {
			x *= g.l[class][e.to]
		}
		if x > best {
			best, id, hops = x, g.origin[e.to].ID, g.origin[e.to].Hops+1
		}
	}
	if id == 0 && class >= 0 {
		return g.via(i, -1) // nobody speaks for the class: whoever is nearest does
	}
	return id, hops
}

// Drop ends the trial: the point was never there.
func (g *Graph) Drop() {
	g.mustBeOnTrial()
	if g.trial.merged {
		g.v[g.trial.vertex] = g.trial.v
		g.points[g.trial.vertex]--
	} else {
		g.removeLast()
	}
	for c := range g.l {
		g.l[c] = append(g.l[c][:0], g.trial.before[c]...)
	}
	g.stale = g.trial.stale
	g.trial.on = false
}

// Trial returns the vertex at which the point on trial was placed. It panics without a trial.
func (g *Graph) Trial() int {
	g.mustBeOnTrial()
	return g.trial.vertex
}

// ValuesTo returns the harmonic values of vertex i as of the last [Graph.Solve], one for each
// class, in dst if it is large enough.
func (g *Graph) ValuesTo(dst []float64, i int) []float64 {
	dst = dst[:0]
	for c := range g.l {
		dst = append(dst, g.l[c][i])
	}
	return dst
}

// Problem returns the harmonic problem on the compact graph as [graph.Harmonic] takes it, built
// anew from the stored distances.
func (g *Graph) Problem() graph.Problem {
	n := g.Len()
	d := mat.NewSymDense(max(n, 1), nil)
	p := graph.Problem{V: slices.Clone(g.v), Gamma: g.c.Gamma, Normalized: g.c.Normalized}
	for i := range n {
		for j := range i {
			if x := g.Distance(i, j); g.c.Weight(x) > 0 {
				d.SetSym(i, j, x)
			} else {
				d.SetSym(i, j, unmeasured)
			}
		}
		if g.label[i] != unlabelled {
			p.Labelled = append(p.Labelled, i)
		}
	}
	p.W = graph.Similarity(d, g.c.Kernel, g.c.Epsilon)
	if len(p.Labelled) > 0 {
		y := mat.NewDense(len(p.Labelled), len(g.l), nil)
		for q, i := range p.Labelled {
			y.Set(q, g.label[i], 1)
		}
		p.Y = y
	}
	return p
}

// add appends a vertex of multiplicity 1 at distances d from the others, as [Graph.distances] of the
// same point has returned them.
func (g *Graph) add(x []float32, d []float64, class int) {
	n := g.Len()
	g.x = append(g.x, x...)
	g.squares = append(g.squares, g.square)
	g.v = append(g.v, 1)
	g.points = append(g.points, 1)
	g.label = append(g.label, class)
	g.source = resized(g.source, n+1)
	g.source[n] = g.source[n][:0]
	g.lastID++
	g.origin = append(g.origin, Origin{ID: g.lastID})
	g.place(n, d)
	for c := range g.l {
		g.l[c] = append(g.l[c], g.guess(n, c))
	}
}

// place stores the distances of vertex i to the vertices before it, and joins it to them.
func (g *Graph) place(i int, d []float64) {
	s := g.stride()
	g.edges = resized(g.edges, i+1)
	g.edges[i] = g.edges[i][:0]
	for j, d := range d[:i] {
		g.dist[i*s+j], g.dist[j*s+i] = d, d
		if d == unmeasured {
			continue
		}
		if w := g.c.Weight(d); w > 0 {
			g.edges[i] = append(g.edges[i], edge{j, w})
			g.edges[j] = append(g.edges[j], edge{i, w})
		}
	}
	g.dist[i*s+i] = 0
}

// removeLast takes the last vertex away. It is the last entry in the list of each neighbour.
func (g *Graph) removeLast() {
	n := g.Len() - 1
	for _, e := range g.edges[n] {
		g.edges[e.to] = g.edges[e.to][:len(g.edges[e.to])-1]
	}
	g.x, g.squares = g.x[:n*g.c.Dim], g.squares[:n]
	g.v, g.label, g.source, g.edges = g.v[:n], g.label[:n], g.source[:n], g.edges[:n]
	g.points, g.origin = g.points[:n], g.origin[:n]
	g.lastID--
	for c := range g.l {
		g.l[c] = g.l[c][:n]
	}
}

func (g *Graph) mustBeSettled() {
	if g.trial.on {
		panic("quantized: the point on trial was neither kept nor dropped")
	}
}

func (g *Graph) mustBeOnTrial() {
	if !g.trial.on {
		panic("quantized: no point on trial")
	}
}

// resized returns s with length n, keeping its elements and its storage where that is enough.
func resized[S ~[]E, E any](s S, n int) S {
	return slices.Grow(s[:0], n)[:n]
}
