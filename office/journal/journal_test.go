// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/office/journal"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

type head struct {
	Name string `json:"name"`
}

func open(t testing.TB, dir string, s journal.Settings) *journal.Store[head] {
	t.Helper()
	st, err := journal.Open[head](dir, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func put(t testing.TB, st *journal.Store[head], id uint64, name, body string) {
	t.Helper()
	if err := st.Put(id, noon.Add(time.Duration(id)*time.Minute), head{name}, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

// text lists the records of a store, the newest first.
func text(t testing.TB, st *journal.Store[head]) string {
	t.Helper()
	var all []string
	for _, id := range st.Before(0) {
		r, ok := st.Get(id)
		body, err := st.Body(id)
		if !ok || err != nil || r.ID != id || !r.At.Equal(noon.Add(time.Duration(id)*time.Minute)) {
			t.Fatalf("%d: %+v, %v", id, r, err)
		}
		all = append(all, fmt.Sprintf("%d=%s:%s", id, r.Head.Name, body))
	}
	return strings.Join(all, " ")
}

// contains reports whether a file in a folder contains the text.
func contains(t testing.TB, dir, what string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || bytes.Contains(data, []byte(what))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestStore(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "store")} {
		for _, lazy := range []bool{false, true} {
			if dir != "" {
				dir += "x"
			}
			s := journal.Settings{Lazy: lazy}
			st := open(t, dir, s)
			again := func(want string) {
				t.Helper()
				for range 2 {
					if got := text(t, st); got != want {
						t.Errorf("%q, %t: %q, want %q", dir, lazy, got, want)
					}
					if dir != "" {
						st.Close()
						st = open(t, dir, s)
					}
				}
			}
			again("")
			put(t, st, 3, "alice", "one")
			put(t, st, 5, "bob", "two")
			put(t, st, 9, "carol", "")
			again("9=carol: 5=bob:two 3=alice:one")
			if err := st.Change(map[uint64]head{3: {"anna"}, 9: {"clara"}, 77: {"nobody"}}); err != nil {
				t.Fatal(err)
			}
			again("9=clara: 5=bob:two 3=anna:one")
			if got := fmt.Sprint(st.Before(9), st.Before(3), st.Before(4), st.Last(),
				st.Len()); got != "[5 3] [] [3] 9 3" {
				t.Error(got)
			}
			if err := st.Delete(9, 5); err != nil {
				t.Fatal(err)
			}
			again("3=anna:one")
			if st.Last() != 9 {
				t.Errorf("number %d would be given again", st.Last())
			}
			if _, err := st.Body(5); !errors.Is(err, journal.ErrNoRecord) {
				t.Error(err)
			}
			if dir == "" {
				continue
			}
			for _, gone := range []string{"bob", "two", "carol", "clara", "alice"} {
				if contains(t, dir, gone) {
					t.Errorf("%q is in a file", gone)
				}
			}
			if info, err := os.Stat(filepath.Join(dir, "3")); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info, err)
			}
			if _, err := journal.Open[head](dir, s); !errors.Is(err, journal.ErrBusy) {
				t.Errorf("a second program: %v", err)
			}
		}
	}
}

func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		s    journal.Settings
		want string
	}{
		"records": {journal.Settings{Records: 2}, "30=n:b 29=n:b"},
		"bytes":   {journal.Settings{Bytes: 3 * 1025}, "30=n:b 29=n:b 28=n:b"},
		"age":     {journal.Settings{Age: time.Minute}, "30=n:b 29=n:b"},
	} {
		dir := t.TempDir()
		st := open(t, dir, c.s)
		for id := range uint64(30) {
			put(t, st, id+1, "n", "b")
		}
		if got := text(t, st); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != st.Len()+1 {
			t.Errorf("%s: %d files for %d records, %v", name, len(files), st.Len(), err)
		}
		if err := st.Expire(noon.Add(30 * 24 * time.Hour)); err != nil || st.Len() != 0 {
			t.Errorf("%s: %d are left, %v", name, st.Len(), err)
		}
	}
	// The index does not grow with the number of changes.
	dir := t.TempDir()
	st := open(t, dir, journal.Settings{Lazy: true})
	put(t, st, 1, "n", "b")
	for i := range 5000 {
		if err := st.Change(map[uint64]head{1: {strconv.Itoa(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "index")); err != nil || info.Size() > 200_000 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
}

// A record that cannot be written still counts, and is written when there is room again.
func TestNoRoom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	st := open(t, dir, journal.Settings{})
	put(t, st, 1, "alice", "one")
	if os.Geteuid() == 0 { // permissions do not stop root
		if err := os.Mkdir(filepath.Join(dir, "2"), 0o700); err != nil {
			t.Fatal(err)
		}
	} else if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := st.Put(2, noon.Add(2*time.Minute), head{"bob"}, []byte("two")); err == nil {
		t.Error("nothing was said")
	}
	if got := text(t, st); got != "2=bob:two 1=alice:one" {
		t.Error(got)
	}
	os.Chmod(dir, 0o700)
	os.Remove(filepath.Join(dir, "2"))
	put(t, st, 3, "carol", "three")
	st.Close()
	if got := text(t, open(t, dir, journal.Settings{})); got != "3=carol:three 2=bob:two 1=alice:one" {
		t.Error(got)
	}
}

// A program that is killed at any moment leaves only records that were written completely.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("JOURNAL_CHILD"); dir != "" {
		st, err := journal.Open[head](dir, journal.Settings{Lazy: os.Getenv("JOURNAL_LAZY") != "", Records: 40})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for id := st.Last() + 1; ; id++ {
			name := strconv.FormatUint(id, 10)
			if err := st.Put(id, noon, head{name}, bytes.Repeat([]byte(name+" "), 4000)); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fmt.Println(id)
			if id%7 == 0 {
				if err := st.Delete(id - 3); err != nil {
					fmt.Println(err)
					os.Exit(1)
				}
			}
		}
	}
	for _, lazy := range []string{"", "lazy"} {
		dir, last := t.TempDir(), uint64(0)
		for round := range 12 {
			c := exec.Command(os.Args[0], "-test.run=^TestKilled$")
			c.Env = append(os.Environ(), "JOURNAL_CHILD="+dir, "JOURNAL_LAZY="+lazy)
			var said bytes.Buffer
			c.Stdout = &said
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(30+17*round) * time.Millisecond)
			c.Process.Signal(syscall.SIGKILL)
			c.Wait()
			for _, line := range strings.Fields(said.String()) {
				id, err := strconv.ParseUint(line, 10, 64)
				if err != nil {
					t.Fatal(said.String())
				}
				last = max(last, id)
			}
			st := open(t, dir, journal.Settings{Lazy: lazy != ""})
			if st.Last() < last || st.Len() > 41 {
				t.Errorf("%s: %d were put, the last one is %d, of %d", lazy, last, st.Last(), st.Len())
			}
			for _, id := range st.Before(0) {
				r, _ := st.Get(id)
				name := strconv.FormatUint(id, 10)
				if body, err := st.Body(id); err != nil || r.Head.Name != name || len(body) != 4000*(len(name)+1) {
					t.Fatalf("%s: record %d: %+v, %d bytes, %v", lazy, id, r, len(body), err)
				}
			}
			files, err := os.ReadDir(dir)
			if err != nil || len(files) != st.Len()+1 {
				t.Errorf("%s: %d files for %d records, %v", lazy, len(files), st.Len(), err)
			}
			st.Close()
		}
		if last == 0 {
			t.Errorf("%s: nothing was put", lazy)
		}
	}
}

func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	st := open(t, dir, journal.Settings{})
	put(t, st, 1, "alice", "one")
	put(t, st, 2, "bob", "two")
	st.Close()
	body, err := os.ReadFile(filepath.Join(dir, "1"))
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(dir, "index"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range body {
		bad := bytes.Clone(body)
		bad[i] ^= 4
		if err := os.WriteFile(filepath.Join(dir, "1"), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		st := open(t, dir, journal.Settings{})
		if _, err := st.Body(1); err == nil {
			t.Fatalf("byte %d of a body", i)
		}
		st.Close()
	}
	last := bytes.LastIndexByte(index[:len(index)-1], '\n')
	for i := range index[:last] {
		bad := bytes.Clone(index)
		bad[i] ^= 4
		if err := os.WriteFile(filepath.Join(dir, "index"), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := journal.Open[head](dir, journal.Settings{}); !errors.Is(err, journal.ErrDamaged) {
			t.Fatalf("byte %d of the index: %v", i, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "numbers")
	n, err := journal.OpenNumbers(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(2000) {
		if err := n.Reserve("face", i, 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Set("group", 7); err != nil {
		t.Fatal(err)
	}
	upTo := n.UpTo("face")
	n.Close()
	if n, err = journal.OpenNumbers(path); err != nil || n.UpTo("face") != upTo || upTo < 1999 ||
		n.UpTo("group") != 7 ||
		n.UpTo("other") != 0 {
		t.Errorf("%d, %d, %v", n.UpTo("face"), upTo, err)
	}
	defer n.Close()
	if info, err := os.Stat(path); err != nil || info.Size() > 40_000 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
}
