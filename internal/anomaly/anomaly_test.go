// SPDX-License-Identifier: Apache-2.0

package anomaly_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/anomaly"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

// points returns n random points in the plane, and random classes.
func points(rnd *rand.Rand, n, k int) (x [][]float32, y []int) {
	for i := range n {
		x = append(x, []float32{float32(3 * rnd.Float64()), float32(3 * rnd.Float64())})
		y = append(y, i%k)
	}
	return x, y
}

func weights(x [][]float32, denominator float64) *mat.SymDense {
	return dense.Similarity(dense.Distances(x, 1), quantized.Kernel{Denominator: denominator}, 0)
}

// scores returns the scores of all examples by a dense solution.
func scores(t *testing.T, w mat.Symmetric, v []float64, y []int, c, gamma float64) []float64 {
	t.Helper()
	p := dense.Problem{W: w, V: v, Class: y, Classes: slices.Max(y) + 1, Gamma: gamma}
	l := fixture.Must(p.Soft(c, 0))(t)
	all := make([]float64, len(y))
	for i, class := range y {
		all[i] = anomaly.Unusual(l.RawRowView(i), class)
	}
	return all
}

// For two classes the score is |l - y| with l from the closed form of the thesis, computed with an
// inverse.
func TestSoftHarmonicReference(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 1))
	for run := range 50 {
		x, y := points(rnd, 2+rnd.IntN(30), 2)
		w := weights(x, .1+rnd.Float64())
		c, gamma := .1+5*rnd.Float64(), .01+rnd.Float64()
		got := scores(t, w, nil, y, c, gamma)
		n := len(y)
		a, sign := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
		for i := range n {
			sign.SetVec(i, 2*float64(y[i])-1)
			degree := 0.
			for j := range n {
				degree += w.At(i, j)
				a.Set(i, j, -w.At(i, j)/c)
			}
			a.Set(i, i, degree/c+1+gamma/c)
		}
		var inverse mat.Dense
		fixture.Check(t, inverse.Inverse(a))
		var l mat.VecDense
		l.MulVec(&inverse, sign)
		for i := range n {
			if want := math.Abs(l.AtVec(i) - sign.AtVec(i)); math.Abs(got[i]-want) > 1e-9 {
				t.Fatalf("run %d, example %d: %g, want %g", run, i, got[i], want)
			}
		}
	}
}

// A vertex of multiplicity v has the score of v identical examples that are joined with weight 1.
func TestSoftHarmonicMultiplicities(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 2))
	for range 20 {
		x, y := points(rnd, 12, 3)
		v := make([]float64, len(x))
		var all [][]float32
		var labels, of []int
		for i := range x {
			v[i] = float64(1 + rnd.IntN(4))
			for range int(v[i]) {
				all, labels, of = append(all, x[i]), append(labels, y[i]), append(of, i)
			}
		}
		compact := scores(t, weights(x, .5), v, y, 2, .1)
		full := scores(t, weights(all, .5), nil, labels, 2, .1)
		for q, i := range of {
			if math.Abs(full[q]-compact[i]) > 1e-9 {
				t.Fatalf("example %d: %g, and %g for its vertex", q, full[q], compact[i])
			}
		}
	}
}

// There are two clusters with one wrong label each, a point far from everything, and a point at the
// edge of its cluster. The wrong labels have the highest scores, and the unusual points do not.
func TestLeads(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 4))
	var x [][]float32
	var y []int
	for i := range 80 {
		x = append(x, []float32{float32(6*(i%2)) + float32(.5*rnd.NormFloat64()),
			float32(.5 * rnd.NormFloat64())})
		y = append(y, i%2)
	}
	x[10], x[11] = []float32{.1, .1}, []float32{6, .1}
	y[10], y[11] = 1, 0 // wrong
	x, y = append(x, []float32{3, 40}, []float32{-1.7, 0}), append(y, 1, 0)
	w := weights(x, .5)
	s := scores(t, w, nil, y, 1, .1)
	order := make([]int, len(s))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if s[a] > s[b] {
			return -1
		}
		return 1
	})
	if lead := order[:2]; !slices.Contains(lead, 10) || !slices.Contains(lead, 11) {
		t.Errorf("examples %v have the highest scores", lead)
	}
	if s[80] > .1 || s[81] > .3 {
		t.Errorf("the point far away has %g, the point at the edge %g", s[80], s[81])
	}
}

// No label is unusual where no point is near another, and of two identical examples with different
// labels both are equally unusual.
func TestAlone(t *testing.T) {
	if s := scores(t, mat.NewSymDense(3, nil), nil, []int{0, 1, 1}, 3,
		1); math.Abs(s[0]-.25) > 1e-12 || s[0] != s[1] {
		t.Errorf("scores %v", s)
	}
	twins := weights([][]float32{{0, 0}, {0, 0}}, 1)
	if s := scores(t, twins, nil, []int{0, 1}, 1, .1); math.Abs(s[0]-s[1]) > 1e-12 {
		t.Errorf("scores %v", s)
	}
}
