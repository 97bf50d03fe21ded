// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/fleet/ledger"
)

func copyFolder(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// stored is a ledger on disk with a snapshot and a tail.
func stored(t *testing.T) (s *small, device *author) {
	t.Helper()
	s = newSmall(t)
	d := newAuthor(t, s.admin.fleet, s.a.key)
	d.ring = s.a.ring
	d.onDisk()
	s.apply(t, d.own, s.log[:3]...)
	if err := d.store.Save(); err != nil {
		t.Fatal(err)
	}
	s.apply(t, d.own, s.log[3:]...)
	return s, d
}

// A file with a changed byte, or without its end, is refused or gives fewer entries of the log. It never gives other
// entries.
func TestStoreDamage(t *testing.T) {
	s, d := stored(t)
	if err := d.store.Close(); err != nil {
		t.Fatal(err)
	}
	// Without an index the whole snapshot is read, and refused.
	for _, i := range []int{0, 30, 200, 900} {
		folder := copyFolder(t, d.path)
		path := filepath.Join(folder, ledger.BaseFile)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[i] ^= 4
		if err := errors.Join(os.WriteFile(path, data, 0o600), os.Remove(filepath.Join(folder, "index"))); err != nil {
			t.Fatal(err)
		}
		if _, err := ledger.OpenStore(folder, d.fleet, d.key); !errors.Is(err, ledger.ErrStore) ||
			!strings.Contains(err.Error(), "move it away") {
			t.Fatalf("byte %d altered: %v", i, err)
		}
	}
	whole, err := os.ReadFile(filepath.Join(d.path, ledger.TailFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ledger.BaseFile, ledger.TailFile, "index"} {
		data, err := os.ReadFile(filepath.Join(d.path, name))
		if err != nil {
			t.Fatal(err)
		}
		for i := range data {
			altered := bytes.Clone(data)
			altered[i] ^= 1 << (i % 8)
			for _, bad := range [][]byte{altered, data[:i]} {
				folder := d.path
				if err := os.WriteFile(filepath.Join(folder, name), bad, 0o600); err != nil {
					t.Fatal(err)
				}
				st, err := ledger.OpenStore(folder, d.fleet, d.key)
				switch {
				case name == ledger.BaseFile && err == nil: // opened by its index: the change is found when it is read
					var b bytes.Buffer
					if st.Hash() != s.a.own.Hash() {
						t.Fatal("it is another state")
					}
					if err := st.Snapshot(&b, d.key); err == nil {
						if l, err := ledger.Restore(d.fleet, &b); err != nil || l.Hash() != st.Hash() {
							t.Fatalf("a bad entry is in a snapshot: %v", err)
						}
					} else if !errors.Is(err, ledger.ErrStore) {
						t.Fatal(err)
					}
					st.Close()
					continue
				case name == ledger.BaseFile &&
					(!errors.Is(err, ledger.ErrStore) || !strings.Contains(err.Error(), "move it away")):
					t.Fatalf("%s of %d bytes, byte %d altered: %v", name, len(bad), i, err)
				case err != nil && !errors.Is(err, ledger.ErrFuture) && name == ledger.TailFile:
					t.Fatalf("%s of %d bytes, byte %d altered: %v", name, len(bad), i, err)
				case err != nil:
					continue
				}
				if name == ledger.TailFile && st.Seq() != 3 {
					t.Fatalf("with a damaged tail it has read %d entries", st.Seq())
				}
				if st.Seq() == 3 {
					s.apply(t, st.Ledger, s.log[3:]...) // the log delivers the entries again
				}
				if st.Hash() != s.a.own.Hash() {
					t.Fatal("it is another state")
				}
				st.Close()
				if again, err := ledger.OpenStore(folder, d.fleet, d.key); err != nil ||
					again.Hash() != s.a.own.Hash() {
					t.Fatalf("opened again: %v", err)
				} else {
					again.Close()
				}
			}
		}
		if err := os.WriteFile(filepath.Join(d.path, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(d.path, ledger.TailFile), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	d.open()
	if d.own.Hash() != s.a.own.Hash() {
		t.Error("it is another state")
	}
}

// An entry whose bytes are damaged while the ledger is open is reported, and gets into no snapshot.
func TestStoreRots(t *testing.T) {
	for _, name := range []string{ledger.BaseFile, ledger.TailFile} {
		for _, cut := range []bool{false, true} {
			_, d := stored(t)
			path := filepath.Join(d.path, name)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if cut {
				err = os.Truncate(path, int64(len(data)/2))
			} else {
				var f *os.File
				if f, err = os.OpenFile(path, os.O_WRONLY, 0); err == nil {
					_, err = f.WriteAt(make([]byte, 60), int64(len(data)-200)) // in the last entry of both files
					err = errors.Join(err, f.Close())
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := d.store.Damage(); err != nil {
				t.Fatal(err)
			}
			d.own.People(d.ring)
			if err := d.store.Damage(); !errors.Is(err, ledger.ErrStore) || !strings.Contains(err.Error(), "move") {
				t.Errorf("%s, cut off %v: %v", name, cut, err)
			}
			if err := d.own.Snapshot(&bytes.Buffer{}, d.key); !errors.Is(err, ledger.ErrStore) {
				t.Errorf("%s, cut off %v: a snapshot was made of it: %v", name, cut, err)
			}
			if err := d.store.Save(); !errors.Is(err, ledger.ErrStore) {
				t.Errorf("%s, cut off %v: it was saved: %v", name, cut, err)
			}
		}
	}
}

// A snapshot of another device is checked once. After that an index vouches for exactly these bytes.
func TestStoreChecked(t *testing.T) {
	s, _ := stored(t)
	b := newAuthor(t, s.admin.fleet, s.b.key)
	b.onDisk()
	var data bytes.Buffer
	if err := s.a.own.Snapshot(&data, s.a.key); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Fetch(bytes.NewReader(data.Bytes()[:data.Len()-1])); !errors.Is(err, ledger.ErrSnapshot) {
		t.Errorf("a snapshot that is cut off: %v", err)
	}
	draft, err := b.store.Fetch(bytes.NewReader(data.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.store.Adopt(draft); err != nil {
		t.Fatal(err)
	}
	if b.store.Hash() != s.a.own.Hash() || len(b.store.People(s.a.ring)) != 1 {
		t.Error("it is another state")
	}
	if err := b.store.Close(); err != nil {
		t.Fatal(err)
	}
	if all, err := os.ReadDir(b.path); err != nil || len(all) != 3 {
		t.Errorf("the folder has %v", all)
	}
	// A snapshot that a stranger made is refused, whatever was checked before.
	stranger := newAuthor(t, s.admin.fleet, newUser(t))
	for _, note := range []bool{true, false} {
		folder := copyFolder(t, b.path)
		var forged bytes.Buffer
		if err := s.a.own.Snapshot(&forged, stranger.key); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, ledger.BaseFile), forged.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if !note {
			os.Remove(filepath.Join(folder, "index"))
		}
		if _, err := ledger.OpenStore(folder, b.fleet, b.key); !errors.Is(err, ledger.ErrStore) {
			t.Errorf("made by a stranger: %v", err)
		}
	}
	b.open()
	if b.store.Hash() != s.a.own.Hash() {
		t.Error("opened again, it is another state")
	}
}

// An entry that cannot be written stays in memory, together with later entries, until the ledger can be saved.
func TestStoreHole(t *testing.T) {
	s, d := stored(t)
	if err := d.store.LockTail(); err != nil {
		t.Fatal(err)
	}
	s.apply(t, d.own, s.b.write(ledger.Entry{Kind: ledger.Label, Person: s.alice}, vector(3, 4)))
	if d.store.Hole() == nil {
		t.Fatal("there is no hole")
	}
	people := d.own.People(d.ring)
	if len(people) != 1 || people[0].Sealed != 1 { // an entry of the other device, whose key is not here
		t.Errorf("it knows %+v", people)
	}
	hash := d.own.Hash()
	if err := d.store.Save(); err == nil {
		t.Error("the tail is said to be emptied, and cannot be")
	}
	d.store.Close()
	d.open()
	if d.own.Hash() != hash || d.store.Hole() != nil {
		t.Error("what was saved is another state")
	}
}

// The place in the log is kept, also if the last entries used no counter.
func TestStorePlace(t *testing.T) {
	s, d := stored(t)
	for range 3 {
		seq := d.own.Seq() + 5
		if o, err := d.own.Apply(seq, s.log[3]); err != nil || !errors.Is(o.Reason, ledger.ErrRepeated) {
			t.Fatal(o.Reason, err)
		}
		if err := d.store.Close(); err != nil {
			t.Fatal(err)
		}
		d.open()
		if d.own.Seq() != seq || d.own.Hash() != s.a.own.Hash() {
			t.Fatalf("opened again it is at %d", d.own.Seq())
		}
	}
}
