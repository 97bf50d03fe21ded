// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"github.com/faceauth/faceauth/graph"
	"gonum.org/v1/gonum/mat"
)

// Solution returns the harmonic values of all vertices on the compact graph, with a row for each vertex.
func (g *Graph) Solution() *mat.Dense { return g.solution(g.Edge) }

// solution is Solution with these weights.
func (g *Graph) solution(edge func(v, u *Vertex) float64) *mat.Dense {
	p := graph.Problem{Gamma: g.Config.Gamma}
	var class []int
	for _, v := range g.Vertices {
		class = append(class, v.Class)
		p.V = append(p.V, v.Sum())
	}
	return g.solve(p, class, func(i, j int) float64 { return edge(g.Vertices[i], g.Vertices[j]) })
}

// Complete returns the harmonic values on the graph in which every point is its own vertex at the place of its
// centroid, and the row of the first point of each vertex.
func (g *Graph) Complete() (*mat.Dense, []int) {
	p := graph.Problem{Gamma: g.Config.Gamma}
	var at []*Vertex
	var class, first []int
	for _, v := range g.Vertices {
		first = append(first, len(at))
		for range v.Points {
			at, class = append(at, v), append(class, v.Class)
			p.V = append(p.V, 1)
		}
	}
	return g.solve(p, class, func(i, j int) float64 { return g.Edge(at[i], at[j]) }), first
}

func (g *Graph) solve(p graph.Problem, class []int, weight func(i, j int) float64) *mat.Dense {
	if len(class) == 0 || g.Classes == 0 {
		return mat.NewDense(max(len(class), 1), max(g.Classes, 1), nil)
	}
	w := mat.NewSymDense(len(class), nil)
	for i := range class {
		for j := range i {
			w.SetSym(i, j, weight(i, j))
		}
		if class[i] >= 0 {
			p.Labelled = append(p.Labelled, i)
		}
	}
	p.W = w
	if len(p.Labelled) == 0 {
		return mat.NewDense(len(class), g.Classes, nil)
	}
	y := mat.NewDense(len(p.Labelled), g.Classes, nil)
	for q, i := range p.Labelled {
		y.Set(q, class[i], 1)
	}
	p.Y = y
	l, err := graph.Harmonic(p)
	if err != nil {
		panic(err)
	}
	return l
}
