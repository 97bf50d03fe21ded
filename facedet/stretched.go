// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"fmt"
	"image"
	"math"
)

// stretched changes the shape of frames.
type stretched struct {
	Source
	ratio float64 // of width to height
}

// Stretched returns a source whose frames have the shape of a picture of that size, in pixels. The side that is too
// short becomes longer. Frames of nearly that shape stay as they are.
func Stretched(s Source, shape image.Point) Source {
	return &stretched{s, float64(shape.X) / float64(shape.Y)}
}

// nearly is the greatest difference of two ratios that is not seen: encoders round sides to a multiple of 16 pixels.
const nearly = .03

// Next implements [Source].
func (s *stretched) Next(ctx context.Context) (*Frame, error) {
	f, err := s.Source.Next(ctx)
	if err != nil {
		return nil, err
	}
	size := f.Image.Size()
	by := s.ratio * float64(size.Y) / float64(size.X)
	if math.Abs(by-1) <= nearly {
		return f, nil
	}
	round, err := f.Image.Stretch(by)
	f.Image.Close()
	if err != nil {
		return nil, fmt.Errorf("stretching frame %d: %w", f.Index, err)
	}
	f.Image = round
	return f, nil
}
