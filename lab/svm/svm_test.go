// SPDX-License-Identifier: Apache-2.0

package svm_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/lab/svm"
	"gonum.org/v1/gonum/mat"
)

// cloud returns the kernel matrix of n random points in the plane, and classes that overlap.
func cloud(seed uint64, n int, kernel func(a, b [2]float64) float64) (*mat.SymDense, []float64) {
	r := rand.New(rand.NewPCG(seed, 7))
	x, y := make([][2]float64, n), make([]float64, n)
	for i := range x {
		y[i] = float64(1 - 2*(i%2))
		x[i] = [2]float64{r.NormFloat64() + y[i], r.NormFloat64()}
	}
	k := mat.NewSymDense(n, nil)
	for i := range x {
		for j := range i + 1 {
			k.SetSym(i, j, kernel(x[i], x[j]))
		}
	}
	return k, y
}

var kernels = map[string]func(a, b [2]float64) float64{
	"linear": func(a, b [2]float64) float64 { return a[0]*b[0] + a[1]*b[1] },
	"cubic":  func(a, b [2]float64) float64 { return math.Pow(1+(a[0]*b[0]+a[1]*b[1])/2, 3) },
	"rbf":    func(a, b [2]float64) float64 { return math.Exp(-math.Hypot(a[0]-b[0], a[1]-b[1])) },
}

// values returns the values of a machine at all examples.
func values(k mat.Symmetric, m svm.Machine) []float64 {
	f := make([]float64, len(m.Weights))
	for i := range f {
		f[i] = m.Bias
		for j, w := range m.Weights {
			f[i] += w * k.At(i, j)
		}
	}
	return f
}

// TestConditions checks the Karush-Kuhn-Tucker conditions of every machine.
func TestConditions(t *testing.T) {
	for name, kernel := range kernels {
		for _, c := range []float64{.01, 1, 100} {
			for _, bias := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%g/%v", name, c, bias), func(t *testing.T) {
					for seed := range uint64(10) {
						k, y := cloud(seed, 60, kernel)
						m := fixture.Must(svm.Classify(k, y, c, bias))(t)
						var sum float64
						for i, f := range values(k, m) {
							a := m.Weights[i] * y[i]
							sum += m.Weights[i]
							if a < 0 || a > c {
								t.Fatalf("a multiplier of %g is not in [0,%g]", a, c)
							}
							// The tolerance leaves an interval for the bias, and the bias may be
							// anywhere in it.
							if v := y[i] * f; a < c && v < 1-2*svm.Tolerance || a > 0 &&
								v > 1+2*svm.Tolerance {
								t.Fatalf("example %d has y f = %g with a multiplier of %g", i, v, a)
							}
						}
						if bias && math.Abs(sum) > 1e-9*c {
							t.Fatalf("the multipliers of the classes differ by %g", sum)
						}
					}
				})
			}
		}
	}
}

// dense solves the same problem with every assignment of the multipliers to 0, c or free. Each
// assignment gives a linear system. It returns the least objective of the allowed solutions.
func dense(k mat.Symmetric, y, q []float64, c float64, constraint *float64) float64 {
	n := len(y)
	best := math.Inf(1)
	sets := int(math.Pow(3, float64(n)))
	for set := range sets {
		a := make([]float64, n)
		var free []int
		for i, s := 0, set; i < n; i, s = i+1, s/3 {
			switch s % 3 {
			case 1:
				a[i] = c
			case 2:
				free = append(free, i)
			}
		}
		if len(free) > 0 {
			size := len(free)
			if constraint != nil {
				size++
			}
			m, b := mat.NewDense(size, size, nil), mat.NewVecDense(size, nil)
			for r, i := range free {
				rest := -q[i]
				for j := range n {
					rest -= y[i] * y[j] * k.At(i, j) * a[j]
				}
				b.SetVec(r, rest)
				for s, j := range free {
					m.Set(r, s, y[i]*y[j]*k.At(i, j))
				}
				if constraint != nil {
					m.Set(r, size-1, y[i])
					m.Set(size-1, r, y[i])
				}
			}
			if constraint != nil {
				rest := *constraint
				for j := range n {
					rest -= y[j] * a[j]
				}
				b.SetVec(size-1, rest)
			}
			var x mat.VecDense
			if err := x.SolveVec(m, b); err != nil {
				continue
			}
			for r, i := range free {
				a[i] = x.AtVec(r)
			}
		}
		sum, allowed := 0., true
		for i := range a {
			allowed = allowed && a[i] >= -1e-9 && a[i] <= c+1e-9
			sum += y[i] * a[i]
		}
		if constraint != nil && math.Abs(sum-*constraint) > 1e-9 || !allowed {
			continue
		}
		best = min(best, objective(k, y, q, a))
	}
	return best
}

func objective(k mat.Symmetric, y, q, a []float64) (sum float64) {
	for i := range a {
		sum += q[i] * a[i]
		for j := range a {
			sum += y[i] * y[j] * k.At(i, j) * a[i] * a[j] / 2
		}
	}
	return sum
}

func TestDense(t *testing.T) {
	for name, kernel := range kernels {
		for seed := range uint64(8) {
			for _, c := range []float64{.1, 1, 10} {
				k, y := cloud(seed, 7, kernel)
				for i := range y {
					k.SetSym(i, i, k.At(i, i)+1e-3) // so that every system has one solution
				}
				ones := make([]float64, len(y))
				for i := range ones {
					ones[i] = -1
				}
				zero := 0.
				for _, bias := range []bool{true, false} {
					m := fixture.Must(svm.Classify(k, y, c, bias))(t)
					a := make([]float64, len(y))
					for i := range a {
						a[i] = m.Weights[i] * y[i]
					}
					constraint := &zero
					if !bias {
						constraint = nil
					}
					got, want := objective(k, y, ones, a), dense(k, y, ones, c, constraint)
					// The gap between the primal and the dual is at most the tolerance, times the
					// multipliers.
					if got < want-1e-9 || got > want+svm.Tolerance*c*float64(len(y)) {
						t.Errorf("%s, cost %g, bias %v: objective %g, want %g", name, c, bias, got,
							want)
					}
				}
			}
			k, _ := cloud(seed, 7, kernel)
			for i := range 7 {
				k.SetSym(i, i, k.At(i, i)+1e-3)
			}
			y, q := []float64{1, 1, 1, 1, 1, 1, 1}, make([]float64, 7)
			total := .4 * 7
			m := fixture.Must(svm.OneClass(k, .4))(t)
			if got, want := objective(k, y, q, m.Weights),
				dense(k, y, q, 1, &total); got < want-1e-9 ||
				got > want+7*svm.Tolerance {
				t.Errorf("%s, one class: objective %g, want %g", name, got, want)
			}
		}
	}
}

// At most a share nu of the examples is outside, and at least that share are support vectors.
func TestOneClass(t *testing.T) {
	for _, nu := range []float64{.05, .2, .5, 1} {
		k, _ := cloud(1, 200, kernels["rbf"])
		m := fixture.Must(svm.OneClass(k, nu))(t)
		outside, support := 0, 0
		for i, f := range values(k, m) {
			// The conditions of Karush, Kuhn and Tucker.
			if a := m.Weights[i]; a < 0 || a > 1 || a < 1 && f < -2*svm.Tolerance || a > 0 &&
				f > 2*svm.Tolerance {
				t.Errorf("nu %g: example %d has f = %g with a multiplier of %g", nu, i, f, a)
			}
			if f < -svm.Tolerance {
				outside++
			}
			if m.Weights[i] > 0 {
				support++
			}
		}
		if float64(outside) > nu*200 || float64(support) < nu*200 {
			t.Errorf("nu %g: %d of 200 outside, %d support vectors", nu, outside, support)
		}
	}
}

// Two points have a solution that can be written down: the plane between them.
func TestTwoPoints(t *testing.T) {
	k := mat.NewSymDense(2, []float64{4, -4, -4, 4}) // at 2 and -2 on a line
	for _, bias := range []bool{true, false} {
		m := fixture.Must(svm.Classify(k, []float64{1, -1}, 10, bias))(t)
		for i, f := range values(k, m) {
			if want := float64(1 - 2*i); math.Abs(f-want) > svm.Tolerance {
				t.Errorf("bias %v: f is %g, want %g", bias, f, want)
			}
		}
	}
}

func TestBadInput(t *testing.T) {
	one := mat.NewSymDense(1, []float64{1})
	two := mat.NewSymDense(2, []float64{1, 1, 1, 1})
	for _, tt := range []struct {
		name string
		k    mat.Symmetric
		y    []float64
		c    float64
		bias bool
		want error
	}{
		{"no examples", &mat.SymDense{}, nil, 1, true, svm.ErrLabels},
		{"too few labels", two, []float64{1}, 1, true, svm.ErrLabels},
		{"a label of 0", two, []float64{1, 0}, 1, true, svm.ErrLabels},
		{"one class", two, []float64{1, 1}, 1, true, svm.ErrLabels},
		{"one class without a bias", two, []float64{1, 1}, 1, false, nil},
		{"one example", one, []float64{1}, 1, false, nil},
		{"duplicates with different labels", two, []float64{1, -1}, 1, true, nil},
		{"duplicates with different labels, no bias", two, []float64{1, -1}, 1, false, nil},
		{"a kernel of 0", mat.NewSymDense(2, nil), []float64{1, -1}, 1, false, nil},
		{"a cost of 0", two, []float64{1, -1}, 0, true, svm.ErrSetting},
		{"a cost that is not a number", two, []float64{1, -1}, math.NaN(), true, svm.ErrSetting},
		{"NaN kernel", mat.NewSymDense(2, []float64{1, math.NaN(), 0, 1}), []float64{1, -1}, 1,
			true, svm.ErrKernel},
		{"a negative diagonal", mat.NewSymDense(2, []float64{-1, 0, 0, 1}), []float64{1, -1}, 1,
			true, svm.ErrKernel},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := svm.Classify(tt.k, tt.y, tt.c, tt.bias)
			if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			for _, w := range append(m.Weights, m.Bias) {
				if math.IsNaN(w) || math.IsInf(w, 0) {
					t.Errorf("weights %v, bias %g", m.Weights, m.Bias)
				}
			}
		})
	}
	for _, nu := range []float64{0, 1.5, math.NaN()} {
		if _, err := svm.OneClass(two, nu); !errors.Is(err, svm.ErrSetting) {
			t.Errorf("nu %g: error %v", nu, err)
		}
	}
	if _, err := svm.OneClass(&mat.SymDense{}, .5); !errors.Is(err, svm.ErrLabels) {
		t.Errorf("one class without examples: error %v", err)
	}
	// A matrix that is not a kernel must not cause an endless loop.
	if _, err := svm.Classify(mat.NewSymDense(3, []float64{1, 5, 5, 5, 1, 5, 5, 5, 1}),
		[]float64{1, -1, 1}, 1,
		true); err != nil && !errors.Is(err, svm.ErrSlow) {
		t.Error(err)
	}
}
