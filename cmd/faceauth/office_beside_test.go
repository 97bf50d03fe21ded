// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office/presence"
)

// people returns the names that `faceauth people` lists.
func (s *site) people() (names []string) {
	s.t.Helper()
	var all []struct{ Name string }
	fixture.Check(s.t, json.Unmarshal([]byte(s.tells("people", "--json")), &all))
	for _, p := range all {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

// tells runs a command about the people of a site, and returns what it prints.
func (s *site) tells(args ...string) string {
	s.t.Helper()
	c := exec.CommandContext(s.t.Context(), "faceauth",
		append(args, "--gallery", filepath.Join(s.dir, "gallery"))...)
	out, err := c.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

// says makes a correction on the page, and returns the status and the text of the answer.
func (r *running) says(path, body string) (int, string) {
	r.t.Helper()
	a := fixture.Must(http.Post(r.page()+path, "application/json", strings.NewReader(body)))(r.t)
	defer a.Body.Close()
	return a.StatusCode, string(fixture.Must(io.ReadAll(a.Body))(r.t))
}

// strangers waits until there are strangers on the page, and returns their numbers.
func (r *running) strangers() (all []struct{ ID uint64 }) {
	r.t.Helper()
	waits(r.t, "a stranger", func() bool {
		r.get("/api/strangers", &all)
		return len(all) > 0
	})
	return all
}

// name gives a stranger the name bob.
func (r *running) name(stranger uint64) (int, string) {
	r.t.Helper()
	return r.says("/api/name", fmt.Sprintf(`{"group":%d,"name":"bob","force":false}`, stranger))
}

// Somebody is enrolled and forgotten on the command line while an office learns, and a stranger
// gets names on its page. All of it holds, also after kill -9, and the office follows without a
// restart.
func TestPlainCommandsBesideOffice(t *testing.T) {
	s := newSite(t)
	door := s.newStage("")
	args := []string{"door=" + door.URL, "--learn", "--json", "--away", "4s", "--page",
		"127.0.0.1:0"}
	r := s.office(args...)
	r.until("door: camera connected")
	s.show(door, "bob")
	r.awaits(presence.Unknown, "")
	s.enrol("alice")
	strangers := r.strangers()
	if len(strangers) != 1 {
		t.Fatalf("%d strangers", len(strangers))
	}
	if code, text := r.name(strangers[0].ID); code != 200 {
		t.Fatalf("naming a stranger after an enrolment: status %d, %s", code, text)
	}
	r.awaits(presence.Arrived, "bob")
	if code, _ := r.says("/api/rename", `{"from":"bob","to":"robert"}`); code != 200 {
		t.Fatalf("renaming: status %d", code)
	}
	var now struct {
		People []struct{ Name string }
		Known  []struct{ Name string }
		Disk   struct{ Error string }
	}
	knows := func(want ...string) {
		t.Helper()
		waits(t, fmt.Sprintf("the office knows %q", want), func() bool {
			now.Known, now.People = nil, nil
			r.get("/api/now", &now)
			var names []string
			for _, p := range now.Known {
				names = append(names, p.Name)
			}
			slices.Sort(names)
			return slices.Equal(names, want)
		})
	}
	knows("alice", "robert")
	if len(now.People) != 1 || now.People[0].Name != "robert" || now.Disk.Error != "" {
		t.Errorf("%+v", now)
	}
	s.tells("people", "remove", "alice", "--yes")
	knows("robert")
	s.enrol("alice")
	r.kill()
	if got := s.people(); !slices.Equal(got, []string{"alice", "robert"}) {
		t.Errorf("after kill -9: %q", got)
	}
	r = s.office(args...)
	r.until("door: camera connected")
	knows("alice", "robert")
	var events []presence.Event
	if text := r.get("/api/events", &events); !strings.Contains(text, "robert") ||
		strings.Contains(text, "bob") {
		t.Errorf("%s", text)
	}

	// Robert is forgotten while no office runs: nothing of him is left.
	r.stop()
	if !bytes.Contains(s.bytes(), []byte("robert")) {
		t.Fatal("the name is in no file, so this tests nothing")
	}
	s.tells("people", "remove", "robert", "--yes")
	if bytes.Contains(s.bytes(), []byte("robert")) {
		t.Error("the name is still in a file")
	}
	s.show(door, "")
	r = s.office(args...)
	r.until("door: camera connected")
	var any any
	for _, path := range []string{"events", "sightings", "corrections", "people"} {
		if text := r.get("/api/"+path, &any); strings.Contains(text, "robert") ||
			strings.Contains(text, "bob") {
			t.Errorf("%s: %s", path, text)
		}
	}
}

// bytes returns the bytes of all files of the gallery.
func (s *site) bytes() (all []byte) {
	s.t.Helper()
	fixture.Check(s.t, filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var b []byte
			b, err = os.ReadFile(path)
			all = append(all, b...)
		}
		return err
	}))
	return all
}
