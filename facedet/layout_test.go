// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"errors"
	"image"
	"math"
	"testing"

	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/network"
	"github.com/faceauth/faceauth/models"
)

// The outputs of YuNet and SCRFD, in the shapes of their networks, give the boxes that were written into them.
func TestLayouts(t *testing.T) {
	const side = 640
	at := image.Rect(100, 40, 180, 160) // in a picture of 1280x640, of which the network sees 640x640
	for layout, c := range map[models.Layout]struct{ outputs, anchors int }{models.YuNet: {9, 1}, models.SCRFD: {6, 2}} {
		for level := range 3 {
			cell := float32(int(8) << level)
			n := &Network{boxes: &network.Network{Description: models.Description{Layout: layout, NMS: .4, Threshold: .6,
				Outputs: make([]string, c.outputs), Input: models.Input{Width: side, Height: side}}}}
			var out []cv.Tensor
			for i := range c.outputs {
				cells := (side >> (3 + i%3)) * (side >> (3 + i%3)) * c.anchors
				values := 1
				if i >= c.outputs-3 {
					values = 4
				}
				out = append(out, cv.Tensor{Shape: []int{cells, values}, Data: make([]float32, cells*values)})
			}
			// Left, top, right and bottom in the input, and the cell of the centre.
			l, top, r, b := float32(50), float32(40), float32(90), float32(160)
			x, y := float32(int(70/cell)), float32(int(100/cell))
			i := (int(y)*side/int(cell) + int(x)) * c.anchors
			write := func(i int) {
				box := out[c.outputs-3+level].Data[4*i:]
				if layout == models.YuNet {
					out[level].Data[i], out[3+level].Data[i] = .9, .9
					box[0], box[1] = (l+r)/2/cell-x, (top+b)/2/cell-y
					box[2], box[3] = float32(math.Log(float64((r-l)/cell))), float32(math.Log(float64((b-top)/cell)))
					return
				}
				out[level].Data[i] = .9
				box[0], box[1], box[2], box[3] = x-l/cell, y-top/cell, r/cell-x, b/cell-y
			}
			write(i)
			if c.anchors == 2 {
				write(i + 1) // the second box of the cell is the same face
			}
			faces, err := n.decode(out, image.Pt(2*side, side))
			if err != nil || len(faces) != 1 || faces[0].Box != at || math.Abs(float64(faces[0].Score)-.9) > 1e-6 {
				t.Errorf("%s, level %d: %v, %v; want one face at %v", layout, level, faces, err, at)
			}
			n.boxes.Threshold = .95
			if faces, err = n.decode(out, image.Pt(2*side, side)); err != nil || len(faces) > 0 {
				t.Errorf("%s: a weak face is found: %v, %v", layout, faces, err)
			}
			out[level].Data = out[level].Data[1:]
			if _, err := n.decode(out, image.Pt(side, side)); !errors.Is(err, models.ErrShape) {
				t.Errorf("%s: outputs of another shape: %v", layout, err)
			}
		}
	}
}
