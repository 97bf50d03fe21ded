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
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/clitest"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/tape"
	"github.com/faceauth/faceauth/office"
)

// stillDay is a camera's view of one person: nobody, then the person moving as in a recording, then the person sitting
// still as in its last frame, then nobody. Each frame has the noise of a sensor, and is compressed as by a network
// camera.
type stillDay struct {
	fps                 float64
	empty, sits, leaves time.Duration
	noise               float64 // standard deviation in grey values
	jpeg                bool    // motion JPEG, and not H.264
}

// tenth is a day in which the recording of 10.4 seconds is a twentieth of the time.
var tenth = stillDay{fps: 10, empty: 98 * time.Second, sits: 84 * time.Second, leaves: 15 * time.Second, noise: 3}

// write composes a day from the frames in a folder.
func (d stillDay) write(t testing.TB, path, folder string, seed uint64) {
	t.Helper()
	frames := pixels(t, folder)
	size := frames[0].size
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
			fixture.Missing(t, "no %s can be written (%v); install a build of FFmpeg with x264", codec, err)
		}
	}
	const rate = 25. // frame rate of the recordings
	for range int(d.empty.Seconds() * d.fps) {
		show(frames[0].room)
	}
	for i := 0; int(float64(i)*rate/d.fps) < len(frames); i++ {
		show(frames[int(float64(i)*rate/d.fps)].pixels)
	}
	for range int(d.sits.Seconds() * d.fps) {
		show(frames[len(frames)-1].pixels)
	}
	for range int(d.leaves.Seconds() * d.fps) {
		show(frames[0].room)
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

// shot is a frame. The first frame of a recording also has the room without its person.
type shot struct {
	size         image.Point
	pixels, room []byte
}

// pixels reads the frames of a recording.
func pixels(t testing.TB, name string) (all []shot) {
	t.Helper()
	err := eachFrame(t.Context(), name, func(p *facedet.Picture) error {
		s := shot{size: p.Size()}
		var err error
		if s.pixels, err = p.BGR(); err != nil {
			return err
		}
		if all == nil {
			s.room = without(t, p)
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// without returns a picture with its middle smeared, where the person is.
func without(t testing.TB, img *facedet.Picture) []byte {
	t.Helper()
	size := img.Size()
	small := fixture.Must(img.Resize(size.Div(32)))(t)
	defer small.Close()
	blurred := fixture.Must(small.Resize(size))(t)
	defer blurred.Close()
	room := fixture.Must(img.BGR())(t)
	smeared := fixture.Must(blurred.BGR())(t)
	for y := range size.Y {
		row := 3 * size.X * y
		copy(room[row+3*size.X/6:row+3*size.X*5/6], smeared[row+3*size.X/6:row+3*size.X*5/6])
	}
	return room
}

// spent returns the processor time of a command and of all processes that it started.
func spent(c *exec.Cmd) time.Duration { return c.ProcessState.UserTime() + c.ProcessState.SystemTime() }

// own returns the processor time of this process and of the processes that it waited for.
func own(t testing.TB) time.Duration {
	t.Helper()
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		fixture.Check(t, syscall.Getrusage(who, &u))
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

// told is an event of an office, and its time since the event before.
type told struct {
	office.Event
	after time.Duration
}

// fastOffice runs an office on a recording, and returns its events and its processor time.
func fastOffice(t testing.TB, gallery, recording string, args ...string) (events []told, took time.Duration) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "faceauth", append([]string{
		"office", "c=" + recording, "--fast", "--json", "--gallery", gallery, "--models", fixture.Models(t),
	}, args...)...)
	var said, stderr bytes.Buffer
	c.Stdout, c.Stderr = &said, &stderr
	c.Env = append(c.Environ(), tape.RealOnly) // a tape that is played takes no time
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	for d := json.NewDecoder(&said); ; {
		var e told
		if err := d.Decode(&e.Event); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if len(events) > 0 {
			e.after = e.At.Sub(events[len(events)-1].At)
		}
		events = append(events, e)
	}
	return events, spent(c)
}

// enrolled returns a gallery with the given people of vidtimit_rot.
func enrolled(t testing.TB, people ...int) (gallery string) {
	t.Helper()
	clitest.Real(t)
	gallery = filepath.Join(t.TempDir(), "gallery")
	for _, i := range people {
		name := fmt.Sprintf("p%d", i)
		c := exec.CommandContext(t.Context(), "faceauth", "enroll", fixture.Recordings(t, "faces/vidtimit_rot/"+name),
			"--name", name, "--gallery", gallery, "--models", fixture.Models(t))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return gallery
}

// sameTold fails if two offices reported different events, or if the times of an event differ by more than a limit.
func sameTold(t testing.TB, all, spare []told, within time.Duration) {
	t.Helper()
	same := slices.EqualFunc(all, spare, func(a, b told) bool {
		return a.Kind == b.Kind && a.Name == b.Name && (a.after-b.after).Abs() <= within
	})
	if !same {
		t.Errorf("every frame looked at: %s; otherwise: %s", brief(all), brief(spare))
	}
}

func brief(events []told) (s string) {
	for _, e := range events {
		s += fmt.Sprintf("+%v %s %s (%s)  ", e.after.Round(10*time.Millisecond), e.Kind, e.Name, e.Trust)
	}
	return s
}

// An office that searches only where something moves reports the same events of a day with little movement. Of motion
// JPEG it decodes only the frames whole in which it searches.
func TestSystemStillDay(t *testing.T) {
	long(t)
	t.Parallel()
	gallery, dir := enrolled(t, 0), t.TempDir()
	for _, day := range []struct {
		person int
		jpeg   bool
	}{{4, false}, {0, true}} {
		i := day.person
		path := filepath.Join(dir, fmt.Sprintf("p%d.%t.avi", i, day.jpeg))
		d := stillDay{fps: 10, empty: 5 * time.Second, sits: 40 * time.Second, leaves: 15 * time.Second, noise: 3,
			jpeg: day.jpeg}
		d.write(t, path, fixture.Recordings(t, fmt.Sprintf("faces/vidtimit_rot/p%d", i)), uint64(i))
		all, long := fastOffice(t, gallery, path, "--every-frame")
		spare, short := fastOffice(t, gallery, path)
		sameTold(t, all, spare, 500*time.Millisecond)
		if len(spare) == 0 || short > long/2 {
			t.Errorf("p%d, JPEG %t: %d events; processor time %v, and %v where every frame is looked at", i, day.jpeg,
				len(spare), short, long)
		}
		t.Logf("p%d, JPEG %t: processor time %v of %v; %s", i, day.jpeg, short, long, brief(spare))
	}
}

// BenchmarkStillDay measures the processor time of an office, decoding included, on days of four cameras with 95 %
// stillness. It reports the time relative to an office that looks at every frame (x-cpu), and the same without the time
// of decoding (x-seeing). Each day shows p0 to p3 of vidtimit_rot.
func BenchmarkStillDay(b *testing.B) {
	gallery, dir := enrolled(b, 0, 1, 2), b.TempDir()
	var days []string
	for i := range 4 {
		path := filepath.Join(dir, fmt.Sprintf("p%d.avi", i))
		tenth.write(b, path, fixture.Recordings(b, fmt.Sprintf("faces/vidtimit_rot/p%d", i)), uint64(i))
		days = append(days, path)
	}
	for b.Loop() {
		var all, spare, decoded time.Duration
		for i, day := range days {
			begun, frames := own(b), 0
			if err := eachFrame(b.Context(), day, func(*facedet.Picture) error { frames++; return nil }); err != nil {
				b.Fatal(err)
			}
			decoding := own(b) - begun
			long, a := fastOffice(b, gallery, day, "--every-frame")
			short, s := fastOffice(b, gallery, day)
			sameTold(b, long, short, 500*time.Millisecond)
			b.Logf("p%d: %d frames, processor time %v, every frame %v, decoding alone %v; %s", i, frames, s, a,
				decoding, brief(short))
			all, spare, decoded = all+a, spare+s, decoded+decoding
		}
		b.ReportMetric(all.Seconds()/spare.Seconds(), "x-cpu")
		b.ReportMetric((all-decoded).Seconds()/(spare-decoded).Seconds(), "x-seeing")
	}
}
