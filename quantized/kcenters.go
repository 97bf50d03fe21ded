// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"cmp"
	"math"
	"slices"
)

// A partition says which vertices a repartition keeps, and where the others go.
type partition struct {
	r    float64 // R after the repartition
	kept []int   // ascending
	to   []int   // for each vertex, the kept vertex into which it is merged
}

// order returns the vertices in the order of a repartition: labelled vertices first, then by
// descending multiplicity, then by age.
func (g *Graph) order() []int {
	order := make([]int, g.Len())
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(min(g.label[b], 0), min(g.label[a], 0)),
			cmp.Compare(g.v[b], g.v[a]))
	})
	return order
}

// plan finds the partition that leaves at most k learned vertices. It changes nothing.
//
// The printed algorithm names no first R, and one multiplication may not shrink the set. Here R is
// 0 until there are more than k learned vertices for the first time, then the smallest positive
// distance between two vertices that are not both labelled, and it grows to R·m, R·m², … until at
// most k are left. It never exceeds the edge radius: a point is merged only into a vertex with an
// edge to it, because otherwise it would get the value of a vertex far away. Plan reports false if
// that leaves more than k. R begins anew when k becomes larger, and when no learned vertex is left.
func (g *Graph) plan(k int) (p partition, ok bool) {
	r := g.r
	if r == 0 {
		r = g.firstRadius()
	}
	order := g.order()
	rank := make([]int, g.Len())
	for q, i := range order {
		rank[i] = q
	}
	kept := make([]bool, g.Len())
	learned := g.learned
	for last := false; learned > k; {
		if last {
			return p, false
		}
		// R never falls. It can exceed the edge radius if edges have become shorter.
		r = max(r, min(r*g.c.Multiplier, g.reach))
		last = r >= g.reach
		learned = g.cover(kept, order, r)
	}
	p.r = r
	p.to = make([]int, g.Len())
	for i := range p.to {
		p.to[i] = i
		if kept[i] {
			p.kept = append(p.kept, i)
			continue
		}
		// Choose the nearest kept vertex, and of equals the first in order. There is one closer
		// than R: see cover.
		home, d := -1, math.Inf(1)
		for _, e := range g.edges.of[i] {
			if kept[e.to] && g.label[e.to] == unlabelled && g.ordinary(e) &&
				(e.d < d || e.d == d && rank[e.to] < rank[home]) {
				home, d = e.to, e.d
			}
		}
		p.to[i] = home
	}
	return p, true
}

// cover chooses the kept vertices for radius r, and returns the number of learned vertices among
// them. A vertex is dropped if a vertex kept before it is closer than r.
func (g *Graph) cover(kept []bool, order []int, r float64) (learned int) {
	clear(kept)
	for _, i := range order {
		free := g.label[i] == unlabelled
		kept[i] = !free || !slices.ContainsFunc(g.edges.of[i], func(e edge) bool {
			return kept[e.to] && e.d < r && g.ordinary(e) && g.label[e.to] == unlabelled
		})
		if free && kept[i] {
			learned++
		}
	}
	return learned
}

// firstRadius returns the smallest positive distance between two vertices that are not both
// labelled, or the edge radius if it is smaller.
func (g *Graph) firstRadius() float64 {
	best := g.reach
	for i, edges := range g.edges.of {
		for _, e := range edges {
			if e.d > 0 && e.d < best && (g.label[i] == unlabelled || g.label[e.to] == unlabelled) {
				best = e.d
			}
		}
	}
	return best
}

// survivors returns the neighbours that p keeps, with their new numbers.
func (p partition) survivors(near []edge) []edge {
	var left []edge
	for _, e := range near {
		if q, found := slices.BinarySearch(p.kept, e.to); found {
			left = append(left, edge{q, e.w, e.d})
		}
	}
	return left
}

// apply carries out p. Distances are moved, not computed.
func (g *Graph) apply(p partition) {
	links := g.contract(p) // before vertices take over each other's classes
	for i, j := range p.to {
		if i == j {
			continue
		}
		g.v[j] += g.v[i]
		for _, c := range g.source[i] {
			g.accept(j, c)
		}
	}
	g.r = p.r
	g.spread += min(p.r, g.reach) // no point has moved further now
	g.rewrite(p.to)
	g.keep(p.kept)
	for _, l := range links {
		g.join(l)
	}
}
