// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/tape"
)

// site is an office whose cameras see people who are made up.
type site struct {
	t         testing.TB
	dir, demo string
	run       string // folder for files of the present session
	eye       string // in the environment: which eye the commands use
}

func newSite(t *testing.T) *site {
	t.Helper()
	t.Parallel() // these tests mostly wait for their recordings
	return &site{t: t, dir: t.TempDir(), run: t.TempDir(), demo: films(t)}
}

func (s *site) recording(name string) string { return filepath.Join(s.demo, name+".avi") }

func (s *site) command(args ...string) *exec.Cmd {
	s.t.Helper()
	c := exec.CommandContext(s.t.Context(), "faceauth",
		append(args, "--gallery", filepath.Join(s.dir, "gallery"), "--models",
			fixture.Models(s.t))...)
	c.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+s.run, s.eye)
	return c
}

func (s *site) enrol(name string) {
	s.t.Helper()
	if out, err := s.command("enroll", s.recording(name), "--name",
		name).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

// running is a running office.
type running struct {
	t        testing.TB
	c        *exec.Cmd
	out, log *fixture.Log
	once     sync.Once
}

func (s *site) office(args ...string) *running {
	s.t.Helper()
	return s.officeAs("state", args...)
}

// officeAs is [site.office] with a given name of the office.
func (s *site) officeAs(state string, args ...string) *running {
	s.t.Helper()
	r := &running{t: s.t, out: new(fixture.Log), log: new(fixture.Log)}
	r.c = s.command(append([]string{"office", "--state", state}, args...)...)
	r.c.Stdout, r.c.Stderr = r.out, r.log
	fixture.Check(s.t, r.c.Start())
	s.t.Cleanup(func() {
		r.stop()
		if s.t.Failed() {
			s.t.Logf("office said\n%s\n%s", r.out, r.log)
		}
	})
	return r
}

// stop ends the office as a service manager does.
func (r *running) stop() {
	r.once.Do(func() {
		r.c.Process.Signal(os.Interrupt)
		r.c.Wait()
	})
}

// until waits, a minute at most, until a text is in the output or in the messages.
func (r *running) until(what string) {
	r.t.Helper()
	waits(r.t, what, func() bool { return strings.Contains(r.out.String()+r.log.String(), what) })
}

// longest is the time after which nothing is waited for any more, even on a busy machine.
const longest = 2 * time.Minute

// waits waits until something is so.
func waits(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(longest); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// page returns the address of the page.
func (r *running) page() string {
	r.t.Helper()
	r.until("the page is at ")
	return strings.TrimSuffix(regexp.MustCompile(`https?://\S+`).FindString(r.log.String()), "/")
}

// jpegs returns the frames of a film.
func jpegs(t testing.TB, path string) (pictures [][]byte) {
	t.Helper()
	f := fixture.Must(tape.Read(path))(t)
	for _, shot := range f.Frames {
		pictures = append(pictures, tape.JPEG(shot...))
	}
	return pictures
}

// pace is the time that a camera of the tests takes for a frame: slow, as several tests watch at
// once.
const pace = 100 * time.Millisecond

// A network camera ends, refuses and hangs, and comes back each time. Its password is in no output.
func TestOfficeCamera(t *testing.T) {
	s := newSite(t)
	s.enrol("alice")
	camera := s.newStage("alice")
	r := s.office("door="+strings.Replace(camera.URL, "http://", "http://me:hidden@", 1)+"?private",
		"--timeout", "3s", "--away", "60s")
	connected := func(times int) {
		t.Helper()
		waits(t, "the camera comes back", func() bool {
			return strings.Count(r.log.String(), "door: camera connected") >= times
		})
	}
	r.until("door  alice has arrived")
	camera.drop(time.Second)
	connected(2)
	r.until("it is tried again")
	camera.hang(true)
	r.until("none after ")
	camera.hang(false)
	connected(3)
	r.stop()
	if n := strings.Count(r.out.String(), "arrived"); n != 1 ||
		strings.Contains(r.out.String(), "left") {
		t.Errorf("%s", r.out)
	}
	if strings.Contains(r.out.String()+r.log.String(), "hidden") {
		t.Error("the camera's password was said")
	}
}
