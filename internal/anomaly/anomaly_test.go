// SPDX-License-Identifier: Apache-2.0

package anomaly_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/internal/anomaly"
	"github.com/faceauth/faceauth/internal/fixture"
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
	return graph.Similarity(graph.Distances(x, 1), graph.Kernel{Denominator: denominator}, 0)
}

// For two classes the score is |l - y| with l from the closed form of the thesis, computed with an inverse.
func TestSoftHarmonicReference(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 1))
	for run := range 50 {
		x, y := points(rnd, 2+rnd.IntN(30), 2)
		w := weights(x, .1+rnd.Float64())
		c, gamma := .1+5*rnd.Float64(), .01+rnd.Float64()
		got := fixture.Must(anomaly.SoftHarmonic(w, nil, y, c, gamma))(t)
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
		compact := fixture.Must(anomaly.SoftHarmonic(weights(x, .5), v, y, 2, .1))(t)
		full := fixture.Must(anomaly.SoftHarmonic(weights(all, .5), nil, labels, 2, .1))(t)
		for q, i := range of {
			if math.Abs(full[q]-compact[i]) > 1e-9 {
				t.Fatalf("example %d: %g, and %g for its vertex", q, full[q], compact[i])
			}
		}
	}
}

// There are two clusters with one wrong label each, a point far from everything, and a point at the edge of its
// cluster. The wrong labels have the highest scores, and the unusual points do not.
func TestLeads(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 4))
	var x [][]float32
	var y []int
	for i := range 80 {
		x = append(x, []float32{float32(6*(i%2)) + float32(.5*rnd.NormFloat64()), float32(.5 * rnd.NormFloat64())})
		y = append(y, i%2)
	}
	x[10], x[11] = []float32{.1, .1}, []float32{6, .1}
	y[10], y[11] = 1, 0 // wrong
	x, y = append(x, []float32{3, 40}, []float32{-1.7, 0}), append(y, 1, 0)
	w := weights(x, .5)
	s := fixture.Must(anomaly.SoftHarmonic(w, nil, y, 1, .1))(t)
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

// Input that cannot be scored is an error, and unusual input has a documented result.
func TestInput(t *testing.T) {
	w := weights([][]float32{{0, 0}, {1, 0}, {0, 0}, {9, 9}}, 1)
	y := []int{0, 1, 0, 1}
	bad := mat.NewSymDense(2, []float64{0, math.NaN(), math.NaN(), 0})
	for _, c := range []struct {
		name string
		w    mat.Symmetric
		v    []float64
		y    []int
		c, g float64
		want error
	}{
		{"too few labels", w, nil, y[:3], 1, 1, anomaly.ErrLabels},
		{"one class", w, nil, []int{1, 1, 1, 1}, 1, 1, anomaly.ErrLabels},
		{"a negative class", w, nil, []int{0, -1, 0, 1}, 1, 1, anomaly.ErrLabels},
		{"no examples", new(mat.SymDense), nil, nil, 1, 1, anomaly.ErrLabels},
		{"a weight that is not a number", bad, nil, []int{0, 1}, 1, 1, anomaly.ErrWeights},
		{"a negative weight", mat.NewSymDense(2, []float64{0, -1, -1, 0}), nil, []int{0, 1}, 1, 1, anomaly.ErrWeights},
		{"a c of 0", w, nil, y, 0, 1, anomaly.ErrSetting},
		{"a gamma that is not a number", w, nil, y, 1, math.NaN(), anomaly.ErrSetting},
		{"a multiplicity of 0", w, []float64{1, 1, 0, 1}, y, 1, 1, anomaly.ErrWeights},
		{"too few multiplicities", w, []float64{1}, y, 1, 1, anomaly.ErrWeights},
	} {
		if _, err := anomaly.SoftHarmonic(c.w, c.v, c.y, c.c, c.g); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// No point is near another: no label is unusual.
	alone := mat.NewSymDense(3, nil)
	s, err := anomaly.SoftHarmonic(alone, nil, []int{0, 1, 1}, 3, 1)
	if err != nil || math.Abs(s[0]-.25) > 1e-12 || s[0] != s[1] {
		t.Errorf("scores %v, error %v", s, err)
	}
	// Two identical examples with different labels are equally unusual.
	twins := weights([][]float32{{0, 0}, {0, 0}}, 1)
	if s, err := anomaly.SoftHarmonic(twins, nil, []int{0, 1}, 1, .1); err != nil || math.Abs(s[0]-s[1]) > 1e-12 {
		t.Errorf("scores %v, error %v", s, err)
	}
}

func TestOwnMinusOther(t *testing.T) {
	x := [][]float32{{0}, {1}, {4}, {4.5}, {9}}
	d := graph.Distances(x, 1)
	// The third point is at a distance of 3 from its own class and of .5 from another class. Each of the last two
	// points is the only one of its class.
	if got := anomaly.OwnMinusOther(d, []int{0, 0, 0, 1, 2}); !slices.Equal(got,
		[]float64{1 - 4.5, 1 - 3.5, 3 - .5, 0, 0}) {
		t.Errorf("scores %v", got)
	}
	if got := anomaly.OwnMinusOther(d, []int{1, 1, 1, 1, 1}); !slices.Equal(got, make([]float64, 5)) {
		t.Errorf("one class: %v", got)
	}
}

func ExampleSoftHarmonic() {
	x := [][]float32{{0, 0}, {.1, 0}, {0, .1}, {5, 5}, {5.1, 5}, {5, 5.1}}
	y := []int{0, 0, 1, 1, 1, 1} // the third is not like the others of its class
	w := graph.Similarity(graph.Distances(x, 1), graph.Kernel{Denominator: .5}, 0)
	scores, err := anomaly.SoftHarmonic(w, nil, y, 1, .1)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.2f\n", scores)
	// Output: [0.53 0.53 0.97 0.09 0.09 0.09]
}
