// SPDX-License-Identifier: Apache-2.0

package face

import "image"

// Overlap returns the area of the intersection of two boxes divided by the area of their union, in
// [0,1].
func Overlap(a, b image.Rectangle) float64 {
	area := func(r image.Rectangle) float64 { return float64(r.Dx()) * float64(r.Dy()) }
	both := area(a.Intersect(b))
	if both == 0 {
		return 0
	}
	return both / (area(a) + area(b) - both)
}
