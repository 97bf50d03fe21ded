// SPDX-License-Identifier: Apache-2.0

package face

import (
	"errors"
	"image"
)

// mostCorners is the greatest number of corners of a [Polygon].
const mostCorners = 64

var errPolygon = errors.New("a polygon needs 3 to 64 corners, such as 0,0 0.5,0 0.5,0.4, each " +
	"from 0 to 1: parts of the width and of the height of the picture")

// Polygon is a part of a picture: its corners, as parts in [0,1] of the picture's width and height,
// from its top left corner. A polygon that crosses itself has holes, by the even-odd rule.
type Polygon []Point

// Zone is a part of a picture with a name.
type Zone struct {
	Name string  `json:"name"`
	Area Polygon `json:"area"`
}

// Check returns nil, or an error that says what a polygon needs.
func (p Polygon) Check() error {
	if len(p) < 3 || len(p) > mostCorners {
		return errPolygon
	}
	for _, c := range p {
		if !(c.X >= 0 && c.X <= 1 && c.Y >= 0 && c.Y <= 1) { // NaN is neither
			return errPolygon
		}
	}
	return nil
}

// Has reports whether the centre of a box in a picture of a size lies in the polygon.
func (p Polygon) Has(box image.Rectangle, size image.Point) (in bool) {
	if size.X < 1 || size.Y < 1 {
		return false
	}
	x := float32(box.Min.X+box.Max.X) / float32(2*size.X)
	y := float32(box.Min.Y+box.Max.Y) / float32(2*size.Y)
	for i, a := range p { // counts the edges to the right
		b := p[(i+len(p)-1)%len(p)]
		if (a.Y > y) != (b.Y > y) && x < a.X+(b.X-a.X)*(y-a.Y)/(b.Y-a.Y) {
			in = !in
		}
	}
	return in
}
