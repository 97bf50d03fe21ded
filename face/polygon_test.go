// SPDX-License-Identifier: Apache-2.0

package face_test

import (
	"image"
	"math"
	"testing"

	"github.com/faceauth/faceauth/face"
)

func TestPolygon(t *testing.T) {
	size := image.Pt(8, 4)
	nan := float32(math.NaN())
	for _, c := range []struct {
		p    face.Polygon
		want string // # for a pixel outside; "" if it is no polygon
	}{
		{face.Polygon{{}, {X: .5}, {X: .5, Y: 1}, {Y: 1}}, "....####....####....####....####"},
		{face.Polygon{{}, {X: 1}, {X: 1, Y: 1}, {Y: 1}}, "................................"},
		// crosses itself
		{face.Polygon{{}, {X: 1, Y: 1}, {X: 1}, {Y: 1}}, ".######....##......##....######."},
		{face.Polygon{{}, {X: .5}}, ""},
		{nil, ""},
		{face.Polygon{{}, {X: 1}, {X: 1, Y: 2}}, ""},
		{face.Polygon{{}, {X: 1}, {X: nan, Y: 1}}, ""},
		{make(face.Polygon, 65), ""},
	} {
		err := c.p.Check()
		if (err != nil) != (c.want == "") {
			t.Errorf("%v: %v", c.p, err)
		}
		if err != nil {
			continue
		}
		for i := range size.X * size.Y {
			box := image.Rect(0, 0, 1, 1).Add(image.Pt(i%size.X, i/size.X))
			if c.p.Has(box, size) != (c.want[i] == '.') {
				t.Errorf("%v: %v", c.p, box)
			}
		}
	}
}
