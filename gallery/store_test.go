// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/vector"
)

func open(t testing.TB, path string) *gallery.Gallery {
	t.Helper()
	g, err := gallery.Open(path, space)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// stored saves a gallery in a new folder and closes it.
func stored(t testing.TB, people ...string) string {
	t.Helper()
	g := newGallery(t, people...)
	path := save(t, g)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func enrol(t testing.TB, g *gallery.Gallery, name string, i int) {
	t.Helper()
	if _, err := g.Enroll(name, person(i, 4), noon, gallery.Enrolment{}); err != nil {
		t.Fatal(err)
	}
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
	for _, g := range []*gallery.Gallery{one, two} {
		if err := g.Save(); err != nil {
			t.Fatal(err)
		}
	}
	want(t, two, "alice 4", "bob 4", "carol 4")
	want(t, one, "alice 4", "bob 4", "carol 4")
	enrol(t, two, "cora", 6)
	turn := one.Turn()
	want(t, one, "alice 4", "bob 4", "carol 4")
	if err := one.Update(); err != nil {
		t.Fatal(err)
	}
	want(t, one, "alice 4", "bob 4", "carol 4", "cora 4")
	if one.Turn() == turn {
		t.Error("nobody can see that people have changed")
	}
	if err := one.Forget("cora"); err != nil {
		t.Fatal(err)
	}
	// Inside a change a name is taken for all programs.
	err := one.Change(func(*gallery.Tx) error {
		enrol(t, one, "dora", 3)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = two.Change(func(*gallery.Tx) error {
		_, err := two.Enroll("dora", person(4, 4), noon, gallery.Enrolment{})
		return err
	})
	if !errors.Is(err, gallery.ErrExists) {
		t.Errorf("error %v", err)
	}
	want(t, open(t, path), "alice 4", "bob 4", "carol 4", "dora 4")
}

// A program that has learned finds what another has learned, renamed and forgotten: it takes that, and learns its own
// faces again on top of it. The forgotten person does not return.
func TestGenerations(t *testing.T) {
	path := stored(t, "alice", "bob", "carol")
	one, two := open(t, path), open(t, path)
	observe := func(g *gallery.Gallery, i, from, to int) {
		for _, x := range person(i, to)[from:] {
			if v, err := g.Learner().Observe(x); err != nil || !v.Learned {
				t.Fatalf("%+v, %v", v, err)
			}
		}
	}
	observe(one, 0, 4, 10)
	observe(one, 1, 4, 8)
	last := one.Learner().Counts().Observed
	observe(two, 2, 4, 9)
	if err := two.Forget("bob"); err != nil {
		t.Fatal(err)
	}
	if err := two.Rename("carol", "caroline"); err != nil {
		t.Fatal(err)
	}
	if err := two.Save(); err != nil {
		t.Fatal(err)
	}
	if err := one.Save(); err != nil {
		t.Fatal(err)
	}
	want(t, one, "alice 4", "caroline 4")
	n := one.Renumbered()
	if len(n) != int(last) || n[1] != 6 || n[10] != 0 || len(one.Renumbered()) != 0 {
		t.Errorf("numbers %v", n)
	}
	back := open(t, path)
	for i, name := range []string{"alice", "", "caroline"} {
		if v, err := back.Learner().Judge(person(i, 7)[6]); err != nil || back.Name(v.Person) != name {
			t.Errorf("person %d is %+v, want %q, %v", i, v, name, err)
		}
	}
	if c := back.Learner().Counts(); c.Learned != 5+6 {
		t.Errorf("%d faces are learned", c.Learned)
	}
}

// After forgetting, the bytes of the name and of the vectors are in no file, also if a reader has delayed it.
func TestForgottenBytes(t *testing.T) {
	for _, reader := range []bool{false, true} {
		path := stored(t, "alice", "bobolink")
		g := open(t, path)
		for _, x := range person(1, 9)[4:] {
			if _, err := g.Learner().Observe(x); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Save(); err != nil {
			t.Fatal(err)
		}
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
			if err := g.Forget("bobolink"); err != nil {
				t.Fatal(err)
			}
			if err := g.Save(); err != nil {
				t.Fatal(err)
			}
		}
		if !reader {
			forget()
		} else {
			other, err := store.Open(path, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Read(func() error {
				defer forget()
				return other.Query("select count(*) from label", nil)
			}); err != nil {
				t.Fatal(err)
			}
			if hits() == 0 {
				t.Error("the reader has not delayed it, so this tests nothing")
			}
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			open(t, path) // the next start
		}
		if n := hits(); n > 0 {
			t.Errorf("with a reader %v: %d hits", reader, n)
		}
	}
}

// Every cut, every zeroed page and a flipped bit in every part of a page is an error that says so, or is in no
// page that a program reads or writes.
func TestDamaged(t *testing.T) {
	t.Run("plain", func(t *testing.T) { damaged(t, stored(t, "alice")) })
	t.Run("encrypted", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "gallery")
		store.SetKey(path, testKey)
		if err := newGalleryAt(t, path, "alice").Close(); err != nil {
			t.Fatal(err)
		}
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
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
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
		check(fmt.Sprintf("cut off after %d bytes", n), whole[:n], gallery.ErrDamaged, gallery.ErrNotGallery)
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
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := store.Open(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Exec("pragma user_version = 6"), d.Close()); err != nil {
		t.Fatal(err)
	}
	const newer = "a database of a newer faceauth: it has version 6, and this program reads 5; update this program"
	if _, err := gallery.Read(path); err == nil || err.Error() != "opening gallery "+path+": "+newer {
		t.Errorf("error %v", err)
	}
	if _, err := gallery.Open(filepath.Join(t.TempDir(), "none"), space); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no gallery: %v", err)
	}
	if _, err := gallery.Open(t.TempDir(), space); !errors.Is(err, gallery.ErrNotGallery) {
		t.Errorf("a folder: %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := gallery.Open(pipe, space); !errors.Is(err, gallery.ErrNotGallery) {
		t.Errorf("a pipe: %v", err)
	}
}

// A deleted database does not come back out of a log that stayed.
func TestDeleted(t *testing.T) {
	path := stored(t, "alice")
	g := open(t, path)
	enrol(t, g, "bob", 1)
	if err := g.Save(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	newGalleryAt(t, path, "carol")
	want(t, open(t, path), "carol 4")
}

// On a full disk a gallery can be read, a save fails and says why, and the next save succeeds when there is room.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("only root may mount a small disk: %v", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	path := filepath.Join(dir, "faceauth.db")
	g := newGalleryAt(t, path, "alice")
	defer g.Close()
	fill := filepath.Join(dir, "fill")
	if err := os.WriteFile(fill, make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	n := 0
	for i := 1; ; i++ { // the log may have some room left
		n = len(g.People())
		if _, err := g.Enroll(fmt.Sprint("person ", i), person(i, 4), noon, gallery.Enrolment{}); err != nil {
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
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	if err := g.Save(); err != nil {
		t.Errorf("when there is room: %v", err)
	}
	if m := len(open(t, path).People()); m != n {
		t.Errorf("%d people are in the file at the end, want %d", m, n)
	}
}

// writer is a program on a gallery that many programs change. It prints each change that is on the disk.
func writer(path, kind string) error {
	g, err := gallery.Open(path, space)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	for i := 0; ; i++ {
		said := ""
		if kind == "learner" { // as an office
			if err := g.Update(); err != nil {
				return err
			}
			for _, p := range g.People() {
				var number int
				if _, err := fmt.Sscanf(p.Name, "p%d", &number); err == nil {
					g.Learner().Observe(person(number, 9)[4+r.IntN(5)])
				}
			}
			err = g.Save()
		} else {
			err = g.Change(func(*gallery.Tx) error {
				people := g.People()
				number := 1 + r.IntN(1<<30)
				switch {
				case r.IntN(4) > 0 || len(people) < 2:
					said = fmt.Sprintf("in p%d", number)
					return g.Label(fmt.Sprintf("p%d", number), person(number, 2), time.Now())
				case r.IntN(2) == 0:
					from, to := people[1+r.IntN(len(people)-1)].Name, fmt.Sprintf("p%d", number)
					said = "renamed " + from + " " + to
					fmt.Println("maybe", from)
					return g.Rename(from, to)
				}
				name := people[1+r.IntN(len(people)-1)].Name
				said = "out " + name
				fmt.Println("maybe", name)
				return g.Forget(name)
			})
		}
		if err != nil {
			return err
		}
		if said != "" {
			fmt.Println(said)
		}
	}
}

// testKey is a key of encrypted databases.
var testKey = bytes.Repeat([]byte("key "), 8)

func TestMain(m *testing.M) {
	if os.Getenv("FACEAUTH_TEST_ENCRYPTED") == "true" {
		store.SetKey(os.Getenv("FACEAUTH_TEST_GALLERY"), testKey)
	}
	if kind := os.Getenv("FACEAUTH_TEST_WRITER"); kind != "" {
		if err := writer(os.Getenv("FACEAUTH_TEST_GALLERY"), kind); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// Several programs change one gallery and are killed at random. What a program has said to be on the disk is there,
// nobody forgotten returns, nobody comes from nowhere, and the file is whole.
func TestKilled(t *testing.T) {
	t.Run("plain", func(t *testing.T) { killed(t, false) })
	t.Run("encrypted", func(t *testing.T) { killed(t, true) })
}

func killed(t *testing.T, encrypted bool) {
	kills := fixture.Kills(t, 12)
	path := filepath.Join(t.TempDir(), "gallery")
	if encrypted {
		store.SetKey(path, testKey)
	}
	first := newGalleryAt(t, path, "alice")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	in, out, maybe, left := make(map[string]bool), make(map[string]bool), make(map[string]bool), kills
	var work sync.WaitGroup
	for _, kind := range []string{"writer", "writer", "learner"} {
		work.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(len(kind))))
			for {
				mu.Lock()
				left--
				on := left >= 0
				mu.Unlock()
				if !on {
					return
				}
				c := exec.Command(os.Args[0])
				c.Env = append(os.Environ(), "FACEAUTH_TEST_WRITER="+kind, "FACEAUTH_TEST_GALLERY="+path,
					fmt.Sprint("FACEAUTH_TEST_ENCRYPTED=", encrypted))
				lines, err := c.StdoutPipe()
				if err == nil {
					err = c.Start()
				}
				if err != nil {
					t.Error(err)
					return
				}
				time.AfterFunc(time.Duration(100+r.IntN(400))*time.Millisecond, func() { c.Process.Kill() })
				for s := bufio.NewScanner(lines); s.Scan(); {
					f := strings.Fields(s.Text())
					mu.Lock()
					switch f[0] {
					case "in":
						in[f[1]] = true
					case "renamed":
						in[f[2]], out[f[1]] = true, true
					case "out":
						out[f[1]] = true
					case "maybe": // it may be killed before it says so, and another may still say that they are in
						maybe[f[1]] = true
					case "error":
						t.Error(s.Text())
					}
					mu.Unlock()
				}
				c.Wait() // it was killed
			}
		})
	}
	work.Wait()
	g := open(t, path)
	here := make(map[string]bool)
	for _, p := range g.People() {
		if here[p.Name] = true; out[p.Name] {
			t.Errorf("%s was forgotten and is back", p.Name)
		}
		if p.Faces != 2 && p.Name != "alice" {
			t.Errorf("%s has %d faces", p.Name, p.Faces)
		}
	}
	lost := 0
	for name := range in {
		if !here[name] && !out[name] && !maybe[name] {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d people are lost", lost, len(in))
	}
	t.Logf("%d kills, %d people in, %d out, %d here, %d faces learned", kills, len(in), len(out), len(here),
		g.Learner().Counts().Learned)
	d, err := store.Open(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Query("pragma integrity_check", func(r store.Row) error {
		if s := r.ColumnText(0); s != "ok" {
			t.Error(s)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// A face has one number in all programs, whatever happens to its labels, and no number is given twice.
func TestFaceNumbers(t *testing.T) {
	path := stored(t, "ann")
	numbers := func(g *gallery.Gallery, name string) (all []uint64) {
		for _, l := range g.Learner().Labels() {
			if x, there := g.LabelOf(l.ID); there && g.Name(l.Person) == name {
				all = append(all, x.Face)
			}
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
			n := g.Next("face")
			if given[n] || slices.Contains(anns, n) {
				t.Errorf("%d is given twice", n)
			}
			given[n] = true
		}
	}
	mine := []uint64{a.Next("face"), a.Next("face")}
	if _, err := a.Enroll("bob", person(1, 2), noon, gallery.Enrolment{Numbers: mine}); err != nil {
		t.Fatal(err)
	}
	if err := a.Reject(person(1, 1)[0], "ann", mine[0]); err != nil {
		t.Fatal(err)
	}
	enrol(t, b, "carol", 2)
	for _, g := range []*gallery.Gallery{b, a} { // each takes in what the other has saved
		if err := g.Rename("ann", "anna"); err != nil {
			t.Fatal(err)
		}
		if err := g.Save(); err != nil {
			t.Fatal(err)
		}
		anns, anna := append(slices.Clone(anns), mine[0]), numbers(g, "anna")
		if slices.Sort(anns); !slices.Equal(anns, anna) {
			t.Errorf("anna has the faces %v, want %v", anna, anns)
		}
		if g == b {
			if err := a.Update(); err != nil || a.Number("anna") == 0 {
				t.Fatalf("%v, %+v", err, a.People())
			}
			if err := a.Rename("anna", "ann"); err != nil {
				t.Fatal(err)
			}
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
