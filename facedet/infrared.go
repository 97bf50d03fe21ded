// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"errors"
	"fmt"
	"image"
	"time"

	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/v4l2"
)

// OpenInfrared opens an infrared camera by its number or device, or a file of raw frames whose name
// ends with size and format, as in lit.640x480.Y16. The pictures are grey, of 8 bits: of formats
// with more bits the highest eight are used. Each frame is a pair of pictures: see [Frame].Before.
func OpenInfrared(ctx context.Context, name string, o Options) (Source, error) {
	o = o.defaults()
	var s Source
	var err error
	if index, ok := input.Camera(name); ok {
		s, err = openCamera(ctx, index, o, func() (grabber, error) {
			c, err := v4l2.Open(fmt.Sprintf("/dev/video%d", index), o.Timeout)
			return grey{c}, err
		})
	} else {
		s, err = openCapture(ctx, o, false, func() (grabber, error) {
			r, err := v4l2.OpenRecording(name)
			return grey{r}, err
		})
		if err != nil {
			err = fmt.Errorf("opening infrared source: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	return pairs{s}, nil
}

// grey is a camera or a file of package v4l2 as a grabber.
type grey struct {
	raw interface {
		Read() (size image.Point, bgr []byte, err error)
		Position() time.Duration
		Frames() int
		Close() error
	}
}

func (g grey) Read() (*cv.Image, time.Duration, error) {
	size, bgr, err := g.raw.Read()
	if err != nil || bgr == nil {
		return nil, 0, err
	}
	img, err := cv.FromBGR(size, bgr)
	return img, g.raw.Position(), err
}

func (g grey) About() cv.About { return cv.About{Frames: g.raw.Frames(), Rate: 30} }
func (g grey) Close() error    { return g.raw.Close() }

// pairs is a source whose frames hold two pictures of another, one after the other. The emitter of
// an infrared camera lights only every second picture, so one of the two is lit.
type pairs struct{ Source }

// Next implements [Source]. A single last picture is left out.
func (p pairs) Next(ctx context.Context) (*Frame, error) {
	first, err := p.Source.Next(ctx)
	if err != nil {
		return nil, err
	}
	second, err := p.Source.Next(ctx)
	if err == nil && first.Image.Size() != second.Image.Size() {
		second.Close()
		err = errors.New("the pictures of an infrared source differ in size")
	}
	if err != nil {
		first.Close()
		return nil, err
	}
	second.Before = first.Image
	return second, nil
}
