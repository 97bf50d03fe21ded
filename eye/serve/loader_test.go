// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/wire"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"golang.org/x/sys/unix"
)

// tells makes an eye of these tests say on stderr who it is.
const tells = "FACEAUTH_EYE_TELLS"

// told is what an eye said: its process, the one that started it, its open files, and what its Go
// takes for random.
type told struct {
	Process, Parent int
	Files           string
	Random          uint64
}

func tell() {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	fmt.Fprintln(os.Stderr, os.Getpid(), os.Getppid(), strings.Join(names, ","), rand.Uint64())
}

// listen returns what eyes said, in the order of their starts.
func listen(t *testing.T, said *fixture.Log, most int) (all []told) {
	t.Helper()
	for len(all) < most {
		all = nil
		for line := range strings.Lines(said.String()) {
			var x told
			_, err := fmt.Sscan(line, &x.Process, &x.Parent, &x.Files, &x.Random)
			if err == nil {
				all = append(all, x)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return all
}

// copies returns the configuration of eyes that are copies, and what they say.
func copies(t *testing.T) (eye.Config, *fixture.Log) {
	t.Helper()
	t.Setenv(tells, "1")
	var before syscall.Rlimit
	fixture.Check(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	t.Cleanup(func() { syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) })
	// as systemd starts programs
	usual := syscall.Rlimit{Cur: min(1024, before.Max), Max: before.Max}
	fixture.Check(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &usual))
	c, said := config(t), new(fixture.Log)
	c.Stderr = said
	c.Loader = &eye.Loader{Failed: func(err error) { t.Errorf("no copy: %v", err) }}
	t.Cleanup(func() { c.Loader.Close() })
	return c, said
}

// Copies of a loader give the same frames as the pipeline in this process, in the same sandbox as
// other eyes. They have no files, and nothing random, in common.
func TestLoader(t *testing.T) {
	path := fixture.Recordings(t, "faces/vidtimit_rot/p0")
	const most = 5
	want := here(t, path, pipeline.Options{Gate: preprocess.LearnGate, Picture: 112}, most)
	c, said := copies(t)
	look := func(e *eye.Eye) {
		t.Helper()
		s := fixture.Must(e.Open(t.Context(), path, eye.Options{Gate: eye.Learn, Picture: 112}))(t)
		if r := e.Report(); !r.Seccomp || r.Landlock == 0 {
			t.Errorf("its sandbox is %+v", r)
		}
		for i, w := range want {
			f := fixture.Must(s.Next(t.Context()))(t)
			if fmt.Sprintf("%+v", plain(f)) != fmt.Sprintf("%+v", plain(w)) ||
				!slices.Equal(f.Samples[0].Vector, w.Samples[0].Vector) {
				t.Errorf("frame %d differs", i)
			}
		}
	}
	var eyes []*eye.Eye
	for range 2 {
		e := fixture.Must(eye.Start(t.Context(), c))(t)
		defer e.Close()
		eyes = append(eyes, e)
		look(e)
	}
	c.Vision.Liveness = true // it opens what the loader has not
	e := fixture.Must(eye.Start(t.Context(), c))(t)
	defer e.Close()
	s := fixture.Must(e.Open(t.Context(), path, eye.Options{Gate: eye.Learn}))(t)
	if f := fixture.Must(s.Next(t.Context()))(t); f.Samples[0].Liveness == nil {
		t.Error("a copy scores no liveness")
	}
	c.Vision.Liveness, c.Loader = false, nil
	alone := fixture.Must(eye.Start(t.Context(), c))(t)
	defer alone.Close()
	look(alone)
	all := listen(t, said, 5)
	loader := all[0].Parent
	random := make(map[uint64]bool)
	for i, x := range all {
		random[x.Random] = true
		// Only the first one has the file for what it opens.
		if i > 0 && x.Files != all[len(all)-1].Files {
			t.Errorf("copy %d has the files %s, another eye %s", i, x.Files, all[len(all)-1].Files)
		}
		if (x.Parent == loader) != (i < len(all)-1) {
			t.Errorf("eye %d is of process %d, the loader is %d", i, x.Parent, loader)
		}
	}
	if len(random) != len(all) {
		t.Errorf("copies share what is random: %+v", all)
	}
	const shared = 16 << 10 // some 39 MB (lab/NOTES.md), of which little may be written to
	for _, x := range all[1:3] {
		own, whole := private(t, x.Process), private(t, all[4].Process)
		if own > whole-shared {
			t.Errorf("a copy holds %d kB of its own, another eye %d", own, whole)
		}
	}
	for _, e := range eyes {
		e.Close()
	}
	for _, x := range all[:3] {
		gone(t, x.Process)
	}
}

// private is the memory of a process that no other one shares, in kB.
func private(t *testing.T, pid int) (size int) {
	t.Helper()
	b := fixture.Must(os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)))(t)
	for line := range strings.Lines(string(b)) {
		var kB int
		if n, _ := fmt.Sscanf(line, "Private_Dirty: %d", &kB); n == 1 {
			size += kB
		}
	}
	return size
}

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	for syscall.Kill(pid, 0) == nil {
		time.Sleep(10 * time.Millisecond)
	}
}

// An eye that breaks ends no other one, and no further eye has its addresses in memory. If the
// loader is killed, its eyes end, and the next one has another loader.
func TestLoaderBreaks(t *testing.T) {
	path := fixture.Recordings(t, "faces/vidtimit_rot/p0")
	c, said := copies(t)
	begin := func() (*eye.Eye, *eye.Stream) {
		t.Helper()
		e := fixture.Must(eye.Start(t.Context(), c))(t)
		t.Cleanup(func() { e.Close() })
		return e, fixture.Must(e.Open(t.Context(), path, eye.Options{Gate: eye.Learn}))(t)
	}
	_, first := begin()
	_, second := begin()
	all := listen(t, said, 3)
	fixture.Check(t, syscall.Kill(all[1].Process, syscall.SIGSEGV))
	if _, err := until(first, t); !errors.Is(err, eye.ErrBroken) ||
		!strings.Contains(err.Error(), "exit code 2") {
		t.Errorf("an eye with a fault: %v", err)
	}
	fixture.Must(second.Next(t.Context()))(t)
	_, third := begin()
	all = listen(t, said, 5)
	if all[2].Parent != all[1].Parent || all[4].Parent == all[1].Parent {
		t.Errorf("the eyes are of processes %+v", all)
	}
	fixture.Check(t, syscall.Kill(all[4].Parent, syscall.SIGKILL))
	if _, err := until(third, t); !errors.Is(err, eye.ErrBroken) ||
		!strings.Contains(err.Error(), "it was killed") {
		t.Errorf("an eye whose loader was killed: %v", err)
	}
	gone(t, all[4].Process)
	fixture.Must(second.Next(t.Context()))(t)
	_, fourth := begin()
	fixture.Must(fourth.Next(t.Context()))(t)
}

// If the loader does not make a copy, this is told, and the eye is no copy. The other eyes go on,
// if the loader lives, and their ends are seen.
func TestLoaderFails(t *testing.T) {
	path := fixture.Recordings(t, "faces/vidtimit_rot/p0")
	signal := func(s syscall.Signal) func(int) error {
		return func(pid int) error { return syscall.Kill(pid, s) }
	}
	for _, x := range []struct {
		name, told string
		do         func(pid int) error
		lives      bool
	}{
		{"stopped", "copying the process: no answer within 100ms", signal(syscall.SIGSTOP), true},
		{"killed", "copying the process: it has ended: ", signal(syscall.SIGKILL), false},
		{"without files", "copying the process: too many open files", func(pid int) error {
			return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 6, Max: 6}, nil)
		}, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, said := copies(t)
			var failed []string
			c.Loader.Failed = func(err error) { failed = append(failed, err.Error()) }
			begin := func() (*eye.Eye, *eye.Stream) {
				e := fixture.Must(eye.Start(t.Context(), c))(t)
				t.Cleanup(func() { e.Close() })
				return e, fixture.Must(e.Open(t.Context(), path, eye.Options{Gate: eye.Learn}))(t)
			}
			_, first := begin()
			fixture.Must(first.Next(t.Context()))(t)
			copied := listen(t, said, 2)[1]
			err := x.do(copied.Parent)
			if errors.Is(err, os.ErrPermission) {
				t.Skip("only root may set a limit of another process that nobody may look into")
			}
			fixture.Check(t, err)
			if x.name == "stopped" { // it will never answer
				c.Loader.Timeout = 100 * time.Millisecond
			}
			e, second := begin()
			if len(failed) != 1 || !strings.HasPrefix(failed[0], x.told) {
				t.Errorf("told %q", failed)
			}
			fixture.Must(second.Next(t.Context()))(t)
			if all := listen(t, said, 3); all[2].Parent != os.Getpid() {
				t.Errorf("the second eye is a copy: %+v", all)
			}
			_, err = first.Next(t.Context())
			if (err == nil) != x.lives {
				t.Errorf("the first eye: %v", err)
			}
			syscall.Kill(copied.Process, syscall.SIGSEGV)
			_, err = until(first, t)
			if !errors.Is(err, eye.ErrBroken) {
				t.Errorf("the first eye, after a fault: %v", err)
			}
			e.Close()
			gone(t, copied.Parent)
			gone(t, copied.Process)
		})
	}
}

// A program that replaces the file of the eye is used by the next loader; the eyes of this one stay
// as they are. Messages of another version are refused with this word.
func TestLoaderUpgraded(t *testing.T) {
	path := fixture.Recordings(t, "faces/vidtimit_rot/p0")
	self := fixture.Must(os.Executable())(t)
	for name, script := range map[string]string{
		"by a loader":   "exec " + self + " newer",
		"by no loader":  "unset FACEAUTH_EYE_LOADER; exec " + self + " newer",
		"by no program": "exit 1",
	} {
		t.Run(name, func(t *testing.T) {
			c, said := copies(t)
			var failed []error
			c.Loader.Failed = func(err error) { failed = append(failed, err) }
			program := filepath.Join(t.TempDir(), "eye")
			fixture.Check(t, os.Symlink(self, program))
			c.Command = []string{program, "eye"}
			var streams []*eye.Stream
			begin := func() error {
				e, err := eye.Start(t.Context(), c)
				if err != nil { // it had ended before its setup was sent
					return err
				}
				t.Cleanup(func() { e.Close() })
				s, err := e.Open(t.Context(), path, eye.Options{Gate: eye.Learn})
				streams = append(streams, s)
				return err
			}
			fixture.Check(t, begin())
			fixture.Check(t, os.WriteFile(program+".new", []byte("#!/bin/sh\n"+script), 0o700))
			fixture.Check(t, os.Rename(program+".new", program))
			fixture.Check(t, begin())
			all := listen(t, said, 3)
			if all[2].Parent != all[1].Parent || len(failed) != 0 {
				t.Errorf("the eyes are of processes %+v; %v", all, failed)
			}
			fixture.Check(t, syscall.Kill(all[1].Process, syscall.SIGSEGV))
			until(streams[0], t)
			err := begin()
			want := fmt.Sprintf("the eye speaks version %d, and this program %d; after an upgrade, "+
				"restart both", wire.Version+1, wire.Version)
			if name == "by no program" {
				want = "has ended: exit code 1"
			}
			if err == nil || !strings.Contains(err.Error(), want) || len(failed) != 1 {
				t.Errorf("%v; told %v", err, failed)
			}
			fixture.Must(streams[1].Next(t.Context()))(t)
		})
	}
}

// newer is an eye of a later version.
func newer() {
	conn, err := net.FileConn(os.NewFile(3, "program"))
	if err != nil {
		panic(err)
	}
	conn.Write(wire.Append(nil, wire.Message{Kind: wire.Ready,
		Report: wire.Report{Version: wire.Version + 1}}))
	io.Copy(io.Discard, conn)
}

// Copies do not have the random numbers of their TLS in common.
func TestLoaderTLS(t *testing.T) {
	c, _ := copies(t)
	l := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	seen := make(map[string]bool)
	for range 3 {
		e := fixture.Must(eye.Start(t.Context(), c))(t)
		go e.Open(t.Context(), "https://"+l.Addr().String()+"/", eye.Options{Gate: eye.Learn})
		camera := fixture.Must(l.Accept())(t)
		const before, random = 5 + 4 + 2, 32 // of a ClientHello in its record: RFC 8446, 4.1.2
		hello := make([]byte, before+random)
		fixture.Must(io.ReadFull(camera, hello))(t)
		if seen[string(hello[before:])] {
			t.Error("two copies send the same random numbers")
		}
		seen[string(hello[before:])] = true
		camera.Close()
		e.Close()
	}
}

// until reads frames until an error.
func until(s *eye.Stream, t *testing.T) (frames int, err error) {
	for ; err == nil; frames++ {
		_, err = s.Next(t.Context())
	}
	return frames, err
}

// A program that is killed leaves neither the loader nor its eyes.
func TestLoaderEnds(t *testing.T) {
	c := exec.Command("/proc/self/exe", "loads", fixture.Models(t))
	c.Env = append(os.Environ(), tells+"=1")
	said := new(fixture.Log)
	c.Stderr = said
	fixture.Check(t, c.Start())
	all := listen(t, said, 3)
	fixture.Check(t, c.Process.Kill())
	c.Wait()
	gone(t, all[0].Parent)
	gone(t, all[1].Process)
	gone(t, all[2].Process)
}

// loads starts two eyes by a loader, and waits to be killed.
func loads() {
	c := eye.Config{Stderr: os.Stderr, Loader: new(eye.Loader),
		Space: models.Default(models.Embedding).Space(), Vision: eye.Vision{
			Features: "embedding", Detector: "network", Models: os.Args[2]}}
	for range 2 {
		_, err := eye.Start(context.Background(), c)
		if err != nil {
			panic(err)
		}
	}
	select {}
}
