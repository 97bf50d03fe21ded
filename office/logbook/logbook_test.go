// SPDX-License-Identifier: Apache-2.0

package logbook_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/faceauth/faceauth/office/logbook"
	"github.com/faceauth/faceauth/office/presence"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// event returns an event with a number.
func event(id uint64) presence.Event {
	return presence.Event{
		ID:     id,
		Kind:   presence.Arrived,
		Name:   "alice",
		Camera: "door",
		At:     noon.Add(time.Duration(id) * time.Second),
	}
}

func open(t *testing.T, path string, s logbook.Settings) *logbook.Book {
	t.Helper()
	b, err := logbook.Open(path, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func record(t *testing.T, b *logbook.Book, ids ...uint64) {
	t.Helper()
	for _, id := range ids {
		s := presence.State{
			Last:   id,
			People: []presence.Person{{Name: "alice", Since: noon, Last: noon, Camera: "door"}},
		}
		if err := b.Record(s, []presence.Event{event(id)}); err != nil {
			t.Fatal(err)
		}
	}
}

func ids(t *testing.T, b *logbook.Book, before uint64, n int) string {
	t.Helper()
	var numbers []uint64
	for _, e := range b.Events(before, n) {
		if !reflect.DeepEqual(e, event(e.ID)) {
			t.Errorf("%+v", e)
		}
		numbers = append(numbers, e.ID)
	}
	return fmt.Sprint(numbers)
}

func TestBook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book")
	b := open(t, path, logbook.Settings{Events: 4})
	if s := b.State(); s.Last != 0 || ids(t, b, 0, 9) != "[]" {
		t.Errorf("%+v", s)
	}
	record(t, b, 1, 2, 3, 4, 5, 6)
	for _, c := range []struct {
		before uint64
		n      int
		want   string
	}{{0, 9, "[6 5 4 3]"}, {0, 2, "[6 5]"}, {5, 9, "[4 3]"}, {3, 9, "[]"}, {99, 1, "[6]"}, {1, 9, "[]"}} {
		if got := ids(t, b, c.before, c.n); got != c.want {
			t.Errorf("%d before %d: %s, want %s", c.n, c.before, got, c.want)
		}
	}
	if _, err := logbook.Open(path, logbook.Settings{}); !errors.Is(err, logbook.ErrBusy) {
		t.Errorf("a second program: %v", err)
	}
	b.Close()
	b = open(t, path, logbook.Settings{Events: 4})
	if s := b.State(); s.Last != 6 || len(s.People) != 1 || !s.People[0].Since.Equal(noon) {
		t.Errorf("%+v", s)
	}
	record(t, b, 7)
	if got := ids(t, b, 0, 9); got != "[7 6 5 4]" {
		t.Errorf("after a restart %s", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// A queue keeps undelivered events in order, over a restart, up to a limit.
func TestQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book")
	b := open(t, path, logbook.Settings{Waiting: 3})
	record(t, b, 1) // before there was a sink
	q, err := b.Queue("hook")
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := q.Next(); ok {
		t.Errorf("%+v", e)
	}
	record(t, b, 2, 3)
	select {
	case <-q.More():
	default:
		t.Error("nobody was told")
	}
	if err := q.Done(2); err != nil {
		t.Fatal(err)
	}
	if err := q.Done(2); err != nil {
		t.Errorf("a second time: %v", err)
	}
	record(t, b, 4, 5, 6, 7)
	check := func(q *logbook.Queue, next uint64, waiting, lost int) {
		t.Helper()
		e, ok := q.Next()
		w, l := q.Waiting()
		if !ok || e.ID != next || w != waiting || l != lost {
			t.Errorf("next %d, %d waiting, %d lost; want %d, %d, %d", e.ID, w, l, next, waiting, lost)
		}
	}
	check(q, 5, 3, 2)
	b.Close()
	b = open(t, path, logbook.Settings{Waiting: 3})
	if q, err = b.Queue("hook"); err != nil {
		t.Fatal(err)
	}
	check(q, 5, 3, 2)
	for id := range uint64(8) {
		if err := q.Done(id); err != nil {
			t.Fatal(err)
		}
	}
	if e, ok := q.Next(); ok {
		t.Errorf("%+v", e)
	}
	if w, l := q.Waiting(); w != 0 || l != 2 {
		t.Errorf("%d waiting, %d lost", w, l)
	}
}

// The file does not grow without limit, and nothing is lost when it is rewritten.
func TestRewrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book")
	b := open(t, path, logbook.Settings{Events: 5, Waiting: 5, Lines: 10})
	q, err := b.Queue("hook")
	if err != nil {
		t.Fatal(err)
	}
	var largest int64
	for id := range uint64(300) {
		record(t, b, id+1)
		if id%3 == 2 && id < 290 {
			if err := q.Done(id - 1); err != nil {
				t.Fatal(err)
			}
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, info.Size())
	}
	if largest > 6000 {
		t.Errorf("the file had %d bytes", largest)
	}
	if _, err := logbook.Open(path, logbook.Settings{}); !errors.Is(err, logbook.ErrBusy) {
		t.Errorf("a second program, after the file was written anew: %v", err)
	}
	waiting, lost := q.Waiting()
	b.Close()
	b = open(t, path, logbook.Settings{Events: 5, Waiting: 5, Lines: 10})
	if q, err = b.Queue("hook"); err != nil {
		t.Fatal(err)
	}
	if w, l := q.Waiting(); w != waiting || l != lost || w != 5 || ids(t, b, 0, 9) != "[300 299 298 297 296]" ||
		b.State().Last != 300 {
		t.Errorf("%d waiting, %d lost, before %d and %d; %s", w, l, waiting, lost, ids(t, b, 0, 9))
	}
}

// Past events can get another name, and their old name back. A forgotten person is not in the file.
func TestNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book")
	b := open(t, path, logbook.Settings{})
	if _, err := b.Queue("hook"); err != nil {
		t.Fatal(err)
	}
	for id, name := range []string{"alice", "", "bob", "alice"} {
		e := event(uint64(id + 1))
		if e.Name = name; name == "" {
			e.Kind, e.Group = presence.Unknown, 7
		}
		s := presence.State{
			Last:   e.ID,
			People: []presence.Person{{Name: "alice", Since: noon, Last: noon, Camera: "door"}},
		}
		if err := b.Record(s, []presence.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, want ...string) {
		t.Helper()
		for range 2 { // before and after it is read again
			var got []string
			for _, e := range b.Events(0, 99) {
				got = append(got, fmt.Sprintf("%d %s", e.ID, e.Name))
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
			b.Close()
			b = open(t, path, logbook.Settings{})
		}
	}
	rename := func(names map[uint64]string) {
		t.Helper()
		if err := b.Rename(names); err != nil {
			t.Fatal(err)
		}
	}
	rename(map[uint64]string{2: "sue", 3: "robert"})
	want("renamed", "4 alice", "3 robert", "2 sue", "1 alice")
	rename(map[uint64]string{2: ""})
	want("taken back", "4 alice", "3 robert", "2 ", "1 alice")
	rename(map[uint64]string{2: "alice", 4: "carol"})
	if err := b.Forget("bob"); err != nil { // robert's earlier name
		t.Fatal(err)
	}
	want("an old name", "4 carol", "3 robert", "2 alice", "1 alice")
	if err := b.Forget("alice"); err != nil {
		t.Fatal(err)
	}
	want("forgotten", "4 carol", "3 robert", "2 ")
	if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte("alice")) ||
		bytes.Contains(text, []byte("bob")) {
		t.Errorf("the file: %s, %v", text, err)
	}
	if len(b.State().People) != 0 {
		t.Errorf("there is %+v", b.State().People)
	}
	q, err := b.Queue("hook")
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := q.Next(); !ok || e.ID != 2 || e.Name != "" {
		t.Errorf("the sink gets %+v", e)
	}
	if n, lost := q.Waiting(); n != 3 || lost != 0 {
		t.Errorf("%d wait, %d lost", n, lost)
	}
}

// Whatever part of the last line a crash leaves, all earlier events are there, and the logbook goes on.
func TestTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book")
	b := open(t, path, logbook.Settings{})
	record(t, b, 1, 2)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	record(t, b, 3)
	b.Close()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := len(whole); n < len(good); n++ {
		for _, torn := range [][]byte{good[:n], append(append([]byte{}, good[:n]...), make([]byte, 20)...)} {
			if err := os.WriteFile(path, torn, 0o600); err != nil {
				t.Fatal(err)
			}
			b := open(t, path, logbook.Settings{})
			if got := ids(t, b, 0, 9); got != "[2 1]" || b.State().Last != 2 {
				t.Fatalf("%d of %d bytes: %s", n, len(good), got)
			}
			record(t, b, 3)
			b.Close()
			if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, good) {
				t.Fatalf("%d of %d bytes: it goes on otherwise", n, len(good))
			}
		}
	}
}

// A damaged file is an error. It is never taken for a valid file.
func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book")
	b := open(t, path, logbook.Settings{})
	if _, err := b.Queue("hook"); err != nil {
		t.Fatal(err)
	}
	record(t, b, 1, 2, 3)
	b.Close()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(good[:len(good)-1], '\n')
	for i := range good[:last] {
		bad := bytes.Clone(good)
		bad[i] ^= 4
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := logbook.Open(path, logbook.Settings{}); !errors.Is(err, logbook.ErrDamaged) {
			b.Close()
			t.Fatalf("byte %d: %v", i, err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, bad) {
			t.Fatalf("byte %d: the file was changed", i)
		}
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"text":            {"no logbook\n", logbook.ErrDamaged},
		"a word":          {"x", logbook.ErrDamaged},
		"another version": {line(`{"version":7}`), logbook.ErrVersion},
		"no version":      {line(`{}`), logbook.ErrVersion},
		"numbers that go back": {line(`{"version":1}`) +
			line(`{"events":[{"id":5,"kind":"left","camera":"c","at":"2026-01-01T00:00:00Z"}]}`) +
			line(`{"events":[{"id":5,"kind":"left","camera":"c","at":"2026-01-01T00:00:00Z"}]}`) + line(`{}`),
			logbook.ErrDamaged},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := logbook.Open(path, logbook.Settings{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := logbook.Open(t.TempDir(), logbook.Settings{}); err == nil {
		t.Error("a folder was opened")
	}
}

// line returns a line with its checksum.
func line(text string) string {
	return fmt.Sprintf("%08x %s\n", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)), text)
}
