// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"math"

	"gocv.io/x/gocv"
)

// Blend returns (1 - share) times the picture plus share times another, which must have the same size.
func (m *Image) Blend(other *Image, share float64) (*Image, error) {
	if err := cmp.Or(m.check(), other.check()); err != nil {
		return nil, err
	}
	if m.Size() != other.Size() {
		return nil, fmt.Errorf("blending pictures of %v and %v pixels", m.Size(), other.Size())
	}
	if !(share >= 0 && share <= 1) {
		return nil, fmt.Errorf("blending with a share of %g, which is not from 0 to 1", share)
	}
	dst := gocv.NewMat()
	gocv.AddWeighted(m.mat, 1-share, other.mat, share, 0, &dst)
	return &Image{mat: dst}, nil
}

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
	return &Image{mat: dst}, nil
}

// Mean returns the mean of each channel, 0..255.
func (m *Image) Mean() (blue, green, red float64) {
	mean := m.mat.Mean()
	return mean.Val1, mean.Val2, mean.Val3
}

// Thumbnail returns the grey values of the picture scaled down to size, row by row. Neither side of size may be larger
// than the picture. To be fast, each grey value is the mean of four points, each interpolated, so in a large picture
// some pixels are left out. A JPEG is decoded at a small scale, and no pixel is left out.
func (m *Image) Thumbnail(size image.Point) ([]byte, error) {
	lazy := m != nil && m.packed != nil
	if !lazy {
		if err := m.check(); err != nil {
			return nil, err
		}
	}
	if err := checkSize(size); err != nil {
		return nil, err
	}
	from := m.Size()
	if size.X > from.X || size.Y > from.Y {
		return nil, fmt.Errorf("thumbnail of %v pixels of a picture of %v", size, from)
	}
	if lazy {
		return m.packed.thumbnail(size)
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

// Warp maps the picture into a picture of the given size. The interpolation is bilinear, and pixels from beyond the
// edge are black.
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
	gocv.WarpAffineWithParams(m.mat, &dst, t, size, gocv.InterpolationLinear, gocv.BorderConstant, color.RGBA{})
	return &Image{mat: dst}, nil
}
