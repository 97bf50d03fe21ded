// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/faceauth/faceauth/internal/broker"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/sighting"
)

// An office recognises people in the snapshots of Frigate's events, and Frigate gets their names. One picture confirms
// nobody, also if it is compressed anew each time.
func TestSystemOfficeFrigate(t *testing.T) {
	long(t)
	s := newSite(t)
	s.enrol("alice")
	for source, want := range map[string]string{
		"frigate://me:hidden@h/door":           "api must be the address of Frigate's HTTP API",
		"frigate://h/door?api=http://f&crop=1": "its parameters are api and topic",
	} {
		c := s.command("office", "door="+source)
		out, _ := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); code != cli.BadUsage || !strings.Contains(string(out), want) ||
			strings.Contains(string(out), "hidden") {
			t.Errorf("exit %d: %s", code, out)
		}
	}
	b := fixture.NewBroker(t)
	b.Start()
	snapshot, answered := make(chan []byte), make(chan string, 9)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Write(<-snapshot)
			return
		}
		body, _ := io.ReadAll(r.Body)
		answered <- r.URL.Path + " " + string(body)
	}))
	defer api.Close()
	r := s.office("yard=frigate://me:hidden@"+b.Address+"/door?api="+api.URL, "--json", "--page", "127.0.0.1:0")
	r.until("yard: camera connected")
	c, _, err := broker.Dial(t.Context(), broker.Address{Host: b.Address}, mqtt.NewClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Disconnect(0)
	text, err := os.ReadFile(filepath.Join(fixture.Root(t), "internal", "frigate", "testdata", "event.json"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	show := func(id string, pictures ...[]byte) {
		t.Helper()
		for _, picture := range pictures {
			var m map[string]any
			fixture.Check(t, json.Unmarshal(text, &m))
			n++
			after := m["after"].(map[string]any)
			after["id"], after["box"] = id, []int{0, 0, 0, 0}
			after["snapshot"] = map[string]any{"frame_time": n, "box": []int{0, 0, 9999, 9999}}
			sent, _ := json.Marshal(m)
			c.Publish("frigate/events", 1, false, sent)
			select {
			case snapshot <- picture:
			case <-time.After(time.Minute):
				t.Fatal("nobody asked for the snapshot")
			}
		}
	}
	alice := jpegs(t, s.recording("alice"))
	still := slices.Repeat(alice[:1], 6)
	show("1.1-still", still...)
	var now struct {
		Cameras []struct{ Seen []office.Seen }
	}
	r.get("/api/now", &now)
	if seen := now.Cameras[0].Seen; len(seen) != 1 || seen[0].Name != "alice" || seen[0].Trust != sighting.Likely {
		t.Errorf("a still picture is seen as %+v", seen)
	}
	show("1.2-bomb", bomb(60000, 60000))
	r.until("yard: a snapshot of Frigate: the picture cannot be used: ")
	if len(answered) > 0 || len(r.events()) > 0 {
		t.Errorf("a still picture: %+v", r.events())
	}
	for i := 0; i < len(alice) && len(answered) == 0; i += 5 {
		show("1.3-alice", alice[i])
	}
	r.awaits(office.Arrived, "alice")
	select {
	case got := <-answered:
		if want := `/api/events/1.3-alice/sub_label {"subLabel":"alice",`; !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatal("Frigate got no name")
	}
	bob := jpegs(t, s.recording("bob"))
	for i := 0; i < 3*len(bob) && len(r.events()) < 2; i += 5 {
		show("1.4-bob", bob[i%len(bob)])
		time.Sleep(200 * time.Millisecond) // a stranger counts by different looks over a second and a half
	}
	r.awaits(office.Unknown, "")
	api.CloseClientConnections()
	api.Close()
	c.Publish("frigate/events", 1, false, bytes.Replace(text, []byte("1795251731.482913-q3kz7t"),
		[]byte("1.5-x"), -1))
	r.until("yard: the API of Frigate does not answer")
	r.stop()
	if said := fmt.Sprint(r.out, r.log); strings.Contains(said, "hidden") || strings.Contains(said, api.URL) {
		t.Errorf("a secret in %s", said)
	}
}
