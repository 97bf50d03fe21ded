// SPDX-License-Identifier: Apache-2.0

package facedet_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/preprocess"
)

// gradient returns an image in which every pixel differs, and whose corner is not at 0,0.
func gradient() *image.NRGBA {
	m := image.NewNRGBA(image.Rect(-3, 5, 27, 25))
	for y := m.Rect.Min.Y; y < m.Rect.Max.Y; y++ {
		for x := m.Rect.Min.X; x < m.Rect.Max.X; x++ {
			m.SetNRGBA(x, y, color.NRGBA{uint8(8 * (x + 3)), uint8(10 * (y - 5)), uint8(x*y + 90),
				255})
		}
	}
	return m
}

// A picture made from an image or from pixels gives the same again, as a copy. Bad pixels are
// refused.
func TestPictureConversions(t *testing.T) {
	m := gradient()
	p := fixture.Must(facedet.FromImage(m))(t)
	defer p.Close()
	same := func(name string, p *facedet.Picture) {
		t.Helper()
		got := fixture.Must(p.Image())(t)
		if p.Size() != m.Rect.Size() || got.Rect != p.Bounds() {
			t.Fatalf("%s: %v and %v pixels, want %v", name, p.Size(), got.Rect, m.Rect.Size())
		}
		for y := range got.Rect.Dy() {
			for x := range got.Rect.Dx() {
				want := m.NRGBAAt(x+m.Rect.Min.X, y+m.Rect.Min.Y)
				if c := got.RGBAAt(x, y); c != (color.RGBA{want.R, want.G, want.B, 255}) {
					t.Fatalf("%s: pixel %d,%d is %v, want %v", name, x, y, c, want)
				}
			}
		}
	}
	same("image", p)
	pix := fixture.Must(p.BGR())(t)
	if pix[0] != m.NRGBAAt(-3, 5).B || pix[2] != m.NRGBAAt(-3, 5).R {
		t.Errorf("the pixels begin with %v: not in the order BGR", pix[:3])
	}
	back := fixture.Must(facedet.FromBGR(p.Size(), pix))(t)
	defer back.Close()
	clear(pix)
	same("pixels", back)
	back.DrawBox(image.Rect(0, 0, 1, 1), "", color.RGBA{1, 2, 3, 255})
	same("the picture after its copies were drawn on", p)
	for _, bad := range []image.Point{{}, {30, 21}, {-30, -20}, {1 << 20, 1 << 20}} {
		if _, err := facedet.FromBGR(bad, pix); err == nil {
			t.Errorf("%d bytes are a picture of %v", len(pix), bad)
		}
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Errorf("closing twice: %v", err)
		}
	}
}

// Alpha is dropped: it does not darken a colour.
func TestPictureAlpha(t *testing.T) {
	m := image.NewNRGBA(image.Rect(0, 0, 1, 1))
	m.SetNRGBA(0, 0, color.NRGBA{200, 100, 50, 128})
	p := fixture.Must(facedet.FromImage(m))(t)
	defer p.Close()
	if got, err := p.Image(); err != nil || got.RGBAAt(0, 0) != (color.RGBA{200, 100, 50, 255}) {
		t.Errorf("%v, %v", got.RGBAAt(0, 0), err)
	}
}

// A picture that is nil, zero or closed is an error everywhere, and never a call of OpenCV with a
// null pointer.
func TestPictureClosed(t *testing.T) {
	closed := fixture.Must(facedet.FromImage(gradient()))(t)
	closed.Close()
	haar, err := facedet.Haar()
	if err != nil {
		t.Skip(err)
	}
	defer haar.Close()
	for name, p := range map[string]*facedet.Picture{"nil": nil, "zero": {}, "closed": closed} {
		t.Run(name, func(t *testing.T) {
			if p.Size() != (image.Point{}) || !p.Bounds().Empty() {
				t.Errorf("it has %v pixels", p.Size())
			}
			p.DrawBox(image.Rect(0, 0, 9, 9), "text", color.RGBA{})
			for what, f := range map[string]func() error{
				"Clone":  func() error { _, err := p.Clone(); return err },
				"Crop":   func() error { _, err := p.Crop(image.Rect(0, 0, 4, 4)); return err },
				"Resize": func() error { _, err := p.Resize(image.Pt(4, 4)); return err },
				"JPEG":   func() error { _, err := p.JPEG(80); return err },
				"Image":  func() error { _, err := p.Image(); return err },
				"BGR":    func() error { _, err := p.BGR(); return err },
				"Haar":   func() error { _, err := haar.Detect(p); return err },
				"Measure": func() error {
					_, err := preprocess.Measure(p, image.Rect(0, 0, 9, 9),
						nil)
					return err
				},
				"Align": func() error {
					_, _, err := preprocess.Extract(preprocess.Pixels, p, image.Rect(0, 0, 9, 9),
						nil)
					return err
				},
				"Vector": func() error { _, _, err := preprocess.Pixels.Vector(p); return err },
				"Write": func() error {
					return cv.NewVideoWriter(filepath.Join(t.TempDir(),
						"a.avi"), "MJPG", 10).Write(p)
				},
			} {
				if err := f(); !errors.Is(err, facedet.ErrClosed) {
					t.Errorf("%s: error %v", what, err)
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for name, f := range map[string]func() (*facedet.Picture, error){
		"no image": func() (*facedet.Picture, error) { return facedet.FromImage(nil) },
		"empty image": func() (*facedet.Picture, error) {
			return facedet.FromImage(image.NewRGBA(image.Rectangle{}))
		},
		"garbage": func() (*facedet.Picture, error) {
			return facedet.DecodePicture([]byte("no picture"))
		},
		"an empty file": func() (*facedet.Picture, error) { return facedet.DecodePicture(nil) },
	} {
		if p, err := f(); p != nil || !errors.Is(err, facedet.ErrNotPicture) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := facedet.FromImage(image.NewUniform(color.Black)); !errors.Is(err,
		facedet.ErrTooLarge) &&
		!errors.Is(err, facedet.ErrNotPicture) {
		t.Errorf("an image without end: error %v", err)
	}
}

// pixelsOf returns the size and the pixels of a picture, and closes it.
func pixelsOf(t *testing.T, p *facedet.Picture, err error) (image.Point, []byte) {
	t.Helper()
	fixture.Check(t, err)
	defer p.Close()
	pix := fixture.Must(p.BGR())(t)
	return p.Size(), pix
}

func TestTurn(t *testing.T) {
	// Pixels a b c over d e f, each with one value in all colours.
	grey := func(values string) (all []byte) {
		for _, v := range []byte(values) {
			all = append(all, v, v, v)
		}
		return all
	}
	p := fixture.Must(facedet.FromBGR(image.Pt(3, 2), grey("abcdef")))(t)
	defer p.Close()
	for _, test := range []struct {
		degrees int
		size    image.Point
		want    string
	}{
		{0, image.Pt(3, 2), "abcdef"}, {90, image.Pt(2, 3), "daebfc"},
		{180, image.Pt(3, 2), "fedcba"},
		{270, image.Pt(2, 3), "cfbead"},
	} {
		turned, err := p.Turn(test.degrees)
		if size, pix := pixelsOf(t, turned, err); size != test.size ||
			!bytes.Equal(pix, grey(test.want)) {
			t.Errorf("turned by %d: %v of %v, want %v of %v", test.degrees, pix, size, test.want,
				test.size)
		}
	}
	if _, err := p.Turn(45); err == nil ||
		err.Error() != "turning a picture by 45 degrees: 0, 90, 180 and 270 are possible" {
		t.Errorf("45 degrees: %v", err)
	}
}

// A telephone stores a picture as its sensor lies, and says in EXIF how to turn it. Sources obey
// it, and read a very large one at half its size.
func TestOrientation(t *testing.T) {
	m := image.NewRGBA(image.Rect(0, 0, 64, 32)) // the left half is white
	for y := range 32 {
		for x := range 64 {
			m.Set(x, y, color.Gray{uint8(255 * (1 - x/32))})
		}
	}
	var b bytes.Buffer
	fixture.Check(t, jpeg.Encode(&b, m, &jpeg.Options{Quality: 95}))
	large := bytes.Clone(b.Bytes())
	at := bytes.Index(large, []byte("\xff\xc0")) // the height and width follow after three bytes
	copy(large[at+5:], "\x03\xe9\xfd\xe9")       // 1001x65001, of which the rest is grey
	for _, test := range []struct {
		file        []byte
		orientation byte
		size, full  image.Point
		white       image.Point // a point in the half that is white
	}{
		{b.Bytes(), 1, image.Pt(64, 32), image.Point{}, image.Pt(8, 16)},
		{b.Bytes(), 3, image.Pt(64, 32), image.Point{}, image.Pt(56, 16)},
		{b.Bytes(), 6, image.Pt(32, 64), image.Point{}, image.Pt(16, 8)},
		{b.Bytes(), 8, image.Pt(32, 64), image.Point{}, image.Pt(16, 56)},
		{large, 6, image.Pt(501, 32501), image.Pt(1001, 65001), image.Pt(496, 8)},
	} {
		// APP1 of 34 bytes: EXIF, TIFF in big-endian order, one entry: tag 0x112, one SHORT.
		exif := []byte(
			"\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03" +
				"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00")
		exif[29] = test.orientation
		name := filepath.Join(t.TempDir(), "portrait.jpg")
		data := append(append(bytes.Clone(test.file[:2]), exif...), test.file[2:]...)
		fixture.Check(t, os.WriteFile(name, data, 0o600))
		src := fixture.Must(facedet.Open(context.Background(), name, facedet.Options{}))(t)
		f := fixture.Must(src.Next(context.Background()))(t)
		full := f.Full
		size, pix := pixelsOf(t, f.Image, nil)
		src.Close()
		if size != test.size || full != test.full {
			t.Errorf("orientation %d: size %v of %v, want %v of %v", test.orientation, size, full,
				test.size, test.full)
			continue
		}
		at := func(p image.Point) byte { return pix[3*(p.Y*size.X+p.X)] }
		black := size.Sub(test.white)
		if full != (image.Point{}) {
			black = test.white.Add(image.Pt(0, 16))
		}
		if at(test.white) < 200 || at(black) > 50 {
			t.Errorf("orientation %d: %d at %v and %d at %v", test.orientation, at(test.white),
				test.white, at(black), black)
		}
	}
}
