// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// SquaredDistance returns the squared Euclidean distance of a and b, summed in float64. b must be at least as long as
// a. The order of the sum is fixed, so the same two vectors always give the same value, in either order.
func SquaredDistance(a, b []float32) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		d0 := float64(a[i]) - float64(b[i])
		d1 := float64(a[i+1]) - float64(b[i+1])
		d2 := float64(a[i+2]) - float64(b[i+2])
		d3 := float64(a[i+3]) - float64(b[i+3])
		s0 += d0 * d0
		s1 += d1 * d1
		s2 += d2 * d2
		s3 += d3 * d3
	}
	for ; i < len(a); i++ {
		d := float64(a[i]) - float64(b[i])
		s0 += d * d
	}
	return (s0 + s1) + (s2 + s3)
}

// Distance returns scale times the Euclidean distance of a and b, as [SquaredDistance] measures it.
func Distance(a, b []float32, scale float64) float64 { return scale * math.Sqrt(SquaredDistance(a, b)) }

// Distances returns the matrix of Euclidean distances between the rows of x, times scale. All rows must have the same
// length.
func Distances(x [][]float32, scale float64) *mat.SymDense {
	d := mat.NewSymDense(len(x), nil)
	for i := range x {
		for j := range i {
			d.SetSym(i, j, Distance(x[i], x[j], scale))
		}
	}
	return d
}
