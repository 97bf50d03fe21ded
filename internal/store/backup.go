// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/ncruces/go-sqlite3"
)

// Backup writes the database, as it is now, into a new file at path, which only its owner can read.
// Other programs may use the database meanwhile. The key of path ([SetKey]) encrypts the copy.
// Nothing that was deleted is in it. On error there is no file at path; if there was one, it stays,
// and the error wraps [fs.ErrExist].
func (d *DB) Backup(path string) error {
	free := func() error {
		if there(path) {
			return fmt.Errorf("%s exists (%w); name another file", path, fs.ErrExist)
		}
		return nil
	}
	if err := free(); err != nil {
		return err
	}
	made, err := d.copy(path, Key(path))
	if err != nil {
		return err
	}
	defer made.Abort()
	return explain(d.path, publish(made, free))
}

var errRemoved = errors.New("another program has removed the copy while it was made")

// copy writes the database into a new file beside path, and checks it. On error there is no such
// file.
func (d *DB) copy(path string, key []byte) (made *safefile.File, err error) {
	made, err = safefile.CreateNamed(path)
	if err != nil {
		return nil, err
	}
	to := &DB{path: made.Name(), key: key}
	defer func() {
		err = explain(to.path, err)
		if err != nil && !there(to.path) {
			err = errRemoved
		}
		if err != nil { // before there is room again
			made.Abort()
		}
		unlog(to.path)
	}()
	file, err := uri(to.path, key)
	if err != nil {
		return made, err
	}
	size, err := d.size()
	if err != nil {
		return made, err
	}
	err = d.Exec("vacuum into ?", file+"&sums=1")
	if errors.Is(err, sqlite3.IOERR) && crowded(filepath.Dir(path), size) {
		return made, ErrFull
	}
	if err == nil {
		err = to.begin(true)
	}
	if err == nil {
		err = errors.Join(to.Whole(), to.Exec("delete from meta where key = 'erase'"))
	}
	return made, errors.Join(err, to.Close())
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
