// Package safefile reads and writes files so that no accident and no other program spoils them.
//
// [Write] and [Create] make files that are either as they were or complete. [Open] opens a file whose name a user gives and
// never waits for a pipe. [Lock] keeps two programs from working with one file. [WriteSealed] and [ReadSealed] put a header
// and a checksum around the content, by which another kind of file, a cut-off one and a damaged one are known.
package safefile

import (
	"os"
	"path/filepath"
)

// File is a temporary file beside the one that it will replace. End it with Commit or Abort.
type File struct {
	*os.File
	path string
	done bool
}

// Create begins the file that is to be at path. It is readable and writable by its owner alone.
func Create(path string) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: path}, nil
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
	if err := f.Close(); err != nil {
		return err
	}
	return Rename(f.Name(), f.path)
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
