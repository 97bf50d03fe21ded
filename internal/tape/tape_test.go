// SPDX-License-Identifier: Apache-2.0

package tape_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/tape"
	"github.com/faceauth/faceauth/models"
)

func TestMain(m *testing.M) {
	if os.Getenv("FACEAUTH_EYE_TESTED") != "" {
		tape.Main()
	}
	os.Setenv("FACEAUTH_EYE_TESTED", "1") // for the eyes that the tests start
	os.Exit(m.Run())
}

func started(t *testing.T, v eye.Vision, s face.Space) *eye.Eye {
	t.Helper()
	e := fixture.Must(eye.Start(t.Context(),
		eye.Config{Space: s, Command: os.Args[:1], Stderr: os.Stderr, Vision: v}))(t)
	t.Cleanup(func() { e.Close() })
	return e
}

func frames(t *testing.T, e *eye.Eye, name string, o eye.Options) (all []face.Frame) {
	t.Helper()
	s := fixture.Must(e.Open(t.Context(), name, o))(t)
	for {
		f, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		fixture.Check(t, err)
		all = append(all, f)
	}
}

func distance(s face.Space, a, b []float32) float64 {
	sum := 0.
	for i := range a {
		sum += float64(a[i]-b[i]) * float64(a[i]-b[i])
	}
	return s.Scale * sum
}

// Made-up people pass every check of a program: each is near to itself, and far from others. A
// film, pictures and a camera show the same.
func TestMade(t *testing.T) {
	dir := t.TempDir()
	space := models.Default(models.Embedding).Space()
	fixture.Check(t, tape.Demo(dir))
	e := started(t, eye.Vision{Features: "embedding", Detector: "network", Liveness: true}, space)
	all := frames(t, e, filepath.Join(dir, "recording.avi"),
		eye.Options{Gate: eye.Enrol, Picture: 112,
			Frame: func() bool { return true }})
	if len(all) != 480 || len(all[470].Samples) != 2 || all[470].JPEG == nil ||
		all[0].Samples[0].JPEG == nil ||
		*all[0].Samples[0].Liveness < .9 {
		t.Fatalf("%d frames, %+v", len(all), all[470])
	}
	alice, stranger, later := all[0].Samples[0], all[130].Samples[0], all[470].Samples[1]
	own, other := distance(space, alice.Vector, later.Vector),
		distance(space, alice.Vector, stranger.Vector)
	if !(own > 0 && own < .5*.5) || !(other > 1.3*1.3) {
		t.Errorf("the squared distance to oneself is %g, and to another %g", own, other)
	}
	if len(frames(t, e, filepath.Join(dir, "recording.avi"),
		eye.Options{Gate: eye.Learn, FPS: 5})) != 160 {
		t.Error("5 of 15 frames a second are not a third")
	}

	pictures := filepath.Join(dir, "pictures")
	fixture.Check(t, tape.Alone("alice", 3).Folder(pictures))
	png := filepath.Join(dir, "a.png")
	fixture.Check(t, os.WriteFile(png, tape.PNG(tape.Moving("alice", .5, 0)), 0o600))
	camera := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=frame")
		b := tape.JPEG(tape.Moving("alice", .5, 0))
		fmt.Fprintf(w,
			"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n--frame\r\n",
			len(b), b)
	}))
	defer camera.Close()
	for _, name := range []string{pictures, png, camera.URL} {
		got := frames(t, started(t, eye.Vision{Features: "embedding", Detector: "network"}, space),
			name,
			eye.Options{Gate: eye.Learn, Live: name == camera.URL})
		if len(got) == 0 || !slices.Equal(got[0].Samples[0].Vector, alice.Vector) {
			t.Errorf("%s: %d frames, another vector", name, len(got))
		}
	}
}

// A tape gives what a real eye gave, without one, and only for the same file and the same options.
func TestRecorded(t *testing.T) {
	cache, dir := t.TempDir(), t.TempDir()
	real := filepath.Join(dir, "eye")
	looks := filepath.Join(dir, "looks")
	// The real eye of this test is another stand-in, which looks at a made-up picture and counts
	// how often it starts.
	fixture.Check(t, os.WriteFile(real, fmt.Appendf(nil,
		"#!/bin/sh\necho >>%s\nFACEAUTH_EYE_REAL= exec %s\n", looks,
		os.Args[0]), 0o700))
	t.Setenv("FACEAUTH_EYE_REAL", real)
	t.Setenv("FACEAUTH_EYE_TAPES", cache)
	video, other := filepath.Join(dir, "video.avi"), filepath.Join(dir, "other.avi")
	for path, text := range map[string]string{video: "a recording", other: "another one"} {
		fixture.Check(t, os.WriteFile(path, []byte(text), 0o600))
	}
	ask := func(path string, o eye.Options) string {
		t.Helper()
		e := started(t, eye.Vision{Features: "pixels", Detector: "haar"}, models.Pixels())
		_, err := e.Open(t.Context(), path, o)
		if err == nil {
			t.Fatal("it is no video")
		}
		return err.Error()
	}
	starts := func() int {
		b, _ := os.ReadFile(looks)
		return len(b)
	}
	first := ask(video, eye.Options{Gate: eye.Learn})
	if again := ask(video, eye.Options{Gate: eye.Learn}); again != first || starts() != 1 {
		t.Errorf("%q after %q, and the real eye was started %d times", again, first, starts())
	}
	ask(video, eye.Options{Gate: eye.Enrol})
	ask(other, eye.Options{Gate: eye.Learn})
	if starts() != 3 {
		t.Errorf("with other options and another file the real eye was started %d times", starts())
	}
	t.Setenv("FACEAUTH_EYE_REAL", "")
	if again := ask(video, eye.Options{Gate: eye.Learn}); again != first {
		t.Errorf("without a real eye: %q", again)
	}
	moved := filepath.Join(t.TempDir(), "video.avi")
	fixture.Check(t, os.Link(video, moved))
	if again := ask(moved, eye.Options{Gate: eye.Learn}); again != strings.ReplaceAll(first, video,
		moved) {
		t.Errorf("%q, and for the same recording elsewhere %q", first, again)
	}
}
