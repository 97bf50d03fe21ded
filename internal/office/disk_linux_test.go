// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
)

// A full disk ends nothing: people come and go, the office reports the full disk, and held data is
// written when there is room.
func TestSystemFullDisk(t *testing.T) {
	disk := fixture.NewDisk(t, 1<<22)
	path := filepath.Join(disk.Dir, "gallery")
	g := peopleAt(t, path)
	k := new(recorded)
	o := k.options()
	p := past(t, g)
	var mu sync.Mutex
	var told []office.Disk
	o.Disk = func(d office.Disk) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, d)
	}
	w := office.New(p, o)
	show, end := feed(t, w)
	show(n(5, "a") + n(60, "-"))
	disk.Fill()
	// the last page of the disk takes some events
	for i := 0; w.Now().Disk.Error == "" && i < 50; i++ {
		show(n(5, "b") + n(60, "-") + n(5, "a") + n(60, "-"))
	}
	show(n(40, "s"))
	now := w.Now()
	if !strings.Contains(now.Disk.Error, "the disk is full") || now.Disk.Held == 0 {
		t.Fatalf("%+v", now.Disk)
	}
	if len(now.Cameras) != 1 || !now.Cameras[0].Up {
		t.Errorf("%+v", now.Cameras)
	}
	if err := refusal(w.Name(w.Strangers()[0].ID, "sue", false)); !errors.Is(err,
		gallery.ErrFull) || len(w.Now().Known) != 2 ||
		len(w.Strangers()) != 1 || len(w.Corrections(0, 9)) != 0 {
		t.Errorf("naming is refused, and nothing has changed: %v, %+v", err, w.Now().Known)
	}
	show(n(10, "sa"))
	last := w.Events(0, 1, nil)[0].ID

	disk.Free()
	for end := time.Now().Add(2 * time.Minute); w.Now().Disk.Error != ""; time.Sleep(
		50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it is not written though there is room: %+v", w.Now().Disk)
		}
	}
	mu.Lock()
	if len(told) != 2 || told[0].Error == "" || told[1].Error != "" || told[1].Held != 0 ||
		told[1].Lost != 0 {
		t.Errorf("told %+v", told)
	}
	mu.Unlock()
	// In the state that a kill of the program leaves.
	if s := pastCopy(t, path).State(); s.Last < last || len(s.People) != 1 ||
		s.People[0].Person != 1 {
		t.Errorf("the records have %+v, and the last event was %d", s, last)
	}
	nothing(t, refusal(w.Name(w.Strangers()[0].ID, "sue", false)))
	if again, err := gallery.Read(path); err != nil || !slices.Contains(again.Names(), "sue") {
		t.Errorf("the gallery: %v", err)
	}
	end()
}
