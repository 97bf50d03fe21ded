// Package filelock keeps programs from working with one file at a time.
package filelock

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// pause is how long it is until a lock that somebody else holds is tried again.
const pause = 50 * time.Millisecond

// Lock locks an open file until it is closed. Where another program holds it for longer than patience, the error is
// [syscall.EWOULDBLOCK]; others are the system's.
func Lock(f *os.File, patience time.Duration) error {
	for end := time.Now().Add(patience); ; time.Sleep(pause) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) {
			return err
		}
	}
}
