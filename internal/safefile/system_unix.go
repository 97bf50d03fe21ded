// SPDX-License-Identifier: Apache-2.0

//go:build unix

package safefile

import (
	"errors"
	"os"
	"syscall"
)

// noWait makes the opening of a pipe return at once, without a writer.
const noWait = syscall.O_NONBLOCK

// renamesOpen says whether the system renames a file that is open.
const renamesOpen = true

func tryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}
