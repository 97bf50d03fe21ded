package quantized

import (
	"cmp"
	"math"
	"slices"
)

// A partition says which vertices a repartition keeps, and where the others go.
type partition struct {
	r    float64 // R after it
	kept []int   // ascending
	to   []int   // for each vertex, the kept vertex that stands for it afterwards
}

// plan finds the partition of the vertices into at most k. It changes nothing.
//
// It ends: R grows without bound, and once it exceeds every distance a single vertex beside the
// labelled ones is left, of which there are fewer than k.
func (g *Graph) plan(k int) partition {
	p := partition{r: g.r}
	if p.r == 0 {
		p.r = g.firstRadius()
	}
	order := make([]int, g.Len())
	for i := range order {
		order[i] = i
	}
	// Stable: vertices stand in the order of their age.
	slices.SortStableFunc(order, func(a, b int) int {
		if la, lb := g.label[a] != unlabelled, g.label[b] != unlabelled; la != lb {
			if la {
				return -1
			}
			return 1
		}
		return cmp.Compare(g.v[b], g.v[a])
	})
	for {
		p.r *= g.c.Multiplier
		if p.r > g.reach {
			g.measureAll()
		}
		p.kept = p.kept[:0]
		for _, i := range order {
			if g.label[i] != unlabelled || g.nearest(i, p.kept, p.r) < 0 {
				p.kept = append(p.kept, i)
			}
		}
		if len(p.kept) <= k {
			break
		}
	}
	p.to = make([]int, g.Len())
	for i := range p.to {
		p.to[i] = i
	}
	keeps := slices.Clone(p.kept)
	slices.Sort(p.kept)
	for _, i := range order {
		if _, found := slices.BinarySearch(p.kept, i); !found {
			p.to[i] = g.nearest(i, keeps, p.r)
		}
	}
	return p
}

// nearest returns the vertex of among that is nearest to i and closer than r, the first of equals,
// or -1.
func (g *Graph) nearest(i int, among []int, r float64) int {
	best, d := -1, r
	for _, j := range among {
		if g.mergeable(j) && g.Distance(i, j) < d {
			best, d = j, g.Distance(i, j)
		}
	}
	return best
}

// firstRadius returns the smallest positive distance between two vertices that are not both
// labelled, or between any where there is no such pair.
func (g *Graph) firstRadius() float64 {
	if r := g.smallest(); r <= g.reach {
		return r
	}
	g.measureAll() // one that is not measured may be smaller
	return g.smallest()
}

// smallest is firstRadius over the distances that are measured.
func (g *Graph) smallest() float64 {
	best, fallback := math.Inf(1), math.Inf(1)
	for i := range g.v {
		for j := range i {
			d := g.Distance(i, j)
			if d <= 0 {
				continue
			}
			fallback = min(fallback, d)
			if g.label[i] == unlabelled || g.label[j] == unlabelled {
				best = min(best, d)
			}
		}
	}
	if math.IsInf(best, 1) {
		best = fallback
	}
	return best
}

// survivors returns the distances, of those to all vertices, to the ones that p keeps.
func (p partition) survivors(d []float64) []float64 {
	for q, i := range p.kept {
		d[q] = d[i]
	}
	return d[:len(p.kept)]
}

// apply carries p out. Distances are moved, not computed; the solution at the kept vertices is
// where the next one starts.
func (g *Graph) apply(p partition) {
	for i, j := range p.to {
		if i == j {
			continue
		}
		g.v[j] += g.v[i]
		g.points[j] += g.points[i]
		for _, c := range g.source[i] {
			if at, found := slices.BinarySearch(g.source[j], c); !found {
				g.source[j] = slices.Insert(g.source[j], at, c)
			}
		}
	}
	g.r = p.r
	g.rewrite(p.to)
	g.compact(p.kept)
}

// compact leaves only the vertices of kept, which ascend.
func (g *Graph) compact(kept []int) {
	s, dim := g.stride(), g.c.Dim
	for q, i := range kept {
		copy(g.x[q*dim:(q+1)*dim], g.x[i*dim:(i+1)*dim])
		g.v[q], g.label[q], g.squares[q], g.origin[q] = g.v[i], g.label[i], g.squares[i], g.origin[i]
		g.points[q] = g.points[i]
		g.source[q], g.source[i] = g.source[i], g.source[q] // each keeps a storage of its own
		for c := range g.l {
			g.l[c][q] = g.l[c][i]
		}
		// Rows and columns at or above q are still where they were, as kept ascends.
		for t, j := range kept[:q] {
			g.dist[q*s+t] = g.dist[i*s+j]
		}
	}
	n := len(kept)
	for _, s := range g.source[n:] {
		clear(s)
	}
	g.x, g.squares, g.v, g.label, g.source = g.x[:n*dim], g.squares[:n], g.v[:n], g.label[:n], g.source[:n]
	g.points, g.origin = g.points[:n], g.origin[:n]
	g.stale = true
	for c := range g.l {
		g.l[c] = g.l[c][:n]
	}
	g.edges = g.edges[:0]
	for q := range n {
		g.place(q, g.dist[q*s:q*s+q])
	}
}

// erase leaves only the vertices of kept, and nothing of the others in memory or in the journal.
func (g *Graph) erase(kept []int) {
	old := g.x[:cap(g.x)]
	g.compact(kept)
	clear(old[len(g.x):])
	g.journal.filter(func(e entry) bool { return g.find(e.vertex) >= 0 })
}

// Remove removes a vertex with all that it stands for. It panics during a trial.
func (g *Graph) Remove(i int) {
	g.mustBeSettled()
	kept := make([]int, 0, g.Len()-1)
	for j := range g.v {
		if j != i {
			kept = append(kept, j)
		}
	}
	g.erase(kept)
}

// Forget removes the labelled points of a class, and every vertex to which a point accepted through
// it has gone, and renumbers the classes above it. It returns the number of vertices removed.
// Points of other classes that had been merged into such a vertex go with it. It panics during a
// trial and where there is no such class.
func (g *Graph) Forget(class int) int {
	g.mustBeSettled()
	if class < 0 || class >= len(g.l) {
		panic("quantized: class out of range")
	}
	var kept []int
	for i := range g.v {
		if _, tainted := slices.BinarySearch(g.source[i], class); !tainted && g.label[i] != class {
			kept = append(kept, i)
		}
	}
	removed := g.Len() - len(kept)
	g.erase(kept)
	g.l = slices.Delete(g.l, class, class+1)
	for i := range g.v {
		if g.label[i] > class {
			g.label[i]--
		}
		for q := range g.source[i] {
			if g.source[i][q] > class {
				g.source[i][q]--
			}
		}
	}
	return removed
}
