// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"github.com/faceauth/faceauth/internal/reference/dense"
	"gonum.org/v1/gonum/mat"
)

// Solution returns the harmonic values of all vertices on the compact graph, with a row for each
// vertex.
func (g *Graph) Solution() *mat.Dense { return g.solution(g.Edge) }

// solution is Solution with these weights.
func (g *Graph) solution(edge func(v, u *Vertex) float64) *mat.Dense {
	var p dense.Problem
	for _, v := range g.Vertices {
		p.V, p.Class = append(p.V, v.Sum()), append(p.Class, v.Class)
	}
	return g.solve(p, func(i, j int) float64 { return edge(g.Vertices[i], g.Vertices[j]) })
}

// Complete returns the harmonic values on the graph in which every point is its own vertex at the
// place of its centroid, and the row of the first point of each vertex.
func (g *Graph) Complete() (*mat.Dense, []int) {
	var p dense.Problem
	var at []*Vertex
	var first []int
	for _, v := range g.Vertices {
		first = append(first, len(at))
		for range v.Points {
			at, p.Class = append(at, v), append(p.Class, v.Class)
		}
	}
	return g.solve(p, func(i, j int) float64 { return g.Edge(at[i], at[j]) }), first
}

func (g *Graph) solve(p dense.Problem, weight func(i, j int) float64) *mat.Dense {
	n := len(p.Class)
	if n == 0 || g.Classes == 0 {
		return mat.NewDense(max(n, 1), max(g.Classes, 1), nil)
	}
	w := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i {
			w.SetSym(i, j, weight(i, j))
		}
	}
	p.W, p.Classes, p.Gamma = w, g.Classes, g.Config.Gamma
	l, err := p.Harmonic()
	if err != nil {
		panic(err)
	}
	return l
}
