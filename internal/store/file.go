// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/ncruces/go-sqlite3"
)

// inspect returns an error if a file cannot be a database with a key. SQLite would wait at a pipe,
// and makes a missing file.
func inspect(path string, key []byte) error {
	f, err := safefile.Open(path)
	if errors.Is(err, safefile.ErrNotRegular) {
		return ErrNotStore
	}
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, len(magic))
	n, err := io.ReadFull(f, head)
	switch {
	case string(head[:n]) == magic && key != nil:
		return ErrPlain
	case string(head[:n]) == magic, key != nil && fits(f, key):
		if remote(filepath.Dir(path)) {
			return errNetwork
		}
		return nil
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case key != nil && n == len(head):
		return ErrKey
	case encrypted(f):
		return ErrEncrypted
	}
	return ErrNotStore
}

// newFile makes an empty database beside path and renames it, so that no other program sees half of
// it. A database that another program has made meanwhile stays.
func newFile(path string, key []byte, s Schema) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if remote(dir) {
		return errNetwork
	}
	made, err := safefile.CreateNamed(path)
	if err != nil {
		return err
	}
	defer discard(made)
	d := &DB{path: made.Name(), key: key}
	err = d.open(false)
	if err != nil {
		return err
	}
	err = d.c.EnableChecksums("main")
	if err == nil {
		// Without a log a full disk shows at once, and not when the log is to be written into the
		// file.
		err = d.c.Exec("pragma journal_mode = memory; begin immediate;" +
			meta + s.Tables + fmt.Sprintf(
			"pragma application_id = %d; pragma user_version = %d; commit; "+
				"pragma journal_mode = wal", application, s.Version))
	}
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	err = publish(made, func() error {
		if there(path) {
			return fs.ErrExist
		}
		// the log of a database that somebody has deleted would bring its people back
		return unlog(path)
	})
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return err
}

// discard removes a temporary database, unless it is committed.
func discard(made *safefile.File) {
	made.Abort()
	unlog(made.Name())
}

// publish commits a file if may allows it, while no other program does that in the folder.
func publish(made *safefile.File, may func() error) error {
	unlock, err := safefile.LockFolder(filepath.Dir(made.Name()))
	if err != nil {
		return err
	}
	defer unlock()
	if err := may(); err != nil {
		return err
	}
	return made.Commit()
}

// private makes the files beside a database before SQLite does, because SQLite lets other users
// read them.
func private(path string) error {
	for _, end := range beside {
		f, err := os.OpenFile(path+end, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			err = safefile.Own(f)
		} else if errors.Is(err, fs.ErrExist) {
			f, err = os.OpenFile(path+end, os.O_RDWR|os.O_CREATE, 0o600)
		}
		if err != nil {
			return err
		}
		if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// begin opens the database at d.path, alone without the index that programs share, and checks it.
func (d *DB) begin(alone bool) error {
	err := d.open(alone)
	if err == nil {
		err = d.check()
	}
	if err == nil && !d.fixed {
		err = d.c.Exec("pragma journal_mode = wal") // a copy has no log
	}
	return explain(d.path, err)
}

func (d *DB) open(alone bool) error {
	err := private(d.path)
	flags := sqlite3.OPEN_READWRITE | sqlite3.OPEN_URI
	// A log tells of a program that writes by another mount, or that was killed.
	d.fixed = errors.Is(err, syscall.EROFS) && !there(d.path+beside[0])
	if d.fixed {
		flags, err = sqlite3.OPEN_READONLY|sqlite3.OPEN_URI, nil
	}
	if err != nil {
		return err
	}
	file, err := uri(d.path, d.key)
	if err != nil {
		return err
	}
	if d.fixed {
		file += "&immutable=1"
	}
	d.prepared = make(map[string]*sqlite3.Stmt)
	d.c, err = sqlite3.OpenFlags(file, flags)
	if err != nil {
		return err
	}
	d.alone = alone
	exclusive := ""
	if alone {
		exclusive = "pragma locking_mode = exclusive;"
	}
	return d.c.Exec(
		fmt.Sprintf(`pragma page_size = %d; %s pragma busy_timeout = %d; pragma synchronous = full;
		pragma secure_delete = on; pragma foreign_keys = on; pragma trusted_schema = off;
		pragma cell_size_check = on;
		pragma temp_store = memory`, pageSize, exclusive, patience))
}

// check returns an error if the database has another version than is wanted.
func (d *DB) check() error {
	var id, is int64
	err := d.Query("select * from pragma_application_id, pragma_user_version", func(r Row) error {
		id, is = r.ColumnInt64(0), r.ColumnInt64(1)
		return nil
	})
	switch {
	case err != nil:
		return err
	case id != application:
		return ErrNotStore
	case d.version != 0 && is != d.version:
		err = ErrVersion
		if is < d.version {
			err = ErrOld
		}
		return fmt.Errorf("%w: it has version %d, and this program reads %d; %s", err, is,
			d.version, advice(err))
	}
	_, d.pending, err = d.erased()
	return err
}
