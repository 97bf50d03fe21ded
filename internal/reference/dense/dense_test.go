// SPDX-License-Identifier: Apache-2.0

package dense_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

// random returns the distances of n random points in the plane.
func random(seed uint64, n int) *mat.SymDense {
	r := rand.New(rand.NewPCG(seed, 2))
	x := make([][]float32, n)
	for i := range x {
		x[i] = []float32{r.Float32(), r.Float32()}
	}
	return dense.Distances(x, 1)
}

func TestLaplacian(t *testing.T) {
	w := dense.Similarity(random(1, 12), quantized.Heat(.2), .2)
	l, sym := dense.Laplacian(w, false), dense.Laplacian(w, true)
	r := rand.New(rand.NewPCG(3, 3))
	h := mat.NewVecDense(12, nil)
	for i := range 12 {
		h.SetVec(i, r.NormFloat64())
	}
	// hᵀLh = ½ Σ w_ij (h_i - h_j)²
	var want float64
	for i := range 12 {
		for j := range 12 {
			d := h.AtVec(i) - h.AtVec(j)
			want += w.At(i, j) * d * d / 2
			normal := 0.
			if l.At(i, j) != 0 {
				normal = l.At(i, j) / math.Sqrt(l.At(i, i)*l.At(j, j))
			}
			if math.Abs(sym.At(i, j)-normal) > 1e-15 {
				t.Errorf("normalised Laplacian at %d, %d is %g, want %g", i, j, sym.At(i, j),
					normal)
			}
		}
	}
	if got := mat.Inner(h, l, h); math.Abs(got-want) > 1e-12 {
		t.Errorf("quadratic form %g, want %g", got, want)
	}
}

func TestNearest(t *testing.T) {
	x := [][]float32{{0}, {1}, {3}, {7}}
	k := quantized.Heat(10)
	w := dense.Nearest(dense.Distances(x, 1), k, 1)
	for i := range x {
		for j := range i {
			want := 0.
			if i == j+1 { // OR joins 2 and 3: 2 is nearest to 3, though 1 is nearest to 2
				want = k.Weight(float64(x[i][0] - x[j][0]))
			}
			if got := w.At(i, j); got != want {
				t.Errorf("weight of %d and %d is %g, want %g", i, j, got, want)
			}
		}
	}
	all := dense.Nearest(dense.Distances(x, 1), k, 10)
	if !mat.Equal(all, dense.Similarity(dense.Distances(x, 1), k, 0)) {
		t.Error("with as many neighbours as points the graph is not complete")
	}
}

// Each value is checked against the definition, an average over the neighbours and the sink, and
// not against another solver.
func TestHarmonic(t *testing.T) {
	for seed := range uint64(20) {
		for _, gamma := range []float64{1e-6, 1e-3, 1, 100} {
			n := 3 + int(seed)
			w := dense.Similarity(random(seed, n), quantized.Heat(.3), .01)
			v, class := make([]float64, n), slices.Repeat([]int{-1}, n)
			for i := range v {
				v[i] = float64(1 + (i*7+int(seed))%5)
			}
			class[0], class[1] = 0, 1
			l := fixture.Must(dense.Problem{W: w, V: v, Class: class, Classes: 2,
				Gamma: gamma}.Harmonic())(t)
			for i := range n {
				for c := range 2 {
					sum, degree := 0., gamma
					for j := range n {
						sum += w.At(i, j) * v[j] * l.At(j, c)
						degree += w.At(i, j) * v[j]
					}
					want := sum / degree
					if class[i] >= 0 {
						want = float64(1 - (class[i]+c)%2)
					}
					// 1e-8: gamma 1e-6 leaves a condition number of about 1e7.
					if math.Abs(l.At(i, c)-want) > 1e-8 {
						t.Fatalf("gamma %g: value %g at %d, want %g", gamma, l.At(i, c), i, want)
					}
				}
			}
		}
	}
}

// The gradient of the objective vanishes, and hard labels are the limit.
func TestSoft(t *testing.T) {
	w := dense.Similarity(random(9, 15), quantized.Heat(.3), .01)
	p := dense.Problem{W: w, Class: slices.Repeat([]int{-1}, 15), Classes: 2, Gamma: .1}
	p.V = []float64{1, 2, 1, 3, 1, 1, 4, 1, 1, 2, 1, 1, 5, 1, 1}
	p.Class[2], p.Class[5], p.Class[7] = 1, 0, 1
	cl, cu := 3., .05
	l := fixture.Must(p.Soft(cl, cu))(t)
	for i := range 15 {
		c, y := cu, 0.
		if p.Class[i] >= 0 {
			c, y = cl, float64(p.Class[i])
		}
		gradient := c*(l.At(i, 1)-y) + p.Gamma*l.At(i, 1)
		for j := range 15 {
			gradient += w.At(i, j) * p.V[j] * (l.At(i, 1) - l.At(j, 1))
		}
		if math.Abs(gradient) > 1e-12 {
			t.Errorf("gradient %g at %d", gradient, i)
		}
	}
	hard, _ := p.Harmonic()
	near, _ := p.Soft(1e9, 0)
	if !mat.EqualApprox(hard, near, 1e-6) {
		t.Error("with a large cl the soft solution is not near the hard solution")
	}
}

func TestNoPath(t *testing.T) {
	p := dense.Problem{W: mat.NewSymDense(2, nil), Class: []int{0, -1}, Classes: 1}
	if _, err := p.Harmonic(); !errors.Is(err, dense.ErrSingular) {
		t.Errorf("no path and no sink: %v", err)
	}
	p.Gamma = 1e-3
	if l, err := p.Harmonic(); err != nil || l.At(0, 0) != 1 || l.At(1, 0) != 0 {
		t.Errorf("no path, but a sink: %v", err)
	}
}
