// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"image"

	"github.com/faceauth/faceauth/models"
)

const (
	// larger is the ratio of the sides of windows, and of the next larger ones around them. The
	// overlaps are the shares of the width and the height of a window that lie in its neighbours,
	// too: a face that is higher is large enough for the next larger windows, and a face is hardly
	// wider than high.
	larger      = 3
	overlapWide = .2
	overlapHigh = .25
)

// Windows returns the parts in which a detector looks for faces in a part of a picture, so that
// small faces are found as well as large ones: all of it first, then overlapping windows, the
// largest first. A part that is hardly larger than a window is searched at once: 960x720 by the
// builtin detector, and 1920x1080 by YuNet.
func Windows(d models.Description, part image.Rectangle) []image.Rectangle {
	all := []image.Rectangle{part}
	if d.Whole(part.Size()) {
		return all
	}
	var sides []image.Point
	for side := d.Window(); part.Dx() > side.X || part.Dy() > side.Y; side = side.Mul(larger) {
		sides = append(sides, image.Pt(min(side.X, part.Dx()), min(side.Y, part.Dy())))
	}
	for i := len(sides) - 1; i >= 0; i-- {
		side := sides[i]
		columns, rows := starts(part.Dx(), side.X, overlapWide),
			starts(part.Dy(), side.Y, overlapHigh)
		for _, y := range rows {
			for _, x := range columns {
				all = append(all, image.Rectangle{Max: side}.Add(part.Min).Add(image.Pt(x, y)))
			}
		}
	}
	return all
}

// starts returns where windows of a side begin along a length, as evenly as they fit.
func starts(length, side int, overlap float64) []int {
	step := float64(side) * (1 - overlap)
	n := 1
	for float64(side)+float64(n-1)*step < float64(length) {
		n++
	}
	at := make([]int, n)
	for i := 1; i < n; i++ {
		at[i] = i * (length - side) / (n - 1)
	}
	return at
}

// whole reports whether a box does not touch an edge at which a part was cut out of a picture.
func whole(box, part, picture image.Rectangle) bool {
	x, y := max(1, part.Dx()/100), max(1, part.Dy()/100)
	return (part.Min.X == picture.Min.X || box.Min.X >= part.Min.X+x) &&
		(part.Min.Y == picture.Min.Y || box.Min.Y >= part.Min.Y+y) &&
		(part.Max.X == picture.Max.X || box.Max.X <= part.Max.X-x) &&
		(part.Max.Y == picture.Max.Y || box.Max.Y <= part.Max.Y-y)
}
