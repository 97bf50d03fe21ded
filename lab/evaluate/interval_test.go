// SPDX-License-Identifier: Apache-2.0

package evaluate_test

import (
	"math"
	"testing"

	"github.com/faceauth/faceauth/lab/evaluate"
)

// For no positive trial in n the interval ends at 1 - .025^(1/n). The values for 10 of 20 and 1 of
// 10 are in published tables of Clopper and Pearson's intervals.
func TestClopperPearson(t *testing.T) {
	for _, c := range []struct {
		n, of     int
		low, high float64
	}{
		{0, 0, 0, 1},
		{0, 1, 0, .975},
		{0, 6, 0, 1 - math.Pow(.025, 1./6)},
		{0, 300, 0, 1 - math.Pow(.025, 1./300)},
		{6, 6, math.Pow(.025, 1./6), 1},
		{1, 10, .0025286, .4450161},
		{10, 20, .2719578, .7280422},
	} {
		i := evaluate.ClopperPearson(c.n, c.of)
		if math.Abs(i.Low-c.low) > 1e-6 || math.Abs(i.High-c.high) > 1e-6 {
			t.Errorf("%d of %d: [%.7f, %.7f], want [%.7f, %.7f]", c.n, c.of, i.Low, i.High, c.low,
				c.high)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("3 of 2 trials were positive")
		}
	}()
	evaluate.ClopperPearson(3, 2)
}
