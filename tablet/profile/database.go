// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/faceauth/faceauth/internal/safefile"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// patience is how long [Open] waits for another program to unlock the file.
const patience = 2 * time.Second

// largest is the greatest size of a store in bytes.
const largest = 1 << 30

// sound returns nil for a new file, or an intact database.
func sound(f *os.File) error {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, largest))
	if err != nil || len(data) == 0 {
		return err
	}
	return intact(data)
}

// lock keeps other programs from opening the file.
func lock(f *os.File) error {
	err := safefile.Lock(f, patience)
	if errors.Is(err, safefile.ErrLocked) {
		return ErrBusy
	}
	return err
}

// connect opens the database. If bbolt fails, the file is closed and unlocked.
func connect(path string) (db *bbolt.DB, err error) {
	if f, err := safefile.Open(path); err == nil { // bbolt would wait for something that is not a file
		f.Close()
	} else if errors.Is(err, safefile.ErrNotRegular) {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var file *os.File
	err = guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout: patience, FreelistType: bbolt.FreelistMapType,
			OpenFile: func(path string, flag int, mode os.FileMode) (f *os.File, err error) {
				if file, err = os.OpenFile(path, flag, mode); err != nil {
					return nil, err
				}
				// Check the file only while no other program writes it.
				if err := lock(file); err != nil {
					return nil, err
				}
				return file, sound(file)
			},
		})
		return err
	})
	if err != nil && file != nil {
		file.Close() // after a panic, bbolt has not closed it
	}
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, ErrBusy
	case errors.Is(err, berrors.ErrInvalid),
		errors.Is(err, berrors.ErrChecksum),
		errors.Is(err, berrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return db, err
}

// guard calls do, and turns a panic of bbolt about a damaged page into an error. A page beyond the end of the file is a
// memory fault, which must first be turned into a panic.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: its pages contradict each other", ErrDamaged)
		}
	}()
	return do()
}
