// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/office/sink"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/tape"
)

// stage is a network camera that a test controls: it shows a recording, again and again, or an
// empty room.
type stage struct {
	server *httptest.Server
	URL    string

	mu       sync.Mutex
	pictures [][]byte
	served   int       // number of frames
	away     time.Time // until then the camera answers nobody
	hangs    bool      // it sends nothing more
}

// newStage returns a camera that shows one of the demo's recordings, or nobody if the name is "".
func (s *site) newStage(name string) *stage {
	s.t.Helper()
	g := new(stage)
	s.show(g, name)
	g.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		away := time.Now().Before(g.away)
		g.mu.Unlock()
		_, password, _ := r.BasicAuth()
		switch {
		case away:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case r.URL.RawQuery == "private" && password != "hidden":
			w.Header().Set("WWW-Authenticate", `Basic realm="camera"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=frame")
		for i := 0; r.Context().Err() == nil; i++ {
			g.mu.Lock()
			b, hangs := g.pictures[i%len(g.pictures)], g.hangs
			g.served++
			g.mu.Unlock()
			if hangs {
				<-r.Context().Done()
				return
			}
			if _, err := fmt.Fprintf(w,
				"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n",
				len(b), b); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(pace)
		}
	}))
	s.t.Cleanup(func() {
		g.server.CloseClientConnections()
		g.server.Close()
	})
	g.URL = g.server.URL + "/stream"
	return g
}

// show changes the picture of a camera.
func (s *site) show(g *stage, name string) {
	s.t.Helper()
	var pictures [][]byte
	if name != "" {
		pictures = jpegs(s.t, s.recording(name))
	} else {
		pictures = [][]byte{tape.JPEG()}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pictures = pictures
}

// events returns the events that an office with --json has printed.
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

// awaits waits until an event of a kind and a person is printed, and returns it.
func (r *running) awaits(kind presence.EventKind, name string) (e presence.Event) {
	r.t.Helper()
	waits(r.t, string(kind)+" "+name, func() bool {
		all := r.events()
		at := slices.IndexFunc(all, func(e presence.Event) bool {
			return e.Kind == kind && e.Name == name
		})
		if at >= 0 {
			e = all[at]
		}
		return at >= 0
	})
	return e
}

// kill ends an office at once with SIGKILL, as the kernel does when memory runs out.
func (r *running) kill() time.Time {
	at := time.Now()
	r.once.Do(func() {
		r.c.Process.Kill()
		r.c.Wait()
	})
	return at
}

// silent returns the URL of a camera that accepts connections and never answers.
func (s *site) silent() string {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fixture.Check(s.t, err)
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

// hang says whether a camera sends nothing.
func (g *stage) hang(so bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hangs = so
}

// drop ends a camera's connections, and refuses new ones for a while.
func (g *stage) drop(d time.Duration) {
	g.mu.Lock()
	g.away = time.Now().Add(d)
	g.mu.Unlock()
	g.server.CloseClientConnections()
}

// get returns the page's answer at a path.
func (r *running) get(path string, into any) string {
	r.t.Helper()
	answer := fixture.Must(http.Get(r.page() + path))(r.t)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		r.t.Fatalf("%s: %v", path, err)
	}
	return string(b)
}

// The broker is down, a webhook hangs and some cameras are missing: presence, page and disk are
// still right. The broker gets the state when it comes, and no output has a secret of the
// configuration.
func TestSystemOfficeSinksDown(t *testing.T) {
	long(t)
	s := newSite(t)
	s.enrol("alice")
	door, broker := s.newStage("alice"), fixture.NewBroker(t)
	config := filepath.Join(s.dir, "office.yaml")
	text := fmt.Sprintf(`
cameras:
  - {name: door, source: "%s?token=hidden-token"}
  - {name: yard, source: "%s?password=hidden-password&channel=1"}
  - {name: attic, source: "http://%s/live?auth=hidden", user: me, password: hidden-word}
  - {name: cellar, source: "rtsp://%s/user=me&password=hidden"}
mqtt: mqtt://%s
webhook: %s?key=hidden-key
page: 127.0.0.1:0
timeout: 3s
away: 4s
json: true
secrets: {webhook-secret: whsec_aGlkZGVuLXNlY3JldC1vZi1tb3JlLXRoYW4tMjQtYnl0ZXM=}
`, door.URL, s.silent(), fixture.ClosedAddress(t), fixture.ClosedAddress(t), broker.Address, s.silent())
	fixture.Check(t, os.WriteFile(config, []byte(text), 0o600))
	r := s.office("--config", config)
	r.awaits(presence.Arrived, "alice")
	for _, name := range []string{"yard", "attic", "cellar"} {
		r.until("faceauth: " + name + ": ")
	}
	var now struct {
		People  []struct{ Name string }
		Cameras []struct {
			Camera string
			Up     bool
		}
		Disk struct{ Error string }
	}
	all := r.get("/api/now", &now)
	if len(now.People) != 1 || now.People[0].Name != "alice" || len(now.Cameras) != 4 ||
		!now.Cameras[0].Up ||
		now.Cameras[1].Up || now.Disk.Error != "" {
		t.Errorf("%s", all)
	}
	var sinks []struct {
		Name    string
		Waiting int
		Error   string
	}
	waits(t, "an event waits for both sinks", func() bool {
		all += r.get("/api/sinks", &sinks)
		return len(sinks) == 2 && sinks[0].Waiting == 1 && sinks[1].Waiting == 1 &&
			sinks[0].Error != "" &&
			sinks[1].Error != ""
	})

	broker.Start()
	said := broker.Listen("listener")
	base := "faceauth/" + s.officeID()
	expect := func(topic, want string) {
		t.Helper()
		waits(t, topic+" is "+want, func() bool { return said.Get(topic) == want })
	}
	expect(base+"/people/"+sink.PersonID(1)+"/state", "ON")
	expect(base+"/cameras/"+sink.ID("door")+"/state", "ON")
	expect(base+"/cameras/"+sink.ID("yard")+"/state", "OFF")
	expect(base+"/count", "1")

	// The camera that sees her fails: her presence is unsure, and she has not left.
	door.drop(time.Hour)
	expect(base+"/cameras/"+sink.ID("door")+"/state", "OFF")
	expect(base+"/people/"+sink.PersonID(1)+"/state", "None")
	all += r.get("/api/now", &now)
	if e := r.events(); len(e) != 1 {
		t.Errorf("%+v", e)
	}
	r.kill()
	expect(base+"/status", "offline")
	if all += fmt.Sprint(said.All()) + r.out.String() + r.log.String(); strings.Contains(all,
		"hidden") {
		t.Errorf("a secret was said: %s", all)
	}
}

// officeID returns the random identifier of the office "state".
func (s *site) officeID() (id string) {
	s.t.Helper()
	db := fixture.Must(store.Open(filepath.Join(s.dir, "gallery"), store.Schema{}, false))(s.t)
	defer db.Close()
	if err := db.Query("select code from office where name = 'state'", func(r store.Row) error {
		id = r.ColumnText(0)
		return nil
	}); err != nil || id == "" {
		s.t.Fatalf("the office has no identifier: %v", err)
	}
	return id
}
