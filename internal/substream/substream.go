// SPDX-License-Identifier: Apache-2.0

// Package substream reads a camera that has two streams.
package substream

import (
	"context"
	"errors"
	"image"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
)

const (
	// keepLarge is how long the large stream stays open after it was needed. To open it takes a
	// connection and the wait for a key frame, in which the camera is blind.
	keepLarge = 10 * time.Second
	// pauseLarge is the pause after the large stream did not help: a face was too small there, too,
	// or was none.
	pauseLarge = time.Minute
	// mostPause is the pause after the large stream could not be opened.
	mostPause = 5 * time.Minute
)

// frames is what a [Camera] uses of an [eye.Stream].
type frames interface {
	face.Holding
	Dropped() int
	Close() error
}

// Camera is a camera with two streams. The small one is read, because decoding it costs a
// fraction. The large one is read in its place while a face is too small in the small one. One eye
// reads one of them at a time, so it sees no more of two than of one. What follows people already
// holds after a camera was opened again.
type Camera struct {
	frames
	small, large string
	shape        image.Point // the size of the large frames; zero if it is not known
	open         func(ctx context.Context, name string, shape image.Point) (frames, error)
	warn         func(error)
	now          func() time.Time

	width   int       // of the small frames
	zoomed  bool      // the large one is read
	helped  bool      // it showed a face that is too small in the small one
	until   time.Time // it is kept
	after   time.Time // it is not opened again before
	dropped int
}

// Open opens a camera by the names of its two streams. The function opens one of them, always in
// the same eye, with both as [eye.Options].Roots and with a shape for [eye.Options].Shape. Warn is
// called with the errors of the large stream, without which the small one goes on.
func Open(ctx context.Context, small, large string,
	open func(ctx context.Context, name string,
		shape image.Point) (*eye.Stream, error), warn func(error)) (*Camera, error) {
	s := &Camera{small: small, large: large, warn: warn, now: time.Now,
		open: func(ctx context.Context, name string, shape image.Point) (frames, error) {
			return open(ctx, name, shape)
		}}
	return s, s.begin(ctx)
}

// begin looks at the shape of the large stream, and opens the small one: many cameras squeeze it
// into another shape, in which nobody is like the enrolled faces.
func (s *Camera) begin(ctx context.Context) error {
	if err := s.read(ctx, true); err != nil {
		return err
	}
	if !s.zoomed {
		return nil // the large one did not open
	}
	f, err := s.frames.Next(ctx)
	switch {
	case err != nil && (ctx.Err() != nil || errors.Is(err, eye.ErrBroken)):
		return err
	case err != nil:
		return s.back(ctx, err)
	}
	s.shape = f.Size
	if f.Turned%180 != 0 {
		s.shape = image.Pt(f.Size.Y, f.Size.X)
	}
	return s.read(ctx, false)
}

// read opens one of the streams in place of the other. If the large one does not open, the small
// one goes on.
func (s *Camera) read(ctx context.Context, zoom bool) error {
	name, shape := s.small, s.shape
	if zoom {
		name, shape = s.large, image.Point{}
	}
	stream, err := s.open(ctx, name, shape)
	switch {
	case err != nil && zoom && ctx.Err() == nil && !errors.Is(err, eye.ErrBroken):
		return s.back(ctx, err)
	case err != nil:
		return err
	}
	if s.frames != nil {
		s.dropped += s.frames.Dropped()
	}
	s.frames, s.zoomed, s.helped = stream, zoom, false
	return nil
}

// back reads the small stream after an error of the large one.
func (s *Camera) back(ctx context.Context, err error) error {
	s.warn(err)
	s.until, s.after = time.Time{}, s.now().Add(mostPause)
	return s.read(ctx, false)
}

// Next implements [face.Stream].
func (s *Camera) Next(ctx context.Context) (face.Frame, error) {
	if zoom := s.now().Before(s.until); zoom != s.zoomed {
		if !zoom && !s.helped {
			s.after = s.now().Add(pauseLarge)
		}
		if err := s.read(ctx, zoom); err != nil {
			return face.Frame{}, err
		}
	}
	f, err := s.frames.Next(ctx)
	if err != nil && s.zoomed && ctx.Err() == nil && !errors.Is(err, eye.ErrBroken) {
		err = s.back(ctx, err)
		if err == nil {
			f, err = s.frames.Next(ctx)
		}
	}
	if err == nil {
		s.mind(f)
	}
	return f, err
}

// mind decides by a frame which stream is read next.
func (s *Camera) mind(f face.Frame) {
	now := s.now()
	if !s.zoomed {
		s.width = f.Size.X
	}
	for _, x := range f.Samples {
		switch {
		case s.zoomed && x.Reason != face.TooSmall &&
			x.Quality.Size*s.width < face.LeastSide*f.Size.X:
			s.until, s.helped = now.Add(keepLarge), true
		case !s.zoomed && x.Reason == face.TooSmall && !now.Before(s.after):
			s.until = now.Add(keepLarge)
		}
	}
}

// Dropped returns the number of frames that both streams have skipped because newer ones had come.
func (s *Camera) Dropped() int { return s.dropped + s.frames.Dropped() }
