// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/office/presence"
)

// stage is a network camera that shows what a test wants: a recording, again and again, or an empty room.
type stage struct {
	server *httptest.Server
	URL    string

	mu       sync.Mutex
	pictures [][]byte
	served   int       // frames
	away     time.Time // until which nobody is answered
}

// newStage returns a camera that shows one of the demo's recordings, or with "" nobody.
func (s *site) newStage(name string) *stage {
	s.t.Helper()
	g := new(stage)
	s.show(g, name)
	g.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		away := time.Now().Before(g.away)
		g.mu.Unlock()
		if away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=frame")
		for i := 0; r.Context().Err() == nil; i++ {
			g.mu.Lock()
			b := g.pictures[i%len(g.pictures)]
			g.served++
			g.mu.Unlock()
			if _, err := fmt.Fprintf(w, "--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n", len(b), b); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(40 * time.Millisecond)
		}
	}))
	s.t.Cleanup(func() {
		g.server.CloseClientConnections()
		g.server.Close()
	})
	g.URL = g.server.URL + "/stream"
	return g
}

// show changes what a camera shows.
func (s *site) show(g *stage, name string) {
	s.t.Helper()
	var pictures [][]byte
	if name != "" {
		pictures = jpegs(s.t, s.recording(name))
	} else {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 320, 240)), nil); err != nil {
			s.t.Fatal(err)
		}
		pictures = [][]byte{b.Bytes()}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pictures = pictures
}

// events returns what an office with --json has said.
func (r *running) events() (all []presence.Event) {
	r.t.Helper()
	for line := range strings.Lines(r.out.String()) {
		var e presence.Event
		if strings.HasSuffix(line, "\n") {
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				r.t.Fatalf("%s: %v", line, err)
			}
			all = append(all, e)
		}
	}
	return all
}

// awaits waits until a kind of event of somebody was said, and returns it.
func (r *running) awaits(kind presence.Kind, name string, within time.Duration) presence.Event {
	r.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		for _, e := range r.events() {
			if e.Kind == kind && e.Name == name {
				return e
			}
		}
		if time.Now().After(end) {
			r.t.Fatalf("in vain: %s %s", kind, name)
		}
	}
}

// kill ends an office at once, as the kernel does where there is no memory.
func (r *running) kill() time.Time {
	at := time.Now()
	r.once.Do(func() {
		r.c.Process.Kill()
		r.c.Wait()
	})
	return at
}

// After a kill -9 and a restart nobody who stayed has left or arrived, and who left meanwhile left when they were seen
// last, give or take two seconds.
func TestOfficeKilled(t *testing.T) {
	s := newSite(t)
	s.enrol("alice")
	s.enrol("bob")
	door, desk := s.newStage("alice"), s.newStage("bob")
	args := []string{"door=" + door.URL, "desk=" + desk.URL, "--json", "--away", "5s"}
	r := s.office(args...)
	r.awaits(presence.Arrived, "alice", time.Minute)
	r.awaits(presence.Arrived, "bob", time.Minute)
	for round, down := range []time.Duration{time.Second, 8 * time.Second} {
		time.Sleep(7*time.Second + time.Duration(round)*700*time.Millisecond) // the logbook was written when they arrived
		killed := r.kill()
		last := round == 1
		if last {
			s.show(desk, "")
		}
		time.Sleep(down)
		r = s.office(args...)
		if !last {
			r.until("desk: camera connected")
			r.until("door: camera connected")
			time.Sleep(8 * time.Second)
			if all := r.events(); len(all) != 0 {
				t.Errorf("after %v: %+v", down, all)
			}
			continue
		}
		left := r.awaits(presence.Left, "bob", time.Minute)
		wrong := killed.Sub(left.At)
		t.Logf("bob was seen %v before the kill, it was said", wrong)
		if wrong < -100*time.Millisecond || wrong > 3*time.Second {
			t.Errorf("bob has left at %v, and the program was killed at %v", left.At, killed)
		}
		if all := r.events(); len(all) != 1 {
			t.Errorf("after %v: %+v", down, all)
		}
	}
}

// silent is the URL of a camera that takes connections and never says a word.
func (s *site) silent() string {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.t.Cleanup(func() { c.Close() })
		}
	}()
	return "http://" + l.Addr().String() + "/stream"
}

// Cameras that take a connection and never answer are their own trouble: another one that drops for a second is back
// within seconds, and nobody has left.
func TestOfficeDeadCameras(t *testing.T) {
	s := newSite(t)
	s.enrol("alice")
	door := s.newStage("alice")
	r := s.office("yard="+s.silent(), "attic="+s.silent(), "door="+door.URL, "--json", "--away", "4s", "--timeout", "4s")
	r.awaits(presence.Arrived, "alice", time.Minute)
	r.until("yard: ")
	r.until("attic: ")
	for try := range 3 {
		before := strings.Count(r.log.String(), "door: camera connected")
		door.drop(time.Second)
		dropped := time.Now()
		for ; strings.Count(r.log.String(), "door: camera connected") == before; time.Sleep(20 * time.Millisecond) {
			if time.Since(dropped) > time.Minute {
				t.Fatal("it does not come back")
			}
		}
		took := time.Since(dropped)
		t.Logf("try %d: back after %v", try, took)
		if took > 15*time.Second {
			t.Errorf("a camera that dropped for a second is back after %v", took)
		}
		time.Sleep(time.Second)
	}
	if all := r.events(); len(all) != 1 {
		t.Errorf("%+v", all)
	}

	// Where it stays away, she has not left because of that, and the page says that nobody knows.
	door.drop(time.Hour)
	r.until("door: ")
	time.Sleep(9 * time.Second)
	if all := r.events(); len(all) != 1 {
		t.Errorf("%+v", all)
	}
}

// drop ends a camera's connections and refuses others for a while.
func (g *stage) drop(d time.Duration) {
	g.mu.Lock()
	g.away = time.Now().Add(d)
	g.mu.Unlock()
	g.server.CloseClientConnections()
}
