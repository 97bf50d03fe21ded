// SPDX-License-Identifier: Apache-2.0

package logbook_test

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/office/logbook"
)

// On a full disk the logbook goes on in memory, up to a limit, and is written when there is room. Sinks may get events
// from memory meanwhile.
func TestFullDisk(t *testing.T) {
	disk := fixture.NewDisk(t, 1<<18)
	path := filepath.Join(disk.Dir, "book")
	s := logbook.Settings{Events: 5, Waiting: 5}
	b := open(t, path, s)
	q, err := b.Queue("hook")
	if err != nil {
		t.Fatal(err)
	}
	record(t, b, 1, 2)
	if got := b.Trouble(); got.Err != nil || got.Held != 0 || got.Lost != 0 {
		t.Fatalf("%+v", got)
	}
	disk.Fill()
	id := uint64(3)
	for ; b.Trouble().Err == nil; id++ { // the last page of the disk takes some events
		record(t, b, id)
		if id > 500 {
			t.Fatal("the disk is not full")
		}
	}
	for range 9 {
		record(t, b, id)
		id++
	}
	got := b.Trouble()
	if !errors.Is(got.Err, syscall.ENOSPC) || got.Held != 5 || got.Lost != 5 || time.Since(got.Since) > time.Minute {
		t.Errorf("%+v", got)
	}
	if e := b.Events(0, 2); len(e) != 2 || e[0].ID != id-1 || b.State().Last != id-1 {
		t.Errorf("events %+v", e)
	}
	// A sink gets the events that are held in memory.
	e, ok := q.Next()
	if _, lost := q.Waiting(); !ok || e.ID != id-5 || lost != int(id)-6 {
		t.Errorf("next %+v, %d lost", e, lost)
	}
	if err := q.Done(e.ID); err != nil {
		t.Error(err)
	}
	if next, _ := q.Next(); next.ID != id-4 {
		t.Errorf("then %+v", next)
	}
	if k := copied(t, path); k.State().Last >= id-9 {
		t.Errorf("the file has %d", k.State().Last)
	}

	disk.Free()
	for end := time.Now().Add(10 * time.Second); b.Trouble().Err != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not written though there is room")
		}
	}
	record(t, b, id)
	b.Close()
	b = open(t, path, s)
	if got, want := len(b.Events(0, 99)), 5; got != want || b.State().Last != id || b.Events(0, 1)[0].ID != id {
		t.Errorf("%d events after a restart, last %d", got, b.State().Last)
	}
	if q, err = b.Queue("hook"); err != nil {
		t.Fatal(err)
	}
	if next, _ := q.Next(); next.ID != id-4 {
		t.Errorf("after a restart next is %d, want %d", next.ID, id-4)
	}

	// Close on a full disk returns an error, and the file is as it was.
	disk.Fill()
	for n := id + 1; b.Trouble().Err == nil && n < id+500; n++ {
		record(t, b, n)
	}
	if err := b.Close(); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "events are lost") {
		t.Errorf("closing: %v", err)
	}
	disk.Free()
	open(t, path, s)
}
