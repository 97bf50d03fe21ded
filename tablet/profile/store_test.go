// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/tablet/profile"
)

var space = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3}

// numbered returns data that begin with a number, and are filled with bytes that follow from it.
func numbered(n uint64, size int) []byte {
	b := binary.BigEndian.AppendUint64(nil, n)
	r := rand.New(rand.NewPCG(n, 1))
	for len(b) < size {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b
}

func open(t *testing.T, path string, key profile.Key) *profile.Store {
	t.Helper()
	s := fixture.Must(profile.Open(path, key, space))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// users lists the users, and fails unless each profile belongs to its user's number.
func users(t *testing.T, s *profile.Store, want map[string]uint64) {
	t.Helper()
	got := fixture.Must(s.Users())(t)
	if len(got) != len(want) || !slices.IsSorted(got) {
		t.Errorf("users %q, want %v", got, want)
	}
	for user, n := range want {
		p, err := s.Load(user)
		if err != nil {
			t.Errorf("%s: %v", user, err)
			continue
		}
		if !bytes.Equal(p, numbered(n, len(p))) {
			t.Errorf("%s: not the profile that was saved", user)
		}
	}
}

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "store")
	key := profile.NewKey([32]byte{})
	s := open(t, path, key)
	users(t, s, nil)
	for user, n := range map[string]uint64{"alice": 1, "Bob Müller": 2, "carol": 3} {
		fixture.Check(t, s.Save(user, numbered(n, 50_000)))
	}
	fixture.Check(t, s.Save("carol", numbered(4, 100)))
	want := map[string]uint64{"alice": 1, "Bob Müller": 2, "carol": 4}
	users(t, s, want)
	fixture.Check(t, s.Close())
	s = open(t, path, key)
	users(t, s, want)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := s.Load("eve"); !errors.Is(err, profile.ErrUnknown) {
		t.Errorf("a stranger: %v", err)
	}
	if err := s.Delete("eve"); !errors.Is(err, profile.ErrUnknown) {
		t.Errorf("deleting a stranger: %v", err)
	}
	for _, name := range []string{"", " a", "a\n", strings.Repeat("a", 101)} {
		if err := s.Save(name, nil); !errors.Is(err, face.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	users(t, s, want)
}

// The file shows neither a user's name nor a part of a learner, and has no trace of a deleted user,
// sealed or not.
func TestNoTraces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	key := profile.NewKey([32]byte{})
	s := open(t, path, key)
	secret := numbered(7, 100_000)
	for range 3 { // earlier versions leave pages behind
		fixture.Check(t, s.Save("alice-in-the-file", secret))
	}
	fixture.Check(t, s.Save("bob", numbered(8, 5000)))
	before := append(read(t, path), read(t, path+"-wal")...)
	if bytes.Contains(before, []byte("alice-in")) || bytes.Contains(before, secret[:16]) {
		t.Error("the file shows what it should hide")
	}
	s.Close()
	sealed := sealedBytes(t, path)
	s = open(t, path, key)
	fixture.Check(t, s.Delete("alice-in-the-file"))
	users(t, s, map[string]uint64{"bob": 8})
	after := append(read(t, path), read(t, path+"-wal")...)
	n := 0
	for _, b := range sealed {
		for i := 0; i+32 <= len(b); i += 32 {
			n++
			if bytes.Contains(after, b[i:i+32]) {
				t.Fatal("a piece of the deleted profile is left in the file")
			}
		}
	}
	if n < 3000 {
		t.Errorf("%d pieces looked for", n)
	}
	// the others are the log and its index
	if left, _ := filepath.Glob(path + "*"); len(left) != 3 {
		t.Errorf("files are left: %q", left)
	}
	// Bob's value is sealed again, too.
	fixture.Check(t, s.Delete("bob"))
	users(t, s, nil)
}

// sealedBytes returns the large values of the database, which are alice's.
func sealedBytes(t *testing.T, path string) (all [][]byte) {
	t.Helper()
	d := fixture.Must(store.Open(path, store.Schema{}, false))(t)
	defer d.Close()
	fixture.Check(t, d.Query("select key, value from meta where length(value) > 50000",
		func(r store.Row) error {
			all = append(all, []byte(r.ColumnText(0)), slices.Clone(r.ColumnRawBlob(1)))
			return nil
		}))
	if len(all) != 2 {
		t.Fatalf("%d values found", len(all))
	}
	return all
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store")
	key := profile.NewKey([32]byte{})
	s := open(t, path, key)
	fixture.Check(t, s.Save("alice", numbered(1, 1000)))
	begun := time.Now()
	if _, err := profile.Open(path, key, space); !errors.Is(err, profile.ErrBusy) {
		t.Errorf("a second program: %v", err)
	}
	t.Logf("gave up after %v", time.Since(begun))
	s.Close()
	if _, err := profile.Open(path, profile.NewKey([32]byte{1}), space); !errors.Is(err,
		profile.ErrKey) ||
		!strings.Contains(err.Error(), "give the right key") {
		t.Errorf("another machine's key: %v", err)
	}
	if _, err := profile.Open(path, key, face.Space{ID: "other"}); !errors.Is(err,
		profile.ErrSpace) {
		t.Errorf("another space: %v", err)
	}
	users(t, open(t, path, key), map[string]uint64{"alice": 1})
}

// A changed byte anywhere is either an error or has no effect. It never gives another profile, and
// never ends the program.
func TestAltered(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store")
	key := profile.NewKey([32]byte{})
	s := open(t, path, key)
	for n := range uint64(3) {
		fixture.Check(t, s.Save(fmt.Sprint("user", n), numbered(n, 9000)))
	}
	s.Close()
	good := read(t, path)
	other := filepath.Join(dir, "other")
	r := rand.New(rand.NewPCG(4, 4))
	noticed := 0
	for try := range 240 {
		b := slices.Clone(good)
		for range 1 + r.IntN(4) {
			at := r.IntN(len(b))
			if try%2 == 0 { // in the part that has the format
				at = at/4096*4096 + r.IntN(100)
			}
			b[at] ^= byte(1 + r.IntN(255))
		}
		fixture.Check(t, os.WriteFile(other, b, 0o600))
		s, err := profile.Open(other, key, space)
		if err != nil {
			noticed++
			continue
		}
		for n := range uint64(3) {
			p, err := s.Load(fmt.Sprint("user", n))
			if err != nil {
				noticed++
			} else if !bytes.Equal(p, numbered(n, 9000)) {
				t.Fatal("an altered file gave another profile")
			}
		}
		if _, err := s.Users(); err != nil {
			noticed++
		}
		if err := s.Save("user1", numbered(7, 9000)); err == nil {
			if p, err := s.Load("user1"); err == nil && !bytes.Equal(p, numbered(7, 9000)) {
				t.Fatal("an altered file gave another profile than was saved")
			}
		}
		if err := s.Delete("user2"); err != nil {
			noticed++
		}
		s.Close()
		runtime.GC() // a wrong pointer would end the program here
	}
	if noticed < 90 {
		t.Errorf("%d alterations were noticed", noticed)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	return fixture.Must(os.ReadFile(path))(t)
}

// A store of the first version is read with its key, and a newer one is called so.
func TestGolden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	fixture.Check(t, os.WriteFile(file, []byte("32 bytes that are no secret here"), 0o600))
	key := fixture.Must(profile.ReadKey(file))(t)
	path := fixture.Golden(t, "profiles", func(path string) error {
		os.Remove(path)
		s, err := profile.Open(path, key, space)
		if err != nil {
			return err
		}
		return errors.Join(s.Save("alice", numbered(1, 100)), s.Close())
	})
	s := open(t, path, key)
	users(t, s, map[string]uint64{"alice": 1})
	fixture.Check(t, s.Close())
	db := fixture.Must(store.Open(path, store.Schema{}, false))(t)
	fixture.Check(t, errors.Join(db.Exec("update meta set value = ? where key = 'profiles'",
		[]byte("2")),
		db.Close()))
	if _, err := profile.Open(path, key, space); !errors.Is(err, profile.ErrVersion) ||
		!strings.Contains(err.Error(), "it is 2, and this program reads 1; update this program") {
		t.Error(err)
	}
}
