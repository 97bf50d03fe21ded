// SPDX-License-Identifier: Apache-2.0

package face_test

import (
	"image"
	"testing"

	"github.com/faceauth/faceauth/face"
)

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b image.Rectangle
		want float64
	}{
		{image.Rect(0, 0, 10, 10), image.Rect(0, 0, 10, 10), 1},
		{image.Rect(0, 0, 10, 10), image.Rect(5, 0, 15, 10), 50. / 150},
		{image.Rect(0, 0, 10, 10), image.Rect(10, 0, 20, 10), 0},
		{image.Rect(0, 0, 10, 10), image.Rectangle{}, 0},
		{image.Rect(0, 0, 1<<20, 1<<20), image.Rect(0, 0, 1<<20, 1<<20), 1},
	} {
		if got := face.Overlap(c.a, c.b); got != c.want {
			t.Errorf("overlap of %v and %v is %g, want %g", c.a, c.b, got, c.want)
		}
	}
}
