// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/rogpeppe/go-internal/testscript"
)

// Scripts find the demo's recordings in $DEMO, pictures of many kinds in their folder, and the models in
// $FACEAUTH_MODELS.
func TestScripts(t *testing.T) {
	stills, recorded := recordings(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("DEMO", recorded)
			e.Setenv("STILLS", stills)
			e.Setenv("PROJECT", fixture.Root(t))
			e.Setenv("FACEAUTH_DEMO_FACES", stills)
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "data"))
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(e.WorkDir, "config"))
			e.Setenv("FACEAUTH_MODELS", fixture.Models(t))
			e.Setenv("REAL", fixture.Models(t))
			e.Setenv("DISPLAY", "")
			e.Setenv("WAYLAND_DISPLAY", "")
			return pictures(e.WorkDir, stills)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"denied": denied,
			"half":   half,
			"limit":  smallDisk,
		},
	})
}

// exits CODE COMMAND... runs a command that must end with that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [argument...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var e *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &e) {
		got = e.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	for _, trace := range []string{"goroutine ", "SIGABRT", "terminate called"} {
		if strings.Contains(ts.ReadFile("stderr"), trace) {
			ts.Fatalf("it crashed")
		}
	}
}

// denied is like exits, for a user who may not read everything, even if root runs the tests.
func denied(ts *testscript.TestScript, neg bool, args []string) {
	if os.Geteuid() == 0 {
		args = append([]string{args[0], "setpriv", "--bounding-set=-dac_override,-dac_read_search"}, args[1:]...)
	}
	exits(ts, neg, args)
}

// smallDisk is like exits, on a disk with room for files of half a kilobyte.
func smallDisk(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, neg, append([]string{args[0], "sh", "-c", `ulimit -f 1 && exec "$@"`, "sh"}, args[1:]...))
}

// half FILE DST writes the first half of a file.
func half(ts *testscript.TestScript, _ bool, args []string) {
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b[:len(b)/2], 0o600))
}

// pictures writes a face in many kinds of file.
func pictures(dir, stills string) error {
	var size image.Point
	var pix []byte
	err := eachFrame(context.Background(), filepath.Join(stills, "s2", "1.pgm"), func(p *facedet.Picture) error {
		g := (*cv.Image)(p).Gray()
		defer g.Close()
		size, pix = g.Size(), g.Bytes()
		return nil
	})
	if err != nil {
		return err
	}
	r := image.Rectangle{Max: size}
	see, deep, deeper, one := image.NewNRGBA(r), image.NewGray16(r), image.NewNRGBA64(r),
		image.NewGray(image.Rect(0, 0, 1, 1))
	for i, p := range pix {
		x, y := i%size.X, i/size.X
		see.SetNRGBA(x, y, color.NRGBA{p, p, p, uint8(255 - i%7)})
		deep.SetGray16(x, y, color.Gray16{uint16(p) * 257})
		deeper.SetNRGBA64(x, y, color.NRGBA64{uint16(p) * 257, uint16(p) * 257, uint16(p) * 257, 65535})
	}
	blurred, pair := image.NewGray(r), image.NewGray(image.Rect(0, 0, 2*size.X, size.Y))
	for y := range size.Y {
		for x := range size.X {
			sum, n := 0, 0
			for v := max(0, y-5); v < min(size.Y, y+6); v++ {
				for u := max(0, x-5); u < min(size.X, x+6); u++ {
					sum, n = sum+int(pix[v*size.X+u]), n+1
				}
			}
			blurred.SetGray(x, y, color.Gray{uint8(sum / n)})
			pair.SetGray(x, y, color.Gray{pix[y*size.X+x]})
			pair.SetGray(2*size.X-1-x, y, color.Gray{pix[y*size.X+x]})
		}
	}
	for name, m := range map[string]image.Image{
		"rgba.png": see, "16bit.png": deep, "rgba64.png": deeper, "one.png": one, "blurred.png": blurred,
		"pair.png":  pair,
		"plain.png": image.NewGray(r),
	} {
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// A limit is never rounded to a better value.
func TestAtMost(t *testing.T) {
	for x, want := range map[float64]float64{3. / 414: .0073, .75: .75, .001: .001, .0010000001: .0011, 1: 1, .101: .11,
		.0099: .0099} {
		if got := atMost(x); got != want {
			t.Errorf("%g is at most %g, want %g", x, got, want)
		}
	}
}

// If a source has stopped giving frames, Ctrl-C ends a replay of it at once, and changes nothing.
func TestInterrupted(t *testing.T) {
	stop := make(chan struct{})
	asked := make(chan struct{}, 10)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-stop
	}))
	defer s.Close()
	defer close(stop)
	dir := t.TempDir()
	path := filepath.Join(dir, "gallery")
	stills, _ := recordings(t)
	var out, words bytes.Buffer
	if code := run(context.Background(), []string{"enroll", filepath.Join(stills, "s2"), "--name", "alice", "--gallery",
		path, "--models", fixture.Models(t)}, &out, &words); code != 0 {
		t.Fatalf("enrolling: exit code %d: %s", code, &words)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"replay", s.URL, "--learn", "--out", filepath.Join(dir, "out")}, 130},
		{[]string{"watch", s.URL, "--learn"}, 130},
		{[]string{"enroll", s.URL, "--name", "bob"}, 130},
		{[]string{"enroll", s.URL, "--name", "alice", "--add"}, 130},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-asked
			cancel()
		}()
		begun := time.Now()
		words.Reset()
		code := run(ctx, append(c.args, "--gallery", path, "--models", fixture.Models(t), "--timeout", "3s"), &out,
			&words)
		if code != c.code || !strings.Contains(words.String(), "interrupted") {
			t.Errorf("%v: exit code %d, want %d: %s", c.args, code, c.code, &words)
		}
		// FFmpeg itself gives up after three seconds; a hang would last until the test's own limit.
		t.Logf("%s ended after %v", c.args[0], time.Since(begun))
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%v changed the gallery; %v", c.args, err)
		}
		cancel()
	}
}
