// SPDX-License-Identifier: Apache-2.0

// Package safefile reads and writes files so that accidents and other programs do not damage them.
//
// [Write] and [Create] replace files as a whole. [Open] opens a file that a user named and never
// waits for a pipe. [Lock] keeps two programs from using one file.
package safefile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// File is a temporary file that will replace another one. End it with Commit or Abort.
type File struct {
	*os.File
	path  string
	named bool
	done  bool
}

// Create begins a file for path. Only its owner can read and write it: who makes it, or for root
// the owner of the folder. If the file system can do that, it has no name before Commit, and
// nothing is left of it when the program is killed.
func Create(path string) (*File, error) {
	dir, base := filepath.Dir(path), filepath.Base(path)
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return CreateNamed(path)
	}
	f := os.NewFile(uintptr(fd), filepath.Join(dir, "."+base+"-"+rand.Text()[:10]))
	return &File{File: f, path: path}, Own(f)
}

// CreateNamed is [Create] for a file that is opened by its name, which lies beside path.
func CreateNamed(path string) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: path, named: true}, Own(f)
}

// Commit syncs the file to disk and renames it to its path. On error the old file stays.
func (f *File) Commit() error {
	defer f.Abort()
	err := f.Sync()
	if err == nil && !f.named {
		err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.AT_FDCWD,
			f.Name(), unix.AT_SYMLINK_FOLLOW)
		f.named = err == nil
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err == nil {
		f.done = true
		Sync(filepath.Dir(f.path)) // not every file system can do that
	}
	return err
}

// Abort removes the file. After Commit it does nothing, so it may be deferred.
func (f *File) Abort() {
	if f.done {
		return
	}
	f.done = true
	f.Close()
	if f.named {
		os.Remove(f.Name())
	}
}

// Sync writes a file to the disk, or the names in a folder.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Own gives a file that root has just made the owner of its folder, who will use it.
func Own(f *os.File) error {
	var of syscall.Stat_t
	if os.Geteuid() != 0 || syscall.Stat(filepath.Dir(f.Name()), &of) != nil {
		return nil
	}
	return f.Chown(int(of.Uid), int(of.Gid))
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

// Open opens a regular file for reading. It never waits: an ordinary open of a pipe waits for a
// writer, perhaps for ever. The error wraps [ErrNotRegular] or comes from package fs.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
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

// ReadSecret returns the content of a regular file that only its owner can read, at most 256 MB of
// it.
func ReadSecret(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others can read the secret in %s; run: chmod 600 %s", path, path)
	}
	return io.ReadAll(io.LimitReader(f, largest))
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

// Lock locks an open file until it is closed. If another program holds the lock for longer than
// patience, the error is [ErrLocked]; other errors come from the system.
func Lock(f *os.File, patience time.Duration) error {
	for end := time.Now().Add(patience); ; time.Sleep(lockPause) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if time.Now().After(end) {
			return ErrLocked
		}
	}
}

// Locked reports whether somebody has locked an open file ([Lock]). Several programs may ask at
// once: none of them takes another one for the owner.
func Locked(f *os.File) bool {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	}
	return errors.Is(err, syscall.EWOULDBLOCK)
}

// OpenLocked opens the file at path, makes it if it is missing, and locks it as [Lock] does, until
// it is closed.
func OpenLocked(path string, patience time.Duration) (*os.File, error) {
	return opened(path, os.O_RDWR|os.O_CREATE, patience)
}

func opened(path string, flags int, patience time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	err = Lock(f, patience)
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// LockFolder locks a folder until unlock is called. It waits as [Lock] does, for ten seconds, and
// returns its errors.
func LockFolder(dir string) (unlock func() error, err error) {
	f, err := opened(dir, os.O_RDONLY, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return f.Close, nil
}
