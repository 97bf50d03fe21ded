// SPDX-License-Identifier: Apache-2.0

package quantized_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/quantized"
)

func TestKernel(t *testing.T) {
	k := quantized.Heat(.2)
	// For sigma .2 and gamma 1e-3 the edge radius is .86.
	if r := k.Radius(1e-4); math.Abs(r-.2*math.Sqrt(2*math.Log(1e4))) > 1e-15 ||
		math.Abs(r-.86) > .005 {
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
		got := quantized.SquaredDistance(a, b)
		if math.Abs(got-want) > 1e-13 || got != quantized.SquaredDistance(b, a) {
			t.Errorf("%d values: %g, want %g", n, got, want)
		}
		if quantized.SquaredDistance(a, a) != 0 {
			t.Errorf("%d values: a point is not at distance 0 from itself", n)
		}
	}
}
