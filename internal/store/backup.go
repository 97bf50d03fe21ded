// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
)

// Backup writes the database, as it is now, into a new file at path, which only its owner can read. Other programs may
// use the database meanwhile. The key of path ([SetKey]) encrypts the copy. Nothing that was deleted is in it. On error
// there is no file at path; if there was one, it stays, and the error wraps [fs.ErrExist].
func (d *DB) Backup(path string) error {
	exists := fmt.Errorf("%s exists (%w); name another file", path, fs.ErrExist)
	if _, err := os.Lstat(path); err == nil {
		return exists
	}
	made, err := d.copy(path, Key(path))
	if err != nil {
		return err
	}
	defer os.Remove(made)
	unlock, err := lock(filepath.Dir(path)) // against another backup
	if err != nil {
		return d.explain(err)
	}
	defer unlock()
	if _, err := os.Lstat(path); err == nil {
		return exists
	}
	if err := os.Rename(made, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// copy writes the database into a new file beside path, and checks it. On error there is no such file.
func (d *DB) copy(path string, key []byte) (made string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-new-") // mode 0600
	if err != nil {
		return "", err
	}
	defer f.Close()
	to := &DB{path: f.Name(), key: key, prepared: make(map[string]*sqlite3.Stmt)}
	defer func() {
		if err = to.explain(err); err != nil { // before there is room again
			os.Remove(to.path)
		}
		for _, end := range beside {
			os.Remove(to.path + end)
		}
	}()
	full, err := filepath.Abs(to.path)
	if err != nil {
		return "", err
	}
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(full), RawQuery: query(key)}
	pages := int64(0)
	// A page that leaves the cache before the first page is written would have no checksum.
	if err = d.first(&pages, "pragma page_count"); err == nil {
		err = d.c.Exec(fmt.Sprintf("pragma cache_size = %d", pages+1000))
	}
	if err == nil {
		err = d.query("vacuum into ?", nil, []any{uri.String()})
	}
	err = errors.Join(err, d.c.Exec("pragma cache_size = -2000")) // the default
	if errors.Is(err, sqlite3.IOERR) && crowded(filepath.Dir(path), pages*pageSize) {
		return "", ErrFull
	}
	if err != nil {
		return "", err
	}
	if err := to.begin(true); err != nil {
		to.Close()
		return "", err
	}
	err = errors.Join(to.Whole(), to.Exec("delete from meta where key = 'erase'"), to.Close(), f.Sync())
	return to.path, err
}

// Whole returns an error if a page, a table or an index of the database is damaged.
func (d *DB) Whole() error {
	err := d.Query("pragma integrity_check(1)", func(r Row) error {
		if s := r.ColumnText(0); s != "ok" {
			return fmt.Errorf("%w: %s", ErrDamaged, s)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.Query("pragma checksum_verification", func(r Row) error {
		if r.ColumnInt64(0) != 1 {
			return fmt.Errorf("%w: its pages have no checksums", ErrDamaged)
		}
		return nil
	})
}

// Rekey writes the database at path again with another key, or without one if key is nil, and removes the old one. If
// another program has the database open, the error is [ErrBusy]. On error the database is as it was.
func Rekey(path string, key []byte) (err error) {
	d := &DB{path: real(path), key: Key(path), prepared: make(map[string]*sqlite3.Stmt), hasty: true}
	defer func() { err = d.explain(err) }()
	unlock, err := lock(filepath.Dir(d.path))
	if err != nil {
		return err
	}
	defer unlock()
	if err := d.inspect(); err != nil {
		return err
	}
	defer d.Close()
	if err := d.open(d.path, true); err != nil {
		return err
	}
	// In this mode a write keeps out the programs that have the file open. The log would not fit the new file.
	if err = d.check(); err == nil {
		err = d.c.Exec(fmt.Sprintf("pragma journal_mode = delete; pragma user_version = %d", version))
	}
	if err != nil {
		return err
	}
	made, err := d.copy(d.path, key)
	if err != nil {
		return err
	}
	defer os.Remove(made)
	if err := d.Close(); err != nil {
		return err
	}
	for _, end := range append(beside, "-journal") {
		if err := os.Remove(d.path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(made, d.path); err != nil {
		return err
	}
	return errors.Join(SetKey(d.path, key), syncFolder(filepath.Dir(d.path)))
}
