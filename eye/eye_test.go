// SPDX-License-Identifier: Apache-2.0

package eye_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/wire"
)

// acts is the environment variable that makes this program act as an eye.
const acts = "FACEAUTH_EYE_ACTS"

func TestMain(m *testing.M) {
	if how := os.Getenv(acts); how != "" {
		act(how)
		return
	}
	os.Exit(m.Run())
}

// act plays an eye with the given fault. The eye behaves well until a source is open.
func act(how string) {
	f := os.NewFile(3, "program")
	conn, err := net.FileConn(f)
	if err != nil {
		panic(err)
	}
	say := func(m wire.Message) { conn.Write(wire.Append(nil, m)) }
	count := face.Count{Declared: 100}
	if strings.HasSuffix(how, "of a camera") {
		count.Declared = -1
	}
	lie := -1
	fmt.Sscanf(how, "lie %d", &lie)
	for frame := 0; ; {
		var q wire.Request[eye.Vision, eye.Options]
		err := wire.ReadRequest(conn, &q)
		if err != nil {
			return
		}
		m := truth(new(testing.T))
		m.Frame.Index, m.Frame.Time = frame, time.Duration(frame)*40*time.Millisecond
		m.Count = count
		switch {
		case q.Setup != nil && how == "other version":
			say(wire.Message{Kind: wire.Ready, Report: wire.Report{Version: wire.Version + 1},
				Space: "test"})
		case q.Setup != nil && how == "other space":
			say(wire.Message{Kind: wire.Ready, Report: wire.Report{Version: wire.Version},
				Space: "other"})
		case q.Setup != nil && how == "no networks":
			say(wire.Message{Kind: wire.Failed, Code: 9, Text: "model x: it is missing"})
		case q.Setup != nil && how == "silent from the beginning":
		case q.Setup != nil:
			say(wire.Message{Kind: wire.Ready, Report: wire.Report{Version: wire.Version},
				Space: "test"})
		case q.Open != nil && how == "no source":
			say(wire.Failure(fmt.Errorf("opening source: %w", face.ErrNotVideo)))
		case q.Open != nil:
			say(wire.Message{Kind: wire.Opened,
				Report: wire.Report{Version: wire.Version, Landlock: 1, Seccomp: true},
				Count:  count})
		case frame < 2: // the first frames are always good
			frame++
			count.Read++
			m.Count = count
			say(m)
		default:
			count.Read++
			m.Count = count
			switch how {
			case "good":
				if frame++; frame > 5 {
					say(wire.Message{Kind: wire.End, Count: count})
					continue
				}
				say(m)
			case "held":
				if frame++; frame > 5 {
					say(wire.Message{Kind: wire.End, Count: count})
					continue
				}
				m.Frame.Samples[0] = held(m.Frame.Samples[0])
				say(m)
			case "held unasked":
				m.Frame.Samples[0] = held(m.Frame.Samples[0])
				say(m)
			case "killed":
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			case "aborted":
				syscall.Kill(os.Getpid(), syscall.SIGABRT)
				time.Sleep(time.Minute)
			case "stopped":
				if frame++; frame > 3 {
					say(wire.Message{Kind: wire.End, Count: count})
					continue
				}
				syscall.Kill(os.Getpid(), syscall.SIGSTOP)
				say(m)
			case "spins":
				for {
					frame++
				}
			case "beats":
				for range 5 {
					say(wire.Message{Kind: wire.Beat})
				}
				say(wire.Message{Kind: wire.End, Count: count})
			case "ended":
				os.Exit(3)
			case "silent":
			case "half":
				b := wire.Append(nil, m)
				conn.Write(b[:len(b)/2])
			case "half and ended":
				b := wire.Append(nil, m)
				conn.Write(b[:len(b)/2])
				return
			case "drip": // one byte at a time, each in time, but never a whole message
				for _, b := range wire.Append(nil, m) {
					conn.Write([]byte{b})
					time.Sleep(20 * time.Millisecond)
				}
			case "flood":
				for {
					say(wire.Message{Kind: wire.Progress, Count: count})
				}
			case "progress of a camera":
				for {
					count.Read++
					say(wire.Message{Kind: wire.Progress, Count: count})
				}
			case "flood of files", "files of a camera":
				for {
					say(wire.Message{Kind: wire.Damaged, Text: "a file"})
				}
			case "noise":
				noise := make([]byte, 1<<16)
				for i := range noise {
					noise[i] = byte(i * 7)
				}
				for {
					if _, err := conn.Write(noise); err != nil {
						return
					}
				}
			case "announces":
				conn.Write([]byte{byte(wire.Image), 255, 255, 255, 255})
			case "waits":
				say(wire.Message{Kind: wire.Progress, Count: count, Wait: time.Hour})
			case "back":
				m.Frame.Index = 0
				say(m)
			case "earlier":
				m.Frame.Time = 0
				m.Frame.Index = 50
				say(m)
			case "unread":
				m.Count.Read = 0
				say(m)
			case "other length":
				m.Count.Declared = 1000
				say(m)
			case "dropped":
				m.Count.Dropped = m.Count.Read + 1
				say(m)
			case "picture":
				m.Frame.JPEG = jpegOf(new(testing.T), 20)
				say(m)
			case "ready again":
				say(wire.Message{Kind: wire.Ready, Report: wire.Report{Version: wire.Version},
					Space: "test"})
			case "opened again":
				say(wire.Message{Kind: wire.Opened, Count: count})
			case "failed":
				say(wire.Failure(fmt.Errorf("reading frame 2: %w", face.ErrTimeout)))
			default:
				lies[lie].lie(new(testing.T), &m)
				say(m)
			}
		}
	}
}

// work is the processor time that an eye of the tests may use without a message.
const work = 2 * time.Second

// play starts an eye with the given fault, and reads frames until an error.
func play(t *testing.T, how string, idle time.Duration) (frames int, err error) {
	t.Helper()
	t.Setenv(acts, how)
	e, err := eye.Start(t.Context(), eye.Config{
		Space: space, Command: []string{"/proc/self/exe", "eye"}, Idle: idle, Work: work,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := e.Open(t.Context(), "film.avi", eye.Options{
		Gate: eye.Learn, Faces: 8, Picture: 112, Timeout: time.Millisecond,
		Spare: strings.HasPrefix(how, "held") && how != "held unasked",
		Live:  strings.HasSuffix(how, "of a camera"),
	})
	if err != nil {
		return 0, err
	}
	for {
		f, err := s.Next(t.Context())
		if err != nil {
			if _, again := s.Next(t.Context()); !errors.Is(again, err) {
				t.Errorf("after %v comes %v", err, again)
			}
			return frames, err
		}
		if len(f.Samples) != 2 || f.Samples[0].Space != "test" {
			t.Errorf("frame %d: %+v", f.Index, f)
		}
		frames++
	}
}

// Invalid options are refused. They are not replaced by defaults, and the eye goes on.
func TestOptions(t *testing.T) {
	t.Setenv(acts, "failed")
	c := eye.Config{Space: space, Command: []string{"/proc/self/exe", "eye"}}
	e := fixture.Must(eye.Start(t.Context(), c))(t)
	defer e.Close()
	for want, o := range map[string]eye.Options{
		"the timeout is -1s": {Timeout: -time.Second},
		"FPS is -1":          {FPS: -1},
		"FPS is NaN":         {FPS: math.NaN()},
		"FPS is +Inf":        {FPS: math.Inf(1)},
	} {
		o.Gate = eye.Learn
		_, err := e.Open(t.Context(), "film.avi", o)
		if !errors.Is(err, eye.ErrSettings) ||
			!strings.HasPrefix(err.Error(), "unusable setting: "+want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, err := e.Open(t.Context(), "film.avi",
		eye.Options{Gate: eye.Learn, Faces: 8, Picture: 112}); err != nil {
		t.Errorf("after options that were refused: %v", err)
	}
}

// Every fault of an eye is an error of its source, in time, and has no other effect.
func TestPlainCharacters(t *testing.T) {
	for _, c := range []struct {
		how    string
		frames int
		want   error
		text   string
	}{
		{"good", 5, io.EOF, "EOF"},
		{"beats", 2, io.EOF, "EOF"},
		{"held", 5, io.EOF, "EOF"},
		{"held unasked", 2, eye.ErrBroken, "nobody asked for it"},
		{"failed", 2, face.ErrTimeout, "reading frame 2: the source gave no frame in time"},
		{"no source", 0, face.ErrNotVideo, "opening source: neither"},
		{"no networks", 0, eye.ErrVision, "model x: it is missing"},
		{"other version", 0, eye.ErrBroken, "restart both"},
		{"other space", 0, eye.ErrBroken, "another feature space than test"},
		{"silent from the beginning", 0, eye.ErrBroken, "gives no answer"},
		{"killed", 2, eye.ErrBroken, "it was killed, perhaps for want of memory"},
		{"aborted", 2, eye.ErrBroken, "a fault in a library"},
		{"ended", 2, eye.ErrBroken, "exit code 3"},
		{"silent", 2, eye.ErrBroken, "gives no answer"},
		{"half", 2, eye.ErrBroken, "gives no answer"},
		{"half and ended", 2, eye.ErrBroken, "exit code 0"},
		{"spins", 2, eye.ErrBroken, "gives no answer"},
		{"drip", 2, eye.ErrBroken, "gives no answer"},
		{"flood", 2, eye.ErrBroken, "progress without any"},
		{"progress of a camera", 2, eye.ErrBroken, "progress without any"},
		{"flood of files", 2, eye.ErrBroken, "more damaged files than there are"},
		{"files of a camera", 2, eye.ErrBroken, "more damaged files than there are"},
		{"noise", 2, eye.ErrBroken, "unknown kind 0"},
		{"announces", 2, eye.ErrBroken, "message of 4294967295 bytes"},
		{"waits", 2, eye.ErrBroken, "progress without any"},
		{"back", 2, eye.ErrBroken, "frame 0 after frame 1"},
		{"earlier", 2, eye.ErrBroken, "older than its predecessor"},
		{"unread", 2, eye.ErrBroken, "fewer frames than before"},
		{"other length", 2, eye.ErrBroken, "fewer frames than before"},
		{"dropped", 2, eye.ErrBroken, "dropped more frames"},
		{"picture", 2, eye.ErrBroken, "nobody asked for"},
		{"ready again", 2, eye.ErrBroken, "it said 1"},
		{"opened again", 2, eye.ErrBroken, "it said 2"},
	} {
		t.Run(c.how, func(t *testing.T) {
			idle := time.Minute
			if c.text == "gives no answer" {
				idle = time.Second
			}
			frames, err := play(t, c.how, idle)
			if frames != c.frames || !errors.Is(err, c.want) ||
				!strings.Contains(err.Error(), c.text) {
				t.Errorf("%d frames and %v, want %d and %q", frames, err, c.frames, c.text)
			}
		})
	}
}

// An eye that somebody has stopped is not silent, however long it is stopped.
func TestStopped(t *testing.T) {
	const idle = time.Second
	done := make(chan error, 1)
	frames := 0
	go func() {
		var err error
		frames, err = play(t, "stopped", idle)
		done <- err
	}()
	pid := 0
	for pid == 0 {
		pid = stoppedChild()
		time.Sleep(10 * time.Millisecond)
	}
	select {
	case err := <-done:
		t.Fatalf("after it was stopped: %v", err)
	case <-time.After(5 * idle):
	}
	fixture.Check(t, syscall.Kill(pid, syscall.SIGCONT))
	if err := <-done; !errors.Is(err, io.EOF) || frames != 3 {
		t.Errorf("%d frames and %v", frames, err)
	}
}

// stoppedChild returns the number of a child of this process that is stopped, or 0.
func stoppedChild() (pid int) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		b, _ := os.ReadFile(path)
		var name, state string
		var n, parent int
		fmt.Sscan(string(b), &n, &name, &state, &parent)
		if parent == os.Getpid() && state == "T" {
			return n
		}
	}
	return 0
}

// A false value in any field ends the eye that sent it.
func TestLyingEyes(t *testing.T) {
	for i, c := range lies {
		frames, err := play(t, fmt.Sprintf("lie %d", i), time.Minute)
		if frames != 2 || !errors.Is(err, eye.ErrBroken) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d frames and %v, want %q", c.what, frames, err, c.want)
		}
	}
}

// The end of a context, and Close, end an eye that hangs, and leave nothing behind.
func TestEnds(t *testing.T) {
	t.Setenv(acts, "silent")
	for _, way := range []string{"context", "close"} {
		t.Run(way, func(t *testing.T) {
			e, err := eye.Start(t.Context(),
				eye.Config{Space: space, Command: []string{"/proc/self/exe", "eye"}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			s := fixture.Must(e.Open(t.Context(), "film.avi",
				eye.Options{Gate: eye.Learn, Picture: 112}))(t)
			for range 2 {
				fixture.Must(s.Next(t.Context()))(t)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			want := context.Canceled
			end := cancel
			if way == "close" {
				want, end = eye.ErrClosed, func() { e.Close() }
			}
			time.AfterFunc(50*time.Millisecond, end)
			begun := time.Now()
			if _, err := s.Next(ctx); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			e.Close()
			if took := time.Since(begun); took > time.Minute { // the eye would hang for ever
				t.Errorf("it took %v", took)
			}
			if _, err := e.Open(t.Context(), "film.avi", eye.Options{}); err == nil {
				t.Error("a closed eye opens a source")
			}
			var status syscall.WaitStatus
			if pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); err == nil || pid > 0 {
				t.Errorf("a child is left: %d, %v", pid, err)
			}
		})
	}
}

// The environment of an eye has none of the variables that may be secret. An eye that cannot be a
// copy is started by itself, and nothing makes it a loader.
func TestEnvironment(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	t.Setenv("LC_ALL", "C.UTF-8")
	out := make(chan string, 1)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		b, _ := io.ReadAll(r)
		out <- string(b)
	}()
	var failed error
	l := &eye.Loader{Failed: func(err error) { failed = err }}
	defer l.Close()
	e, err := eye.Start(t.Context(),
		eye.Config{Space: space, Loader: l, Command: []string{"/usr/bin/env", "sh", "-c",
			"env >&2; ls /proc/self/fd >&2"}, Stderr: w})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Open(t.Context(), "x", eye.Options{}); !errors.Is(err, eye.ErrBroken) {
		t.Error(err)
	}
	e.Close()
	w.Close()
	said := <-out
	if !strings.Contains(said, "LC_ALL=C.UTF-8") || strings.Contains(said, "AWS") ||
		strings.Contains(said, "HOME=") {
		t.Errorf("the eye is given %s", said)
	}
	if failed == nil || strings.Count(said, "FACEAUTH_EYE_LOADER=") != 1 {
		t.Errorf("no loader: %v; the loader and the eye are given %s", failed, said)
	}
	// 3 and 4 are the sockets to the program; ls itself opens 5
	if strings.Contains(said, "\n6\n") {
		t.Errorf("the eye is given files: %s", said)
	}
}

// A socket on which another user listens is refused.
func TestPeer(t *testing.T) {
	path := t.TempDir() + "/eye"
	l := fixture.Must(net.Listen("unix", path))(t)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
			uid, err := wire.Peer(c)
			if err != nil || uid != os.Geteuid() {
				t.Errorf("the peer is %d: %v", uid, err)
			}
			io.Copy(io.Discard, io.LimitReader(c, math.MaxInt64))
		}
	}()
	e := fixture.Must(eye.Start(t.Context(), eye.Config{Space: space, Socket: path}))(t)
	e.Close()
	if _, err := eye.Start(t.Context(),
		eye.Config{Space: space, Socket: path + "none"}); err == nil {
		t.Error("an eye is started where nobody listens")
	}
}
