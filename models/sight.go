// SPDX-License-Identifier: Apache-2.0

package models

import (
	"cmp"
	"image"
	"math"

	"github.com/faceauth/faceauth/face"
)

const (
	// leastFound is the least side of a face in the input of a detector, if it names none.
	leastFound = 20
	// Sure is the score from which a detector is sure, if it names none, and the least that
	// package facedet gives a face of which a detector is. In clm_multi_face a hand has scores of
	// .68 and .71 by the builtin one; its false detections in al_pacino have .68 to .82. Of the
	// faces that pass the gate, all in att, lfw and vidtimit_rot have more, and those in
	// clm_multi_face .83 or more; one in twenty of the profiles in umist has less.
	Sure = .85
	// atOnce is how much a part may be larger than a window and is still looked at as a whole.
	atOnce = 1.5
)

// Window returns the size in pixels of the largest part of a picture in which a detector finds
// every face of [face.LeastSide].
func (d Description) Window() image.Point {
	return image.Pt(d.Input.Width, d.Input.Height).Mul(face.LeastSide).Div(d.LeastFound())
}

// LeastFound returns the least side of a face in the input of a detector that is found for certain.
func (d Description) LeastFound() int { return cmp.Or(d.Least, leastFound) }

// Whole reports whether a part of a picture of this size is looked at as a whole, and not in
// windows, too.
func (d Description) Whole(part image.Point) bool {
	w := d.Window()
	return float64(part.X) <= atOnce*float64(w.X) && float64(part.Y) <= atOnce*float64(w.Y)
}

// Feed returns the size of the input in pixels for a part of a picture: with a [Input.Step] the
// part's own size, or its shape if the part is larger than the longest input, which is usually the
// width of [Input].
func (d Description) Feed(part image.Point, longest int) image.Point {
	in := d.Input
	if in.Step == 0 {
		return image.Pt(in.Width, in.Height)
	}
	scale := min(1, float64(longest)/float64(max(part.X, part.Y)))
	step := func(side int) int {
		return in.Step * max(1, int(math.Round(float64(side)*scale/float64(in.Step))))
	}
	return image.Pt(step(part.X), step(part.Y))
}

// LeastSeen returns the least side in pixels of a face that is found for certain in a frame of this
// size, or 0 for a size of 0.
func (d Description) LeastSeen(frame image.Point) int {
	if frame.X < 1 || frame.Y < 1 {
		return 0
	}
	least := float64(d.LeastFound()) *
		max(float64(frame.X)/float64(d.Input.Width), float64(frame.Y)/float64(d.Input.Height))
	if !(least <= atOnce*face.LeastSide) { // there are windows
		least = face.LeastSide
	}
	if d.Input.Step == 0 {
		least = max(face.LeastSide, least) // smaller ones in smaller frames are not promised
	}
	return max(d.LeastFound(), int(math.Ceil(least)))
}
