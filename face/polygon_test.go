// SPDX-License-Identifier: Apache-2.0

package face_test

import (
	"image"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/face"
)

func TestPolygon(t *testing.T) {
	size := image.Pt(8, 4)
	for text, want := range map[string]string{
		"0,0 .5,0 .5,1 0,1":        "....####....####....####....####",
		"0,0 1,0 1,1 0,1":          "................................",
		"0,0 1,1 1,0 0,1":          ".######....##......##....######.", // crosses itself
		"0,0 .5,0":                 "",
		"":                         "",
		"0,0 1,0 1,2":              "",
		"0,0 1,0 NaN,1":            "",
		"0,0 1,0 1;1":              "",
		"0,0 1,0 1,1x":             "",
		strings.Repeat("0,0 ", 65): "",
	} {
		p, err := face.ParsePolygon(text)
		if (err != nil) != (want == "") {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil {
			continue
		}
		for i := range size.X * size.Y {
			box := image.Rect(0, 0, 1, 1).Add(image.Pt(i%size.X, i/size.X))
			if p.Has(box, size) != (want[i] == '.') {
				t.Errorf("%s: %v", text, box)
			}
		}
	}
}
