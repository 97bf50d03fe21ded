// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"errors"
	"os"
	"time"
)

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
