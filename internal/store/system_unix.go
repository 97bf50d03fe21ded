// SPDX-License-Identifier: Apache-2.0

//go:build unix

package store

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/faceauth/faceauth/internal/safefile"
)

// lock locks a folder until unlock is called.
func lock(dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := safefile.Lock(f, 10*time.Second); err != nil {
		f.Close()
		return nil, err
	}
	return f.Close, nil
}

// full reports whether an error means that a disk is full.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// syncFolder writes the names in a folder to the disk.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
