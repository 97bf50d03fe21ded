// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// OwnMinusOther returns for each example the distance to the nearest other example of its class, minus the distance to
// the nearest example of another class. A large value means that the class does not fit the example. It is 0 for the
// only example of a class, and if there is only one class.
func OwnMinusOther(d mat.Symmetric, y []int) []float64 {
	scores := make([]float64, len(y))
	for i := range y {
		own, other := math.Inf(1), math.Inf(1)
		for j := range y {
			switch {
			case j == i:
			case y[j] == y[i]:
				own = min(own, d.At(i, j))
			default:
				other = min(other, d.At(i, j))
			}
		}
		if !math.IsInf(own, 1) && !math.IsInf(other, 1) {
			scores[i] = own - other
		}
	}
	return scores
}
