// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"errors"
	"fmt"
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
