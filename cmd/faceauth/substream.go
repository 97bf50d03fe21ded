// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/input"
)

const (
	// leastFace is the least side in pixels of a face that may be learned or confirmed.
	leastFace = 40
	// keepLarge is how long the large stream stays open after it was needed. To open it takes a connection and the wait
	// for a key frame, in which the camera is blind.
	keepLarge = 10 * time.Second
	// pauseLarge is the pause after the large stream did not help: a face was too small there, too, or was none.
	pauseLarge = time.Minute
	// mostPause is the pause after the large stream could not be opened.
	mostPause = 5 * time.Minute
)

// looked is the stream of an eye, as far as an office or a watch uses it.
type looked interface {
	face.Stream
	face.Looker
	Dropped() int
}

// substream is a camera with two streams. The small one is read, because decoding it costs a fraction. The large one is
// read in its place while a face is too small in the small one. One eye reads one of them at a time, so it sees no more
// of two than of one. What follows people already holds after a camera was opened again.
type substream struct {
	looked
	small, large string
	open         func(ctx context.Context, name string) (looked, error)
	close        func()
	warn         func(error)
	now          func() time.Time

	width   int       // of the small frames
	zoomed  bool      // the large one is read
	helped  bool      // it showed a face that is too small in the small one
	until   time.Time // it is kept
	after   time.Time // it is not opened again before
	dropped int
}

// read opens one of the streams in place of the other. If the large one does not open, the small one goes on.
func (s *substream) read(ctx context.Context, zoom bool) error {
	name := s.small
	if zoom {
		name = s.large
	}
	stream, err := s.open(ctx, name)
	switch {
	case err != nil && zoom && ctx.Err() == nil && !eye.Broken(err):
		return s.back(ctx, err)
	case err != nil:
		return err
	}
	if s.looked != nil {
		s.dropped += s.looked.Dropped()
	}
	s.looked, s.zoomed, s.helped = stream, zoom, false
	return nil
}

// back reads the small stream after an error of the large one.
func (s *substream) back(ctx context.Context, err error) error {
	s.warn(err)
	s.until, s.after = time.Time{}, s.now().Add(mostPause)
	return s.read(ctx, false)
}

// Next implements [face.Stream].
func (s *substream) Next(ctx context.Context) (face.Frame, error) {
	if zoom := s.now().Before(s.until); zoom != s.zoomed {
		if !zoom && !s.helped {
			s.after = s.now().Add(pauseLarge)
		}
		if err := s.read(ctx, zoom); err != nil {
			return face.Frame{}, err
		}
	}
	f, err := s.looked.Next(ctx)
	if err != nil && s.zoomed && ctx.Err() == nil && !eye.Broken(err) {
		if err = s.back(ctx, err); err == nil {
			f, err = s.looked.Next(ctx)
		}
	}
	if err == nil {
		s.mind(f)
	}
	return f, err
}

// mind decides by a frame which stream is read next.
func (s *substream) mind(f face.Frame) {
	now := s.now()
	if !s.zoomed {
		s.width = f.Size.X
	}
	for _, x := range f.Samples {
		switch {
		case s.zoomed && x.Reason != face.TooSmall && x.Quality.Size*s.width < leastFace*f.Size.X:
			s.until, s.helped = now.Add(keepLarge), true
		case !s.zoomed && x.Reason == face.TooSmall && !now.Before(s.after):
			s.until = now.Add(keepLarge)
		}
	}
}

// Dropped implements [office.Stream].
func (s *substream) Dropped() int { return s.dropped + s.looked.Dropped() }

// Close implements [office.Stream].
func (s *substream) Close() error {
	s.close()
	return nil
}

// substreams gives cameras the streams of --substream.
func substreams(all []named, given []string) error {
	for _, text := range given {
		name, url, ok := strings.Cut(text, "=")
		found := false
		for i := range all {
			if all[i].name == name {
				all[i].substream, found = url, true
			}
		}
		if !ok || !found {
			return errors.New("--substream needs NAME=URL, with the name of a camera")
		}
	}
	for _, n := range all {
		if n.substream != "" && !(input.IsURL(n.substream) && input.IsURL(n.source)) {
			return fmt.Errorf("camera %q has a substream, which is for cameras with a URL, and needs a URL", n.name)
		}
	}
	return nil
}
