// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lockPause is how long it takes until a lock that another program holds is tried again.
const lockPause = 50 * time.Millisecond

// Lock locks an open file until it is closed. Where another program holds it for longer than patience, the error is
// [syscall.EWOULDBLOCK]; others are the system's.
func Lock(f *os.File, patience time.Duration) error {
	for end := time.Now().Add(patience); ; time.Sleep(lockPause) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) {
			return err
		}
	}
}
