// SPDX-License-Identifier: Apache-2.0

// Package clitest tests the command lines of the programs: [Main] begins the tests of a program, [Scripts] runs its
// scripts, and [Flags] checks its flags.
package clitest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/demo/film"
	"github.com/faceauth/faceauth/internal/eyecmd"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Main runs the tests of a program. Scripts call the program by its name. It and the tests find faceauth-eye in $PATH.
func Main(m *testing.M, name string, main func()) {
	testscript.Main(tests{m}, map[string]func(){name: main, "faceauth-eye": eyecmd.Main})
}

// tests runs all tests. The demo's recordings, which many tests use, are made once and removed at the end.
type tests struct{ m *testing.M }

func (a tests) Run() int {
	// Tests mostly wait for other processes.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", "4")
	}
	defer func() {
		if shared.folder != "" {
			os.RemoveAll(shared.folder)
		}
	}()
	return a.m.Run()
}

// Long skips a test that make test leaves out, because it takes half a minute or more, mostly of waiting. make test-all
// and CI run it.
func Long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes long; make test-all runs it")
	}
}

var shared struct {
	once           sync.Once
	stills, folder string
	err            error
}

// Recordings returns two folders that no test may change: the demo's stills, and its recordings. The recordings are
// those of faceauth demo, and brief.avi, which is every sixth frame of recording.avi: everybody is in it, in a sixth of
// the time.
func Recordings(t testing.TB) (stills, folder string) {
	t.Helper()
	shared.once.Do(func() { shared.err = record() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.stills, shared.folder
}

func record() (err error) {
	if shared.stills, err = demo.Find(); err != nil {
		return err
	}
	if shared.folder, err = os.MkdirTemp("", "faceauth-test"); err != nil {
		return err
	}
	script, err := film.Write(context.Background(), shared.stills, shared.folder)
	if err != nil {
		return err
	}
	brief := facedet.NewRecorder(filepath.Join(shared.folder, "brief.avi"), 15)
	i := 0
	err = EachFrame(context.Background(), script.Recording, func(p *facedet.Picture) error {
		if i++; i%6 != 1 {
			return nil
		}
		return brief.Write(p)
	})
	return errors.Join(err, brief.Close())
}

// EachFrame shows every frame of a recording.
func EachFrame(ctx context.Context, recording string, show func(*facedet.Picture) error) error {
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

// Scripts runs the scripts of the package. They find the demo's recordings in $DEMO, pictures of many kinds in their
// folder, and the models in $FACEAUTH_MODELS.
func Scripts(t *testing.T) {
	t.Helper()
	stills, recorded := Recordings(t)
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
	err := EachFrame(context.Background(), filepath.Join(stills, "s2", "1.pgm"), func(p *facedet.Picture) error {
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

// Flags checks the flags of a program. A flag has one meaning in all commands, except those in differ, which has the
// reasons. Names of flags are small letters, digits and dashes. A switch is off unless it is given.
func Flags(t *testing.T, root *cobra.Command, differ map[string]string) {
	t.Helper()
	meanings := make(map[string]map[string][]string) // for each flag its meanings, and for each meaning its commands
	eachCommand(root, func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			meaning := fmt.Sprintf("%s, default %q: %s", f.Value.Type(), f.DefValue, f.Usage)
			if meanings[f.Name] == nil {
				meanings[f.Name] = make(map[string][]string)
			}
			meanings[f.Name][meaning] = append(meanings[f.Name][meaning], c.CommandPath())
		})
	})
	for _, name := range slices.Sorted(maps.Keys(meanings)) {
		reason, differs := differ[name]
		switch {
		case len(meanings[name]) > 1 && !differs:
			t.Errorf("--%s has several meanings: %s\n"+
				"use the same words and default, or another name, or give the reason in flagsThatDiffer", name,
				listed(meanings[name]))
		case len(meanings[name]) == 1 && differs:
			t.Errorf("--%s means the same everywhere; take it out of flagsThatDiffer (%s)", name, reason)
		}
	}
	for name := range differ {
		if meanings[name] == nil {
			t.Errorf("no command has --%s; take it out of flagsThatDiffer", name)
		}
	}
	eachCommand(root, func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if strings.Trim(f.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
				t.Errorf("%s --%s: a name has small letters, digits and dashes", c.CommandPath(), f.Name)
			}
			if f.Value.Type() == "bool" && f.DefValue != "false" {
				t.Errorf("%s --%s is on by default; name it no-%s, and let it be off", c.CommandPath(), f.Name, f.Name)
			}
			if strings.Contains(strings.ReplaceAll(f.Name, "enroll", ""), "enrol") {
				t.Errorf("%s --%s: commands and flags spell it enroll", c.CommandPath(), f.Name)
			}
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: the help is %q; give a phrase without a full stop", c.CommandPath(), f.Name, f.Usage)
			}
		})
	})
}

// eachCommand calls f with a command and with all commands below it.
func eachCommand(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, below := range c.Commands() {
		eachCommand(below, f)
	}
}

func listed(meanings map[string][]string) (s string) {
	for _, m := range slices.Sorted(maps.Keys(meanings)) {
		s += fmt.Sprintf("\n  %s (%s)", m, strings.Join(meanings[m], ", "))
	}
	return s
}
