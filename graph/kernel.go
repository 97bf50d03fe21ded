// SPDX-License-Identifier: Apache-2.0

package graph

import "math"

// Kernel is a Gaussian similarity exp(-d²/Denominator) of two points at distance d.
type Kernel struct {
	Denominator float64 // > 0, in units of the squared distance
}

// Heat returns the kernel exp(-d²/(2 sigma²)) of the thesis's face recognition experiments
// (Section "Online Quantized SSL Experiments", Face recognition).
func Heat(sigma float64) Kernel { return Kernel{2 * sigma * sigma} }

// ScaledHeat returns the kernel exp(-d²/(2 p sigma²)) for p features, which the thesis's UCI
// experiments use.
func ScaledHeat(p int, sigma float64) Kernel { return Kernel{2 * float64(p) * sigma * sigma} }

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
