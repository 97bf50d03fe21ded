// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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

// Daily copies the database beside itself, unless there is a copy of this day (UTC), and keeps the copies of a week. The
// copy is whole and checked, has the key of the database, and its name ends with the day: faceauth.db-2026-11-25. Where
// room is scarce, fewer copies are kept, and none is made that would leave less room than a copy takes. If the clock
// shows a day before faceauth existed, Daily does nothing. Other programs may use the database meanwhile, and make the
// same copy. After an error all is as it was.
func (d *DB) Daily(now time.Time) error {
	if d.pending {
		d.Erase()
	}
	now = now.UTC()
	path := d.path + "-" + now.Format(day)
	if now.Year() < 2026 || there(path) {
		return nil
	}
	erased, erasing, err := d.erased()
	if err != nil {
		return err
	}
	err = d.daily(path, now, erased)
	again, _, failed := d.erased()
	switch {
	case err == nil, there(path): // another program has made the copy
		return nil
	case errors.Is(err, errRemoved): // it erases what the copy had, and the next call makes another one
		return nil
	case erasing && !errors.Is(err, ErrFull), failed == nil && again != erased:
		return nil // another program has removed it, because somebody in it was forgotten before it began or since
	}
	return d.explain(err)
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (d *DB) daily(path string, now time.Time, erased int64) error {
	if err := d.makeRoom(); err != nil {
		return err
	}
	made, err := d.copy(path, d.key)
	if err != nil {
		return err
	}
	defer made.Abort()
	err = publish(made, func() error {
		if !there(made.Name()) {
			return errRemoved
		}
		again, _, err := d.erased()
		if err == nil && again != erased {
			err = errors.New("somebody was forgotten") // the next call makes another one
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, c := range d.copies() {
		age := now.Sub(c.day)
		plain := errors.Is((&DB{path: c.path, key: d.key}).inspect(), ErrPlain) // and this one is encrypted
		if !c.whole || age < -24*time.Hour || age > 7*24*time.Hour || plain {
			os.Remove(c.path)
		}
	}
	return nil
}

// makeRoom removes the oldest copies until there is room for two more. One copy stays.
func (d *DB) makeRoom() error {
	size, err := d.size()
	if err != nil {
		return err
	}
	dir, last := filepath.Dir(d.path), d.lastCopy()
	for _, c := range d.copies() {
		if c.path == last || !crowded(dir, 2*size) {
			continue
		}
		if err := os.Remove(c.path); err != nil {
			return err
		}
	}
	if crowded(dir, 2*size) {
		return ErrFull
	}
	return nil
}

// dropCopies removes all daily copies, and parts of copies that were never finished.
func (d *DB) dropCopies() error {
	unlock, err := safefile.LockFolder(filepath.Dir(d.path)) // against a copy that is being made
	if errors.Is(err, fs.ErrPermission) {                    // then there are no copies, either
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	for _, c := range d.copies() {
		if err := os.Remove(c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// copies lists the files of the daily copies, the oldest first.
func (d *DB) copies() (all []copied) {
	dir, base := filepath.Split(d.path)
	entries, _ := os.ReadDir(filepath.Dir(d.path)) // sorted by name
	for _, e := range entries {
		rest, part := strings.CutPrefix(e.Name(), "."+base+"-")
		rest, whole := strings.CutPrefix(rest, base+"-")
		if part == whole || len(rest) < len(day) {
			continue
		}
		of, err := time.Parse(day, rest[:len(day)])
		end := rest[len(day):]
		known := end == "" || end == "-wal" || end == "-shm"
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
func (d *DB) lastCopy() (path string) {
	for _, c := range d.copies() {
		if c.whole && (path == "" || time.Until(c.day) < 24*time.Hour) {
			path = c.path
		}
	}
	return path
}
