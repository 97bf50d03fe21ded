// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"image"
	"image/color"

	"github.com/faceauth/faceauth/face"
	"gocv.io/x/gocv"
)

// Blacken makes polygons of the picture black: of one whose pixels are made later, when they are.
// The error wraps [ErrClosed], or is [face.ErrPolygon].
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
		corners := gocv.NewPointsVectorFromPoints([][]image.Point{a.On(sizeOf(*m))})
		gocv.FillPoly(m, corners, color.RGBA{})
		corners.Close()
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
		a.Blacken(grey, size)
	}
	return grey, nil
}
