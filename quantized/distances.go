// SPDX-License-Identifier: Apache-2.0

package quantized

import (
	"math"
	"runtime"
	"sync"

	"gonum.org/v1/gonum/blas/blas32"
)

// within returns the edges of x to labelled and to learned vertices up to these distances, in
// ascending order: ordinary edges up to the edge radius, and beyond it edges that serve only a
// judgement.
//
// A float32 product finds the vertices that may be so near. The computed product of two vectors of
// n values differs from the true product by at most n·u/(1 - n·u) times the product of their norms,
// with u = 2^-24, for any order of the sum (Higham, Accuracy and Stability of Numerical Algorithms,
// Section 3.1). So a vertex is left out only if it is certainly too far. The others are measured in
// float64. [sketches] spare most vertices even the product.
//
// The next call overwrites the result.
func (g *Graph) within(x []float32, square, labelled, learned float64) []edge {
	g.found = g.found[:0]
	n := g.Len()
	if n == 0 {
		return g.found
	}
	nu := float64(g.c.Dim+4) * 0x1p-24 // 4 for the scaling and the sum that Dot adds
	if nu >= .5 {
		nu = math.Inf(1) // no bound holds; measure everything
	}
	slack := 2 * nu / (1 - nu) * math.Sqrt(square)
	cut := max(labelled, learned) / g.c.Scale
	cut *= cut * (1 + 1e-9)
	try := func(i int) {
		p := blas32.Dot(blasVector(x), blasVector(g.points.at(i)))
		near := square + g.squares[i] - 2*float64(p) - slack*math.Sqrt(g.squares[i])
		if !(near > cut) { // also for NaN, which comes from an overflow: such a vertex is measured
			g.find(x, square, i, labelled, learned)
		}
	}
	// For coordinates that stay in the cache, products are as quick as sketches.
	if n < sketchedFrom/g.points.stride || !g.sketches.ask(x, square) {
		for i := range n {
			try(i)
		}
		return g.found
	}
	g.sketches.asked += int64(n)
	for _, part := range g.sketched(square, cut) {
		g.sketches.left += int64(len(part))
		for _, i := range part {
			try(i)
		}
	}
	return g.found
}

// leastPart is the least number of vertices for which another processor is used: about half a
// millisecond of work.
var leastPart = 8192

// sketched returns the vertices that sketches do not prove to be too far, in ascending order, in
// one or more parts. Cut is the greatest square of a distance, without Scale. The next call
// overwrites the result.
func (g *Graph) sketched(square, cut float64) [][]int {
	n := g.Len()
	count := max(1, min(runtime.GOMAXPROCS(0), n/leastPart))
	g.parts = resized(g.parts, count)
	var work sync.WaitGroup
	for q := range count {
		work.Go(func() {
			g.parts[q] = g.unproved(g.parts[q][:0], q*n/count, (q+1)*n/count, square, cut)
		})
	}
	work.Wait()
	return g.parts
}

// unproved appends those of the vertices from first to before end that sketches do not prove to be
// too far.
func (g *Graph) unproved(all []int, first, end int, square, cut float64) []int {
	for i := first; i < end; i++ {
		if (square+g.squares[i])*(1-1e-12)-2*g.sketches.most(i, g.c.Dim) > cut {
			continue
		}
		all = append(all, i)
	}
	return all
}

// find measures the distance of x to vertex i, and appends an edge to g.found if it is short
// enough.
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

// measure returns the distance from x to vertex i. Square is the squared norm of x.
func (g *Graph) measure(x []float32, square float64, i int) float64 {
	y := g.points.at(i)
	sum := square + g.squares[i]
	d := sum - 2*dot(x, y)
	// If nearly all of the sum cancels, rounding errors would show. Then the squared differences
	// are summed: this is slower, and gives duplicates a distance of exactly 0.
	if !(d > 1e-6*sum) || math.IsInf(d, 1) {
		d = SquaredDistance(x, y)
	}
	return g.c.Scale * math.Sqrt(d)
}

func blasVector(x []float32) blas32.Vector { return blas32.Vector{N: len(x), Inc: 1, Data: x} }

func squaredNorm(x []float32) float64 { return dot(x, x) }
