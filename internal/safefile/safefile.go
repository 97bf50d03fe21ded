// SPDX-License-Identifier: Apache-2.0

// Package safefile reads and writes files so that accidents and other programs do not damage them.
//
// [Write] and [Create] replace files as a whole. [Open] opens a file that a user named and never waits for a pipe.
// [Lock] keeps two programs from using one file.
package safefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// File is a temporary file beside the file that it will replace. End it with Commit or Abort.
type File struct {
	*os.File
	path string
	done bool
}

// Create begins a file for path. Only its owner can read and write it.
func Create(path string) (*File, error) {
	for {
		f, err := os.CreateTemp(filepath.Dir(path), temporary(path)+"*")
		if err != nil {
			return nil, err
		}
		// The lock tells Sweep that a program is still writing. Without locks, Sweep removes nothing.
		Lock(f, 0)
		if _, err := os.Lstat(f.Name()); err == nil {
			return &File{File: f, path: path}, nil
		}
		f.Close() // Sweep removed the file before it was locked
	}
}

// temporary returns the beginning of the names of temporary files for path; a number follows.
func temporary(path string) string { return "." + filepath.Base(path) + "-" }

// Sweep removes temporary files of path that killed programs left behind.
func Sweep(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return // then there is nothing to sweep
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), temporary(path))
		if !ok || number == "" || strings.Trim(number, "0123456789") != "" || !e.Type().IsRegular() {
			continue
		}
		name := filepath.Join(filepath.Dir(path), e.Name())
		if f, err := Open(name); err == nil {
			if Lock(f, 0) == nil {
				os.Remove(name)
			}
			f.Close()
		}
	}
}

// Commit syncs the file to disk and renames it to its path. On error the old file stays.
func (f *File) Commit() error {
	if err := f.commit(); err != nil {
		f.Abort()
		return err
	}
	f.done = true
	return nil
}

func (f *File) commit() error {
	if err := f.Sync(); err != nil {
		return err
	}
	// If the system can rename open files, the file stays open, and therefore locked, until Sweep can no longer remove
	// it. On other systems Sweep may remove the file after Close. Then Rename fails, and the old file stays.
	if !renamesOpen {
		if err := f.Close(); err != nil {
			return err
		}
	}
	if err := Rename(f.Name(), f.path); err != nil {
		return err
	}
	f.done = true
	if !renamesOpen {
		return nil
	}
	return f.Close()
}

// Abort removes the file. After Commit it does nothing, so it may be deferred.
func (f *File) Abort() {
	if f.done {
		return
	}
	f.done = true
	f.Close()
	os.Remove(f.Name())
}

// Rename replaces a file with another file of the same folder, which must already be synced to disk.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	// The folder must be synced, too. Not every file system can do that, so errors are ignored.
	if d, err := os.Open(filepath.Dir(to)); err == nil {
		d.Sync()
		d.Close()
	}
	return nil
}

// Write replaces the file at path with data. On error the old file stays.
func Write(path string, data []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Commit()
}

// ErrNotRegular is returned for a folder, a pipe, a socket or a device.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a regular file for reading. It never waits: an ordinary open of a pipe waits for a writer, perhaps for
// ever. The error wraps [ErrNotRegular] or comes from package fs.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", path, ErrNotRegular)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadSecret returns the content of a regular file that only its owner can read, at most 64 kB of it.
func ReadSecret(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others can read the secret in %s; run: chmod 600 %s", path, path)
	}
	return io.ReadAll(io.LimitReader(f, 1<<16))
}

// largest is the largest size of a file that is read whole, in bytes.
const largest = 1 << 28

// ReadBytes returns the bytes of a regular file, at most 256 MB of it.
func ReadBytes(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, largest))
}

// ErrLocked is returned for a file that another program has locked.
var ErrLocked = errors.New("another program has locked the file")

// lockPause is the pause before the next attempt to lock.
const lockPause = 50 * time.Millisecond

// Lock locks an open file until it is closed. If another program holds the lock for longer than patience, the error is
// [ErrLocked]; other errors come from the system.
func Lock(f *os.File, patience time.Duration) error {
	for end := time.Now().Add(patience); ; time.Sleep(lockPause) {
		err := tryLock(f)
		if !errors.Is(err, ErrLocked) || time.Now().After(end) {
			return err
		}
	}
}
