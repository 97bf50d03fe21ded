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
	"github.com/faceauth/faceauth/tablet/tpm"
	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/bbolt"
)

// Option is one of [Open].
type Option func(*Store)

// Counters has the store keep its counters in a file at path, which is best in another folder than the store: one that
// is not in the same copies. Default: beside the store, with ".seen" after its name.
func Counters(path string) Option { return func(s *Store) { s.apart = path } }

// Grower is a counter that only grows, outside of all files, as a TPM has one (package tpm). Make makes it, in place of one
// that there is, and reports whether there was one. What it answers is authenticated by a secret.
type Grower interface {
	Make(secret []byte) (n uint64, was bool, err error)
	Value(secret []byte) (uint64, error)
	Increment(secret []byte) error
}

// Growing has the store count with g each change of its counters. Who puts back the store, the counters and the key from
// one copy is noticed then: the password of everybody is due.
func Growing(g Grower) Option { return func(s *Store) { s.grower = g } }

// ErrGrower is wrapped by the error of [Open] where the [Grower] of a store that never had one cannot be used.
var ErrGrower = errors.New("it cannot be used")

// witness is what the file of the counters knows of a [Grower].
type witness struct {
	N      uint64 `cbor:"n"`
	Secret []byte `cbor:"secret"`
}

// witnessKey is where the witness is among the users, none of whom has this name.
const witnessKey = ""

// counters are how often each user's profile was written, in a file apart. A profile of another number is of a store
// that was put back from a copy, and a user of whom there is none was forgotten.
type counters map[string]uint64

// countedKey is there, in the store, once it has counters.
var countedKey = []byte("counted")

// mostCounters is how many bytes a file of counters may have.
const mostCounters = 1 << 20

// readCounters reads the counters. Where they are not readable, all profiles are taken for those of a copy.
func (s *Store) readCounters() error {
	sealed, err := readSmall(s.apart)
	if err == nil {
		var plain []byte
		if plain, err = s.unseal(sealed, apart, ""); err == nil {
			if err = s.parseCounters(plain); err == nil && s.counters != nil {
				changed, err := s.testify()
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
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged) && !errors.Is(err, safefile.ErrNotRegular) {
		return err
	}
	had := false
	s.counters, s.witness = make(counters), nil
	err = guard(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			had = tx.Bucket(storeBucket).Get(countedKey) != nil
			return s.each(tx, func(user string, at []byte) error {
				r, err := s.record(tx.Bucket(usersBucket).Get(at), user)
				clear(r.Learner)
				if err != nil { // nobody is let in by what cannot be read
					return nil
				}
				s.counters[user] = r.N
				return nil
			})
		})
	})
	if err != nil {
		return err
	}
	if had { // the file is gone, or was altered
		s.distrust()
	}
	if _, err := s.testify(); err != nil {
		return err
	}
	if err := s.writeCounters(); err != nil {
		return err
	}
	return s.counted()
}

// distrust takes all profiles for those of a copy.
func (s *Store) distrust() {
	for user := range s.counters {
		s.counters[user]++
	}
}

// parseCounters takes in what the file holds.
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

// testify asks the grower whether the counters are those that were written last, and has one made where there is none.
// Changed reports that the counters must be written.
func (s *Store) testify() (changed bool, err error) {
	if s.grower == nil {
		return false, nil
	}
	if s.witness != nil {
		n, err := s.grower.Value(s.witness.Secret)
		switch {
		case err == nil && n == s.witness.N:
			return false, nil
		case err == nil && n+1 == s.witness.N: // the last change was written, and not counted any more
			return false, s.grower.Increment(s.witness.Secret)
		case err == nil:
			s.witness.N = n
			s.distrust()
			return true, nil
		case !errors.Is(err, tpm.ErrMissing) && !errors.Is(err, tpm.ErrForeign):
			return false, fmt.Errorf("reading the counter that only grows: %w", err)
		}
	}
	secret := make([]byte, 32)
	rand.Read(secret)
	n, was, err := s.grower.Make(secret)
	if err != nil {
		if s.witness == nil {
			err = fmt.Errorf("%w: %w", ErrGrower, err)
		}
		return false, fmt.Errorf("making a counter that only grows: %w", err)
	}
	if was || s.witness != nil { // a copy may be of the time before
		s.distrust()
	}
	s.witness = &witness{n, secret}
	return true, nil
}

// change writes the counters, and has the grower count. Where that fails nothing can be written any more: two files
// would have the same number.
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
		s.uncertain = fmt.Errorf("counting with the counter that only grows: %w; start the daemon again", err)
		return s.uncertain
	}
	return nil
}

// counted notes in the store that it has counters.
func (s *Store) counted() error {
	return guard(func() error {
		return s.db.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket(storeBucket)
			if b.Get(countedKey) != nil {
				return nil
			}
			return b.Put(countedKey, []byte{1})
		})
	})
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

// count gives the next number to a user's profile, which is on disk before the profile is.
func (s *Store) count(user string) (uint64, error) {
	s.counters[user]++
	if err := s.change(); err != nil {
		s.counters[user]--
		return 0, err
	}
	return s.counters[user], nil
}

// uncount forgets a user.
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
