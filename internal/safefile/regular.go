// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"errors"
	"fmt"
	"os"
)

// ErrNotRegular is returned for a folder, a pipe, a socket or a device.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a regular file for reading. It never waits: opening a pipe in the ordinary way waits for a program that
// writes into it, which may be never. The error wraps [ErrNotRegular] or is one of package fs.
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
