// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"fmt"
	"image"
)

// Turn returns the picture turned clockwise by 0, 90, 180 or 270 degrees. The caller closes it. The error is
// [ErrClosed], or about another angle.
func (p *Picture) Turn(degrees int) (*Picture, error) {
	size := p.Size()
	right, bottom := float64(size.X-1), float64(size.Y-1)
	switch degrees {
	case 0:
		return p.Clone()
	case 90:
		return p.Warp([6]float64{0, -1, bottom, 1, 0, 0}, image.Pt(size.Y, size.X))
	case 180:
		return p.Warp([6]float64{-1, 0, right, 0, -1, bottom}, size)
	case 270:
		return p.Warp([6]float64{0, 1, 0, -1, 0, right}, image.Pt(size.Y, size.X))
	}
	return nil, fmt.Errorf("turning a picture by %d degrees: 0, 90, 180 and 270 are possible", degrees)
}
