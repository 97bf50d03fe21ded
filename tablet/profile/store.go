// SPDX-License-Identifier: Apache-2.0

// Package profile stores the profiles of users for logins, sealed, in one file.
//
// [Open] opens a store with a [Key] from [KeyFile] or [Credential]. [Store.Save], [Store.Load] and [Store.Delete]
// write, read and remove profiles.
//
// # File format
//
// A store is a bbolt database with three buckets. "store" holds the version, the ID of the feature space, and a sealed
// constant that distinguishes a wrong key from a damaged file. "users" holds a value for each user: a CBOR map (RFC
// 8949) sealed with XChaCha20-Poly1305 and a random nonce; version, space and user name are the associated data.
// "names" holds the sealed names of the users. The database keys are the HMAC-SHA256 of the names, so the file shows no
// name.
//
// A separate sealed file counts the writes of each profile. With it, the store notices a restored copy, and a user who
// was forgotten after the copy was made.
//
// Every page of a file is checked before bbolt reads it, because a damaged page could lead bbolt to other memory. A
// write is on disk when it returns; after any interruption the file has the state before or after. After a deletion the
// file is written again, so that nothing of the deleted user stays in it.
//
// # Caveats
//
// If store, counters and key are restored from the same copy, only a [Grower] can notice it. If only the counters are
// missing, all profiles count as restored from a copy.
//
// Everybody with the key and the file has the faces. Only the owner can write the file; damage can make it unusable,
// and cannot let anybody in.
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
	ErrKey     = errors.New("the store was sealed with another key")
	ErrVersion = errors.New("the store has another version")
	ErrSpace   = errors.New("the store has another feature space")
	ErrDamaged = errors.New("damaged store")
	ErrBusy    = errors.New("another program is using the store")
	ErrUnknown = errors.New("the user has no profile")
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
	erasingKey  = []byte("erasing") // set while data of a deleted user may be left
)

// check is the constant that distinguishes a right key from a wrong one.
var check = []byte("faceauth profiles")

// Profile holds the data of one user for logins.
type Profile struct {
	Learner  []byte    `cbor:"learner"`  // snapshot of the user's [online.Learner]
	Policy   []byte    `cbor:"policy"`   // the encoded limits of package session
	Enrolled time.Time `cbor:"enrolled"` // in UTC

	// Stale is set by [Store.Load] if the store was restored from an older copy.
	Stale bool `cbor:"-"`
}

// record is a sealed value.
type record struct {
	User string `cbor:"user"`
	N    uint64 `cbor:"n,omitempty"` // see counters
	Profile
}

// Store is an open file of profiles. It is safe for concurrent use. The caller closes it.
type Store struct {
	path  string
	apart string // path of the counters
	space string

	mu       sync.RWMutex
	key      Key
	db       *bbolt.DB
	counters counters

	grower    Grower   // nil for none
	witness   *witness // nil if there never was a grower
	uncertain error    // after this error nothing is written any more
}

// Open opens the store at path for profiles of a feature space, and makes a missing one.
//
// The error wraps [ErrKey], [ErrVersion], [ErrSpace], [ErrDamaged], or [ErrBusy] if another program uses the file for
// more than two seconds.
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

// begin checks the store, or writes the content of a new one. Erasing reports an incomplete deletion.
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
		return false, fmt.Errorf("%w: it is %d, and this program reads %d%s", ErrVersion, n, version,
			safefile.Advice(int(n), version))
	}
	if id := string(b.Get(spaceKey)); id != s.space {
		return false, fmt.Errorf("%w: %s", ErrSpace, face.Space{ID: s.space}.Mismatch(id))
	}
	if tx.Bucket(usersBucket) == nil || tx.Bucket(namesBucket) == nil {
		return false, fmt.Errorf("%w: it has no users", ErrDamaged)
	}
	if got, err := s.unseal(b.Get(checkKey), head, ""); err != nil || !bytes.Equal(got, check) {
		return false, fmt.Errorf("%w; give the right key, or move the store away and enrol again", ErrKey)
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

// Save writes the profile of a user and replaces an earlier one. On error the store is unchanged. The error wraps
// [online.ErrName] for an invalid name.
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

// put writes a user's value, and the name for the list of users.
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

// Users returns the users with a profile, in lexical order. The error wraps [ErrDamaged].
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

// Delete removes the profile of a user completely from the file. The error wraps [ErrUnknown]. After another error the
// profile may be gone while some of its data is left in the file; the next [Open] removes the data.
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

// Rotate seals everything with another key. On error the store and its key are unchanged.
func (s *Store) Rotate(key Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.rewrite(key); err != nil {
		return fmt.Errorf("sealing %s with a new key: %w", s.path, err)
	}
	return s.writeCounters() // without the counters all passwords would be due
}

// rewrite writes the profiles, sealed with key, into a new file that replaces the store. Deleted data is not copied.
// The new file is open and locked before it replaces the old one.
func (s *Store) rewrite(key Key) error {
	temp := s.path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) { // left by an interrupted rewrite
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
	s.db.Close() // the replaced file
	s.db, s.key = fresh, key
	return nil
}

// copyTo writes all profiles into the new store next.
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
