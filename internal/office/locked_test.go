// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/store"
)

// While another program holds the write lock no camera waits: people come and go, lists and events
// have them, and all is written later with its true times. The lock is held until the camera has
// shown everything: what waits for it would wait for ever.
func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gallery")
	g := peopleAt(t, path)
	k := new(recorded)
	p := past(t, g)
	w := office.New(p, k.options())
	show, end := feed(t, w)
	show(n(9, "a"))
	other := fixture.Must(store.Open(path, store.Schema{}, false))(t)
	took := time.Duration(0)
	nothing(t, other.Write(func() error {
		begun := time.Now()
		show(strings.Repeat(n(60, "-")+n(9, "b")+n(60, "-")+n(9, "a"), 8) + n(60, "-") + n(30,
			"s") + n(60, "-"))
		took = time.Since(begun)
		if all := w.Visits(office.Wanted{}); len(all) != 1+16+1 {
			t.Errorf("%d visits", len(all))
		}
		if now := w.Now(); now.Disk.Held == 0 || now.Disk.Lost != 0 {
			t.Errorf("%+v", now.Disk)
		}
		return nil
	}))
	nothing(t, other.Close())
	if took > 2*time.Minute { // with 34 events, each of which waited for ten seconds, it took six
		t.Errorf("the camera waited for the other program: %v", took)
	}
	nothing(t, w.Save())
	events := w.Events(0, 99, nil)
	if len(events) != 2*17+1 || w.Now().Disk.Held != 0 {
		t.Errorf("%d events, %+v", len(events), w.Now().Disk)
	}
	for i, e := range events {
		if i > 0 && e.At.After(events[i-1].At) || e.ID != uint64(len(events)-i) {
			t.Errorf("event %+v", e)
		}
	}
	again := pastCopy(t, path).State()
	if again.Last != events[0].ID {
		t.Errorf("%d events are written, of %d", again.Last, events[0].ID)
	}
	end()
}

// While another program writes, a correction waits for it, and cameras do not.
func TestCorrectionWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gallery")
	g := peopleAt(t, path)
	w := office.New(past(t, g), new(recorded).options())
	other := fixture.Must(store.Open(path, store.Schema{}, false))(t)
	done := make(chan error, 1)
	nothing(t, other.Write(func() error {
		go func() { done <- refusal(w.Rename("alice", "anna")) }()
		for range 100 { // the office answers meanwhile
			if w.Number("alice") == 0 {
				t.Fatal("it was renamed under the lock")
			}
		}
		return nil
	}))
	nothing(t, <-done)
	if w.Number("anna") == 0 {
		t.Error("it was not renamed")
	}
	nothing(t, other.Close())
}

// Who was forgotten is gone at once, also when bytes cannot be overwritten: then the office says so
// until it is done.
func TestForgottenBytesAreLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gallery")
	g := peopleAt(t, path)
	var told []office.Disk
	o := new(recorded).options()
	o.Disk = func(d office.Disk) { told = append(told, d) }
	w := office.New(past(t, g), o)
	stuck := path + "-2026-11-20" // looks like a daily copy, and cannot be removed
	nothing(t, os.MkdirAll(filepath.Join(stuck, "full"), 0o700))
	nothing(t, refusal(w.Forget("alice")))
	now := w.Now()
	if len(now.Known) != 1 || now.Disk.Left == "" || now.Disk.Error != "" || len(told) != 1 ||
		told[0] != now.Disk {
		t.Errorf("%+v, told %+v", now, told)
	}
	nothing(t, os.RemoveAll(stuck))
	nothing(t, w.Save()) // as the next minute does
	if now := w.Now(); now.Disk.Left != "" || len(told) != 2 {
		t.Errorf("%+v, told %+v", now.Disk, told)
	}
}
