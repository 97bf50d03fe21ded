// SPDX-License-Identifier: Apache-2.0

package maxmargin

import (
	"math"

	"github.com/faceauth/faceauth/quantized"
)

// Kernel is a positive semi-definite function of two points of the same length.
type Kernel func(a, b []float32) float64

// Linear is the inner product.
func Linear(a, b []float32) float64 {
	var sum float64
	for i, x := range a {
		sum += float64(x) * float64(b[i])
	}
	return sum
}

// Cubic is (1 + a·b/K)³ for points with K values.
func Cubic(a, b []float32) float64 {
	x := 1 + Linear(a, b)/float64(max(len(a), 1))
	return x * x * x
}

// Radial returns the radial basis function exp(-|a-b|²/(2 width²)).
func Radial(width float64) Kernel {
	k := quantized.Heat(width)
	return func(a, b []float32) float64 {
		return math.Exp(-quantized.SquaredDistance(a, b) / k.Denominator)
	}
}
