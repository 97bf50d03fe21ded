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
// at least as long as a. The order of the sum is fixed, so the same two vectors always give the
// same value, in either order.
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
func Distance(a, b []float32, scale float64) float64 {
	return scale * math.Sqrt(SquaredDistance(a,
		b))
}
