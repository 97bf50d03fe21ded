// SPDX-License-Identifier: Apache-2.0

package quantized

import "slices"

// An edge leads to vertex to, at distance d, with compact weight w.
type edge struct {
	to   int
	w, d float64
}

// slab is the number of edges in one allocation.
const slab = 1024

// maxEdges bounds the edges of a graph: 800 MB. Many points at one place, or a malicious file, can reach it.
var maxEdges = 1 << 25

// edgeLists hold the edges of each vertex in ascending order. Unused lists and lists that became too short are reused,
// so a graph that does not grow allocates nothing.
type edgeLists struct {
	of   [][]edge   // by vertex
	n    int        // edges
	free [][][]edge // empty lists, by the rank of their capacity
	rest []edge     // unused part of the last slab
}

// rank returns the smallest rank whose lists hold n edges, and the capacity of these lists: 2, 3, 4, 6, 8, 12, and so
// on.
func rank(n int) (rank, capacity int) {
	for low := 2; ; low *= 2 {
		if n <= low {
			return rank, low
		}
		if n <= low+low/2 {
			return rank + 1, low + low/2
		}
		rank += 2
	}
}

// empty returns an empty list for at least n edges.
func (e *edgeLists) empty(n int) []edge {
	r, capacity := rank(n)
	if r < len(e.free) && len(e.free[r]) > 0 {
		last := len(e.free[r]) - 1
		list := e.free[r][last]
		e.free[r] = e.free[r][:last]
		return list
	}
	if capacity > slab {
		return make([]edge, 0, capacity)
	}
	if capacity > len(e.rest) {
		e.rest = make([]edge, slab)
	}
	list := e.rest[:0:capacity]
	e.rest = e.rest[capacity:]
	return list
}

// release takes back an unused list.
func (e *edgeLists) release(list []edge) {
	if cap(list) < 2 {
		return
	}
	r, _ := rank(cap(list))
	e.free = slices.Grow(e.free, max(r+1-len(e.free), 0))
	for len(e.free) <= r {
		e.free = append(e.free, nil)
	}
	e.free[r] = append(e.free[r], list[:0])
}

// push adds a vertex that will have n edges to begin with.
func (e *edgeLists) push(n int) { e.of = append(e.of, e.empty(n)) }

// join adds the edge between two vertices to the lists of both.
func (e *edgeLists) join(i, j int, d, w float64) {
	e.n++
	e.add(i, edge{j, w, d})
	e.add(j, edge{i, w, d})
}

// cut removes the edge between two vertices.
func (e *edgeLists) cut(i, j int) {
	for _, ends := range [2][2]int{{i, j}, {j, i}} {
		at, _ := e.find(ends[0], ends[1])
		e.of[ends[0]] = slices.Delete(e.of[ends[0]], at, at+1)
	}
	e.n--
}

// find returns the place of the edge to j in the list of i, and whether there is one.
func (e *edgeLists) find(i, j int) (at int, ok bool) {
	return slices.BinarySearchFunc(e.of[i], j, func(x edge, j int) int { return x.to - j })
}

func (e *edgeLists) add(i int, x edge) {
	list := e.of[i]
	if len(list) == cap(list) {
		longer := append(e.empty(len(list)+1), list...)
		e.release(list)
		list = longer
	}
	list = append(list, x)
	for q := len(list) - 1; q > 0 && list[q-1].to > x.to; q-- { // seldom: new vertices have the greatest numbers
		list[q-1], list[q] = list[q], list[q-1]
	}
	e.of[i] = list
}

// fit reports whether there may be n more edges.
func (e *edgeLists) fit(n int) bool { return n <= maxEdges-e.n }

// keep leaves only the lists of kept, which is in ascending order, and the edges between them.
func (e *edgeLists) keep(kept []int) {
	e.n = 0
	place := slices.Repeat([]int{-1}, len(e.of))
	for q, i := range kept {
		place[i] = q
	}
	for i, q := range place {
		if q < 0 {
			e.release(e.of[i])
		}
	}
	for q, i := range kept {
		list := e.of[i][:0]
		for _, x := range e.of[i] {
			if x.to = place[x.to]; x.to >= 0 {
				list = append(list, x)
			}
		}
		e.of[q] = list
		e.n += len(list)
	}
	e.n /= 2 // each was counted from both ends
	clear(e.of[len(kept):])
	e.of = e.of[:len(kept)]
}
