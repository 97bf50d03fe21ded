// SPDX-License-Identifier: Apache-2.0

package facedet_test

import (
	"context"
	"errors"
	"image"
	"image/color"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
)

// ticks returns n frames, a hundredth of a second apart.
type ticks struct{ n, read int }

func (s *ticks) Next(context.Context) (*facedet.Frame, error) {
	if s.read == s.n {
		return nil, io.EOF
	}
	img, err := cv.NewImage(image.Pt(2, 2), color.RGBA{})
	if err != nil {
		return nil, err
	}
	s.read++
	return &facedet.Frame{Index: s.read - 1, Time: time.Duration(s.read-1) * 10 * time.Millisecond,
		Image: img}, nil
}
func (s *ticks) Count() facedet.Count { return facedet.Count{Declared: s.n, Read: s.read} }
func (s *ticks) Close() error         { return nil }

func TestLive(t *testing.T) {
	begun := time.Now()
	s := facedet.Live(&ticks{n: 40})
	next := func() int {
		t.Helper()
		f := fixture.Must(s.Next(t.Context()))(t)
		defer f.Close()
		if early := f.Time - time.Since(begun); early > 0 {
			t.Errorf("frame %d came %v too soon", f.Index, early)
		}
		return f.Index
	}
	if i := next(); i != 0 {
		t.Errorf("began with frame %d", i)
	}
	if i := next(); i != 1 {
		t.Errorf("then frame %d", i)
	}
	time.Sleep(200 * time.Millisecond)
	if i := next(); i < 14 {
		t.Errorf("after .2 s frame %d", i)
	}
	time.Sleep(400 * time.Millisecond)
	if i := next(); i != 39 {
		t.Errorf("long after the end frame %d, want the last", i)
	}
	if _, err := s.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s = facedet.Live(&ticks{n: 3})
	if f, err := s.Next(t.Context()); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// queue returns frames when the test allows it, and then an error.
type queue struct {
	ticks
	tell chan error
}

func (q *queue) Next(ctx context.Context) (*facedet.Frame, error) {
	select {
	case err := <-q.tell:
		if err != nil {
			return nil, err
		}
		return q.ticks.Next(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A slow reader gets the newest frame, and the end after the last frame.
func TestNewest(t *testing.T) {
	q := &queue{ticks{n: 9}, make(chan error)}
	s := facedet.Newest(q)
	defer s.Close()
	want := func(index, dropped int) {
		t.Helper()
		f, err := s.Next(t.Context())
		if err != nil || f.Index != index || s.Count().Dropped != dropped {
			t.Fatalf("%+v, %v, %+v; want frame %d and %d dropped", f, err, s.Count(), index, dropped)
		}
		f.Close()
	}
	q.tell <- nil
	want(0, 0)
	for range 5 {
		q.tell <- nil
	}
	q.tell <- io.ErrUnexpectedEOF
	want(5, 4)
	if _, err := s.Next(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}

	// The end of a context ends it, and so does Close, with a frame that nobody took.
	q = &queue{ticks{n: 9}, make(chan error)}
	s = facedet.Newest(q)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.Close()
	q = &queue{ticks{n: 9}, make(chan error)}
	s = facedet.Newest(q)
	q.tell <- nil
	q.tell <- nil
	s.Close()
}

func TestSampled(t *testing.T) {
	for _, c := range []struct {
		fps  float64
		want []int
	}{{25, []int{0, 4, 8}}, {50, []int{0, 2, 4, 6, 8}}, {0, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{1000, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}, {1, []int{0}}} {
		s := facedet.Sampled(&ticks{n: 10}, c.fps)
		var got []int
		for {
			f, err := s.Next(t.Context())
			if err != nil {
				break
			}
			got = append(got, f.Index)
			f.Close()
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%g frames a second: %v, want %v", c.fps, got, c.want)
		}
	}
}
