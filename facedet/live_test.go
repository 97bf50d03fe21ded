// SPDX-License-Identifier: Apache-2.0

package facedet_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/faceauth/faceauth/face"
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
func (s *ticks) Count() face.Count { return face.Count{Declared: s.n, Read: s.read} }
func (s *ticks) Close() error      { return nil }

func TestLive(t *testing.T) { synctest.Test(t, testLive) }

func testLive(t *testing.T) {
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
			t.Fatalf("%+v, %v, %+v; want frame %d and %d dropped", f, err, s.Count(), index,
				dropped)
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

// drawn returns a PNG of a size in which squares lie where the seed says, moved to the right.
func drawn(t *testing.T, size image.Point, seed uint64, moved int) []byte {
	t.Helper()
	img := image.NewGray(image.Rectangle{Max: size})
	r := rand.New(rand.NewPCG(seed, 1))
	for range 12 {
		at, grey := image.Pt(r.IntN(size.X)+moved, r.IntN(size.Y)),
			color.Gray{Y: uint8(r.IntN(256))}
		for x := at.X; x < at.X+size.X/3; x++ {
			for y := at.Y; y < at.Y+size.Y/3; y++ {
				img.SetGray(x, y, grey)
			}
		}
	}
	var b bytes.Buffer
	fixture.Check(t, png.Encode(&b, img))
	return b.Bytes()
}

// Pictures of a folder are frames of a series only if everything says so, or who opens them does.
// Photographs have no rate: a sample of them leaves out none.
func TestSeries(t *testing.T) {
	numbered := func(i int) string { return fmt.Sprintf("%03d.png", i) }
	others := func(i int) uint64 { return uint64(i) }
	seconds := func(of func(i int) int) func(int) time.Duration {
		return func(i int) time.Duration { return time.Duration(of(i)) * time.Second }
	}
	for name, c := range map[string]struct {
		n      int // default 25
		file   func(i int) string
		scene  func(i int) uint64
		at     func(i int) time.Duration
		turned int // index of the one that is; 0 for none
		end    string
		asked  face.Series
		series bool
	}{
		"a second each": {at: seconds(func(i int) int { return i }), series: true},
		"no zeros": {file: func(i int) string { return fmt.Sprint(7+i, ".png") },
			series: true},
		"a program waited": {at: seconds(func(i int) int { return i + i/20*60 }), series: true},
		"a time lapse":     {at: seconds(func(i int) int { return 60*i + i%3 }), series: true},
		"too few":          {n: 24},
		"other scenes":     {scene: others},
		"a gap":            {file: func(i int) string { return numbered(i + i/7) }},
		"no numbers":       {file: func(i int) string { return string(rune('a'+i)) + ".png" }},
		"one is turned":    {turned: 4},
		"uneven steps":     {at: seconds(func(i int) int { return i * i })},
		"another order":    {at: seconds(func(i int) int { return -i })},
		"a camera's time":  {end: "2024:05:06 07:08:09\x00"},
		"asked for":        {n: 3, scene: others, asked: face.Filmed, series: true},
		"not asked for":    {asked: face.Photographs},
	} {
		c.n = cmp.Or(c.n, 25)
		dir, begin := t.TempDir(), time.Unix(1_700_000_000, 0)
		for i := range c.n {
			file, scene, at, size := numbered(i), uint64(1), begin, image.Pt(96, 64)
			if c.file != nil {
				file = c.file(i)
			}
			if c.scene != nil {
				scene = c.scene(i)
			}
			if c.at != nil {
				at = begin.Add(c.at(i))
			}
			if i > 0 && i == c.turned {
				size = image.Pt(size.Y, size.X)
			}
			path := write(t, dir, file, append(drawn(t, size, scene, i/2), c.end...))
			fixture.Check(t, os.Chtimes(path, at, at))
		}
		s := fixture.Must(facedet.Open(t.Context(), dir, facedet.Options{Series: c.asked}))(t)
		s = facedet.Sampled(s, 5)
		n := 0
		for {
			f, err := s.Next(t.Context())
			if err != nil {
				break
			}
			if n++; f.Still == c.series || f.File == "" {
				t.Errorf("%s: %q is a photograph: %t", name, f.File, f.Still)
			}
			f.Close()
		}
		if want := (c.n + 4) / 5; c.series && n != want || !c.series && n != c.n {
			t.Errorf("%s: %d frames", name, n)
		}
		s.Close()
	}
}

// A film behind a URL is a recording: all its frames, at the times of the container. A recording of
// which no frame can be decoded is an error, and no end.
func TestClip(t *testing.T) {
	dir := t.TempDir()
	path := video(t, filepath.Join(dir, "clip.avi"), 12)
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	var all [][]time.Duration
	for _, name := range []string{path, server.URL + "/clip.avi"} {
		s := fixture.Must(facedet.Open(t.Context(), name, facedet.Options{}))(t)
		times, err := drain(t, s)
		if n := s.Count(); err != nil || n.Read != 12 || n.Cut() {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
		all = append(all, times)
		s.Close()
	}
	if !slices.Equal(all[0], all[1]) {
		t.Errorf("the times are %v, and by the URL %v", all[0], all[1])
	}
}

// A container that is in order and holds no frame that can be decoded was not read.
func TestNothing(t *testing.T) {
	path := video(t, filepath.Join(t.TempDir(), "film.avi"), 12)
	b := fixture.Must(os.ReadFile(path))(t)
	for at := bytes.Index(b, []byte("00dc")); at >= 0 && at+8 < len(b); {
		next := bytes.Index(b[at+8:], []byte("00dc"))
		end := len(b)
		if next >= 0 {
			end = at + 8 + next
		}
		clear(b[at+8 : end])
		if next < 0 {
			break
		}
		at = end
	}
	fixture.Check(t, os.WriteFile(path, b, 0o600))
	s, err := facedet.Open(t.Context(), path, facedet.Options{Timeout: 10 * time.Second})
	if err == nil {
		defer s.Close()
		_, err = s.Next(t.Context())
	}
	if !errors.Is(err, face.ErrNotVideo) {
		t.Errorf("error %v", err)
	}
}
