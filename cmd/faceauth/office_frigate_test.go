// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/faceauth/faceauth/internal/broker"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office/presence"
)

// An office recognises people in the snapshots of Frigate's events, and Frigate gets their names.
func TestSystemOfficeFrigate(t *testing.T) {
	long(t)
	s := newSite(t)
	s.enrol("alice")
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
	r := s.office("yard=frigate://me:hidden@"+b.Address+"/door?api="+api.URL, "--json", "--page",
		"127.0.0.1:0")
	r.until("yard: camera connected")
	c, _, err := broker.Dial(t.Context(), broker.Address{Host: b.Address}, mqtt.NewClientOptions())
	fixture.Check(t, err)
	defer c.Disconnect(0)
	text := fixture.Must(os.ReadFile(filepath.Join(fixture.Root(t), "internal", "frigate",
		"testdata",
		"event.json")))(t)
	alice := jpegs(t, s.recording("alice"))
	for n := 0; n < len(alice) && len(answered) == 0; n += 5 {
		var m map[string]any
		fixture.Check(t, json.Unmarshal(text, &m))
		after := m["after"].(map[string]any)
		after["id"], after["box"] = "1.3-alice", []int{0, 0, 0, 0}
		after["snapshot"] = map[string]any{"frame_time": n + 1, "box": []int{0, 0, 9999, 9999}}
		sent, _ := json.Marshal(m)
		c.Publish("frigate/events", 1, false, sent)
		select {
		case snapshot <- alice[n]:
		case <-time.After(time.Minute):
			t.Fatal("nobody asked for the snapshot")
		}
	}
	r.awaits(presence.Arrived, "alice")
	select {
	case got := <-answered:
		if want := `/api/events/1.3-alice/sub_label {"subLabel":"alice",`; !strings.HasPrefix(got,
			want) {
			t.Errorf("%s, want %s", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatal("Frigate got no name")
	}
	r.stop()
	if said := fmt.Sprint(r.out, r.log); strings.Contains(said, "hidden") ||
		strings.Contains(said, api.URL) {
		t.Errorf("a secret in %s", said)
	}
}
