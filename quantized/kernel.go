// SPDX-License-Identifier: Apache-2.0

package quantized

import "math"

// Kernel is a Gaussian similarity exp(-d²/Denominator) of two points at distance d.
type Kernel struct {
	Denominator float64 // > 0, in units of the squared distance
}

// Heat returns the kernel exp(-d²/(2 sigma²)) of the thesis's face recognition experiments
// (Section "Online Quantized SSL Experiments", Face recognition).
func Heat(sigma float64) Kernel { return Kernel{2 * sigma * sigma} }

// Weight returns the similarity of two points at distance d.
func (k Kernel) Weight(d float64) float64 { return math.Exp(-d * d / k.Denominator) }

// Radius returns the distance at which the weight has fallen to epsilon: the length of the longest
// edge in an epsilon-neighbourhood graph. It is 0 for epsilon >= 1 and infinite for epsilon <= 0.
func (k Kernel) Radius(epsilon float64) float64 {
	if epsilon >= 1 {
		return 0
	}
	return math.Sqrt(-k.Denominator * math.Log(epsilon))
}

// SquaredDistance returns the squared Euclidean distance of a and b, summed in float64. b must be
// at least as long as a. The order of the sum is fixed and each square is rounded, which arm64 and
// GOAMD64=v3 would not do by themselves: the same two vectors give the same value on every
// processor, in either order.
func SquaredDistance(a, b []float32) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		d0 := float64(a[i]) - float64(b[i])
		d1 := float64(a[i+1]) - float64(b[i+1])
		d2 := float64(a[i+2]) - float64(b[i+2])
		d3 := float64(a[i+3]) - float64(b[i+3])
		s0 += float64(d0 * d0)
		s1 += float64(d1 * d1)
		s2 += float64(d2 * d2)
		s3 += float64(d3 * d3)
	}
	for ; i < len(a); i++ {
		d := float64(a[i]) - float64(b[i])
		s0 += float64(d * d)
	}
	return (s0 + s1) + (s2 + s3)
}

// Distance returns scale times the Euclidean distance of a and b, as [SquaredDistance] measures it.
func Distance(a, b []float32, scale float64) float64 {
	return scale * math.Sqrt(SquaredDistance(a, b))
}

// dot returns the product of two vectors of one length, summed in float64 in a fixed order. The
// product of two values of float32 is exact in float64, so it is the same if it is fused. The order
// of BLAS depends on the processor, and on amd64 on the address of y as well.
func dot(x, y []float32) float64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		s0 += float64(x[i]) * float64(y[i])
		s1 += float64(x[i+1]) * float64(y[i+1])
		s2 += float64(x[i+2]) * float64(y[i+2])
		s3 += float64(x[i+3]) * float64(y[i+3])
	}
	for ; i < len(x); i++ {
		s0 += float64(x[i]) * float64(y[i])
	}
	return (s0 + s1) + (s2 + s3)
}
