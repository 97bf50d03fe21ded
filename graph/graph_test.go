// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/graph"
	"gonum.org/v1/gonum/mat"
)

func ExampleHarmonic() {
	// There are five points on a line. The first point has a label of one class, and the last point a label of the
	// other class.
	x := [][]float32{{0}, {1}, {2}, {3}, {4}}
	w := graph.Similarity(graph.Distances(x, 1), graph.Heat(.5), .1)
	l, err := graph.Harmonic(graph.Problem{
		W:        w,
		Labelled: []int{0, 4},
		Y:        mat.NewDense(2, 2, []float64{1, 0, 0, 1}),
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.2f\n", mat.Formatted(l))
	// Output:
	// ⎡1.00  0.00⎤
	// ⎢0.75  0.25⎥
	// ⎢0.50  0.50⎥
	// ⎢0.25  0.75⎥
	// ⎣0.00  1.00⎦
}

func TestKernel(t *testing.T) {
	for _, tt := range []struct {
		kernel graph.Kernel
		want   float64
	}{
		{graph.Heat(.5), 2 * .25},
		{graph.ScaledHeat(16, .5), 2 * 16 * .25},
	} {
		if tt.kernel.Denominator != tt.want {
			t.Errorf("denominator %g, want %g", tt.kernel.Denominator, tt.want)
		}
	}
	k := graph.Heat(.2)
	// For sigma .2 and gamma 1e-3 the edge radius is .86.
	if r := k.Radius(1e-4); math.Abs(r-.2*math.Sqrt(2*math.Log(1e4))) > 1e-15 || math.Abs(r-.86) > .005 {
		t.Errorf("radius %g", r)
	}
	if r := k.Radius(1); r != 0 {
		t.Errorf("radius of epsilon 1 is %g", r)
	}
	if r := k.Radius(0); !math.IsInf(r, 1) {
		t.Errorf("radius of epsilon 0 is %g", r)
	}
}

func TestSquaredDistance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 20 {
		a, b := make([]float32, n), make([]float32, n)
		var want float64
		for i := range n {
			a[i], b[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
			d := float64(a[i]) - float64(b[i])
			want += d * d
		}
		got := graph.SquaredDistance(a, b)
		if math.Abs(got-want) > 1e-13 || got != graph.SquaredDistance(b, a) {
			t.Errorf("%d values: %g, want %g", n, got, want)
		}
		if graph.SquaredDistance(a, a) != 0 {
			t.Errorf("%d values: a point is not at distance 0 from itself", n)
		}
	}
}

// random returns a random graph of n points in the plane.
func random(seed uint64, n int) *mat.SymDense {
	r := rand.New(rand.NewPCG(seed, 2))
	x := make([][]float32, n)
	for i := range x {
		x[i] = []float32{r.Float32(), r.Float32()}
	}
	return graph.Distances(x, 1)
}

func TestLaplacian(t *testing.T) {
	w := graph.Similarity(random(1, 12), graph.Heat(.2), .2)
	l, sym := graph.Laplacian(w), graph.NormalizedLaplacian(w)
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
		}
	}
	if got := mat.Inner(h, l, h); math.Abs(got-want) > 1e-12 {
		t.Errorf("quadratic form %g, want %g", got, want)
	}
	deg := graph.Degrees(w)
	for i := range 12 {
		for j := range 12 {
			want := 0.0
			if l.At(i, j) != 0 {
				want = l.At(i, j) / math.Sqrt(deg[i]*deg[j])
			}
			if math.Abs(sym.At(i, j)-want) > 1e-15 {
				t.Errorf("normalised Laplacian at %d, %d is %g, want %g", i, j, sym.At(i, j), want)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	x := [][]float32{{0}, {1}, {3}, {7}}
	k := graph.Heat(10)
	w := graph.Nearest(graph.Distances(x, 1), k, 1)
	for _, tt := range []struct {
		i, j int
		edge bool
	}{{0, 1, true}, {1, 2, true}, {2, 3, true}, {0, 2, false}, {0, 3, false}, {1, 3, false}} {
		want := 0.0
		if tt.edge { // OR joins 2 and 3: 2 is nearest to 3, though 1 is nearest to 2
			want = k.Weight(float64(x[tt.j][0] - x[tt.i][0]))
		}
		if got := w.At(tt.i, tt.j); got != want {
			t.Errorf("weight of %d and %d is %g, want %g", tt.i, tt.j, got, want)
		}
	}
	all := graph.Nearest(graph.Distances(x, 1), k, 10)
	if !mat.Equal(all, graph.Similarity(graph.Distances(x, 1), k, 0)) {
		t.Error("with as many neighbours as points the graph is not complete")
	}
}

// TestHarmonicProperty checks each value against the definition, an average over the neighbours and
// the sink, and not against another solver.
func TestHarmonicProperty(t *testing.T) {
	for seed := range uint64(20) {
		for _, gamma := range []float64{1e-6, 1e-3, 1, 100} {
			n := 3 + int(seed)
			w := graph.Similarity(random(seed, n), graph.Heat(.3), .01)
			v := make([]float64, n)
			for i := range v {
				v[i] = float64(1 + (i*7+int(seed))%5)
			}
			v[0], v[1] = 1, 1
			l, err := graph.Harmonic(graph.Problem{W: w, V: v, Labelled: []int{0, 1},
				Y: mat.NewDense(2, 2, []float64{1, 0, 0, 1}), Gamma: gamma})
			if err != nil {
				t.Fatal(err)
			}
			for i := 2; i < n; i++ {
				for c := range 2 {
					sum, degree := 0.0, gamma
					for j := range n {
						sum += w.At(i, j) * v[j] * l.At(j, c)
						degree += w.At(i, j) * v[j]
					}
					// 1e-8: gamma 1e-6 leaves a condition number of about 1e7.
					if math.Abs(l.At(i, c)-sum/degree) > 1e-8 {
						t.Fatalf("gamma %g: value %g at %d is not the average %g", gamma, l.At(i, c), i, sum/degree)
					}
				}
			}
		}
	}
}

// TestSoft checks that the gradient of the objective vanishes, and that hard labels are the limit.
func TestSoft(t *testing.T) {
	w := graph.Similarity(random(9, 15), graph.Heat(.3), .01)
	p := graph.Problem{W: w, Labelled: []int{2, 5, 7}, Y: mat.NewDense(3, 1, []float64{1, 0, 1}), Gamma: .1}
	p.V = []float64{1, 2, 1, 3, 1, 1, 4, 1, 1, 2, 1, 1, 5, 1, 1}
	cl, cu := 3.0, .05
	l, err := graph.Soft(p, cl, cu)
	if err != nil {
		t.Fatal(err)
	}
	y := []float64{2: 1, 5: 0, 7: 1, 14: 0}
	k := graph.Laplacian(graph.Compact(w, p.V))
	var kl mat.Dense
	kl.Mul(k, l)
	for i := range 15 {
		c := cu
		if i == 2 || i == 5 || i == 7 {
			c = cl
		}
		gradient := c*p.V[i]*(l.At(i, 0)-y[i]) + kl.At(i, 0) + p.Gamma*p.V[i]*l.At(i, 0)
		if math.Abs(gradient) > 1e-12 {
			t.Errorf("gradient %g at %d", gradient, i)
		}
	}
	hard, _ := graph.Harmonic(p)
	near, _ := graph.Soft(p, 1e9, 0)
	if !mat.EqualApprox(hard, near, 1e-6) {
		t.Error("with a large cl the soft solution is not near the hard solution")
	}
}

func TestHarmonicEdges(t *testing.T) {
	one := mat.NewSymDense(1, nil)
	y := mat.NewDense(1, 1, []float64{1})
	if l, err := graph.Harmonic(graph.Problem{W: one, Labelled: []int{0}, Y: y}); err != nil || l.At(0, 0) != 1 {
		t.Errorf("a single labelled vertex: %v", err)
	}
	if l, err := graph.Harmonic(graph.Problem{W: one, Gamma: 1}); err != nil || !l.IsEmpty() {
		t.Errorf("no labels: %v", err)
	}
	two := mat.NewSymDense(2, nil) // no edge
	if _, err := graph.Harmonic(graph.Problem{W: two, Labelled: []int{0}, Y: y}); !errors.Is(err, graph.ErrSingular) {
		t.Errorf("no path and no sink: %v", err)
	}
	if l, err := graph.Harmonic(graph.Problem{W: two, Labelled: []int{0}, Y: y, Gamma: 1e-3}); err != nil ||
		l.At(1, 0) != 0 {
		t.Errorf("no path, but a sink: %v", err)
	}
	for name, p := range map[string]graph.Problem{
		"multiplicities": {W: two, V: []float64{1}},
		"labels":         {W: two, Labelled: []int{0, 1}, Y: y},
		"range":          {W: two, Labelled: []int{2}, Y: y},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			graph.Harmonic(p)
		}()
	}
}
