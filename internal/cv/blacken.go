// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"image"
	"image/color"

	"github.com/faceauth/faceauth/face"
	"gocv.io/x/gocv"
)

// Blacken makes polygons of the picture black: of one whose pixels are made later, when they are.
// The error wraps [ErrClosed], or comes from [face.Polygon.Check].
func (m *Image) Blacken(areas []face.Polygon) error {
	for _, a := range areas {
		if err := a.Check(); err != nil {
			return err
		}
	}
	if len(areas) == 0 {
		return nil
	}
	if m != nil && m.later != nil {
		m.later = &blackened{m.later, areas}
		if m.mat.Ptr() == nil {
			return nil
		}
	}
	if err := m.check(); err != nil {
		return err
	}
	blacken(&m.mat, areas)
	return nil
}

// blacken fills each polygon by itself: OpenCV leaves out what two of one call have in common.
func blacken(m *gocv.Mat, areas []face.Polygon) {
	for _, a := range areas {
		size, corners := sizeOf(*m), make([]image.Point, len(a))
		for i, c := range a {
			corners[i] = image.Pt(int(c.X*float32(size.X)+.5), int(c.Y*float32(size.Y)+.5))
		}
		points := gocv.NewPointsVectorFromPoints([][]image.Point{corners})
		gocv.FillPoly(m, points, color.RGBA{})
		points.Close()
	}
}

// blackened is a source with black polygons.
type blackened struct {
	source
	areas []face.Polygon
}

func (b *blackened) open() (gocv.Mat, error) {
	m, err := b.source.open()
	if err == nil {
		blacken(&m, b.areas)
	}
	return m, err
}

func (b *blackened) thumbnail(size image.Point) ([]byte, error) {
	grey, err := b.source.thumbnail(size)
	if err != nil {
		return nil, err
	}
	for _, a := range b.areas {
		for i := range grey {
			x, y := i%size.X, i/size.X
			if a.Has(image.Rect(x, y, x+1, y+1), size) {
				grey[i] = 0
			}
		}
	}
	return grey, nil
}
