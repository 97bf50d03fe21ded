// SPDX-License-Identifier: Apache-2.0

package cv_test

import (
	"bytes"
	"image"
	"image/color"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
	"gocv.io/x/gocv"
)

func progressive(t testing.TB, img *cv.Image) []byte {
	t.Helper()
	size := img.Size()
	m := fixture.Must(gocv.NewMatFromBytes(size.Y, size.X, gocv.MatTypeCV8UC3, bgr(t, img)))(t)
	defer m.Close()
	b := fixture.Must(gocv.IMEncodeWithParams(gocv.JPEGFileExt, m,
		[]int{gocv.IMWriteJpegProgressive, 1}))(t)
	defer b.Close()
	return bytes.Clone(b.GetBytes())
}

// A JPEG that ends too early shows nothing of the picture decoded before: what is missing of it is
// grey, and it says so, also after it was turned or scaled. OpenCV 4.10 of Debian 13 leaves the
// rows as that memory was, 4.6 repeats the last one; both need an end marker for the grey.
func TestCutOffJPEG(t *testing.T) {
	size := image.Pt(320, 240)
	white := fixture.Must(cv.NewImage(size, color.RGBA{255, 255, 255, 255}))(t)
	defer white.Close()
	other := fixture.Must(white.JPEG(90))(t)
	img := scene(t, size, 1)
	defer img.Close()
	baseline := jpegOf(t, size, 1)
	for name, data := range map[string][]byte{"baseline": baseline,
		"progressive": progressive(t, img)} {
		for _, share := range []int{100, 90, 60, 45, 30} {
			part := data[:len(data)*share/100]
			for kind, open := range map[string]func([]byte) (*cv.Image, error){
				"file": cv.DecodeImage, "frame": cv.FromJPEG,
			} {
				before := decoded(t, other) // its memory is used again
				m := fixture.Must(open(part))(t)
				pix := bgr(t, m)
				if m.Whole() != (share == 100) {
					t.Errorf("%s, %s, %d %%: whole is %t", name, kind, share, m.Whole())
				}
				last := pix[len(pix)-3*size.X:]
				if name == "baseline" && share < 100 && bytes.Contains(pix, before[:3*size.X]) {
					t.Errorf("%s, %s, %d %%: a row of the picture before", name, kind, share)
				}
				if name == "baseline" && share < 100 && slices.Max(last)-slices.Min(last) > 2 {
					t.Errorf("%s, %s, %d %%: the last row is not of one colour", name, kind, share)
				}
				turned := fixture.Must(m.Turn(90))(t)
				small := fixture.Must(turned.Resize(image.Pt(24, 32)))(t)
				if small.Whole() != m.Whole() {
					t.Errorf("%s, %s, %d %%: another picture of it is whole: %t", name, kind, share,
						small.Whole())
				}
				for _, made := range []*cv.Image{m, turned, small} {
					made.Close()
				}
			}
		}
	}
	// What follows the end, as the film of a motion photo, and a picture in a segment do not count.
	inside := append([]byte("\xff\xd8\xff\xe1\x00\x08\xff\xd8\xff\xd9ab"), baseline[2:]...)
	for name, c := range map[string]struct {
		data  []byte
		whole bool
		film  bool
	}{
		"a film after the end":  {append(bytes.Clone(baseline), "....ftypmp42"...), true, true},
		"another after the end": {append(bytes.Clone(baseline), "....ftypheic"...), true, false},
		"a picture inside":      {inside, true, false},
		"cut, picture inside":   {inside[:len(inside)/2], false, false},
	} {
		m := fixture.Must(cv.DecodeImage(c.data))(t)
		if m.Whole() != c.whole {
			t.Errorf("%s: whole is %t", name, m.Whole())
		}
		turned := fixture.Must(m.Turn(90))(t)
		if turned.Film() != c.film {
			t.Errorf("%s: a film is in it: %t", name, turned.Film())
		}
		turned.Close()
		m.Close()
	}
}

// A JPEG of more pixels than are read is read at half its size, unless that needs too much memory:
// the coefficients of several scans are held at once.
func TestMeasure(t *testing.T) {
	const baseline, progressive = 0xc0, 0xc2
	full, half := []byte{3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0},
		[]byte{3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0} // how colours are sampled
	for _, c := range []struct {
		kind, scan byte // and the number of components in the first scan
		size       image.Point
		sampled    []byte
		half       bool
		words      string
	}{
		{baseline, 3, image.Pt(8000, 8000), full, false, ""},
		{progressive, 1, image.Pt(8000, 8000), full, false, ""},
		{baseline, 3, image.Pt(8000, 8001), full, true, ""},
		{baseline, 3, image.Pt(16000, 16000), full, true, ""},
		{progressive, 1, image.Pt(16000, 16000), half, true, ""},
		{progressive, 3, image.Pt(12000, 11000), full, true, ""},
		{baseline, 1, image.Pt(16000, 16000), []byte{1, 1, 0, 0}, true, ""},
		{baseline, 3, image.Pt(16001, 16000), full, false, "image too large: 16001x16000 pixels; " +
			"at most 256 million of a JPEG are read"},
		{progressive, 3, image.Pt(16000, 9000), full, false, "image too large: 16000x9000 pixels " +
			"of a progressive JPEG; save it as a baseline one"},
		{baseline, 1, image.Pt(16000, 9000), full, false, "image too large: 16000x9000 pixels " +
			"of a progressive JPEG; save it as a baseline one"},
		{baseline, 3, image.Pt(16000, 9000), full[:4], false, ""},
	} {
		data := append([]byte{0xff, 0xd8, 0xff, 0xc4, 0, 2, 0xff, c.kind, 0,
			byte(7 + len(c.sampled)),
			8, byte(c.size.Y >> 8), byte(c.size.Y), byte(c.size.X >> 8), byte(c.size.X)},
			c.sampled...)
		data = append(data, 0xff, 0xda, 0, 3, c.scan, 0xff, 0xd9)
		size, err := cv.Measure(data)
		words := ""
		if err != nil {
			words = err.Error()
		} else if want := c.size; size != (image.Point{}) != c.half || c.half && size != want {
			t.Errorf("%x, %v: %v, want half %t", c.kind, c.size, size, c.half)
		}
		if words != c.words {
			t.Errorf("%x, %v: %q, want %q", c.kind, c.size, words, c.words)
		}
	}
}
