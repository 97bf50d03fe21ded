// SPDX-License-Identifier: Apache-2.0

// Package profile keeps what a login knows of its users, sealed, in one file.
//
// [Open] opens a store with a [Key] from [KeyFile] or [Credential]; [Store.Save], [Store.Load] and [Store.Delete]
// do what they say.
//
// # File format
//
// A bbolt database with three buckets. "store" holds the version, the ID of the feature space, and a sealed constant
// by which another key is told from a damaged file. "users" holds a value for each user, a CBOR map (RFC 8949) sealed
// with XChaCha20-Poly1305 under a random nonce, with the version, the space and the user's name as associated data.
// "names" holds their names, sealed alike. Both are kept under the HMAC-SHA256 of the name: what lies on disk names
// nobody.
//
// How often each profile was written is in a file apart, sealed alike: a store that is put back from a copy is told by
// it, and so is a user who was forgotten since.
//
// A file is gone through page by page before bbolt sees it, which would follow a damaged one into this program's
// memory. A write is on disk when it returns; whatever interrupts it, the file holds the state before or after. A
// deleted user's pages are not left behind in the file: it is written anew.
//
// # Caveats
//
// Who puts back the store, its counters and the key from the same copy is noticed only by a [Grower]. Where the counters alone are
// missing, every profile is taken for one of a copy.
//
// Whoever has the key and the file has the faces. Whoever may write the file, which is its owner alone, can make it
// unusable; no damage to it lets anybody in.
package profile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/online"
	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/bbolt"
)

// Errors of [Open] and of the methods of [Store].
var (
	ErrKey     = errors.New("store that was sealed with another key")
	ErrVersion = errors.New("store of another version")
	ErrSpace   = errors.New("store of another feature space")
	ErrDamaged = errors.New("damaged store")
	ErrBusy    = errors.New("store that another program is using")
	ErrUnknown = errors.New("no profile of that user")
)

// version of the file format.
const version = 1

var (
	storeBucket = []byte("store")
	usersBucket = []byte("users")
	namesBucket = []byte("names")
	versionKey  = []byte("version")
	spaceKey    = []byte("space")
	checkKey    = []byte("check")
	erasingKey  = []byte("erasing") // there while traces of a deleted user may be left
)

// check is the constant that shows whether a key is the right one.
var check = []byte("faceauth profiles")

// Profile is what a login knows of one user.
type Profile struct {
	Learner  []byte    `cbor:"learner"`  // snapshot of the user's [online.Learner]
	Policy   []byte    `cbor:"policy"`   // what the session policy keeps, in a form of its own
	Enrolled time.Time `cbor:"enrolled"` // in UTC

	// Stale is set by [Store.Load] where the store was put back from a copy: things have been written since.
	Stale bool `cbor:"-"`
}

// record is a sealed value.
type record struct {
	User string `cbor:"user"`
	N    uint64 `cbor:"n,omitempty"` // see counters
	Profile
}

// Store is an open file of profiles. It is safe for concurrent use. Close it.
type Store struct {
	path  string
	apart string // of the counters
	space string

	mu       sync.RWMutex
	key      Key
	db       *bbolt.DB
	counters counters

	grower    Grower   // nil for none
	witness   *witness // nil where no grower ever counted
	uncertain error    // with which nothing is written any more
}

// Open opens the store at path for profiles of a feature space, and makes one where there is none.
//
// The error wraps [ErrKey], [ErrVersion], [ErrSpace], [ErrDamaged], or [ErrBusy] when another program does not let
// go of the file for two seconds.
func Open(path string, key Key, space face.Space, options ...Option) (*Store, error) {
	s := &Store{path: path, apart: path + ".seen", space: space.ID, key: key}
	for _, o := range options {
		o(s)
	}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("opening store %s: %w", path, err)
	}
	return s, nil
}

func (s *Store) open() error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	db, err := connect(s.path)
	if err != nil {
		return err
	}
	s.db = db
	erasing := false
	err = guard(func() error {
		return s.db.Update(func(tx *bbolt.Tx) (err error) {
			erasing, err = s.begin(tx)
			return err
		})
	})
	if err == nil && erasing {
		err = s.rewrite(s.key)
	}
	if err == nil {
		err = s.readCounters()
	}
	if err != nil {
		s.db.Close()
	}
	return err
}

// begin checks the store, or writes what a new one begins with. Erasing reports whether a deletion was not finished.
func (s *Store) begin(tx *bbolt.Tx) (erasing bool, err error) {
	b := tx.Bucket(storeBucket)
	if b == nil {
		if tx.Bucket(usersBucket) != nil {
			return false, fmt.Errorf("%w: it has no head", ErrDamaged)
		}
		return false, s.write(tx)
	}
	v := b.Get(versionKey)
	if len(v) != 4 {
		return false, fmt.Errorf("%w: it has no version", ErrDamaged)
	}
	if n := binary.BigEndian.Uint32(v); n != version {
		return false, fmt.Errorf("%w: it is %d, and this program reads %d", ErrVersion, n, version)
	}
	if id := string(b.Get(spaceKey)); id != s.space {
		return false, fmt.Errorf("%w: %s", ErrSpace, face.Space{ID: s.space}.Mismatch(id))
	}
	if tx.Bucket(usersBucket) == nil || tx.Bucket(namesBucket) == nil {
		return false, fmt.Errorf("%w: it has no users", ErrDamaged)
	}
	if got, err := s.unseal(b.Get(checkKey), head, ""); err != nil || !bytes.Equal(got, check) {
		return false, fmt.Errorf("%w; give the key that it was made with, or move it away and enrol anew", ErrKey)
	}
	return b.Get(erasingKey) != nil, nil
}

// write writes the head of a new store.
func (s *Store) write(tx *bbolt.Tx) error {
	for _, bucket := range [][]byte{usersBucket, namesBucket} {
		if _, err := tx.CreateBucketIfNotExists(bucket); err != nil {
			return err
		}
	}
	b, err := tx.CreateBucketIfNotExists(storeBucket)
	if err != nil {
		return err
	}
	for _, p := range []struct{ key, value []byte }{
		{versionKey, binary.BigEndian.AppendUint32(nil, version)},
		{spaceKey, []byte(s.space)},
		{checkKey, s.seal(check, head, "")},
	} {
		if err := b.Put(p.key, p.value); err != nil {
			return err
		}
	}
	return nil
}

// Save keeps the profile of a user, in place of an earlier one. On error the store is as it was. The error wraps
// [online.ErrName] for a name that no user can have.
func (s *Store) Save(user string, p Profile) error {
	if err := online.CheckName(user); err != nil {
		return fmt.Errorf("saving a profile: %w", err)
	}
	p.Enrolled = p.Enrolled.UTC().Truncate(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.count(user)
	if err == nil {
		err = guard(func() error {
			return s.db.Update(func(tx *bbolt.Tx) error { return s.put(tx, record{user, n, p}) })
		})
	}
	if err != nil {
		return fmt.Errorf("saving a profile in %s: %w", s.path, err)
	}
	return nil
}

// put writes a user's value, and the name by which the users can be listed.
func (s *Store) put(tx *bbolt.Tx, r record) error {
	plain, err := cbor.Marshal(r)
	if err != nil {
		return err
	}
	defer clear(plain)
	at := s.place(r.User)
	if err := tx.Bucket(namesBucket).Put(at, s.seal([]byte(r.User), name, string(at))); err != nil {
		return err
	}
	return tx.Bucket(usersBucket).Put(at, s.seal(plain, value, r.User))
}

// each calls do with each user and the place of their value.
func (s *Store) each(tx *bbolt.Tx, do func(user string, at []byte) error) error {
	return tx.Bucket(namesBucket).ForEach(func(at, sealed []byte) error {
		user, err := s.unseal(sealed, name, string(at))
		if err != nil {
			return err
		}
		return do(string(user), at)
	})
}

// Users returns the users of whom there is a profile, in lexical order. The error wraps [ErrDamaged].
func (s *Store) Users() (users []string, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	err = guard(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			return s.each(tx, func(user string, _ []byte) error {
				if _, ok := s.counters[user]; ok {
					users = append(users, user)
				}
				return nil
			})
		})
	})
	if err != nil {
		return nil, fmt.Errorf("listing the profiles of %s: %w", s.path, err)
	}
	slices.Sort(users)
	return users, nil
}

// Load returns the profile of a user. The error wraps [ErrUnknown] or [ErrDamaged].
func (s *Store) Load(user string) (p Profile, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	err = guard(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			sealed := tx.Bucket(usersBucket).Get(s.place(user))
			n, counted := s.counters[user]
			if sealed == nil || !counted {
				return ErrUnknown
			}
			r, err := s.record(sealed, user)
			p = r.Profile
			p.Stale = r.N != n
			return err
		})
	})
	if err != nil {
		return Profile{}, fmt.Errorf("loading a profile of %s: %w", s.path, err)
	}
	return p, nil
}

// record unseals the value of a user.
func (s *Store) record(sealed []byte, user string) (r record, err error) {
	plain, err := s.unseal(sealed, value, user)
	if err != nil {
		return r, err
	}
	defer clear(plain)
	if err := cbor.Unmarshal(plain, &r); err != nil || r.User != user {
		return r, fmt.Errorf("%w: a stored value does not match its seal", ErrDamaged)
	}
	return r, nil
}

// Delete removes the profile of a user and every trace of it in the file, sealed ones too. The error wraps
// [ErrUnknown]. Where it is another one the profile may be gone and traces of it be left: [Open] removes those.
func (s *Store) Delete(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.uncount(user); err != nil {
		return fmt.Errorf("deleting a profile of %s: %w", s.path, err)
	}
	err := guard(func() error {
		return s.db.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket(usersBucket)
			if b.Get(s.place(user)) == nil {
				return ErrUnknown
			}
			if err := tx.Bucket(storeBucket).Put(erasingKey, []byte{1}); err != nil {
				return err
			}
			if err := tx.Bucket(namesBucket).Delete(s.place(user)); err != nil {
				return err
			}
			return b.Delete(s.place(user))
		})
	})
	if err == nil {
		err = s.rewrite(s.key)
	}
	if err != nil {
		return fmt.Errorf("deleting a profile of %s: %w", s.path, err)
	}
	return nil
}

// Close closes the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return guard(s.db.Close)
}

// Rotate seals everything with another key. On error the store is as it was, and the key, too.
func (s *Store) Rotate(key Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.rewrite(key); err != nil {
		return fmt.Errorf("sealing %s anew: %w", s.path, err)
	}
	return s.writeCounters() // without them all passwords are due
}

// rewrite writes the profiles, sealed with key, into a file of their own, which takes the place of the store. Nothing
// that was deleted is in it. The new file is open, and so locked, before it is in its place.
func (s *Store) rewrite(key Key) error {
	temp := s.path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) { // of a rewrite that was interrupted
		return err
	}
	fresh, err := connect(temp)
	if err != nil {
		return err
	}
	next := &Store{path: s.path, space: s.space, key: key, db: fresh}
	err = guard(func() error {
		return s.db.View(func(from *bbolt.Tx) error {
			return fresh.Update(func(to *bbolt.Tx) error { return s.copyTo(next, from, to) })
		})
	})
	if err == nil {
		err = safefile.Rename(temp, s.path)
	}
	if err != nil {
		fresh.Close()
		os.Remove(temp)
		return err
	}
	s.db.Close() // the file that is no more
	s.db, s.key = fresh, key
	return nil
}

// copyTo writes all of s into the new store next.
func (s *Store) copyTo(next *Store, from, to *bbolt.Tx) error {
	if err := next.write(to); err != nil {
		return err
	}
	if from.Bucket(storeBucket).Get(countedKey) != nil {
		if err := to.Bucket(storeBucket).Put(countedKey, []byte{1}); err != nil {
			return err
		}
	}
	return s.each(from, func(user string, at []byte) error {
		r, err := s.record(from.Bucket(usersBucket).Get(at), user)
		if err != nil {
			return err
		}
		defer clear(r.Learner)
		return next.put(to, r)
	})
}
