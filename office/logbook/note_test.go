// SPDX-License-Identifier: Apache-2.0

package logbook_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/office/logbook"
	"github.com/faceauth/faceauth/office/presence"
)

// copied returns a logbook in the state that a kill of the program leaves.
func copied(t *testing.T, path string) *logbook.Book {
	t.Helper()
	to := filepath.Join(t.TempDir(), "book")
	for _, end := range []string{"", ".seen"} {
		b, err := os.ReadFile(path + end)
		if err == nil {
			err = os.WriteFile(to+end, b, 0o600)
		}
		if err != nil && !(end != "" && os.IsNotExist(err)) {
			t.Fatal(err)
		}
	}
	return open(t, to, logbook.Settings{})
}

// If the program is killed between any two writes, the logbook still knows when people were last seen.
func TestNote(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book")
	b := open(t, path, logbook.Settings{})
	people := func(alice, bob int, camera string) presence.State {
		return presence.State{Last: 2, People: []presence.Person{
			{Name: "alice", Since: noon, Last: noon.Add(time.Duration(alice) * time.Second), Camera: camera},
			{Name: "bob", Since: noon, Last: noon.Add(time.Duration(bob) * time.Second), Camera: "desk"},
		}}
	}
	expect := func(alice, bob int, camera string) {
		t.Helper()
		k := copied(t, path)
		defer k.Close()
		got, want := k.State().People, people(alice, bob, camera).People
		for i := range want {
			if len(got) != len(want) || got[i].Name != want[i].Name || !got[i].Last.Equal(want[i].Last) ||
				got[i].Camera != want[i].Camera ||
				!got[i].Since.Equal(noon) {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
	}
	note := func(s presence.State) {
		t.Helper()
		if err := b.Note(s); err != nil {
			t.Fatal(err)
		}
	}
	size := func() int64 {
		t.Helper()
		info, err := os.Stat(path + ".seen")
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("its mode is %v", info.Mode())
		}
		return info.Size()
	}
	if err := b.Record(people(0, 0, "door"), []presence.Event{event(1), event(2)}); err != nil {
		t.Fatal(err)
	}
	expect(0, 0, "door")
	note(people(2, 0, "door"))
	expect(2, 0, "door")
	note(people(4, 0, "hall"))
	expect(4, 0, "hall")
	before := size()
	note(people(4, 0, "hall"))
	if size() != before {
		t.Error("it was written though nobody was seen")
	}
	if err := b.Record(people(6, 3, "hall"), nil); err != nil {
		t.Fatal(err)
	}
	expect(6, 3, "hall")
	if size() != 0 {
		t.Errorf("it has %d bytes where the logbook knows all", size())
	}
	note(people(8, 3, "door"))
	expect(8, 3, "door")
	if b, err := os.ReadFile(path + ".seen"); err != nil || strings.Contains(string(b), "bob") {
		t.Errorf("%s: bob was not seen since; %v", b, err)
	}

	// A person who has left is not there again. A person who has come back was seen when they came back.
	left := presence.State{Last: 2, People: people(8, 3, "door").People[1:]}
	if err := b.Record(left, nil); err != nil {
		t.Fatal(err)
	}
	k := copied(t, path)
	if got := k.State().People; len(got) != 1 || got[0].Name != "bob" {
		t.Errorf("%+v", got)
	}

	// The part of the last line that a crash leaves is skipped, and new lines follow it.
	b.Close()
	b = open(t, path, logbook.Settings{})
	if err := b.Record(people(20, 20, "door"), nil); err != nil {
		t.Fatal(err)
	}
	note(people(22, 20, "door"))
	whole, err := os.ReadFile(path + ".seen")
	if err != nil {
		t.Fatal(err)
	}
	note(people(24, 25, "hall"))
	b.Close()
	all, err := os.ReadFile(path + ".seen")
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(all) {
		for _, torn := range [][]byte{all[:n], append(bytes.Clone(all[:n]), make([]byte, 9)...)} {
			if err := os.WriteFile(path+".seen", torn, 0o600); err != nil {
				t.Fatal(err)
			}
			if n < len(whole) {
				expect(20, 20, "door")
			} else {
				expect(22, 20, "door")
			}
		}
	}
}
