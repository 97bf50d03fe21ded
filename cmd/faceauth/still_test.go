// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/clitest"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/tape"
)

// stillDay is a camera's view of one person: nobody, then the person moving as in a recording, then
// the person sitting still as in its last frame, then nobody. Each frame has the noise of a sensor,
// and is compressed as by a network camera.
type stillDay struct {
	fps                 float64
	empty, sits, leaves time.Duration
	noise               float64 // standard deviation in grey values
	jpeg                bool    // motion JPEG, and not H.264
}

// tenth is a day in which the recording of 10.4 seconds is a twentieth of the time.
var tenth = stillDay{fps: 10, empty: 98 * time.Second, sits: 84 * time.Second,
	leaves: 15 * time.Second, noise: 3}

// write composes a day from the frames in a folder.
func (d stillDay) write(t testing.TB, path, folder string, seed uint64) {
	t.Helper()
	size, room, frames := pixels(t, folder)
	codec := "H264"
	if d.jpeg {
		codec = "MJPG"
	}
	w := cv.NewVideoWriter(path, codec, d.fps)
	rnd := rand.New(rand.NewPCG(seed, 1))
	grain := make([]int8, 1<<20)
	for i := range grain {
		grain[i] = int8(max(-100, min(100, rnd.NormFloat64()*d.noise)))
	}
	show := func(p []byte) {
		noisy, at := bytes.Clone(p), rnd.IntN(len(grain))
		for i := range noisy {
			noisy[i] = uint8(max(0, min(255, int(noisy[i])+int(grain[(at+i)%len(grain)]))))
		}
		img := fixture.Must(cv.FromBGR(size, noisy))(t)
		defer img.Close()
		if err := w.Write(img); err != nil {
			fixture.Missing(t, "no %s can be written (%v); install a build of FFmpeg with x264",
				codec, err)
		}
	}
	const rate = 25. // frame rate of the recordings
	for range int(d.empty.Seconds() * d.fps) {
		show(room)
	}
	for i := 0; int(float64(i)*rate/d.fps) < len(frames); i++ {
		show(frames[int(float64(i)*rate/d.fps)])
	}
	for range int(d.sits.Seconds() * d.fps) {
		show(frames[len(frames)-1])
	}
	for range int(d.leaves.Seconds() * d.fps) {
		show(room)
	}
	fixture.Check(t, w.Close())
}

// eachFrame shows every frame of a recording.
func eachFrame(ctx context.Context, recording string, show func(*facedet.Picture) error) error {
	src, err := facedet.Open(ctx, recording, facedet.Options{})
	if err != nil {
		return err
	}
	defer src.Close()
	for {
		f, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = show(f.Image)
		f.Close()
		if err != nil {
			return err
		}
	}
}

// pixels reads the frames of a recording, and the first one so blurred that nobody is in it.
func pixels(t testing.TB, name string) (size image.Point, room []byte, frames [][]byte) {
	t.Helper()
	fixture.Check(t, eachFrame(t.Context(), name, func(p *facedet.Picture) error {
		size = p.Size()
		frames = append(frames, fixture.Must(p.BGR())(t))
		if room == nil {
			small := fixture.Must(p.Resize(size.Div(32)))(t)
			defer small.Close()
			blurred := fixture.Must(small.Resize(size))(t)
			defer blurred.Close()
			room = fixture.Must(blurred.BGR())(t)
		}
		return nil
	}))
	return size, room, frames
}

// played runs an office on a recording, and returns its events and its processor time.
func (s *site) played(recording string,
	args ...string) (events []presence.Event, took time.Duration) {
	s.t.Helper()
	c := s.command(append([]string{"office", "c=" + recording, "--fast", "--json"}, args...)...)
	for line := range bytes.Lines(fixture.Must(c.Output())(s.t)) {
		var e presence.Event
		fixture.Check(s.t, json.Unmarshal(line, &e))
		events = append(events, e)
	}
	return events, c.ProcessState.UserTime() + c.ProcessState.SystemTime()
}

// stillDay fails if an office that searches only where something moves reports other events of a
// person's day than one that looks at every frame. It returns their processor times.
func (s *site) stillDay(d stillDay, person int) (every, spare time.Duration) {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "day.avi")
	d.write(s.t, path, fixture.Recordings(s.t, fmt.Sprintf("faces/vidtimit_rot/p%d", person)),
		uint64(person))
	all, every := s.played(path, "--every-frame")
	events, spare := s.played(path)
	same := slices.EqualFunc(all, events, func(a, b presence.Event) bool {
		later := a.At.Sub(all[0].At) - b.At.Sub(events[0].At)
		return a.Kind == b.Kind && a.Name == b.Name && later.Abs() <= 500*time.Millisecond
	})
	if !same || len(events) == 0 {
		s.t.Errorf("p%d: every frame looked at: %+v; otherwise: %+v", person, all, events)
	}
	s.t.Logf("p%d, JPEG %t: processor time %v of %v", person, d.jpeg, spare, every)
	return every, spare
}

// realSite is an office that knows people of vidtimit_rot, by the real eye: a tape that is played
// takes no time.
func realSite(t testing.TB, people ...int) *site {
	t.Helper()
	clitest.Real(t)
	s := &site{t: t, dir: t.TempDir(), run: t.TempDir(), eye: tape.RealOnly}
	for _, i := range people {
		name := fmt.Sprintf("p%d", i)
		c := s.command("enroll", fixture.Recordings(t, "faces/vidtimit_rot/"+name), "--name", name)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return s
}

// Of a day with little movement an office takes less than two thirds of the time, and half of it on
// an idle machine: on so short a day each start of the networks weighs as much as the looks. Of
// motion JPEG it decodes only the frames whole in which it searches.
func TestStillDay(t *testing.T) {
	long(t)
	t.Parallel()
	s := realSite(t, 0)
	d := stillDay{fps: 10, empty: 5 * time.Second, sits: 40 * time.Second, leaves: 15 * time.Second,
		noise: 3, jpeg: true}
	for _, person := range fixture.Some([]int{0, 4}, 1) {
		if every, spare := s.stillDay(d, person); spare > every*2/3 {
			t.Errorf("p%d: %v of %v", person, spare, every)
		}
		d.jpeg = false
	}
}

// BenchmarkStillDay measures the processor time of an office, decoding included, on days of four
// cameras with 95 % stillness, and how many times more an office takes that looks at every frame.
// Each day shows p0 to p3 of vidtimit_rot.
func BenchmarkStillDay(b *testing.B) {
	s := realSite(b, 0, 1, 2)
	for b.Loop() {
		var all, spare time.Duration
		for person := range 4 {
			e, p := s.stillDay(tenth, person)
			all, spare = all+e, spare+p
		}
		b.ReportMetric(all.Seconds()/spare.Seconds(), "x-cpu")
	}
}
