// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/maxmargin"
	"github.com/faceauth/faceauth/lab/peers"
	"github.com/faceauth/faceauth/lab/synthetic"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// TestSquares shows the result of the thesis's picture: graph cuts with a linear and a cubic kernel
// separate the clusters. Manifold regularisation with the same kernels does not, with any weight of
// the graph.
func TestSquares(t *testing.T) {
	x, y, truth, w := synthetic.Squares()
	wrong := func(m *maxmargin.Machine) (n int) {
		for i := range x {
			if m.Value(x[i])*truth[i] <= 0 {
				n++
			}
		}
		return n
	}
	for _, tt := range []struct {
		name   string
		kernel maxmargin.Kernel
		fails  bool
	}{{"linear", maxmargin.Linear, true}, {"cubic", maxmargin.Cubic, true},
		{"radial", maxmargin.Radial(math.Sqrt2), false}} {
		t.Run(tt.name, func(t *testing.T) {
			e := fixture.Must(maxmargin.NewExamples(x, tt.kernel))(t)
			cut := fixture.Must(e.GraphCut(w, y, 1e-3, .01, .1))(t)
			if n := wrong(cut); n > 0 {
				t.Errorf("the graph cut puts %d of %d on the wrong side", n, len(x))
			}
			least := len(x)
			for exponent := -3; exponent <= 6; exponent++ {
				m := fixture.Must(peers.NewManifold(x, tt.kernel, false, w, math.Pow(10,
					float64(exponent))))(t)
				machine := fixture.Must(m.SVM(y, .1))(t)
				least = min(least, wrong(machine))
			}
			if tt.fails && least == 0 {
				t.Error("manifold regularisation separates the clusters, and the thesis says " +
					"that it cannot")
			}
			if !tt.fails && least > 0 {
				t.Errorf("manifold regularisation puts %d or more on the wrong side", least)
			}
			// If the sink takes everything, only the two labels count.
			alone := fixture.Must(e.SVM(y, .1))(t)
			far := fixture.Must(e.GraphCut(w, y, 1e6, .01, .1))(t)
			for i := range x {
				if a, b := alone.Value(x[i]), far.Value(x[i]); a != b {
					t.Fatalf("with a huge gamma_g the cut has the value %g, and the SVM %g", b, a)
				}
			}
		})
	}
}

// The grid has as many horizontal as vertical edges. For a linear f the graph's term is therefore a
// multiple of |f|², and the boundary stays between the labels, whatever the weight of this term is
// (equation "Linear manifold regularization").
func TestLinearManifoldNeverTurns(t *testing.T) {
	x, y, _, w := synthetic.Squares()
	e := fixture.Must(maxmargin.NewExamples(x, maxmargin.Linear))(t)
	e.Origin = true
	direction := func(m *maxmargin.Machine) float64 {
		a, b := m.Value([]float32{1, 0}), m.Value([]float32{0, 1})
		return math.Atan2(b, a)
	}
	alone := fixture.Must(e.SVM(y, .1))(t)
	for _, r := range []float64{0, 1e-3, 1, 1e3} {
		m := fixture.Must(peers.NewManifold(x, maxmargin.Linear, true, w, r))(t)
		machine := fixture.Must(m.SVM(y, .1))(t)
		if d := direction(machine) - direction(alone); math.Abs(d) > 1e-6 {
			t.Errorf("ratio %g turns the plane by %g", r, d)
		}
	}
}

// TestManifoldObjective compares a machine on the deformed kernel with a minimiser that knows only
// the objective.
func TestManifoldObjective(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	n := 12
	x, y := make([][]float32, n), make([]float64, n)
	for i := range x {
		x[i] = []float32{float32(r.NormFloat64()), float32(r.NormFloat64())}
	}
	y[0], y[1], y[2], y[3] = 1, -1, 1, -1
	w := dense.Nearest(dense.Distances(x, 1), quantized.Heat(1), 3)
	kernel := maxmargin.Radial(1)
	const gamma, ratio = .2, 3
	m, err := peers.NewManifold(x, kernel, true, w, ratio)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.SVM(y, gamma)
	if err != nil {
		t.Fatal(err)
	}
	l := dense.Laplacian(w, false)
	gram := mat.NewSymDense(n, nil)
	for i := range x {
		for j := range i + 1 {
			gram.SetSym(i, j, kernel(x[i], x[j]))
		}
	}
	objective := func(a []float64) float64 {
		v := mat.NewVecDense(n, a)
		var f mat.VecDense
		f.MulVec(gram, v)
		sum := gamma*mat.Inner(v, gram, v) + gamma*ratio*mat.Inner(&f, l, &f)
		for i := range y {
			if y[i] != 0 {
				sum += max(1-y[i]*f.AtVec(i), 0)
			}
		}
		return sum
	}
	found, err := optimize.Minimize(optimize.Problem{Func: objective}, make([]float64, n),
		&optimize.Settings{FuncEvaluations: 400_000}, &optimize.NelderMead{})
	if err != nil && found == nil {
		t.Fatal(err)
	}
	// Nelder and Mead's method stops a little above the minimum; no value is below it.
	if a, b := objective(got.Weights), found.F; a > b+1e-3 || a < b-.1*b {
		t.Errorf("objective %g, the minimiser found %g", a, b)
	}
}

// Without the graph's term the deformed kernel equals the kernel.
func TestManifoldWithoutGraph(t *testing.T) {
	x, y, _, w := synthetic.Squares()
	e := fixture.Must(maxmargin.NewExamples(x, maxmargin.Cubic))(t)
	m := fixture.Must(peers.NewManifold(x, maxmargin.Cubic, false, w, 0))(t)
	a := fixture.Must(m.SVM(y, .1))(t)
	b := fixture.Must(e.SVM(y, .1))(t)
	for i := range x {
		if math.Abs(a.Value(x[i])-b.Value(x[i])) > 1e-9 {
			t.Fatalf("value %g, want %g", a.Value(x[i]), b.Value(x[i]))
		}
	}
}

func TestManifoldBadInput(t *testing.T) {
	x := [][]float32{{0, 0}, {1, 0}, {0, 1}, {1, 1}}
	y := []float64{1, 0, 0, -1}
	w := dense.Nearest(dense.Distances(x, 1), quantized.Heat(1), 10)
	bad := mat.NewSymDense(4, nil)
	bad.SetSym(0, 1, math.NaN())
	learner := func(w mat.Symmetric, r float64) (*peers.Manifold, error) {
		return peers.NewManifold(x, maxmargin.Linear, false, w, r)
	}
	for name, call := range map[string]func() error{
		"ratio":  func() error { _, err := learner(w, -1); return err },
		"graph":  func() error { _, err := learner(mat.NewSymDense(3, nil), 1); return err },
		"weight": func() error { _, err := learner(bad, 1); return err },
		"gamma": func() error {
			m, _ := learner(w, 1)
			_,
				err := m.SVM(y, math.Inf(1))
			return err
		},
	} {
		if err := call(); !errors.Is(err, maxmargin.ErrSetting) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m, err := learner(w, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.SVM([]float64{0, 0, 0, 0}, 1); !errors.Is(err, maxmargin.ErrLabels) {
		t.Errorf("no labels: %v", err)
	}
}
