// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"fmt"
	"image"
	"image/draw"

	"gocv.io/x/gocv"
)

// Mat is gocv.Mat. A public package can name it through this alias without importing gocv.
type Mat = gocv.Mat

// FromMat returns a copy of an 8-bit Mat of one, three or four channels.
func FromMat(m Mat) (*Image, error) {
	if m.Ptr() == nil || m.Empty() {
		return nil, fmt.Errorf("%w: the Mat is empty", ErrNotImage)
	}
	// A Mat of more than two dimensions has -1 rows.
	if err := checkSize(sizeOf(m)); err != nil {
		return nil, err
	}
	return adopt(m.Clone())
}

// Mat returns a copy of the pixels, which the caller closes.
func (m *Image) Mat() (Mat, error) {
	if err := m.check(); err != nil {
		return Mat{}, err
	}
	return m.mat.Clone(), nil
}

// FromImage returns a copy of an image of Go. Alpha is dropped.
func FromImage(m image.Image) (*Image, error) {
	if m == nil {
		return nil, fmt.Errorf("%w: it is nil", ErrNotImage)
	}
	r := m.Bounds()
	if err := checkSize(r.Size()); err != nil {
		return nil, err
	}
	// draw removes alpha without changing colours; drawing on black would darken them.
	flat := image.NewNRGBA(image.Rectangle{Max: r.Size()})
	draw.Draw(flat, flat.Rect, m, r.Min, draw.Src)
	rgba, err := gocv.NewMatFromBytes(r.Dy(), r.Dx(), gocv.MatTypeCV8UC4, flat.Pix)
	if err != nil {
		return nil, err
	}
	defer rgba.Close()
	dst := gocv.NewMat()
	gocv.CvtColor(rgba, &dst, gocv.ColorRGBAToBGR)
	return &Image{mat: dst}, nil
}

// Image returns a copy of the pixels in Go's memory.
func (m *Image) Image() (*image.RGBA, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	rgba := gocv.NewMat()
	defer rgba.Close()
	gocv.CvtColor(m.mat, &rgba, gocv.ColorBGRToRGBA)
	size := m.Size()
	return &image.RGBA{Pix: rgba.ToBytes(), Stride: 4 * size.X, Rect: image.Rectangle{Max: size}}, nil
}

// FromBGR returns a picture of this size with these pixels: blue, green and red, row by row.
func FromBGR(size image.Point, pix []byte) (*Image, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	if len(pix) != 3*size.X*size.Y {
		return nil, fmt.Errorf("%w: %d bytes for %dx%d pixels", ErrNotImage, len(pix), size.X, size.Y)
	}
	m, err := gocv.NewMatFromBytes(size.Y, size.X, gocv.MatTypeCV8UC3, pix)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return &Image{mat: m.Clone()}, nil
}

// BGR returns a copy of the pixels: blue, green and red, row by row.
func (m *Image) BGR() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	return m.mat.ToBytes(), nil
}
