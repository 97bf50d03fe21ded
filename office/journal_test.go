// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/online"
)

// note is a record about a person, on which another person looks.
type note struct {
	Who, Witness string
	Text         string
	Seen         int64
}

func (n note) Mapped(f func(string, bool) string, observed int64) (_ note, cut bool) {
	n.Who, n.Witness = f(n.Who, true), f(n.Witness, false)
	if n.Seen > observed {
		n.Seen, cut = 0, true
	}
	return n, cut
}

// house is a gallery with a office.
type house struct {
	t    *testing.T
	path string
	g    *gallery.Gallery
	j    *office.Journal
	all  *office.Records[note]
	s    office.Limits
	b    office.EventLimits
}

func openHouse(t *testing.T, path string) *house { return (&house{t: t, path: path}).open() }

func (h *house) open() *house {
	h.t.Helper()
	var err error
	if h.g, err = gallery.Open(h.path, space); err != nil {
		if h.g, err = gallery.New(space, online.Settings{}); err == nil {
			for i, name := range []string{"alice", "bob", "carol"} {
				h.ok(h.g.Label(name, [][]float32{{float32(3 * i), 0}}, noon))
			}
			err = h.g.Save(h.path)
		}
	}
	h.ok(err)
	h.j, err = office.OpenJournal(h.g, "home", h.b)
	h.ok(err)
	h.all, err = office.OpenRecords[note](h.j, "note", h.s)
	h.ok(err)
	h.t.Cleanup(func() { h.j.Close(); h.g.Close() })
	return h
}

func (h *house) ok(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// again closes everything and opens it, as a restarted program does.
func (h *house) again() {
	h.t.Helper()
	h.ok(h.j.Close())
	h.ok(h.g.Close())
	h.open()
}

// want compares the records with texts, the newest first.
func (h *house) want(what string, want ...string) {
	h.t.Helper()
	for range 2 { // before and after a restart
		var got []string
		for _, id := range h.all.Before(0) {
			r, _ := h.all.Get(id)
			body, err := h.all.Body(id)
			h.ok(err)
			got = append(got, fmt.Sprintf("%d %s %s %s%s", id, r.Head.Who, r.Head.Witness, r.Head.Text, body))
		}
		if !slices.Equal(got, want) {
			h.t.Errorf("%s: %q, want %q", what, got, want)
		}
		h.again()
	}
}

// Records are the same after a restart: put, changed, deleted, and about people who were renamed or forgotten, also by
// another program while no office runs.
func TestStore(t *testing.T) {
	h := openHouse(t, filepath.Join(t.TempDir(), "gallery"))
	h.all.Put(1, noon, note{Who: "alice", Witness: "bob", Text: "x"}, []byte("!"))
	h.all.Put(2, noon, note{Who: "bob", Text: "y"}, nil)
	h.all.Put(5, noon, note{Who: "carol", Witness: "carol", Text: "z"}, []byte("?"))
	h.want("put", "5 carol carol z?", "2 bob  y", "1 alice bob x!")
	h.all.Change(map[uint64]note{2: {Who: "bob", Witness: "alice", Text: "w"}, 7: {}})
	h.want("changed", "5 carol carol z?", "2 bob alice w", "1 alice bob x!")
	h.all.Put(5, noon, note{Who: "carol", Text: "v"}, []byte("."))
	h.want("replaced", "5 carol  v.", "2 bob alice w", "1 alice bob x!")

	beside := func(do func(g *gallery.Gallery) error) {
		t.Helper()
		h.ok(h.j.Close())
		h.ok(h.g.Close())
		g, err := gallery.Open(h.path, space)
		h.ok(err)
		h.ok(g.Change(func() error { return do(g) }))
		h.ok(g.Close())
		h.open()
	}
	beside(func(g *gallery.Gallery) error { return g.Rename("bob", "robert") })
	h.want("renamed beside", "5 carol  v.", "2 robert alice w", "1 alice robert x!")
	beside(func(g *gallery.Gallery) error { return g.Forget("robert") })
	h.want("forgotten beside", "5 carol  v.", "1 alice  x!")

	// A person without faces keeps the number as long as a record has it.
	beside(func(g *gallery.Gallery) error { return g.Learner().Forget("carol") })
	h.want("without faces", "5 carol  v.", "1 alice  x!")
	beside(func(g *gallery.Gallery) error { return g.Rename("alice", "carol") })
	h.want("the name is another person's now", "5 carol  v.", "1 carol  x!")
	beside(func(g *gallery.Gallery) error { return g.Forget("carol") })
	h.want("both are forgotten")
	if h.all.Last() != 0 {
		t.Errorf("the last number is %d", h.all.Last())
	}
}

// A program that knows a person does not bring the person back after another program has forgotten them.
func TestForgottenMeanwhile(t *testing.T) {
	h := openHouse(t, filepath.Join(t.TempDir(), "gallery"))
	var known []string
	h.j.SetBefore(func() { // as an office: what is about forgotten people goes before it is written
		for _, id := range h.all.Before(0) {
			if r, _ := h.all.Get(id); !h.g.Learner().Knows(r.Head.Who) {
				h.all.Delete(id)
			}
		}
		known = h.g.Learner().Names()
	})
	h.all.Put(1, noon, note{Who: "bob"}, []byte("!"))
	h.ok(h.g.SaveRecords(true))
	g, err := gallery.Open(h.path, space)
	h.ok(err)
	h.ok(g.Change(func() error { return g.Forget("bob") }))
	h.ok(g.Close())
	h.all.Put(2, noon, note{Who: "bob"}, []byte("!"))
	h.all.Put(3, noon, note{Who: "alice"}, []byte("!"))
	h.ok(h.g.SaveRecords(false))
	if slices.Contains(known, "bob") {
		t.Errorf("it was written with %q", known)
	}
	h.want("at the end", "3 alice  !")
}

// Observations that are not saved are not in the database until they are: another program may give their personNumbers.
func TestObservations(t *testing.T) {
	h := openHouse(t, filepath.Join(t.TempDir(), "gallery"))
	seen := func() (n int64) {
		r, _ := h.all.Get(1)
		return r.Head.Seen
	}
	for i := range 3 {
		if _, err := h.g.Learner().Observe([]float32{.1 * float32(i), 0}); err != nil {
			t.Fatal(err)
		}
	}
	h.all.Put(1, noon, note{Who: "alice", Seen: 3}, nil)
	h.ok(h.g.SaveRecords(false))
	if seen() != 3 {
		t.Errorf("in memory %d", seen())
	}
	if h.again(); seen() != 0 {
		t.Errorf("after a restart %d, and that face was never saved", seen())
	}
	for i := range 3 {
		if _, err := h.g.Learner().Observe([]float32{.1 * float32(i), 0}); err != nil {
			t.Fatal(err)
		}
	}
	h.all.Put(1, noon, note{Who: "alice", Seen: 3}, nil)
	h.ok(h.g.SaveRecords(false))
	h.ok(h.g.Save(h.path))
	h.ok(h.g.SaveRecords(false))
	if h.again(); seen() != 3 {
		t.Errorf("after it was saved %d", seen())
	}
}

// The number, the size and the age of records are limited.
func TestRecordBounds(t *testing.T) {
	for name, s := range map[string]office.Limits{
		"records": {Records: 3},
		"bytes":   {Bytes: 3*1024 + 3*2000},
		"age":     {Age: 3 * time.Second},
	} {
		h := (&house{t: t, path: filepath.Join(t.TempDir(), "gallery"), s: s}).open()
		for i := range uint64(9) {
			h.all.Put(i+1, noon.Add(time.Duration(i)*time.Second), note{Who: "bob"}, make([]byte, 2000))
			if i == 5 {
				h.ok(h.g.SaveRecords(false))
			}
		}
		if name == "age" {
			h.all.Expire(noon.Add(9 * time.Second))
		}
		for range 2 {
			if got := h.all.Before(0); !slices.Equal(got, []uint64{9, 8, 7}) {
				t.Errorf("%s: %d", name, got)
			}
			h.again()
		}
	}
}

// One program runs an office. Another office of the database is no trouble.
func TestBusy(t *testing.T) {
	h := openHouse(t, filepath.Join(t.TempDir(), "gallery"))
	g, err := gallery.Open(h.path, space)
	h.ok(err)
	defer g.Close()
	if _, err := office.OpenJournal(g, "home", office.EventLimits{}); !errors.Is(err, office.ErrBusy) {
		t.Errorf("error %v", err)
	}
	j, err := office.OpenJournal(g, "shop", office.EventLimits{})
	h.ok(err)
	all, err := office.OpenRecords[note](j, "note", office.Limits{})
	h.ok(err)
	all.Put(1, noon, note{Who: "alice"}, nil)
	h.all.Put(1, noon, note{Who: "bob"}, nil)
	h.ok(j.Close())
	h.want("home", "1 bob  ")
	if j, err = office.OpenJournal(g, "shop", office.EventLimits{}); err != nil {
		t.Fatal(err)
	}
	if h.j.ID() == j.ID() || h.j.ID() == "" {
		t.Errorf("both have the identifier %q", j.ID())
	}
	h.ok(j.Close())
}

// Numbers are reserved before they are used.
func TestReserve(t *testing.T) {
	h := openHouse(t, filepath.Join(t.TempDir(), "gallery"))
	for _, c := range []struct {
		to, more uint64
		now      bool
	}{{1, 10, true}, {11, 10, false}, {12, 10, true}, {3, 0, false}} {
		if now := h.j.Reserve("face", c.to, c.more); now != c.now {
			t.Errorf("up to %d: %t", c.to, now)
		}
	}
	id := h.j.ID()
	h.again()
	if n := h.j.Reserved("face"); n != 22 || h.j.ID() != id {
		t.Errorf("reserved up to %d, identifier %s and %s", n, id, h.j.ID())
	}
}

// personNumbers are the personNumbers of the people of TestBook.
var personNumbers = map[string]int64{"alice": 1, "bob": 2, "carol": 3}

func eventOf(id uint64, kind office.EventKind, name string) office.Event {
	return office.Event{ID: id, Kind: kind, Name: name, Person: personNumbers[name], Camera: "door",
		At: noon.Add(time.Duration(id) * time.Second)}
}

// A sink that gets nothing waits for no more events than the limit, although the book has more.
func TestWaiting(t *testing.T) {
	b := office.NewPast(face.Space{}, office.PastSettings{Events: office.EventLimits{Events: 20, Waiting: 3}})
	q := b.Queue("hook")
	for id := uint64(1); id <= 9; id++ {
		if err := b.Record(office.RoomState{Last: id}, []office.Event{eventOf(id, office.Left, "alice")}); err != nil {
			t.Fatal(err)
		}
	}
	if waiting, lost := q.Waiting(); waiting != 3 || lost != 6 || len(b.Events(0, 99)) != 9 {
		t.Errorf("%d wait, %d are lost, of %d", waiting, lost, len(b.Events(0, 99)))
	}
}

// Events, the people who are present, and what sinks lack are the same after a restart.
func TestBook(t *testing.T) {
	h := &house{t: t, path: filepath.Join(t.TempDir(), "gallery"), b: office.EventLimits{Events: 4, Waiting: 4}}
	h.open()
	events := func(want ...office.Event) {
		t.Helper()
		if got := h.j.Events(0, 99); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	q := h.j.Queue("hook")
	alice := []office.Presence{{Name: "alice", Since: noon, Last: noon.Add(time.Second), Camera: "door",
		Trust: "confirmed"}}
	h.ok(h.j.Record(office.RoomState{Last: 2, People: alice}, []office.Event{
		eventOf(1, office.Arrived, "alice"), eventOf(2, office.Unknown, ""),
	}))
	if _, ok := q.Next(); ok {
		t.Error("a sink gets an event that is not written yet")
	}
	if err := h.j.Record(office.RoomState{}, []office.Event{eventOf(2, office.Left, "bob")}); err == nil {
		t.Error("a number was accepted twice")
	}
	h.again()
	events(eventOf(2, office.Unknown, ""), eventOf(1, office.Arrived, "alice"))
	if s := h.j.State(); s.Last != 2 || !reflect.DeepEqual(s.People, alice) {
		t.Errorf("%+v", s)
	}
	q = h.j.Queue("hook")
	next := func(want office.Event) {
		t.Helper()
		if e, ok := q.Next(); !ok || !reflect.DeepEqual(e, want) {
			t.Errorf("%+v, want %+v", e, want)
		}
	}
	next(eventOf(1, office.Arrived, "alice"))
	h.j.Rename(map[uint64]string{1: "bob", 2: "carol"}, h.g.Number)
	q.Done(1)
	next(eventOf(2, office.Unknown, "")) // it was somebody unknown
	h.again()
	events(eventOf(2, office.Unknown, "carol"), eventOf(1, office.Arrived, "bob"))
	q = h.j.Queue("hook")
	next(eventOf(2, office.Unknown, ""))

	h.ok(h.g.Forget("bob"))
	h.j.Forget("bob")
	h.ok(h.g.Save(h.path))
	h.ok(h.g.Forget("carol"))
	h.ok(h.g.Save(h.path)) // the database forgets by itself
	h.again()
	events(eventOf(2, office.Unknown, ""))

	// There are never more events than the limit, and a sink is told how many it will not get.
	for id := uint64(3); id <= 9; id++ {
		h.ok(h.j.Record(office.RoomState{Last: id, People: alice}, []office.Event{eventOf(id, office.Left, "alice")}))
		h.ok(h.g.SaveRecords(true))
	}
	for range 2 {
		if got := h.j.Events(0, 99); len(got) != 4 || got[0].ID != 9 {
			t.Errorf("%+v", got)
		}
		q = h.j.Queue("hook")
		if waiting, lost := q.Waiting(); waiting != 4 || lost != 4 {
			t.Errorf("%d waiting, %d lost", waiting, lost)
		}
		h.again()
	}
	if h.j.State().Last != 9 {
		t.Errorf("%+v", h.j.State())
	}
}

// On a full disk everything holds in memory, within limits, and is written when there is room.
func TestSystemJournalFullDisk(t *testing.T) {
	disk := fixture.NewDisk(t, 1<<21)
	h := openHouse(t, filepath.Join(disk.Dir, "gallery"))
	disk.Fill()
	h.all.Put(1, noon, note{Who: "bob"}, make([]byte, 100<<10))
	if err := h.g.SaveRecords(false); !errors.Is(err, gallery.ErrFull) || !h.j.Dirty() {
		t.Errorf("error %v", err)
	}
	h.ok(h.j.Record(office.RoomState{Last: 1}, []office.Event{eventOf(1, office.Arrived, "alice")}))
	if held, lost := h.j.Held(); held != 1 || lost != 0 {
		t.Errorf("%d held, %d lost", held, lost)
	}
	for id := range uint64(100) {
		h.all.Put(id+2, noon, note{Who: "bob"}, make([]byte, 1000))
	}
	if n := h.all.Len(); n != 64 {
		t.Errorf("%d records in memory", n)
	}
	disk.Free()
	h.ok(h.g.SaveRecords(false))
	if held, _ := h.j.Held(); held != 0 || h.j.Dirty() {
		t.Errorf("%d held", held)
	}
	h.again()
	if n := h.all.Len(); n != 64 || len(h.j.Events(0, 9)) != 1 {
		t.Errorf("%d records, %d events", n, len(h.j.Events(0, 9)))
	}
}

// A database whose records come and go keeps its size.
func TestSize(t *testing.T) {
	h := (&house{t: t, path: filepath.Join(t.TempDir(), "gallery"), s: office.Limits{Records: 50}}).open()
	most := int64(0)
	for i := range uint64(2000) {
		h.all.Put(i+1, noon, note{Who: "bob"}, make([]byte, 20000))
		if i%20 == 19 {
			h.ok(h.g.SaveRecords(true))
		}
		if i == 200 || i == 1999 {
			size := int64(0)
			for _, end := range []string{"", "-wal"} {
				info, err := os.Stat(h.path + end)
				h.ok(err)
				size += info.Size()
			}
			if i == 200 {
				most = 2 * size
			} else if size > most {
				t.Errorf("%d bytes after 2,000 records, and at most %d are expected", size, most)
			}
		}
	}
}
