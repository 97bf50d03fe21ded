// SPDX-License-Identifier: Apache-2.0

// Package profile stores the profiles of users for logins, sealed, in one file.
//
// [Open] opens a store with a [Key] from [ReadKey]. [Store.Save], [Store.Load] and [Store.Delete]
// write, read and remove profiles.
//
// # File format
//
// A store is a database of package internal/store of its own. Table meta holds the version, the ID
// of the feature space, a sealed constant that distinguishes a wrong key from a damaged file, and a
// value for each user: a CBOR map (RFC 8949) sealed with XChaCha20-Poly1305 and a random nonce;
// version, space and the key of the value are the associated data. This key is "user " and the
// HMAC-SHA256 of the name, so the file shows no name.
//
// A write is on disk when it returns; after any interruption the store has the state before or
// after. While the store is open, the latest values may be in the log of the database beside it
// (-wal). Deleted values are overwritten, and the log is emptied, so that nothing of a deleted user
// stays.
//
// # Caveats
//
// Everybody with the key and the file has the faces. Only the owner can write the file; damage can
// make it unusable, and cannot let anybody in. An older copy that is put back is not detected:
// whoever can do this can also change what PAM asks.
package profile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/fxamacker/cbor/v2"
)

// Errors of [Open] and of the methods of [Store]. Others are those of package internal/store.
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

// schema has table meta alone.
var schema = store.Schema{Version: 9}

// Keys in table meta: of version and space, and of the check. Each user has one of its own: see
// [Store.place].
const (
	headKey  = "profiles"
	checkKey = "check"
)

// patience is how long [Open] waits for another program to close the store.
const patience = 2 * time.Second

// check is the constant that distinguishes a right key from a wrong one.
var check = []byte("faceauth profiles")

// record is a sealed value.
type record struct {
	User string `cbor:"user"`
	Data []byte `cbor:"data"`
}

// Store is an open file of profiles. It is safe for concurrent use. The caller closes it.
type Store struct {
	path  string
	space string
	key   Key

	mu   sync.Mutex
	db   *store.DB
	lock *os.File // the file, which no other program uses
}

// Open opens the store at path for profiles of a feature space, and makes a missing one.
//
// The error wraps [ErrKey], [ErrVersion], [ErrSpace], or [ErrBusy] if another program uses the file
// for more than two seconds, or tells that the file is damaged or no store.
func Open(path string, key Key, space face.Space) (*Store, error) {
	s := &Store{path: path, space: space.ID, key: key}
	if err := s.open(); err != nil {
		s.Close()
		return nil, fmt.Errorf("opening store %s: %w", path, err)
	}
	return s, nil
}

func (s *Store) open() (err error) {
	s.db, err = store.Open(s.path, schema, true)
	if err != nil {
		return err
	}
	s.lock, err = os.Open(s.path)
	if err != nil {
		return err
	}
	switch err := safefile.Lock(s.lock, patience); {
	case errors.Is(err, safefile.ErrLocked):
		return ErrBusy
	case err != nil:
		return err
	}
	if err := s.db.Whole(); err != nil {
		return err
	}
	return s.db.Write(s.begin)
}

// get returns the bytes at a key, or nil.
func (s *Store) get(key string) (value []byte, err error) {
	err = s.db.Query("select value from meta where key = ?", func(r store.Row) error {
		value = slices.Clone(r.ColumnRawBlob(0))
		return nil
	}, key)
	return value, err
}

func (s *Store) set(key string, value []byte) error {
	return s.db.Exec("insert or replace into meta values(?, ?)", key, value)
}

// begin checks the store, or writes the head of a new one, in a transaction.
func (s *Store) begin() error {
	is, err := s.get(headKey)
	if err != nil {
		return err
	}
	sealed, err := s.get(checkKey)
	number, space, _ := strings.Cut(string(is), " ")
	switch {
	case err != nil:
		return err
	case is == nil:
		return errors.Join(s.set(headKey, fmt.Append(nil, version, " ", s.space)),
			s.set(checkKey, s.seal(check, head, "")))
	case number != fmt.Sprint(version):
		return fmt.Errorf("%w: it is %s, and this program reads %d; update this program",
			ErrVersion, number, version)
	case space != s.space:
		return fmt.Errorf("%w: %s", ErrSpace, face.Space{ID: s.space}.Mismatch(space))
	}
	if got, err := s.unseal(sealed, head, ""); err != nil || !bytes.Equal(got, check) {
		return fmt.Errorf("%w; give the right key, or move the store away and enrol again", ErrKey)
	}
	return nil
}

// Save writes the profile of a user, whatever its bytes are, and replaces an earlier one. On error
// the store is unchanged. The error wraps [face.ErrName] for an invalid name.
func (s *Store) Save(user string, data []byte) error {
	if err := face.CheckName(user); err != nil {
		return fmt.Errorf("saving a profile: %w", err)
	}
	plain, err := cbor.Marshal(record{user, data})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.place(user)
	if err := s.db.Write(func() error { return s.set(at, s.seal(plain, value, at)) }); err != nil {
		return fmt.Errorf("saving a profile in %s: %w", s.path, err)
	}
	return nil
}

// Users returns the users with a profile, in lexical order. The error wraps [ErrDamaged].
func (s *Store) Users() (users []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.db.Query("select key, value from meta where key like 'user %'",
		func(row store.Row) error {
			r, err := s.record(row.ColumnRawBlob(1), row.ColumnText(0))
			if err == nil { // a profile that cannot be read lets nobody in
				users = append(users, r.User)
			}
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("listing the profiles of %s: %w", s.path, err)
	}
	slices.Sort(users)
	return users, nil
}

// Load returns the profile of a user. The error wraps [ErrUnknown] or [ErrDamaged].
func (s *Store) Load(user string) (data []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.place(user)
	sealed, err := s.get(at)
	if err == nil && sealed == nil {
		err = ErrUnknown
	}
	var r record
	if err == nil {
		r, err = s.record(sealed, at)
	}
	if err != nil {
		return nil, fmt.Errorf("loading a profile of %s: %w", s.path, err)
	}
	return r.Data, nil
}

// record unseals the value at a user's key.
func (s *Store) record(sealed []byte, at string) (r record, err error) {
	plain, err := s.unseal(sealed, value, at)
	if err != nil {
		return r, err
	}
	if err := cbor.Unmarshal(plain, &r); err != nil {
		return r, fmt.Errorf("%w: a stored value does not match its seal", ErrDamaged)
	}
	return r, nil
}

// Delete removes the profile of a user completely from the file. The error wraps [ErrUnknown].
// After another error the profile may be gone while some of its data is left in the file; the next
// [Open] removes the data.
func (s *Store) Delete(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.db.Write(func() error {
		sealed, err := s.get(s.place(user))
		switch {
		case err != nil:
			return err
		case sealed == nil:
			return ErrUnknown
		}
		return errors.Join(s.db.Exec("delete from meta where key = ?", s.place(user)),
			s.db.Erasing())
	})
	if err == nil {
		err = s.db.Erase()
		if errors.Is(err, store.ErrBusy) {
			err = nil // another program reads
		}
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
	if s.db == nil {
		return nil
	}
	return errors.Join(s.db.Close(), s.lock.Close())
}
