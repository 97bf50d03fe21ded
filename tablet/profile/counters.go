// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/tpm"
	"github.com/fxamacker/cbor/v2"
)

// Option is an option of [Open].
type Option func(*Store)

// Counters sets the path of the file with the store's counters. Choose a folder that is not copied together with the
// store. Default: beside the store, with ".seen" after its name.
func Counters(path string) Option { return func(s *Store) { s.apart = path } }

// Grower is a counter outside of all files that only rises, as in a TPM (package tpm). Make makes the counter or
// replaces an existing one, and reports whether there was one. A secret authenticates its answers.
type Grower interface {
	Make(secret []byte) (n uint64, was bool, err error)
	Value(secret []byte) (uint64, error)
	Increment(secret []byte) error
}

// Growing makes the store raise g with each change of its counters. If somebody restores store, counters and key from
// one copy, the store notices it, and all passwords are due.
func Growing(g Grower) Option { return func(s *Store) { s.grower = g } }

// ErrGrower is wrapped by the error of [Open] if the [Grower] of a store that never had one cannot be used.
var ErrGrower = errors.New("the counter cannot be used")

// witness is the record about a [Grower] in the file of the counters.
type witness struct {
	N      uint64 `cbor:"n"`
	Secret []byte `cbor:"secret"`
}

// witnessKey is the key of the witness in the file; no user can have this name.
const witnessKey = ""

// counters hold the number of writes of each user's profile, in a separate file. A profile with another number comes
// from a restored copy, and a user without a number was forgotten.
type counters map[string]uint64

// countedKey is in the store once it has counters.
const countedKey = "counted"

// mostCounters is the greatest size of a file of counters in bytes.
const mostCounters = 1 << 20

// readCounters reads the counters. If they cannot be read, all profiles count as restored from a copy.
func (s *Store) readCounters() error {
	sealed, err := readSmall(s.apart)
	if err == nil {
		var plain []byte
		if plain, err = s.unseal(sealed, apart, ""); err == nil {
			if err = s.parseCounters(plain); err == nil && s.counters != nil {
				changed, err := s.checkGrower()
				if err == nil && changed {
					err = s.writeCounters()
				}
				if err != nil {
					return err
				}
				return s.counted()
			}
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged) &&
		!errors.Is(err, safefile.ErrNotRegular) {
		return err
	}
	had, err := s.get(countedKey)
	if err != nil {
		return err
	}
	all, err := s.values()
	if err != nil {
		return err
	}
	s.counters, s.witness = make(counters), nil
	for at, sealed := range all {
		r, err := s.record(sealed, at)
		clear(r.Learner)
		if err == nil { // a profile that cannot be read lets nobody in
			s.counters[r.User] = r.N
		}
	}
	if had != nil { // the file is missing or was altered
		s.distrust()
	}
	if _, err := s.checkGrower(); err != nil {
		return err
	}
	if err := s.writeCounters(); err != nil {
		return err
	}
	return s.counted()
}

// distrust treats all profiles as restored from a copy.
func (s *Store) distrust() {
	for user := range s.counters {
		s.counters[user]++
	}
}

// parseCounters decodes the file.
func (s *Store) parseCounters(plain []byte) error {
	var all map[string]cbor.RawMessage
	if err := cbor.Unmarshal(plain, &all); err != nil || all == nil {
		return err
	}
	s.counters, s.witness = make(counters), nil
	for user, b := range all {
		if user == witnessKey {
			s.witness = new(witness)
			if err := cbor.Unmarshal(b, s.witness); err != nil {
				return err
			}
			continue
		}
		var n uint64
		if err := cbor.Unmarshal(b, &n); err != nil {
			return err
		}
		s.counters[user] = n
	}
	return nil
}

// checkGrower checks with the grower that the counters are the last written ones. It makes the grower's counter if it
// is missing. Changed reports that the counters must be written.
func (s *Store) checkGrower() (changed bool, err error) {
	if s.grower == nil {
		return false, nil
	}
	if s.witness != nil {
		n, err := s.grower.Value(s.witness.Secret)
		switch {
		case err == nil && n == s.witness.N:
			return false, nil
		case err == nil && n+1 == s.witness.N: // the program ended between the last write and its increment
			return false, s.grower.Increment(s.witness.Secret)
		case err == nil:
			s.witness.N = n
			s.distrust()
			return true, nil
		case !errors.Is(err, tpm.ErrMissing) && !errors.Is(err, tpm.ErrForeign):
			return false, fmt.Errorf("reading the counter of the TPM: %w", err)
		}
	}
	secret := make([]byte, 32)
	rand.Read(secret)
	n, was, err := s.grower.Make(secret)
	if err != nil {
		if s.witness == nil {
			err = fmt.Errorf("%w: %w", ErrGrower, err)
		}
		return false, fmt.Errorf("making the counter of the TPM: %w", err)
	}
	if was || s.witness != nil { // a copy may be from before the new counter
		s.distrust()
	}
	s.witness = &witness{n, secret}
	return true, nil
}

// change writes the counters, and raises the grower. After a failure to raise it, nothing more is written: otherwise
// two files would have the same number.
func (s *Store) change() error {
	if s.grower == nil {
		return s.writeCounters()
	}
	if s.uncertain != nil {
		return s.uncertain
	}
	s.witness.N++
	err := s.writeCounters()
	if err != nil {
		s.witness.N--
		return err
	}
	if err := s.grower.Increment(s.witness.Secret); err != nil {
		s.uncertain = fmt.Errorf("raising the counter of the TPM: %w; restart the daemon", err)
		return s.uncertain
	}
	return nil
}

// counted records in the store that it has counters.
func (s *Store) counted() error {
	had, err := s.get(countedKey)
	if err != nil || had != nil {
		return err
	}
	return s.db.Write(func() error { return s.set(countedKey, []byte{1}) })
}

// writeCounters puts the counters on disk.
func (s *Store) writeCounters() error {
	all := make(map[string]any, len(s.counters)+1)
	for user, n := range s.counters {
		all[user] = n
	}
	if s.witness != nil {
		all[witnessKey] = s.witness
	}
	plain, err := cbor.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.apart), 0o700); err != nil {
		return err
	}
	if err := safefile.Write(s.apart, s.seal(plain, apart, "")); err != nil {
		return fmt.Errorf("writing the counters: %w", err)
	}
	return nil
}

// count sets the next number of a user's profile; it is on disk before the profile.
func (s *Store) count(user string) (uint64, error) {
	s.counters[user]++
	if err := s.change(); err != nil {
		s.counters[user]--
		return 0, err
	}
	return s.counters[user], nil
}

// uncount removes a user's number.
func (s *Store) uncount(user string) error {
	n, ok := s.counters[user]
	if !ok {
		return nil
	}
	delete(s.counters, user)
	err := s.change()
	if err != nil {
		s.counters[user] = n
	}
	return err
}

func readSmall(path string) ([]byte, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostCounters))
}
