// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"fmt"
	"image"
	"math"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/backoff"
)

// live plays a recording at its own speed.
type live struct {
	Source
	start   time.Time
	dropped int
}

// Live returns a source that plays a recording at its own speed. No frame comes before its time.
// Frames that the caller did not take in time are skipped, except the last frame. For a camera use
// [Newest].
func Live(s Source) Source { return &live{Source: s} }

func (l *live) Count() face.Count {
	n := l.Source.Count()
	n.Dropped = l.dropped
	return n
}

// late is the greatest delay of a frame that is not skipped.
const late = 50 * time.Millisecond

func (l *live) Next(ctx context.Context) (*Frame, error) {
	if l.start.IsZero() {
		l.start = time.Now()
	}
	for {
		f, err := l.Source.Next(ctx)
		if err != nil {
			return nil, err
		}
		early := f.Time - time.Since(l.start)
		if n := l.Count(); early < -late && n.Read < n.Declared {
			f.Close()
			l.dropped++
			continue
		}
		if early <= 0 {
			return f, nil
		}
		if !backoff.Wait(ctx, early) {
			f.Close()
			return nil, ctx.Err()
		}
		return f, nil
	}
}

// newest reads a camera as fast as the camera gives frames.
type newest struct {
	source Source
	cancel context.CancelFunc
	wake   chan struct{}
	ended  chan struct{}

	mu    sync.Mutex
	frame *Frame // the newest frame, if nobody has taken it
	err   error  // the error that ended the source
	count face.Count
}

// Newest returns a source that always gives the newest frame of a camera or stream. It skips older
// frames that the caller did not take, so that a slow caller sees the present. It owns s.
func Newest(s Source) Source {
	ctx, cancel := context.WithCancel(context.Background())
	n := &newest{source: s, cancel: cancel, wake: make(chan struct{}, 1),
		ended: make(chan struct{}), count: s.Count()}
	go n.pump(ctx)
	return n
}

// pump reads until the source ends, or ctx does.
func (n *newest) pump(ctx context.Context) {
	defer close(n.ended)
	for {
		f, err := n.source.Next(ctx)
		n.mu.Lock()
		dropped := n.count.Dropped
		if err == nil {
			if n.frame != nil {
				n.frame.Close()
				dropped++
			}
			n.frame = f
		}
		n.err, n.count = err, n.source.Count()
		n.count.Dropped = dropped
		n.mu.Unlock()
		select {
		case n.wake <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// Next implements [Source]. A frame that is ready is returned before the error that ended the
// source. If ctx ends, the source is finished.
func (n *newest) Next(ctx context.Context) (*Frame, error) {
	for {
		n.mu.Lock()
		f, err := n.frame, n.err
		n.frame = nil
		n.mu.Unlock()
		switch {
		case f != nil:
			return f, nil
		case err != nil && ctx.Err() == nil:
			return nil, err
		}
		select {
		case <-n.wake:
		case <-ctx.Done():
			n.cancel()
			return nil, ctx.Err()
		}
	}
}

func (n *newest) Count() face.Count {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count
}

func (n *newest) Close() error {
	n.cancel()
	<-n.ended
	if n.frame != nil {
		n.frame.Close()
		n.frame = nil
	}
	return n.source.Close()
}

// sampled skips frames.
type sampled struct {
	Source
	step, due time.Duration
}

// Sampled returns a source that gives about fps frames a second of a recording and skips the
// others. If fps is 0 or less, it skips none. It skips no photograph.
func Sampled(s Source, fps float64) Source {
	if !(fps > 0) {
		return s
	}
	return &sampled{Source: s, step: time.Duration(float64(time.Second) / fps)}
}

func (s *sampled) Next(ctx context.Context) (*Frame, error) {
	for {
		f, err := s.Source.Next(ctx)
		if err != nil {
			return nil, err
		}
		if f.Still {
			return f, nil
		}
		if f.Time >= s.due {
			s.due += s.step
			if f.Time >= s.due { // the recording has fewer frames
				s.due = f.Time + s.step
			}
			return f, nil
		}
		f.Close()
	}
}

// stretched changes the shape of frames.
type stretched struct {
	Source
	ratio float64 // of width to height
}

// Stretched returns a source whose frames have the shape of a picture of that size, in pixels. The
// side that is too short becomes longer. Frames of nearly that shape stay as they are.
func Stretched(s Source, shape image.Point) Source {
	return &stretched{s, float64(shape.X) / float64(shape.Y)}
}

// nearly is the greatest difference of two ratios that is not seen: encoders round sides to a
// multiple of 16 pixels.
const nearly = .03

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
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("stretching frame %d: %w", f.Index, err)
	}
	f.Image.Close()
	f.Image = round
	return f, nil
}
