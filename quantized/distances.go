// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"math"

	"github.com/faceauth/faceauth/graph"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// near returns the edges of x to the vertices, in ascending order.
func (g *Graph) near(x []float32, square float64) []edge {
	return g.within(x, square, g.reach, g.reach)
}

// within returns the edges of x to the labelled and to the learned vertices that are no further than these bounds, in
// ascending order: ordinary ones up to the edge radius, beyond it those that serve a judgement alone.
//
// A float32 product finds out which vertices may be that near. The computed product of two vectors of n values differs
// from the true one by at most n·u/(1 - n·u) times the product of their norms, with u = 2^-24 (Higham, Accuracy and
// Stability of Numerical Algorithms, Section 3.1), in whatever order it was summed, so that a vertex is left out only
// where it is certainly too far. The others are measured in float64. Where [sketches] help, they spare most vertices
// the product, too.
//
// What is returned is overwritten by the next call.
func (g *Graph) within(x []float32, square, labelled, learned float64) []edge {
	g.found = g.found[:0]
	n := g.Len()
	if n == 0 {
		return g.found
	}
	nu := float64(g.c.Dim+4) * 0x1p-24 // 4 for the scaling and the sum that Gemv adds
	if nu >= .5 {
		nu = math.Inf(1) // no bound holds; measure everything
	}
	slack := 2 * nu / (1 - nu) * math.Sqrt(square)
	cut := max(labelled, learned) / g.c.Scale
	cut *= cut * (1 + 1e-9)
	// Coordinates that stay in the cache are compared as quickly as their sketches.
	if n < sketchedFrom/g.points.stride || !g.sketches.ask(x, square) {
		// A page at a time, so that what is measured is still in the cache.
		for first := 0; first < n; first += g.points.rows {
			values, rows := g.points.page(first)
			g.products = resized(g.products, rows)
			blas32.Gemv(blas.NoTrans, 1, blas32.General{Rows: rows, Cols: g.c.Dim, Stride: g.points.stride, Data: values},
				vector(x), 0, blas32.Vector{N: rows, Inc: 1, Data: g.products})
			for q, p := range g.products {
				i := first + q
				// Written so that a sum that overflowed, and is not a number, is measured.
				if near := square + g.squares[i] - 2*float64(p) - slack*math.Sqrt(g.squares[i]); near > cut {
					continue
				}
				g.find(x, square, i, labelled, learned)
			}
		}
		return g.found
	}
	left := 0
	for i := range n {
		sum := square + g.squares[i]
		if sum*(1-1e-12)-2*g.sketches.most(i, g.c.Dim) > cut {
			continue
		}
		left++
		p := blas32.Dot(vector(x), vector(g.points.at(i)))
		if near := sum - 2*float64(p) - slack*math.Sqrt(g.squares[i]); near > cut {
			continue
		}
		g.find(x, square, i, labelled, learned)
	}
	g.sketches.asked += int64(n)
	g.sketches.left += int64(left)
	return g.found
}

// find measures the distance of x to vertex i, and appends an edge to g.found if there is one.
func (g *Graph) find(x []float32, square float64, i int, labelled, learned float64) {
	bound := labelled
	if g.label[i] == unlabelled {
		bound = learned
	}
	switch d := g.measure(x, square, i); {
	case d > bound:
	case d <= g.reach:
		g.found = append(g.found, edge{i, g.c.Kernel.Weight(d), d})
	default:
		g.found = append(g.found, edge{i, g.c.farWeight(d, bound, g.reach), d})
	}
}

// measure returns the distance from x, whose squared norm is given, to vertex i.
func (g *Graph) measure(x []float32, square float64, i int) float64 {
	y := g.points.at(i)
	sum := square + g.squares[i]
	d := sum - 2*blas32.DDot(vector(x), vector(y))
	// Where nearly all of the sum cancels, rounding would show: there the differences are summed, which
	// is slower, and gives duplicates a distance of exactly 0.
	if !(d > 1e-6*sum) || math.IsInf(d, 1) {
		d = graph.SquaredDistance(x, y)
	}
	return g.c.Scale * math.Sqrt(d)
}

func vector(x []float32) blas32.Vector { return blas32.Vector{N: len(x), Inc: 1, Data: x} }

func squaredNorm(x []float32) float64 { return blas32.DDot(vector(x), vector(x)) }
