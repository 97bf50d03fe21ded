// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/lab/peers"
)

// For one example at -1 and one at 1 the weights are a and -a, with a = 2 cost / (1 + exp(2a)):
// there the derivative of a² + 2 cost log(1 + exp(-2a)) is 0.
func TestLogistic(t *testing.T) {
	x, y := [][]float32{{-1}, {1}}, []int{0, 1}
	for _, cost := range []float64{.01, 1, 100} {
		low, high := 0., 2*cost
		for range 200 {
			if a := (low + high) / 2; a < 2*cost/(1+math.Exp(2*a)) {
				low = a
			} else {
				high = a
			}
		}
		score, err := peers.Logistic(cost)(x, y)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := score([]float32{1}, 0), 1/(1+math.Exp(-2*low)); math.Abs(got-want) > 1e-5 {
			t.Errorf("cost %g: score %g, want %g", cost, got, want)
		}
		if sum := score([]float32{.3}, 0) + score([]float32{.3}, 1); math.Abs(sum-1) > 1e-12 {
			t.Errorf("cost %g: probabilities sum to %g", cost, sum)
		}
	}
	if _, err := peers.Logistic(0)(x, y); !errors.Is(err, peers.ErrSetting) {
		t.Errorf("a cost of 0: error %v", err)
	}
	if _, err := peers.Logistic(1)(x, []int{0, 0}); !errors.Is(err, peers.ErrLabels) {
		t.Errorf("one class: %v", err)
	}
	score, err := peers.Logistic(1)([][]float32{{-1}, {1}}, []int{0, 2}) // no example has class 1
	if err != nil || score([]float32{0}, 1) != 1 || score([]float32{0}, 7) != 1 {
		t.Errorf("a class without examples: %v", err)
	}
}

// Two clouds, with a tenth of the labels wrong: confident learning leaves out mostly these labels,
// so that wrong labels get a high score.
func TestConfident(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	var x [][]float32
	var y []int
	for i := range 200 {
		class := i % 2
		x = append(x, []float32{float32(4*class) + float32(r.NormFloat64()),
			float32(r.NormFloat64())})
		if i%10 < 2 && i%20 < 2 { // one example of each class in twenty examples
			class = 1 - class
		}
		y = append(y, class)
	}
	plain, err := peers.Logistic(10)(x, y)
	if err != nil {
		t.Fatal(err)
	}
	confident, err := peers.Confident(5, peers.Logistic(10))(x, y)
	if err != nil {
		t.Fatal(err)
	}
	if p, c := plain([]float32{6, 0}, 0), confident([]float32{6, 0}, 0); !(c > p && c > .999) {
		t.Errorf("a wrong label has %g after confident learning, and %g without", c, p)
	}
	if _, err := peers.Confident(1, peers.Logistic(1))(x, y); !errors.Is(err, peers.ErrSetting) {
		t.Errorf("one fold: %v", err)
	}
	// With so few examples none is left out.
	if _, err := peers.Confident(2, peers.Logistic(1))([][]float32{{0}, {0}, {1}, {1}},
		[]int{0, 1, 0, 1}); err != nil {
		t.Error(err)
	}
}
