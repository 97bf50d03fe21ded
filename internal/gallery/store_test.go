// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/online"
)

func open(t testing.TB, path string) *gallery.Gallery {
	t.Helper()
	g := fixture.Must(gallery.Open(path, space))(t)
	t.Cleanup(func() { g.Close() })
	return g
}

// stored saves a gallery in a new folder and closes it.
func stored(t testing.TB, people ...string) string {
	t.Helper()
	g := newGallery(t, people...)
	path := save(t, g)
	fixture.Check(t, g.Close())
	return path
}

func enrol(t testing.TB, g *gallery.Gallery, name string, i int) {
	t.Helper()
	fixture.Must(g.Enroll(name, person(i, 4), noon, gallery.Enrolment{}))(t)
}

func listed(g *gallery.Gallery) (all []string) {
	for _, p := range g.People() {
		all = append(all, fmt.Sprintf("%s %d", p.Name, p.Faces))
	}
	slices.Sort(all)
	return all
}

func want(t testing.TB, g *gallery.Gallery, people ...string) {
	t.Helper()
	if got := listed(g); !slices.Equal(got, people) {
		t.Errorf("it has %q, want %q", got, people)
	}
}

// Two programs change one gallery: both changes stay, and both programs know them.
func TestTwoPrograms(t *testing.T) {
	path := stored(t, "alice")
	one, two := open(t, path), open(t, path)
	enrol(t, one, "bob", 1)
	enrol(t, two, "carol", 2)
	// reading what was learned takes a second in a large gallery
	if n := two.Learner().Restored(); n != 1 {
		t.Errorf("it has read what was learned %d times, for new labels only", n)
	}
	for _, g := range []*gallery.Gallery{one, two} {
		fixture.Check(t, g.Save())
	}
	want(t, two, "alice 4", "bob 4", "carol 4")
	want(t, one, "alice 4", "bob 4", "carol 4")
	enrol(t, two, "cora", 6)
	turn := one.Rows().Turn()
	want(t, one, "alice 4", "bob 4", "carol 4")
	fixture.Check(t, one.Update())
	want(t, one, "alice 4", "bob 4", "carol 4", "cora 4")
	if one.Rows().Turn() == turn {
		t.Error("nobody can see that people have changed")
	}
	fixture.Check(t, one.Forget("cora"))
	// Inside a change a name is taken for all programs.
	err := one.Change(func() error {
		enrol(t, one, "dora", 3)
		return nil
	})
	fixture.Check(t, err)
	err = two.Change(func() error {
		_, err := two.Enroll("dora", person(4, 4), noon, gallery.Enrolment{})
		return err
	})
	if !errors.Is(err, gallery.ErrExists) {
		t.Errorf("error %v", err)
	}
	want(t, open(t, path), "alice 4", "bob 4", "carol 4", "dora 4")
}

// A program that has learned finds what another has learned, renamed and forgotten: it takes that,
// and learns its own faces again on top of it. The forgotten person does not return.
func TestGenerations(t *testing.T) {
	path := stored(t, "alice", "bob", "carol")
	one, two := open(t, path), open(t, path)
	observe := func(g *gallery.Gallery, i, from, to int) {
		for _, x := range person(i, to)[from:] {
			v, err := g.Learner().ObserveFrame([]online.Observation{{Vector: x,
				Source: 1 + int64(i)}})
			if err != nil || !v[0].Learned {
				t.Fatalf("%+v, %v", v, err)
			}
		}
	}
	observe(one, 0, 4, 10)
	observe(one, 1, 4, 8)
	observe(two, 2, 4, 9)
	fixture.Check(t, two.Forget("bob"))
	fixture.Check(t, two.Rename("carol", "caroline"))
	fixture.Check(t, two.Save())
	fixture.Check(t, one.Save())
	want(t, one, "alice 4", "caroline 4")
	back := open(t, path)
	for i, name := range []string{"alice", "", "caroline"} {
		if v, err := back.Learner().Judge(person(i, 7)[6]); err != nil ||
			back.Name(v.Person) != name {
			t.Errorf("person %d is %+v, want %q, %v", i, v, name, err)
		}
	}
	if c := back.Learner().Counts(); c.Learned != 5+6 {
		t.Errorf("%d faces are learned", c.Learned)
	}
	for source, want := range []int{1: 6, 2: 0, 3: 5} {
		if n := back.Learner().Unlearn(int64(source)); n != want {
			t.Errorf("%d faces of source %d, want %d", n, source, want)
		}
	}
}

// After forgetting, the bytes of the name and of the vectors are in no file, also if a reader has
// delayed it.
func TestForgottenBytes(t *testing.T) {
	for _, reader := range []bool{false, true} {
		path := stored(t, "alice", "bobolink")
		g := open(t, path)
		for _, x := range person(1, 9)[4:] {
			fixture.Must(g.Learner().Observe(x))(t)
		}
		fixture.Check(t, g.Save())
		hits := func() (n int) {
			for _, end := range []string{"", "-wal", "-shm"} {
				data, _ := os.ReadFile(path + end)
				n += bytes.Count(data, []byte("bobolink"))
				for _, x := range person(1, 9) {
					n += bytes.Count(data, vector.Bytes(x))
				}
			}
			return n
		}
		if hits() == 0 {
			t.Fatal("the search finds nothing")
		}
		forget := func() {
			fixture.Check(t, g.Forget("bobolink"))
			fixture.Check(t, g.Save())
		}
		if !reader {
			forget()
		} else {
			other := fixture.Must(store.Open(path, store.Schema{}, false))(t)
			fixture.Check(t, other.Read(func() error {
				defer forget()
				return other.Exec("select count(*) from label")
			}))
			if hits() == 0 {
				t.Error("the reader has not delayed it, so this tests nothing")
			}
			fixture.Check(t, other.Close())
			open(t, path) // the next start
		}
		if n := hits(); n > 0 {
			t.Errorf("with a reader %v: %d hits", reader, n)
		}
	}
}

// Every cut, every zeroed page and a flipped bit in every part of a page is an error that says so,
// or is in no page that a program reads or writes.
func TestDamaged(t *testing.T) {
	t.Run("plain", func(t *testing.T) { damaged(t, stored(t, "alice")) })
	t.Run("encrypted", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "gallery")
		store.SetKey(path, testKey)
		fixture.Check(t, newGalleryAt(t, path, "alice").Close())
		damaged(t, path, gallery.ErrKey)
	})
}

func damaged(t *testing.T, path string, beginning ...error) {
	whole := read(t, path)
	const page = 8192
	step := page / 8
	if testing.Short() {
		step = page/2 - 3
	}
	check := func(what string, data []byte, wanted ...error) {
		t.Helper()
		for _, end := range []string{"-wal", "-shm"} {
			os.Remove(path + end)
		}
		fixture.Check(t, os.WriteFile(path, data, 0o600))
		g, err := gallery.Open(path, space)
		if err == nil {
			defer g.Close()
			want(t, g, "alice 4")
			_, err := g.Enroll("bob", person(1, 4), noon, gallery.Enrolment{})
			if err != nil && !errors.Is(err, gallery.ErrDamaged) {
				t.Errorf("%s: enrolling: %v", what, err)
			} else if err == nil {
				want(t, open(t, path), "alice 4", "bob 4")
			}
			return
		}
		for _, w := range append(append(wanted, gallery.ErrDamaged), beginning...) {
			if errors.Is(err, w) && strings.Contains(err.Error(), path) {
				return
			}
		}
		t.Errorf("%s: error %v", what, err)
	}
	for n := 0; n < len(whole); n += step {
		check(fmt.Sprintf("cut off after %d bytes", n), whole[:n], gallery.ErrDamaged,
			gallery.ErrNotGallery)
	}
	for i := 0; i < len(whole); i += step {
		b := bytes.Clone(whole)
		b[i] ^= 1 << (i % 8)
		check(fmt.Sprintf("byte %d altered", i), b, gallery.ErrDamaged, gallery.ErrNotGallery)
	}
	for i := 0; i < len(whole); i += page {
		b := bytes.Clone(whole)
		clear(b[i : i+page])
		check(fmt.Sprintf("page at %d zeroed", i), b, gallery.ErrDamaged, gallery.ErrNotGallery)
	}
	check("another file", []byte("dear diary, today I wrote a letter"), gallery.ErrNotGallery)
	check("empty", []byte{}, gallery.ErrNotGallery)
	check("a gallery of before", []byte("faceauth gallery\x00\x00\x00\x01"), gallery.ErrNotGallery)
	check("whole", whole)
	fixture.Check(t, os.WriteFile(path, whole, 0o600))
	d := fixture.Must(store.Open(path, store.Schema{}, false))(t)
	fixture.Check(t, errors.Join(d.Exec("pragma user_version = 1000"), d.Close()))
	newer := fmt.Sprintf(
		"a database of a newer faceauth: it has version 1000, and this program reads %d; "+
			"update this program", gallery.SchemaVersion)
	if _, err := gallery.Read(path); err == nil || err.Error() != "opening gallery "+path+": "+
		newer {
		t.Errorf("error %v", err)
	}
	if _, err := gallery.Open(filepath.Join(t.TempDir(), "none"), space); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("no gallery: %v", err)
	}
	if _, err := gallery.Open(t.TempDir(), space); !errors.Is(err, gallery.ErrNotGallery) {
		t.Errorf("a folder: %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	fixture.Check(t, syscall.Mkfifo(pipe, 0o600))
	if _, err := gallery.Open(pipe, space); !errors.Is(err, gallery.ErrNotGallery) {
		t.Errorf("a pipe: %v", err)
	}
}

// A deleted database does not come back out of a log that stayed.
func TestDeleted(t *testing.T) {
	path := stored(t, "alice")
	g := open(t, path)
	enrol(t, g, "bob", 1)
	fixture.Check(t, g.Save())
	fixture.Check(t, os.Remove(path))
	newGalleryAt(t, path, "carol")
	want(t, open(t, path), "carol 4")
}

// On a full disk a gallery can be read, a save fails and says why, and the next save succeeds when
// there is room.
func TestFullDisk(t *testing.T) {
	disk := fixture.NewDisk(t, 1<<20)
	path := filepath.Join(disk.Dir, "faceauth.db")
	g := newGalleryAt(t, path, "alice")
	defer g.Close()
	disk.Fill()
	n := 0
	for i := 1; ; i++ { // the log may have some room left
		n = len(g.People())
		if _, err := g.Enroll(fmt.Sprint("person ", i), person(i, 4), noon,
			gallery.Enrolment{}); err != nil {
			if !errors.Is(err, gallery.ErrFull) {
				t.Errorf("error %v", err)
			}
			t.Log(err)
			break
		}
	}
	if m := len(g.People()); m != n {
		t.Errorf("%d people after a refusal, want %d", m, n)
	}
	back, err := gallery.Open(path, space)
	if err != nil {
		t.Fatalf("reading on a full disk: %v", err)
	}
	if m := len(back.People()); m != n {
		t.Errorf("%d people are in the file, and %d were saved", m, n)
	}
	back.Close()
	disk.Free()
	if err := g.Save(); err != nil {
		t.Errorf("when there is room: %v", err)
	}
	if m := len(open(t, path).People()); m != n {
		t.Errorf("%d people are in the file at the end, want %d", m, n)
	}
}

// On a full disk no two programs give the same number: one that could not be reserved is drawn by
// chance.
func TestNumbersOnFullDisk(t *testing.T) {
	disk := fixture.NewDisk(t, 1<<20)
	path := filepath.Join(disk.Dir, "faceauth.db")
	programs := []*gallery.Gallery{newGalleryAt(t, path, "alice"), open(t, path)}
	disk.Fill()
	given, drawn := make(map[uint64]bool), 0
	for i := range 500 { // the log may have some room left
		n := programs[i%2].Rows().Next("stranger")
		if given[n] {
			t.Fatalf("%d is given twice", n)
		}
		given[n] = true
		if n > 1<<52 {
			drawn++
		}
	}
	if drawn == 0 {
		t.Error("all could be reserved, so this tests nothing")
	}
}

// testKey is a key of encrypted databases.
var testKey = bytes.Repeat([]byte("key "), 8)

// A face has one number in all programs, whatever happens to its labels, and no number is given
// twice.
func TestFaceNumbers(t *testing.T) {
	path := stored(t, "ann")
	numbers := func(g *gallery.Gallery, name string) (all []uint64) {
		for _, l := range g.Learner().Labels() {
			if g.Name(l.Person) != name {
				continue
			}
			n := fixture.Must(g.Rows().Int("select number from label where id = ?",
				g.Rows().LabelOf(l.ID)))(t)
			all = append(all, uint64(n))
		}
		slices.Sort(all)
		return all
	}
	a, b := open(t, path), open(t, path)
	anns := numbers(a, "ann")
	if len(anns) == 0 || anns[0] == 0 || len(slices.Compact(slices.Clone(anns))) != len(anns) {
		t.Fatalf("%v", anns)
	}
	given := make(map[uint64]bool)
	for range 3 {
		for _, g := range []*gallery.Gallery{a, b} {
			n := g.Rows().Next("face")
			if given[n] || slices.Contains(anns, n) {
				t.Errorf("%d is given twice", n)
			}
			given[n] = true
		}
	}
	mine := []uint64{a.Rows().Next("face"), a.Rows().Next("face")}
	fixture.Must(a.Enroll("bob", person(1, 2), noon, gallery.Enrolment{Numbers: mine}))(t)
	fixture.Check(t, a.Reject(person(1, 1)[0], "ann", mine[0]))
	enrol(t, b, "carol", 2)
	for _, g := range []*gallery.Gallery{b, a} { // each takes in what the other has saved
		fixture.Check(t, g.Rename("ann", "anna"))
		fixture.Check(t, g.Save())
		anns, anna := append(slices.Clone(anns), mine[0]), numbers(g, "anna")
		if slices.Sort(anns); !slices.Equal(anns, anna) {
			t.Errorf("anna has the faces %v, want %v", anna, anns)
		}
		if g == b {
			if err := a.Update(); err != nil || a.Number("anna") == 0 {
				t.Fatalf("%v, %+v", err, a.People())
			}
			fixture.Check(t, a.Rename("anna", "ann"))
		}
	}
	c := open(t, path)
	if got := numbers(c, "bob"); !slices.Equal(got, mine) {
		t.Errorf("bob has the faces %v, want %v", got, mine)
	}
	for _, name := range []string{"anna", "bob", "carol"} {
		if got, want := numbers(c, name), numbers(a, name); !slices.Equal(got, want) {
			t.Errorf("%s has the faces %v, want %v", name, got, want)
		}
	}
}
