// SPDX-License-Identifier: Apache-2.0

package facedet_test

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
)

// pixelsOf returns the size and the pixels of a picture, and closes it.
func pixelsOf(t *testing.T, p *facedet.Picture, err error) (image.Point, []byte) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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
		{0, image.Pt(3, 2), "abcdef"}, {90, image.Pt(2, 3), "daebfc"}, {180, image.Pt(3, 2), "fedcba"},
		{270, image.Pt(2, 3), "cfbead"},
	} {
		turned, err := p.Turn(test.degrees)
		if size, pix := pixelsOf(t, turned, err); size != test.size || !bytes.Equal(pix, grey(test.want)) {
			t.Errorf("turned by %d: %v of %v, want %v of %v", test.degrees, pix, size, test.want, test.size)
		}
	}
	if _, err := p.Turn(45); err == nil ||
		err.Error() != "turning a picture by 45 degrees: 0, 90, 180 and 270 are possible" {
		t.Errorf("45 degrees: %v", err)
	}
}

// A telephone stores a picture as its sensor lies, and says in EXIF how to turn it. Sources obey it.
func TestOrientation(t *testing.T) {
	m := image.NewRGBA(image.Rect(0, 0, 64, 32)) // the left half is white
	for y := range 32 {
		for x := range 64 {
			m.Set(x, y, color.Gray{uint8(255 * (1 - x/32))})
		}
	}
	var b bytes.Buffer
	fixture.Check(t, jpeg.Encode(&b, m, &jpeg.Options{Quality: 95}))
	for _, test := range []struct {
		orientation byte
		size        image.Point
		white       image.Point // a point in the half that is white
	}{
		{1, image.Pt(64, 32), image.Pt(8, 16)}, {3, image.Pt(64, 32), image.Pt(56, 16)},
		{6, image.Pt(32, 64), image.Pt(16, 8)}, {8, image.Pt(32, 64), image.Pt(16, 56)},
	} {
		// APP1 of 34 bytes: EXIF, TIFF in big-endian order, one entry: tag 0x112, one SHORT.
		exif := []byte("\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03" +
			"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00")
		exif[29] = test.orientation
		name := filepath.Join(t.TempDir(), "portrait.jpg")
		data := append(append(bytes.Clone(b.Bytes()[:2]), exif...), b.Bytes()[2:]...)
		fixture.Check(t, os.WriteFile(name, data, 0o600))
		src := fixture.Must(facedet.Open(context.Background(), name, facedet.Options{}))(t)
		f := fixture.Must(src.Next(context.Background()))(t)
		size, pix := pixelsOf(t, f.Image, nil)
		src.Close()
		if size != test.size {
			t.Errorf("orientation %d: size %v, want %v", test.orientation, size, test.size)
			continue
		}
		at := func(p image.Point) byte { return pix[3*(p.Y*size.X+p.X)] }
		if black := size.Sub(test.white); at(test.white) < 200 || at(black) > 50 {
			t.Errorf("orientation %d: %d at %v and %d at %v", test.orientation, at(test.white), test.white, at(black),
				black)
		}
	}
}
