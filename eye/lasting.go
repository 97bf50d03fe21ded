// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"context"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/internal/input"
)

// Lasting is a source that is opened again, in a new eye, when its eye breaks; but not a recording, which would break
// the new eye, too. [OpenLasting] makes one.
type Lasting struct {
	*Stream
	name  string
	open  func(ctx context.Context, name string) (*Stream, error)
	warn  func(error)
	pause backoff.Pause
	index int // index of the next frame, and start of the stream: a new eye counts from 0 again
	since time.Time
	ahead time.Duration
}

// OpenLasting opens a source. Open opens it in an eye that is not broken. Warn is called each time that an eye breaks.
func OpenLasting(ctx context.Context, name string, open func(ctx context.Context, name string) (*Stream, error),
	warn func(error)) (*Lasting, error) {
	s, err := open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &Lasting{Stream: s, name: name, open: open, warn: warn, since: time.Now(),
		pause: backoff.Pause{First: time.Second, Longest: 30 * time.Second}}, nil
}

// Next implements [face.Stream].
func (s *Lasting) Next(ctx context.Context) (face.Frame, error) {
	f, err := s.Stream.Next(ctx)
	for Broken(err) && ctx.Err() == nil && !input.IsRecording(s.name) {
		s.Close()
		s.warn(fmt.Errorf("%w; the camera is opened again", err))
		if !s.pause.Wait(ctx) {
			return f, ctx.Err()
		}
		var next *Stream
		if next, err = s.open(ctx, s.name); err == nil {
			s.index, s.ahead = s.index+s.Count().Read, time.Since(s.since)
			s.Stream = next
			f, err = s.Stream.Next(ctx)
		}
	}
	if err == nil {
		s.pause.Reset()
		f.Index, f.Time = f.Index+s.index, f.Time+s.ahead
	}
	return f, err
}
