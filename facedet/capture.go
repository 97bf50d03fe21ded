// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cv"
)

// grabber is a cv.Film or a cv.Camera.
type grabber interface {
	Read() (*cv.Image, time.Duration, error) // the next frame and its time, or nil at the end
	About() cv.About
	Close() error
}

// capture is a Source over a video file, a stream or a camera. One goroutine owns the grabber,
// because its calls may block for ever, and hands frames over. The caller's side keeps the
// deadline.
type capture struct {
	o     Options
	live  bool
	start time.Time
	rate  float64
	count face.Count
	last  time.Duration
	file  string // its name, without the folder; "" for a stream
	ahead *shot  // the second frame of a recording, read with the first

	want   chan struct{} // a frame is wanted; closed to end the worker
	got    chan shot
	quit   chan struct{} // the caller takes no more frames
	ended  chan struct{} // the worker has released the capture
	closed bool
}

// shot is the result of one read.
type shot struct {
	img *cv.Image
	at  time.Duration
	err error
}

var _ Source = (*capture)(nil)

func openCapture(ctx context.Context, o Options, live bool,
	open func() (grabber, error)) (*capture, error) {
	c := &capture{
		o: o, count: face.Count{Declared: -1},
		want: make(chan struct{}, 1), got: make(chan shot), quit: make(chan struct{}),
		ended: make(chan struct{}),
	}
	ready := make(chan error, 1)
	go func() {
		defer close(c.ended)
		dev, err := open()
		if err != nil {
			ready <- err
			return
		}
		defer dev.Close()
		about := dev.About()
		c.rate, c.count.Others, c.live = about.Rate, about.Others, live && !about.Ends
		if n := about.Frames; !c.live && n > 0 {
			c.count.Declared = n
			c.count.Length = about.Length
			if c.rate > 0 && about.Length == 0 {
				c.count.Length = time.Duration(float64(n) / c.rate * float64(time.Second))
			}
		}
		ready <- nil
		for range c.want {
			img, at, err := dev.Read()
			select {
			case c.got <- shot{img, at, err}:
			case <-c.quit:
				if img != nil {
					img.Close()
				}
				return
			}
		}
	}()
	failed, err := within(ctx, o.Timeout, ready)
	switch {
	case errors.Is(err, face.ErrTimeout):
		c.abandon()
		return nil, fmt.Errorf("%w: it did not open within %v", err, o.Timeout)
	case err != nil:
		c.abandon()
		return nil, err
	case failed != nil:
		return nil, failed
	}
	c.start = o.Now()
	return c, nil
}

// within waits for a value for that time; 0 is without a limit. The time passes in ten steps, so
// that a process that was stopped meanwhile still takes what has come. The error is
// [face.ErrTimeout], or the error of ctx.
func within[T any](ctx context.Context, limit time.Duration, from <-chan T) (x T, err error) {
	const steps = 10
	var late <-chan time.Time
	if limit > 0 {
		ticker := time.NewTicker(max(1, limit/steps))
		defer ticker.Stop()
		late = ticker.C
	}
	for left := steps; ; left-- {
		if left == 0 {
			return x, face.ErrTimeout
		}
		select {
		case x = <-from:
			return x, nil
		case <-late:
		case <-ctx.Done():
			return x, ctx.Err()
		}
	}
}

func (c *capture) Next(ctx context.Context) (*Frame, error) {
	if c.closed {
		return nil, io.EOF
	}
	if err := ctx.Err(); err != nil {
		c.abandon()
		return nil, err
	}
	s, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	if s.err != nil || s.img == nil {
		c.abandon()
		if s.err != nil {
			return nil, fmt.Errorf("reading frame %d: %w", c.count.Read, s.err)
		}
		return nil, endOf(c.count)
	}
	f := &Frame{Index: c.count.Read, Time: c.time(s.at), Image: s.img}
	if c.count.Read == 0 && !c.live {
		second, err := c.read(ctx)
		if err != nil {
			f.Close()
			return nil, err
		}
		c.ahead = &second
		// as of AVIF, JPEG 2000 or a GIF that does not move
		if second.img == nil && second.err == nil {
			f.Still, f.File = true, c.file
		}
	}
	c.count.Read++
	return f, nil
}

// read returns the next frame of the grabber, which may have been read ahead.
func (c *capture) read(ctx context.Context) (shot, error) {
	if c.ahead != nil {
		s := *c.ahead
		c.ahead = nil
		return s, nil
	}
	c.want <- struct{}{}
	s, err := within(ctx, c.o.Timeout, c.got)
	if err != nil {
		c.abandon()
	}
	if errors.Is(err, face.ErrTimeout) {
		return s, fmt.Errorf(
			"%w: none after %d frames within %v; check the camera or the connection", err,
			c.count.Read,
			c.o.Timeout)
	}
	return s, err
}

// time returns the time of the current frame. It never goes back, although some containers give
// zeros or times that go back.
func (c *capture) time(at time.Duration) time.Duration {
	switch {
	case c.live:
		at = c.o.Now().Sub(c.start)
	case at <= c.last && c.count.Read > 0:
		step := imageStep
		if c.rate > 0 {
			step = time.Duration(float64(time.Second) / c.rate)
		}
		at = c.last + step
	}
	at = max(at, c.last)
	if c.count.Read > 0 && at-c.last > c.count.Gap {
		c.count.Gap, c.count.GapAt = at-c.last, c.last
	}
	c.last, c.count.Last = at, at
	return at
}

func (c *capture) Count() face.Count { return c.count }

// abandon ends the worker without waiting for it.
func (c *capture) abandon() {
	if c.ahead != nil && c.ahead.img != nil {
		c.ahead.img.Close()
	}
	c.ahead = nil
	if !c.closed {
		c.closed = true
		close(c.quit)
		close(c.want)
	}
}

// Close implements [Source]. It waits for the camera to be released, but not for a read that hangs.
func (c *capture) Close() error {
	c.abandon()
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
	}
	return nil
}
