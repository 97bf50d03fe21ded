package profile

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/faceauth/faceauth/internal/regular"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// patience is how long [Open] waits for another program to let go of the file.
const patience = 2 * time.Second

// sound returns nil for a path at which there is no file, or one that can be a database: bbolt itself trusts that
// the pages it looks for are there.
func sound(path string) error {
	f, err := regular.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if errors.Is(err, regular.ErrNotRegular) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// bbolt begins a database with four pages.
	if size, page := info.Size(), int64(os.Getpagesize()); size > 0 && (size%page != 0 || size < 4*page) {
		return fmt.Errorf("%w: it is cut off", ErrDamaged)
	}
	return nil
}

// connect opens the database. Where bbolt fails, the file is closed and no longer locked.
func connect(path string) (db *bbolt.DB, err error) {
	var file *os.File
	err = guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout: patience, FreelistType: bbolt.FreelistMapType,
			OpenFile: func(path string, flag int, mode os.FileMode) (f *os.File, err error) {
				file, err = os.OpenFile(path, flag, mode)
				return file, err
			},
		})
		return err
	})
	if err != nil && file != nil {
		file.Close() // bbolt has not, where it panicked
	}
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, ErrBusy
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return db, err
}

// guard calls do, and returns what a damaged page makes bbolt panic with as an error. A page beyond the end of the
// file is a fault, which has to be made a panic first.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: its pages contradict each other", ErrDamaged)
		}
	}()
	return do()
}
