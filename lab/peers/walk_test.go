// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/lab/peers"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

func weights(x [][]float32, denominator float64) *mat.SymDense {
	return dense.Similarity(dense.Distances(x, 1), quantized.Kernel{Denominator: denominator}, 0)
}

// The scores are the scores of the thesis's listing, with the graph of each class and its
// stationary distribution written out.
func TestRandomWalkReference(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 3))
	for run := range 50 {
		k := 2 + rnd.IntN(3)
		x, y := points(rnd, k+rnd.IntN(30), k)
		lambda := rnd.Float64() * .1
		got := fixture.Must(peers.RandomWalk(weights(x, .3), y, lambda))(t)
		for i := range x {
			other, all := 0., lambda
			for class := range k {
				group := [][]float32{x[i]}
				for j := range x {
					if j != i && y[j] == class {
						group = append(group, x[j])
					}
				}
				p := share(weights(group, .3)) * float64(len(group)-1) / float64(len(x)-1)
				all += p
				if class != y[i] {
					other += p
				}
			}
			want := 0.
			if all > 0 {
				want = other / all
			}
			if math.Abs(got[i]-want) > 1e-9 {
				t.Fatalf("run %d, example %d: %g, want %g", run, i, got[i], want)
			}
		}
	}
}

// Input that cannot be scored is an error, and without near points no label is unusual.
func TestRandomWalkInput(t *testing.T) {
	w := weights([][]float32{{0, 0}, {1, 0}, {0, 0}, {9, 9}}, 1)
	for name, y := range map[string][]int{"too few labels": {0, 1, 0}, "one class": {1, 1, 1, 1},
		"a negative class": {0, -1, 0, 1}} {
		if _, err := peers.RandomWalk(w, y, 0); !errors.Is(err, peers.ErrLabels) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := peers.RandomWalk(w, []int{0, 1, 0, 1}, -1); !errors.Is(err, peers.ErrSetting) {
		t.Error(err)
	}
	s, err := peers.RandomWalk(mat.NewSymDense(3, nil), []int{0, 1, 1}, 0)
	if err != nil || !slices.Equal(s, []float64{0, 0, 0}) {
		t.Errorf("scores %v, error %v", s, err)
	}
}

func TestScale(t *testing.T) {
	for _, c := range []struct{ in, training, want []float64 }{
		{nil, nil, nil},
		{[]float64{3}, nil, []float64{0}},
		{[]float64{1, 2}, []float64{2, 2}, []float64{0, 0}},
		{[]float64{1, 3, 2}, []float64{1, 3, 2}, []float64{0, 1, .5}},
		// scores beyond the training scores
		{[]float64{0, 5}, []float64{1, 3, 2}, []float64{-.5, 2}},
	} {
		if peers.Scale(c.in, c.training); !slices.Equal(c.in, c.want) {
			t.Errorf("scores %v, want %v", c.in, c.want)
		}
	}
	self := []float64{2, 4, 3} // both arguments may be the same slice
	if peers.Scale(self, self); !slices.Equal(self, []float64{0, 1, .5}) {
		t.Errorf("training scores scaled by themselves: %v", self)
	}
}

// share returns the share of time that an endless random walk spends at the first vertex (equation
// rw_closed).
func share(w mat.Symmetric) float64 {
	l := dense.Laplacian(w, false)
	if volume := mat.Trace(l); volume > 0 {
		return l.At(0, 0) / volume
	}
	return 0
}
