// SPDX-License-Identifier: Apache-2.0

// Package safefile reads and writes files so that no accident and no other program spoils them.
//
// [Write] and [Create] make files that are either as they were or complete. [Open] opens a file whose name a user
// gives and never waits for a pipe. [Lock] keeps two programs from working with one file. [WriteSealed] and
// [ReadSealed] put a header and a checksum around the content, by which another kind of file, a cut-off one and a
// damaged one are known.
package safefile

import (
	"os"
	"path/filepath"
	"strings"
)

// File is a temporary file beside the one that it will replace. End it with Commit or Abort.
type File struct {
	*os.File
	path string
	done bool
}

// Create begins the file that is to be at path. It is readable and writable by its owner alone.
func Create(path string) (*File, error) {
	for {
		f, err := os.CreateTemp(filepath.Dir(path), temporary(path)+"*")
		if err != nil {
			return nil, err
		}
		// The lock tells Sweep that a program is still at work. Where locks are not to be had, nothing is swept either.
		Lock(f, 0)
		if _, err := os.Lstat(f.Name()); err == nil {
			return &File{File: f, path: path}, nil
		}
		f.Close() // swept before it was locked
	}
}

// temporary returns how the name of a temporary file for path begins; a number follows.
func temporary(path string) string { return "." + filepath.Base(path) + "-" }

// Sweep removes the temporary files that programs which were killed left behind while they made the file at path.
func Sweep(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return // and so there is nothing to sweep
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

// Commit puts the file in its place, on disk. On error what was at its place is still there.
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
	// Where the system renames open files, the file is closed, and so unlocked, only when Sweep cannot take it for left
	// behind any more. Elsewhere Sweep may come in between; Rename then fails, and the old file stays.
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

// Rename puts a file that is on disk in the place of another, in the same directory.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	// It lasts once the directory is on disk, too; not every file system can do that.
	if d, err := os.Open(filepath.Dir(to)); err == nil {
		d.Sync()
		d.Close()
	}
	return nil
}

// Write puts data at path.
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
