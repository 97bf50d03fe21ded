// SPDX-License-Identifier: Apache-2.0

package cv_test

import (
	"image"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/preprocess"
	"gocv.io/x/gocv"
)

// The test compares the thesis's preprocessing with the same steps written out with gocv. It is in this package because
// no other package may import gocv.
func TestPixelsGolden(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m := image.NewRGBA(image.Rect(0, 0, 200, 160))
	for i := range m.Pix {
		m.Pix[i] = uint8(r.IntN(256)) | 1
	}
	for i := 3; i < len(m.Pix); i += 4 {
		m.Pix[i] = 255
	}
	file := encode(t, m)
	img := fixture.Must(cv.DecodeImage(file))(t)
	defer img.Close()
	for _, box := range []image.Rectangle{
		image.Rect(20, 10, 170, 150), // shrinks
		image.Rect(60, 60, 100, 110), // grows
		image.Rect(0, 0, 96, 96),
	} {
		got, _, err := preprocess.Extract(preprocess.NewPixels(), img, box, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := pixels(t, file, box)
		if len(got) != len(want) {
			t.Fatalf("%d values, want %d", len(got), len(want))
		}
		for i := range got {
			if got[i] != float32(want[i])/255 {
				t.Fatalf("box %v: value %d is %g, want %d/255", box, i, got[i], want[i])
			}
		}
	}
}

func pixels(t *testing.T, file []byte, box image.Rectangle) []byte {
	t.Helper()
	frame := fixture.Must(gocv.IMDecode(file, gocv.IMReadColor))(t)
	defer frame.Close()
	part := frame.Region(box)
	defer part.Close()
	m := gocv.NewMat()
	defer m.Close()
	gocv.CvtColor(part, &m, gocv.ColorBGRToGray)
	how := gocv.InterpolationLinear
	if box.Dx() >= 96 && box.Dy() >= 96 {
		how = gocv.InterpolationArea
	}
	gocv.Resize(m, &m, image.Pt(96, 96), 0, 0, how)
	gocv.GaussianBlur(m, &m, image.Pt(3, 3), 0, 0, gocv.BorderDefault)
	gocv.EqualizeHist(m, &m)
	return m.ToBytes()
}
