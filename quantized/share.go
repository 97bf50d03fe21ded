// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"cmp"
	"math"
	"slices"
)

// share makes room for a point of a class in a full graph, so that each class gets as many vertices
// as it needs, or as many as any other; otherwise the first takes all. The class with the most
// learned vertices gives up one if it has at least two more than this class. It gives up the vertex
// furthest from its labelled vertices that no other vertex needs for its path to a labelled vertex,
// and that is not near the point. It reports whether there is room now.
func (c *Candidate) share(class int) bool {
	g := c.g
	counts := make([]int, g.classes)
	for i := range g.v {
		if of := g.only(i); of >= 0 {
			counts[of]++
		}
	}
	most := 0
	for of, n := range counts {
		if n > counts[most] {
			most = of
		}
	}
	if class < 0 || len(c.near) == 0 || counts[most] < counts[class]+2 ||
		!g.edges.fit(len(c.near)) {
		return false
	}
	var others []int
	for i := range g.v {
		if g.only(i) == most && !slices.ContainsFunc(c.near, func(e edge) bool {
			return e.to == i
		}) {
			others = append(others, i)
		}
	}
	far := g.fromLabels(others, most)
	slices.SortStableFunc(others, func(a, b int) int { return cmp.Compare(far[b], far[a]) })
	whole := g.reached(-1)
	at := slices.IndexFunc(others, func(i int) bool { return g.reached(i) == whole })
	if at < 0 {
		return false
	}
	victim := others[at]
	near := slices.Clone(c.near)
	for q := range near {
		if near[q].to > victim {
			near[q].to--
		}
	}
	g.Remove(g.origin[victim].ID)
	c.near, c.stamp = near, g.stamp
	return true
}

// only returns the only class through which the points of a learned vertex were accepted, or -1.
func (g *Graph) only(i int) int {
	if g.label[i] != unlabelled || len(g.source[i]) != 1 {
		return -1
	}
	return g.source[i][0]
}

// fromLabels returns the distance of each of some vertices to the nearest labelled vertex of a
// class, or +Inf.
func (g *Graph) fromLabels(of []int, class int) map[int]float64 {
	all := make(map[int]float64, len(of))
	for _, i := range of {
		all[i] = math.Inf(1)
		for j, c := range g.label {
			if c == class {
				all[i] = min(all[i], g.measure(g.points.at(i), g.squares[i], j))
			}
		}
	}
	return all
}

// reached counts the vertices with a path to a labelled vertex that does not lead through vertex
// gone. Gone counts if it has a path itself. It may be -1.
func (g *Graph) reached(gone int) (n int) {
	seen := make([]bool, g.Len())
	var queue []int
	for i, class := range g.label {
		if class != unlabelled {
			queue, seen[i] = append(queue, i), true
		}
	}
	for n < len(queue) {
		i := queue[n]
		if n++; i == gone {
			continue
		}
		for _, e := range g.edges.of[i] {
			if !seen[e.to] {
				queue, seen[e.to] = append(queue, e.to), true
			}
		}
	}
	return n
}
