// SPDX-License-Identifier: Apache-2.0

// Package store keeps records in an SQLite database, which several programs use at once.
//
// [Open] opens the database, [DB.Write] changes it in one transaction, and [DB.Read] reads one
// state of it.
//
// # Rules
//
// A write is on the disk when Write returns. The database and its log lie in a folder that only the
// owner can read, and are files that only the owner can read, from the first byte. Each page has a
// checksum. Deleted records are overwritten; [DB.Erase] removes what is left of them. [DB.Daily]
// keeps copies of a week beside the database. Numbers of rows are never used again.
//
// # Caveats
//
// A DB is not safe for concurrent use. Without a key ([SetKey]) the database is not encrypted. It
// must not lie on a network file system, where locks do not hold.
package store

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// Open opens the database at path, which has the schema. With create it makes a missing database
// and its folder, or one in memory if path is ""; otherwise the error of a missing file wraps
// [fs.ErrNotExist]. The other errors are those of the package.
func Open(path string, s Schema, create bool) (*DB, error) {
	if path == "" && create {
		return memory(s)
	}
	d, err := connect(path, s, create)
	if err == nil && d.pending {
		d.Erase() // what another program still reads is tried again at the next start
	}
	return d, err
}

// connect opens a database in a file.
func connect(path string, s Schema, create bool) (*DB, error) {
	d := &DB{path: path, version: s.Version, key: Key(path)}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		d.path = target // SQLite keeps the log beside the target
	}
	err := inspect(d.path, d.key)
	if errors.Is(err, fs.ErrNotExist) && create {
		err = newFile(d.path, d.key, s)
		if err == nil {
			err = inspect(d.path, d.key)
		}
	}
	if err == nil {
		err = d.begin(!vfs.SupportsSharedMemory) // a system without shared memory has one program
	}
	// Without room for the index of the log the file can be read by one program.
	if errors.Is(err, ErrFull) && there(d.path) {
		d.Close()
		err = d.begin(true)
	}
	if err != nil {
		err = explain(d.path, err)
		d.Close() // the database is as it was
		return nil, err
	}
	return d, nil
}

func memory(s Schema) (*DB, error) {
	c, err := sqlite3.Open(":memory:")
	if err != nil {
		return nil, err
	}
	d := &DB{c: c, prepared: make(map[string]*sqlite3.Stmt)}
	if err := c.Exec("pragma foreign_keys = on; pragma temp_store = memory;" +
		meta + s.Tables); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return d, nil
}
