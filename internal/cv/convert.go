package cv

import (
	"fmt"
	"image"
	"image/draw"

	"gocv.io/x/gocv"
)

// Mat is the type of gocv. A public package can name it through this alias without importing gocv.
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
	// The pixels of a colour without alpha are what draw makes of them; drawing them on black would darken others.
	flat := image.NewNRGBA(image.Rectangle{Max: r.Size()})
	draw.Draw(flat, flat.Rect, m, r.Min, draw.Src)
	rgba, err := gocv.NewMatFromBytes(r.Dy(), r.Dx(), gocv.MatTypeCV8UC4, flat.Pix)
	if err != nil {
		return nil, err
	}
	defer rgba.Close()
	dst := gocv.NewMat()
	gocv.CvtColor(rgba, &dst, gocv.ColorRGBAToBGR)
	return &Image{dst}, nil
}

// RGBA returns a copy of the pixels in Go's memory.
func (m *Image) RGBA() (*image.RGBA, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	rgba := gocv.NewMat()
	defer rgba.Close()
	gocv.CvtColor(m.mat, &rgba, gocv.ColorBGRToRGBA)
	size := m.Size()
	return &image.RGBA{Pix: rgba.ToBytes(), Stride: 4 * size.X, Rect: image.Rectangle{Max: size}}, nil
}
