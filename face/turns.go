// SPDX-License-Identifier: Apache-2.0

package face

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Turns holds the raw norm of the embedding of a face ([Quality].Norm) when its picture is turned
// clockwise by 0, 90, 180 and 270 degrees, or sums of such norms. A network of faces gives the
// longest vector for an upright face. Landmarks say nothing about it, because they always draw an
// upright face.
type Turns [4]float64

// Add adds the norms of another face.
func (t *Turns) Add(o Turns) {
	for i := range t {
		t[i] += o[i]
	}
}

// Best returns the turn of the greatest norm, in degrees clockwise. It returns 0 if no other norm
// is greater than that of the picture as it is times lead.
func (t Turns) Best(lead float64) int {
	best := 0
	for i, x := range t {
		if x > t[best] {
			best = i
		}
	}
	if !(t[best] > lead*t[0]) {
		return 0
	}
	return 90 * best
}

// alike is the ratio of two norms below which either turn may be the right one.
const alike = 1.15

// Check returns an error if another turn has a greater norm. Turned is [Frame].Turned: the turn
// that the frames have already. The error names the turn to try, and the next best one if their
// norms are close.
func (t Turns) Check(turned int) error {
	best := t.Best(1)
	if best == 0 {
		return nil
	}
	try := fmt.Sprint("try --rotate ", (turned+best)%360)
	rest := t
	rest[0], rest[best/90] = 0, 0
	if next := rest.Best(0); rest[next/90]*alike > t[best/90] {
		try += fmt.Sprint(" or ", (turned+next)%360)
	}
	return errors.New("the camera seems to be turned; " + try)
}

// Rotation says how frames of a source are turned before faces are looked for: [Auto], or degrees
// clockwise.
type Rotation string

// Auto decides by the first faces of the source.
const Auto Rotation = "auto"

// Degrees returns the degrees of a rotation. Auto reports whether frames decide; ok is false for an
// unknown rotation. The empty Rotation is 0 degrees.
func (r Rotation) Degrees() (degrees int, auto, ok bool) {
	quarters := slices.Index([]Rotation{"0", "90", "180", "270"}, cmp.Or(r, "0"))
	return 90 * max(quarters, 0), r == Auto, r == Auto || quarters >= 0
}
