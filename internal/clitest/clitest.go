// SPDX-License-Identifier: Apache-2.0

// Package clitest tests the command lines of the programs: [Main] begins the tests of a program,
// and [Scripts] runs its scripts.
package clitest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	faceauth "github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/drawing"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/tape"
	"github.com/faceauth/faceauth/models"
	"github.com/rogpeppe/go-internal/testscript"
)

// Main runs the tests of a program. Scripts call the program by its name. It and the tests find
// faceauth-eye in $PATH: package tape, which stands in for it, and without OpenCV knows only people
// who are made up. After runs after all tests.
func Main(m *testing.M, name string, main func(), after ...func()) {
	testscript.Main(tests{m, after}, map[string]func(){name: main, "faceauth-eye": tape.Main})
}

type tests struct {
	m     *testing.M
	after []func()
}

func (a tests) Run() int {
	// Tests mostly wait for other processes.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", "4")
	}
	defer func() {
		for _, f := range a.after {
			f()
		}
	}()
	return a.m.Run()
}

// Long skips a test that make test leaves out, because it needs a real eye or much of the system.
// make test-system runs it.
func Long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-system runs it")
	}
}

var eye = sync.OnceValues(func() (real string, err error) {
	root, err := fixture.Above()
	if err != nil {
		return "", err
	}
	return tape.Prepare(root)
})

// Real builds the real faceauth-eye, for programs that look at what is not made up, and returns its
// path.
func Real(t testing.TB) string {
	t.Helper()
	if exec.Command("pkg-config", "--exists", "opencv4").Run() != nil {
		fixture.Missing(t, "the real faceauth-eye needs OpenCV")
	}
	real, err := eye()
	if err != nil {
		t.Fatal(err)
	}
	return real
}

var demos = sync.OnceValues(func() (folder string, err error) {
	real, err := eye()
	if err != nil {
		return "", err
	}
	folder, err = tape.Recording(real)
	if err != nil {
		return "", err
	}
	return folder, brief(real, folder)
})

// Recordings returns two folders that no test may change: the demo's stills, and its recordings.
// The recordings are those of faceauth demo, and brief.avi, which is every sixth frame of
// recording.avi: everybody is in it, in a sixth of the time. They are made once and kept with the
// tapes.
func Recordings(t testing.TB) (stills, folder string) {
	t.Helper()
	Real(t)
	stills, err := demo.Find()
	if err == nil {
		folder, err = demos()
	}
	if err != nil {
		t.Fatal(err)
	}
	return stills, folder
}

// brief makes brief.avi.
func brief(real, folder string) (err error) {
	ctx := context.Background()
	path := filepath.Join(folder, "brief.avi")
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	e, err := faceauth.Start(ctx, faceauth.Config{Space: models.Pixels(), Command: []string{real},
		Vision: faceauth.Vision{Features: "pixels", Detector: "haar"}})
	if err != nil {
		return err
	}
	defer e.Close()
	stream, err := e.Open(ctx, filepath.Join(folder, "recording.avi"),
		faceauth.Options{Gate: faceauth.Learn, FPS: 2.5, Frame: func() bool { return true }})
	if err != nil {
		return err
	}
	made, err := os.MkdirTemp(folder, "brief-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	film, err := drawing.Start(ctx, real, "film", filepath.Join(made, "brief.avi"))
	if err != nil {
		return err
	}
	defer film.Close()
	for f, err := range face.Frames(ctx, stream) {
		if err != nil {
			return err
		}
		if err := film.Draw(drawing.Frame{Size: f.Size, JPEG: f.JPEG}); err != nil {
			return err
		}
	}
	if err := film.Close(); err != nil {
		return err
	}
	return os.Rename(filepath.Join(made, "brief.avi"), path)
}

// Scripts runs the scripts in a folder. They find the demo's recordings in $DEMO, pictures of many
// kinds in their folder, and the models in $FACEAUTH_MODELS. Environment is what they get besides.
func Scripts(t *testing.T, dir string, environment ...string) {
	t.Helper()
	stills, recorded := Recordings(t)
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(append(e.Vars, tape.Environment()...), environment...)
			e.Setenv("DEMO", recorded)
			e.Setenv("STILLS", stills)
			e.Setenv("PROJECT", fixture.Root(t))
			e.Setenv("FACEAUTH_DEMO_FACES", stills)
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "data"))
			e.Setenv("FACEAUTH_MODELS", fixture.Models(t))
			e.Setenv("REAL", fixture.Models(t))
			e.Setenv("DISPLAY", "")
			e.Setenv("WAYLAND_DISPLAY", "")
			return pictures(e.WorkDir, stills)
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "root":
				return os.Geteuid() == 0, nil
			case "mounts":
			default:
				return false, fmt.Errorf("unknown condition %q", name)
			}
			err := exec.Command("unshare", "--map-root-user", "--mount", "true").Run()
			if err != nil && os.Getenv("FACEAUTH_CI") != "" {
				return false, fmt.Errorf("this place has no mount namespaces: %w", err)
			}
			return err == nil, nil
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
		args = append([]string{args[0], "setpriv", "--bounding-set=-dac_override,-dac_read_search"},
			args[1:]...)
	}
	exits(ts, neg, args)
}

// smallDisk is like exits, on a disk with room for files of half a kilobyte.
func smallDisk(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, neg, append([]string{args[0], "sh", "-c", `ulimit -f 1 && exec "$@"`, "sh"},
		args[1:]...))
}

// half FILE DST writes the first half of a file.
func half(ts *testscript.TestScript, _ bool, args []string) {
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b[:len(b)/2], 0o600))
}

// pictures writes a face in many kinds of file.
func pictures(dir, stills string) error {
	still, err := os.ReadFile(filepath.Join(stills, "s2", "1.pgm"))
	if err != nil {
		return err
	}
	var r image.Rectangle
	in := bytes.NewReader(still)
	if _, err := fmt.Fscanf(in, "P5\n%d %d\n255\n", &r.Max.X, &r.Max.Y); err != nil {
		return err
	}
	whole := &image.Gray{Pix: still[len(still)-in.Len():], Stride: r.Max.X, Rect: r}
	pair, blurred := image.NewGray(image.Rect(0, 0, 2*r.Max.X, r.Max.Y)), image.NewGray(r)
	for name, m := range map[string]draw.Image{"rgba.png": image.NewNRGBA(r),
		"16bit.png":  image.NewGray16(r),
		"rgba64.png": image.NewNRGBA64(r), "one.png": image.NewGray(image.Rect(0, 0, 1, 1)),
		"plain.png": image.NewGray(r),
		"pair.png":  pair, "blurred.png": blurred} {
		switch m {
		case pair:
			draw.Draw(m, r.Add(image.Pt(r.Max.X, 0)), whole, image.Point{}, draw.Src)
		case blurred:
			for i := range blurred.Pix {
				blurred.Pix[i] = mean(whole, i%r.Max.X, i/r.Max.X, 5)
			}
		}
		if name != "plain.png" && m != blurred {
			draw.Draw(m, r, whole, image.Point{}, draw.Src)
		}
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, whole, &jpeg.Options{Quality: 95}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "short.jpg"), b.Bytes()[:b.Len()*19/20], 0o600)
}

// mean returns the mean grey value around a point.
func mean(m *image.Gray, x, y, radius int) uint8 {
	sum, n := 0, 0
	around := image.Rect(x-radius, y-radius, x+radius+1, y+radius+1).Intersect(m.Rect)
	for v := around.Min.Y; v < around.Max.Y; v++ {
		for u := around.Min.X; u < around.Max.X; u++ {
			sum, n = sum+int(m.GrayAt(u, v).Y), n+1
		}
	}
	return uint8(sum / n)
}
