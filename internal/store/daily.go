// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// Daily copies the database beside itself, unless there is a copy of this day (UTC), and keeps the
// copies of a week. The copy is whole and checked, has the key of the database, and its name ends
// with the day: faceauth.db-2026-11-25. Where room is scarce, fewer copies are kept, and none is
// made that would leave less room than a copy takes. If the clock shows a day before faceauth
// existed, Daily does nothing. Other programs may use the database meanwhile, and make the same
// copy. After an error all is as it was.
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
	case errors.Is(err, errRemoved):
		// it erases what the copy had, and the next call makes another one
		return nil
	case erasing && !errors.Is(err, ErrFull), failed == nil && again != erased:
		// another program has removed it, because somebody in it was forgotten before it began or
		// since
		return nil
	}
	return explain(d.path, err)
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
	for _, c := range copies(d.path) {
		age := now.Sub(c.day)
		plain := errors.Is(inspect(c.path, d.key), ErrPlain) // and this one is encrypted
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
	dir, last := filepath.Dir(d.path), lastCopy(d.path)
	for _, c := range copies(d.path) {
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
