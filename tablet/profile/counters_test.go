// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/tablet/profile"
)

// The counters detect a store that was put back from a copy. A profile that was written after the copy is stale, and
// users who were forgotten after the copy stay forgotten.
func TestPutBack(t *testing.T) {
	dir := t.TempDir()
	path, seen, key := filepath.Join(dir, "store"), filepath.Join(dir, "apart", "seen"), profile.NewKey()
	again := func() *profile.Store {
		t.Helper()
		s, err := profile.Open(path, key, space, profile.Counters(seen))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	stale := func(s *profile.Store, user string, want bool) {
		t.Helper()
		p, err := s.Load(user)
		if err != nil || p.Stale != want {
			t.Errorf("%s: stale %t, %v; want %t", user, p.Stale, err, want)
		}
	}
	save := func(s *profile.Store, users ...string) {
		t.Helper()
		for _, user := range users {
			if err := s.Save(user, numbered(1, 100)); err != nil {
				t.Fatal(err)
			}
		}
	}
	keep := func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	back := func(path string, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := again()
	save(s, "alice", "bob", "carol")
	stale(s, "alice", false)
	s.Close()
	store, counters := keep(path), keep(seen)
	s = again()
	stale(s, "alice", false)
	save(s, "alice") // a failure, for instance
	if err := s.Delete("carol"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	after, afterSeen := keep(path), keep(seen)

	back(path, store)
	s = again()
	stale(s, "alice", true)
	stale(s, "bob", false)
	if _, err := s.Load("carol"); !errors.Is(err, profile.ErrUnknown) {
		t.Errorf("who was forgotten is back: %v", err)
	}
	if users, err := s.Users(); err != nil || !slices.Equal(users, []string{"alice", "bob"}) {
		t.Errorf("users %q, %v", users, err)
	}
	save(s, "alice") // after the password
	stale(s, "alice", false)
	s.Close()

	// The counters are put back, removed, of another store, or empty.
	for name, b := range map[string][]byte{"old counters": counters, "no counters": nil, "garbage": []byte("garbage")} {
		back(path, after)
		if b == nil {
			os.Remove(seen)
		} else {
			back(seen, b)
		}
		s = again()
		stale(s, "alice", true)
		stale(s, "bob", name != "old counters")
		s.Close()
		s = again() // the result is the same after another start
		stale(s, "alice", true)
		s.Close()
	}
	back(path, after)
	back(seen, afterSeen)
	s = again()
	stale(s, "alice", false)
	// A rotation of the key keeps the counters.
	if err := s.Rotate(profile.NewKey()); err != nil {
		t.Fatal(err)
	}
	stale(s, "alice", false)
	s.Close()
	// A folder is in the place of the counters.
	os.Remove(seen)
	if err := os.Mkdir(seen, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := profile.Open(path, key, space, profile.Counters(seen)); err == nil {
		t.Error("opened without counters")
	}
}
