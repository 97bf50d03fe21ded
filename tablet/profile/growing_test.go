// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/tpm"
	"github.com/faceauth/faceauth/tablet/profile"
)

// vault is a folder with a store, its counters and its key, and an emulated TPM.
type vault struct {
	t   *testing.T
	dir string
	key profile.Key
	tpm *fixture.TPM
}

func newVault(t *testing.T) *vault {
	return &vault{t, t.TempDir(), profile.NewKey(), fixture.StartTPM(t)}
}

// open opens the store, with the TPM.
func (v *vault) open() (*profile.Store, *tpm.Counter) {
	v.t.Helper()
	c, err := tpm.Open(v.tpm.Path)
	if err != nil {
		v.t.Fatal(err)
	}
	s, err := profile.Open(filepath.Join(v.dir, "store"), v.key, space, profile.Growing(c))
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { s.Close(); c.Close() })
	return s, c
}

// with opens the store and calls a function with it.
func (v *vault) with(do func(*profile.Store)) {
	v.t.Helper()
	s, c := v.open()
	do(s)
	s.Close()
	c.Close()
}

// save writes profiles.
func (v *vault) save(users ...string) {
	v.t.Helper()
	v.with(func(s *profile.Store) {
		for _, u := range users {
			if err := s.Save(u, numbered(1, 100)); err != nil {
				v.t.Fatal(err)
			}
		}
	})
}

// stale checks whether a profile counts as one from an old copy.
func (v *vault) stale(what, user string, want bool) {
	v.t.Helper()
	v.with(func(s *profile.Store) {
		p, err := s.Load(user)
		if err != nil || p.Stale != want {
			v.t.Errorf("%s: %s stale %t, %v; want %t", what, user, p.Stale, err, want)
		}
	})
}

// copied returns all files, and a function that puts them back.
func (v *vault) copied() (back func()) {
	v.t.Helper()
	all := map[string][]byte{}
	entries, err := os.ReadDir(v.dir)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, e := range entries {
		if all[e.Name()], err = os.ReadFile(filepath.Join(v.dir, e.Name())); err != nil {
			v.t.Fatal(err)
		}
	}
	if len(all) < 2 {
		v.t.Fatalf("%d files were copied", len(all))
	}
	return func() {
		for name, b := range all {
			if err := os.WriteFile(filepath.Join(v.dir, name), b, 0o600); err != nil {
				v.t.Fatal(err)
			}
		}
	}
}

// A TPM detects that the store, the counters and the key were all put back from one copy. Without a TPM this is not
// detected.
func TestGrowing(t *testing.T) {
	v := newVault(t)
	v.save("alice", "bob")
	v.stale("written", "alice", false)
	back := v.copied()
	v.save("alice") // a failure, for instance
	v.stale("written again", "alice", false)
	back()
	v.stale("put back", "alice", true)
	v.stale("put back", "bob", true) // bob's profile had not changed, but the store cannot know this
	v.save("alice")                  // as when the password is given
	v.stale("after the password", "alice", false)
	v.stale("after somebody else's password", "bob", true)
	// Forgetting counts, too: a forgotten user who is back must give the password.
	back = v.copied()
	v.with(func(s *profile.Store) {
		if err := s.Delete("alice"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load("alice"); !errors.Is(err, profile.ErrUnknown) {
			t.Error(err)
		}
	})
	back()
	v.stale("forgotten, and put back", "alice", true)
}

// A store from before the TPM was used starts to use the TPM without a warning. A copy from that time is detected
// later.
func TestGrowingLater(t *testing.T) {
	v := newVault(t)
	plain, err := profile.Open(filepath.Join(v.dir, "store"), v.key, space)
	if err != nil {
		t.Fatal(err)
	}
	if err := plain.Save("alice", numbered(1, 100)); err != nil {
		t.Fatal(err)
	}
	plain.Close()
	back := v.copied()
	v.stale("the first time", "alice", false)
	v.stale("the second time", "alice", false)
	back()
	v.stale("a copy from before", "alice", true)
	// Without the TPM the store works as before, and again with the TPM.
	v.save("alice")
	if plain, err = profile.Open(filepath.Join(v.dir, "store"), v.key, space); err != nil {
		t.Fatal(err)
	}
	if p, err := plain.Load("alice"); err != nil || p.Stale {
		t.Errorf("without it: %t, %v", p.Stale, err)
	}
	plain.Close()
	v.stale("with it again", "alice", false)
	// The counter survives a change of the key.
	v.with(func(s *profile.Store) {
		key := profile.NewKey()
		if err := s.Rotate(key); err != nil {
			t.Fatal(err)
		}
		v.key = key
	})
	v.stale("with another key", "alice", false)
}

// A TPM that loses its power, is cleared, loses its counter, or disappears lets in nobody who was not let in before.
func TestGrowingTrouble(t *testing.T) {
	v := newVault(t)
	v.save("alice")
	v.tpm.Restart(t)
	v.with(func(s *profile.Store) { // the counter is ahead, or at its place
		if _, err := s.Load("alice"); err != nil {
			t.Error(err)
		}
	})
	v.save("alice")
	v.stale("after a power cut and the password", "alice", false)
	v.with(func(*profile.Store) {
		c, err := tpm.Open(v.tpm.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, was, err := c.Make([]byte("another secret, of another store")); err != nil || !was {
			t.Fatal(was, err)
		}
	})
	v.stale("its counter was made anew", "alice", true)
	v.save("alice")
	v.stale("after the password", "alice", false)
	// The TPM disappears while the store is open: nothing is written any more, also when the TPM is back.
	s, _ := v.open()
	v.tpm.Stop()
	if err := s.Save("alice", numbered(2, 100)); err == nil {
		t.Error("written without the TPM")
	}
	v.tpm.Restart(t)
	if err := s.Save("alice", numbered(2, 100)); err == nil {
		t.Error("written, and two files have one number")
	}
	s.Close()
	v.tpm.Stop()
	c, err := tpm.Open(v.tpm.Path)
	if err == nil {
		if s, err := profile.Open(filepath.Join(v.dir, "store"), v.key, space, profile.Growing(c)); err == nil {
			s.Close()
			t.Error("opened without the TPM")
		}
		c.Close()
	}
}

// interrupted counts, and then fails, as if the power went between the file and the TPM.
type interrupted struct {
	*tpm.Counter
	fail bool
}

func (i *interrupted) Increment(secret []byte) error {
	if i.fail {
		return errors.New("the power goes")
	}
	return i.Counter.Increment(secret)
}

// The power may go between the writes of the counters' file, the TPM and the profile.
func TestGrowingInterrupted(t *testing.T) {
	v := newVault(t)
	v.save("alice", "bob")
	c, err := tpm.Open(v.tpm.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := profile.Open(filepath.Join(v.dir, "store"), v.key, space, profile.Growing(&interrupted{c, true}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Save("alice", numbered(2, 100)); err == nil {
		t.Error("saved")
	}
	s.Close()
	v.stale("of whom nothing was written", "bob", false)
	v.stale("who was to be written", "alice", true)
}
