// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/office"
)

// A full disk for the state and the gallery ends nothing: arrivals are reported, the page works, and naming somebody is
// refused with a sentence. When there is room again, everything is written, so that a kill afterwards loses nothing.
func TestSystemOfficeFullDisk(t *testing.T) {
	long(t)
	disk := fixture.NewDisk(t, 1<<23)
	s := newSite(t)
	s.enrol("alice")
	gallery := filepath.Join(disk.Dir, "gallery")
	b, err := os.ReadFile(filepath.Join(s.dir, "gallery"))
	if err == nil {
		err = os.WriteFile(gallery, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.dir = disk.Dir // both the gallery and the state are there
	door, desk := s.newStage(""), s.newStage("")
	args := []string{"door=" + door.URL, "desk=" + desk.URL, "--json", "--away", "4s", "--page", "127.0.0.1:0"}
	r := s.office(args...)
	r.until("door: camera connected")
	r.until("desk: camera connected")
	disk.Fill()
	s.show(door, "alice")
	s.show(desk, "bob")
	r.awaits(office.Arrived, "alice", time.Minute)
	r.awaits(office.Unknown, "", time.Minute)
	r.until("the disk is full")
	var now struct {
		People []struct{ Name string }
		Disk   struct {
			Error string
			Held  int
		}
	}
	if text := r.get("/api/now", &now); len(now.People) != 1 || !strings.Contains(now.Disk.Error,
		"the disk is full") ||
		strings.Contains(text, `"up":false`) {
		t.Errorf("%s", text)
	}
	if code, text := r.name(r.strangers()[0].ID); code < 400 || !strings.Contains(text, "the disk is full") {
		t.Errorf("named on a full disk: %d, %s", code, text)
	}

	disk.Free()
	r.until("the state is written again, and nothing is lost")
	strangers := r.strangers()
	if len(strangers) != 1 {
		t.Fatalf("%v", strangers)
	}
	if code, text := r.name(strangers[0].ID); code != http.StatusOK {
		t.Fatalf("named: %d, %s", code, text)
	}
	r.awaits(office.Arrived, "bob", time.Minute)
	time.Sleep(time.Second)
	r.kill()
	r = s.office(args...)
	r.until("desk: camera connected")
	r.until("door: camera connected")
	time.Sleep(7 * time.Second)
	if all := r.events(); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	now.People = nil
	if text := r.get("/api/now", &now); len(now.People) != 2 {
		t.Errorf("%s", text)
	}
	r.stop()
}
