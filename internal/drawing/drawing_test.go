// SPDX-License-Identifier: Apache-2.0

package drawing_test

import (
	"errors"
	"image"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/faceauth/faceauth/internal/drawing"
	"github.com/faceauth/faceauth/internal/fixture"
)

func frame(n int) drawing.Frame {
	return drawing.Frame{Size: image.Pt(n, n), JPEG: make([]byte, 3*n*n), Boxes: []drawing.Box{
		{Rect: image.Rect(1, 2, 3, n), Text: "alice 0.97", Colour: drawing.Colours[0]},
	}}
}

// The process reads the frames that the program has drawn, up to the one that it does not want.
func TestFrames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "frames")
	p := fixture.Must(drawing.Start(t.Context(), "sh", "-c", `cat >"$1"`, "sh", path))(t)
	for n := range 3 {
		fixture.Check(t, p.Draw(frame(n+5)))
	}
	fixture.Check(t, errors.Join(p.Close(), p.Close()))
	f, err := os.Open(path)
	fixture.Check(t, err)
	defer f.Close()
	n := 0
	err = drawing.Read(f, func(got drawing.Frame) (bool, error) {
		if !reflect.DeepEqual(got, frame(n+5)) {
			t.Errorf("frame %d is %v with %v", n, got.Size, got.Boxes)
		}
		n++
		return n < 2, nil
	})
	if err != nil || n != 2 {
		t.Errorf("%d frames were read: %v", n, err)
	}
}

// A process that ends by itself was closed by the user. The error of one that fails is what it
// said.
func TestEnds(t *testing.T) {
	for script, want := range map[string]string{
		"head -c 1000 >/dev/null":           drawing.ErrEnded.Error(),
		"echo the disk is full >&2; exit 1": "the disk is full",
		"exit 3":                            "exit status 3",
	} {
		p, err := drawing.Start(t.Context(), "sh", "-c", script)
		fixture.Check(t, err)
		for err == nil { // a pipe takes some bytes that nobody reads
			err = p.Draw(frame(200))
		}
		if err.Error() != want {
			t.Errorf("%s: %v", script, err)
		}
		p.Close()
	}
	if _, err := drawing.Start(t.Context(), filepath.Join(t.TempDir(), "away")); err == nil {
		t.Error("a missing program was started")
	}
}

func TestNone(t *testing.T) {
	t.Setenv("WAYLAND_DISPLAY", "")
	for _, name := range []string{"", ":97", "nonsense", "localhost:60001", ":"} {
		t.Setenv("DISPLAY", name)
		if err := drawing.Answers(); !errors.Is(err, drawing.ErrNoDisplay) {
			t.Errorf("DISPLAY=%q: %v", name, err)
		}
	}
}
