// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

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
