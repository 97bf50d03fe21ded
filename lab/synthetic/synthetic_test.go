// SPDX-License-Identifier: Apache-2.0

package synthetic_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/lab/synthetic"
)

// The thesis prints the sum of squared edges in each direction.
func TestSquares(t *testing.T) {
	x, y, truth, w := synthetic.Squares()
	var sum [2]float64
	labels := 0
	for i := range x {
		for j := range x {
			for q := range sum {
				d := float64(x[i][q] - x[j][q])
				sum[q] += w.At(i, j) * d * d
			}
			if w.At(i, j) > 0 && truth[i] != truth[j] {
				t.Fatal("the clusters are joined")
			}
		}
		if y[i] != 0 {
			labels++
			if y[i] != truth[i] {
				t.Error("a label is wrong")
			}
		}
	}
	for _, s := range sum {
		if math.Abs(s-218.351) > 5e-4 {
			t.Errorf("the squared edges sum to %g, want 218.351 as in the thesis", s)
		}
	}
	if labels != 2 {
		t.Errorf("%d labels", labels)
	}
}

func TestCore(t *testing.T) {
	l := synthetic.Core(rand.New(rand.NewPCG(1, 1)), 2)
	anomalies := 0
	for i, truth := range l.Truth {
		if truth == 1 {
			anomalies++
			if l.Class[i] != 0 || math.Abs(float64(l.X[i][0])) > synthetic.Inner ||
				math.Abs(float64(l.X[i][1])) > synthetic.Inner {
				t.Error("a point with truth 1 is not an anomaly")
			}
		}
	}
	if len(l.X) != 2*(100+50+6) || anomalies != 12 {
		t.Errorf("%d points, %d anomalies", len(l.X), anomalies)
	}
}

// If a label is flipped, its truth becomes one minus the truth before. Most labels that are not
// flipped are likely.
func TestMixture(t *testing.T) {
	for name, parts := range synthetic.Mixtures {
		clean := synthetic.Mixture(rand.New(rand.NewPCG(2, 1)), parts, 4000, 0)
		flipped := synthetic.Mixture(rand.New(rand.NewPCG(2, 1)), parts, 4000, .03)
		var truth float64
		changed := 0
		for i, p := range clean.Truth {
			truth += p
			if clean.Class[i] != flipped.Class[i] {
				changed++
				if math.Abs(p+flipped.Truth[i]-1) > 1e-12 {
					t.Fatalf("%s: flipping a label changes its truth from %g to %g", name, p,
						flipped.Truth[i])
				}
			}
		}
		if changed != 120 {
			t.Errorf("%s: %d labels flipped", name, changed)
		}
		if mean := truth / 4000; mean <= 0 || mean > .25 {
			t.Errorf("%s: the mean truth of clean labels is %g", name, mean)
		}
	}
}
