// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// noWait is 0: pipes of Windows have no names in the file system.
const noWait = 0

// renamesOpen says whether the system renames a file that is open.
const renamesOpen = false

func tryLock(f *os.File) error {
	// A lock on Windows prevents reading, too, so a byte far behind the end of any file is locked.
	far := windows.Overlapped{OffsetHigh: 1 << 30}
	const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &far)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return err
}
