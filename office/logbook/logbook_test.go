package logbook_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/faceauth/faceauth/office/logbook"
	"github.com/faceauth/faceauth/office/presence"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// event returns one of a number.
func event(id uint64) presence.Event {
	return presence.Event{ID: id, Kind: presence.Arrived, Name: "alice", Camera: "door", At: noon.Add(time.Duration(id) * time.Second)}
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
		s := presence.State{Last: id, People: []presence.Person{{Name: "alice", Since: noon, Last: noon, Camera: "door"}}}
		if err := b.Record(s, []presence.Event{event(id)}); err != nil {
			t.Fatal(err)
		}
	}
}

func ids(t *testing.T, b *logbook.Book, before uint64, n int) string {
	t.Helper()
	all, err := b.Events(before, n)
	if err != nil {
		t.Fatal(err)
	}
	var numbers []uint64
	for _, e := range all {
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
	if s, err := b.State(); err != nil || s.Last != 0 || ids(t, b, 0, 9) != "[]" {
		t.Errorf("%+v, %v", s, err)
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
	if s, err := b.State(); err != nil || s.Last != 6 || len(s.People) != 1 || !s.People[0].Since.Equal(noon) {
		t.Errorf("%+v, %v", s, err)
	}
	record(t, b, 7)
	if got := ids(t, b, 0, 9); got != "[7 6 5 4]" {
		t.Errorf("after a restart %s", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// A queue keeps what was not delivered, in order, over a restart, and at most so many.
func TestQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book")
	b := open(t, path, logbook.Settings{Waiting: 3})
	record(t, b, 1) // before there was a sink
	q, err := b.Queue("hook")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := q.Next(); ok || err != nil {
		t.Errorf("%t, %v", ok, err)
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
		e, ok, err := q.Next()
		w, l := q.Waiting()
		if err != nil || !ok || e.ID != next || w != waiting || l != lost {
			t.Errorf("next %d, %d waiting, %d lost, %v; want %d, %d, %d", e.ID, w, l, err, next, waiting, lost)
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
	if _, ok, err := q.Next(); ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	if w, l := q.Waiting(); w != 0 || l != 2 {
		t.Errorf("%d waiting, %d lost", w, l)
	}
}

// A damaged file is an error or a book, and never a panic.
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
	try := func(what string, data []byte) (err error) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := logbook.Open(path, logbook.Settings{})
		if err != nil {
			return err
		}
		defer b.Close()
		_, err = b.Events(0, 9)
		if q, e := b.Queue("hook"); e == nil {
			_, _, e = q.Next()
			err = errors.Join(err, e)
		}
		return errors.Join(err, b.Record(presence.State{Last: 4}, []presence.Event{event(4)}))
	}
	for _, n := range []int{1, 100, 4096, len(good) - 1} {
		if err := try("cut off", good[:n]); !errors.Is(err, logbook.ErrDamaged) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for i := 8192; i < len(good); i += 61 {
		bad := append([]byte{}, good...)
		bad[i] ^= 0xff
		try("flipped", bad)
	}
	if err := try("text", []byte("no database")); !errors.Is(err, logbook.ErrDamaged) {
		t.Error(err)
	}
}
