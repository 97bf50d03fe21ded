// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/bbolt"
)

// Option is one of [Open].
type Option func(*Store)

// Counters has the store keep its counters in a file at path, which is best in another folder than the store: one that
// is not in the same copies. Default: beside the store, with ".seen" after its name.
func Counters(path string) Option { return func(s *Store) { s.apart = path } }

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
			if err = cbor.Unmarshal(plain, &s.counters); err == nil && s.counters != nil {
				return s.counted()
			}
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged) && !errors.Is(err, safefile.ErrNotRegular) {
		return err
	}
	had := false
	s.counters = make(counters)
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
		for user := range s.counters {
			s.counters[user]++
		}
	}
	if err := s.writeCounters(); err != nil {
		return err
	}
	return s.counted()
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
	plain, err := cbor.Marshal(s.counters)
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
	if err := s.writeCounters(); err != nil {
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
	err := s.writeCounters()
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
