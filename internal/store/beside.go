// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/safefile"
)

// day is the end of the name of a copy.
const day = "2006-01-02"

// copied is a file of a daily copy.
type copied struct {
	path  string
	day   time.Time
	whole bool // the copy itself, and no log beside it or part of one that was never finished
}

// copies lists the files of the daily copies of the database at path, the oldest first.
func copies(path string) (all []copied) {
	dir, base := filepath.Split(path)
	entries, _ := os.ReadDir(filepath.Dir(path)) // sorted by name
	for _, e := range entries {
		rest, part := strings.CutPrefix(e.Name(), "."+base+"-")
		rest, whole := strings.CutPrefix(rest, base+"-")
		if part == whole || len(rest) < len(day) {
			continue
		}
		of, err := time.Parse(day, rest[:len(day)])
		end := rest[len(day):]
		known := end == "" || slices.Contains(beside, end)
		if part {
			known = end != ""
		}
		if err != nil || !known {
			continue
		}
		all = append(all, copied{dir + e.Name(), of, end == ""})
	}
	return all
}

// lastCopy returns the newest copy, or "". One of a day to come is from a wrong clock.
func lastCopy(path string) (last string) {
	for _, c := range copies(path) {
		if c.whole && (last == "" || time.Until(c.day) < 24*time.Hour) {
			last = c.path
		}
	}
	return last
}

// dropCopies removes all daily copies of the database at path, and parts of copies that were never
// finished.
func dropCopies(path string) error {
	unlock, err := safefile.LockFolder(filepath.Dir(path)) // against a copy that is being made
	if errors.Is(err, fs.ErrPermission) {                  // then there are no copies, either
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	for _, c := range copies(path) {
		if err := os.Remove(c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// beside are the endings of the files beside a database that is open: its log, and the index of the
// log.
var beside = []string{"-wal", "-shm"}

// unlog removes the log of the database at path.
func unlog(path string) error {
	for _, end := range beside {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// there reports whether a file is there.
func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
