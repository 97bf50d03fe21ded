// SPDX-License-Identifier: Apache-2.0

package quantized_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

// Lemma "reg_hfs_bound": the regularised soft solution has a norm of at most √n_l/(gamma + 1),
// whatever the graph. That holds for c_l = c_u = 1. With a smaller c_u, which the text allows, it
// does not: its proof takes C⁻¹K for symmetric, and as c_u vanishes every vertex of a connected
// graph comes to carry nearly 1, so that the norm is nearly √n.
func TestNormBound(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 0))
	closest := 0.
	for range 200 {
		n := 3 + r.IntN(30)
		x := make([][]float32, n)
		for i := range x {
			x[i] = []float32{r.Float32(), r.Float32()}
		}
		labelled := 1 + r.IntN(n-1)
		gamma := math.Pow(10, -3+4*r.Float64())
		p := dense.Problem{W: dense.Similarity(dense.Distances(x, 1),
			quantized.Heat(.05+r.Float64()), 1e-6),
			Class: make([]int, n), Classes: 1, Gamma: gamma}
		for i := labelled; i < n; i++ {
			p.Class[i] = -1
		}
		l := fixture.Must(p.Soft(1, 1))(t)
		norm, bound := mat.Norm(l, 2), math.Sqrt(float64(labelled))/(gamma+1)
		if norm > bound*(1+1e-12) {
			t.Fatalf("%d vertices, %d labelled, gamma %g: norm %g, bound %g", n, labelled, gamma,
				norm, bound)
		}
		closest = max(closest, norm/bound)
	}
	if closest < .9 {
		t.Errorf("the norm came to %.2f of the bound at the most: the graphs test too little",
			closest)
	}

	// The counterexample: ten vertices on one spot, one of them labelled.
	const n, gamma = 10, 1e-3
	p := dense.Problem{Gamma: gamma, Class: slices.Repeat([]int{-1}, n), Classes: 1}
	p.Class[0] = 0
	x := slices.Repeat([][]float32{{0}}, n)
	p.W = dense.Similarity(dense.Distances(x, 1), quantized.Heat(1), 1e-6)
	l := fixture.Must(p.Soft(1, 1e-6))(t)
	if norm := mat.Norm(l, 2); norm < 3 || 1/(gamma+1) > 1 {
		t.Errorf("c_u = 1e-6: norm %g, and the printed bound is %g", norm, 1/(gamma+1))
	}
}

// The error of the quantised solution relative to the solution on all points vanishes as k grows
// (the thesis's Section "Quantized Laplacian"). With room for every point there is no error.
func TestQuantisationErrorDecays(t *testing.T) {
	const n = 240
	r := rand.New(rand.NewPCG(5, 5))
	var x [][]float32
	p := dense.Problem{Classes: 2, Gamma: 1e-2}
	for i := range n {
		class := i % 2
		x = append(x, []float32{float32(2*class) + float32(.5*r.NormFloat64()),
			float32(.5 * r.NormFloat64())})
		if i >= 6 {
			class = -1
		}
		p.Class = append(p.Class, class)
	}
	c := quantized.Config{Multiplier: 1.2, Dim: 2, Scale: 1, Kernel: quantized.Heat(.4),
		Epsilon: 1e-3, Gamma: 1e-2}
	p.W = dense.Similarity(dense.Distances(x, 1), c.Kernel, c.Epsilon)
	full := fixture.Must(p.Harmonic())(t)
	var errors []float64
	ks := []int{10, 20, 40, 80, 160, n}
	for _, k := range ks {
		c.K = k
		g := fixture.Must(quantized.New(c))(t)
		for i, x := range x {
			if i < 6 {
				fixture.Check(t, g.Label(x, i%2))
			} else {
				keep(t, g, x, -1, int64(i))
			}
		}
		values := fixture.Must(direct(g, func(class int) bool { return class == 0 }))(t)
		var sum float64
		for i, x := range x {
			near, best := 0, math.Inf(1)
			for j := range g.Len() {
				if d := quantized.SquaredDistance(x, g.Point(j)); d < best {
					near, best = j, d
				}
			}
			d := values[near] - full.At(i, 0)
			sum += d * d / n
		}
		errors = append(errors, sum)
	}
	t.Logf("mean squared error at k = %v: %.3g", ks, errors)
	for i := 1; i < len(errors); i++ {
		// A single stream need not improve at every doubling, but it does over two.
		if i > 1 && errors[i] >= errors[i-2] {
			t.Errorf("k = %d: error %g, and %g at k = %d", ks[i], errors[i], errors[i-2], ks[i-2])
		}
	}
	if last := errors[len(errors)-1]; last > 1e-18 {
		t.Errorf("with room for every point the error is %g", last)
	}
}
