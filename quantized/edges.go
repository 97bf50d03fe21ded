// SPDX-License-Identifier: Apache-2.0

package quantized

import "slices"

// An edge leads to vertex to, at distance d, with compact weight w.
type edge struct {
	to   int
	w, d float64
}

// maxEdges bounds the edges of a graph: 800 MB. Many points at one place, or a malicious file, can
// reach it.
var maxEdges = 1 << 25

// edgeLists hold the edges of each vertex in ascending order.
type edgeLists struct {
	of [][]edge // by vertex
	n  int      // edges
}

// push adds a vertex without edges.
func (e *edgeLists) push() { e.of = append(e.of, nil) }

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
	list := append(e.of[i], x)
	// seldom: new vertices have the greatest numbers
	for q := len(list) - 1; q > 0 && list[q-1].to > x.to; q-- {
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
	for q, i := range kept {
		list := e.of[i][:0]
		for _, x := range e.of[i] {
			x.to = place[x.to]
			if x.to >= 0 {
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
