// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"

	"github.com/faceauth/faceauth/internal/exif"
	"gocv.io/x/gocv"
)

// Brightened returns the picture with each value multiplied by gain, at most 255.
func (m *Image) Brightened(gain float64) (*Image, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if !(gain >= 0 && gain <= 255) {
		return nil, fmt.Errorf("brightening by %g, which is not from 0 to 255", gain)
	}
	dst := gocv.NewMat()
	gocv.ConvertScaleAbs(m.mat, &dst, gain, 0)
	return m.with(dst), nil
}

// Mean returns the mean of each channel, 0..255.
func (m *Image) Mean() (blue, green, red float64) {
	mean := m.mat.Mean()
	return mean.Val1, mean.Val2, mean.Val3
}

// Thumbnail returns the grey values of the picture scaled down to size, row by row. Neither side of
// size may be larger than the picture. To be fast, each grey value is the mean of four points, each
// interpolated, so in a large picture some pixels are left out. A JPEG is decoded at a small scale,
// and no pixel is left out. A frame of a film gives the grey values that are stored in it.
func (m *Image) Thumbnail(size image.Point) ([]byte, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	from := m.Size()
	if from != (image.Point{}) && (size.X > from.X || size.Y > from.Y) {
		return nil, fmt.Errorf("thumbnail of %v pixels of a picture of %v", size, from)
	}
	if m != nil && m.later != nil {
		if small, err := m.later.thumbnail(size); !errors.Is(err, errors.ErrUnsupported) {
			return small, err
		}
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	points, grey, small := gocv.NewMat(), gocv.NewMat(), gocv.NewMat()
	defer points.Close()
	defer grey.Close()
	defer small.Close()
	if twice := size.Mul(2); twice.X < from.X && twice.Y < from.Y {
		gocv.Resize(m.mat, &points, twice, 0, 0, gocv.InterpolationLinear)
		gocv.CvtColor(points, &grey, gocv.ColorBGRToGray)
	} else {
		gocv.CvtColor(m.mat, &grey, gocv.ColorBGRToGray)
	}
	gocv.Resize(grey, &small, size, 0, 0, gocv.InterpolationArea)
	return small.ToBytes(), nil
}

// Smooth returns the picture convolved with the 3x3 Gaussian kernel, [1 2 1]/4 in each direction.
func (g *Gray) Smooth() *Gray {
	dst := gocv.NewMat()
	gocv.GaussianBlur(g.mat, &dst, image.Pt(3, 3), 0, 0, gocv.BorderDefault)
	return &Gray{dst}
}

// Equalize returns the picture with its histogram equalised.
func (g *Gray) Equalize() *Gray {
	dst := gocv.NewMat()
	gocv.EqualizeHist(g.mat, &dst)
	return &Gray{dst}
}

// Stats returns the mean and the standard deviation of the grey values.
func (g *Gray) Stats() (mean, deviation float64) {
	m, d := gocv.NewMat(), gocv.NewMat()
	defer m.Close()
	defer d.Close()
	gocv.MeanStdDev(g.mat, &m, &d)
	return m.GetDoubleAt(0, 0), d.GetDoubleAt(0, 0)
}

// Sharpness returns the variance of the Laplacian of the picture.
func (g *Gray) Sharpness() float64 {
	l, m, d := gocv.NewMat(), gocv.NewMat(), gocv.NewMat()
	defer l.Close()
	defer m.Close()
	defer d.Close()
	gocv.Laplacian(g.mat, &l, gocv.MatTypeCV64F, 1, 1, 0, gocv.BorderDefault)
	gocv.MeanStdDev(l, &m, &d)
	s := d.GetDoubleAt(0, 0)
	return s * s
}

// Affine maps a point x, y of a source to A[0]x + A[1]y + A[2], A[3]x + A[4]y + A[5].
type Affine [6]float64

// Warp maps the picture into a picture of the given size. The interpolation is bilinear, and pixels
// from beyond the edge are black.
func (m *Image) Warp(a Affine, size image.Point) (*Image, error) {
	if err := cmp.Or(m.check(), checkSize(size)); err != nil {
		return nil, err
	}
	for _, x := range a {
		if math.IsNaN(x) || math.Abs(x) > 1e9 {
			return nil, fmt.Errorf("warping by %g", x)
		}
	}
	t := gocv.NewMatWithSize(2, 3, gocv.MatTypeCV64F)
	defer t.Close()
	for i, x := range a {
		t.SetDoubleAt(i/3, i%3, x)
	}
	dst := gocv.NewMat()
	gocv.WarpAffineWithParams(m.mat, &dst, t, size, gocv.InterpolationLinear, gocv.BorderConstant,
		color.RGBA{})
	return m.with(dst), nil
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
	return &image.RGBA{Pix: rgba.ToBytes(), Stride: 4 * size.X, Rect: image.Rectangle{Max: size}},
		nil
}

// FromBGR returns a picture of this size with these pixels: blue, green and red, row by row.
func FromBGR(size image.Point, pix []byte) (*Image, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	if len(pix) != 3*size.X*size.Y {
		return nil, fmt.Errorf("%w: %d bytes for %dx%d pixels", ErrNotImage, len(pix), size.X,
			size.Y)
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

// Turn returns the picture turned clockwise by 0, 90, 180 or 270 degrees. The caller closes it. The
// error is [ErrClosed], or about another angle.
func (m *Image) Turn(degrees int) (*Image, error) {
	if degrees == 0 {
		return m.Clone()
	}
	how, ok := map[int]gocv.RotateFlag{90: gocv.Rotate90Clockwise, 180: gocv.Rotate180Clockwise,
		270: gocv.Rotate90CounterClockwise}[degrees]
	if !ok {
		return nil, fmt.Errorf("turning a picture by %d degrees: 0, 90, 180 and 270 are possible",
			degrees)
	}
	err := m.check()
	if err != nil {
		return nil, err
	}
	turned := gocv.NewMat()
	gocv.Rotate(m.mat, &turned, how)
	return m.with(turned), nil
}

// oriented returns a picture as its EXIF orientation says, 1 to 8. It owns the picture.
func (m *Image) oriented(orientation int) (*Image, error) {
	mirror, degrees := exif.Change(orientation)
	if mirror {
		err := m.check()
		if err != nil {
			return nil, err
		}
		mirrored := gocv.NewMat()
		gocv.Flip(m.mat, &mirrored, 1)
		whole := m.with(mirrored)
		m.Close()
		m = whole
	}
	if degrees == 0 {
		return m, nil
	}
	turned, err := m.Turn(degrees)
	m.Close()
	return turned, err
}
