// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"os"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// Health is what [Inspect] finds.
type Health struct {
	Size, Log int64    // bytes of the database and of its log
	Version   int64    // of the schema
	Waiting   bool     // somebody who was forgotten is still in the file, a copy or the log
	Copies    []string // files of the daily copies, the oldest first
	// names and numbers of other processes that have it open: Linux, and those of this user
	Programs []string
}

// Inspect reads every page of the database at path, and verifies checksums, tables and indexes. It
// never writes into the database or its log. Counts are statements whose numbers are wanted, too.
// The errors are those of [Open].
func Inspect(path string, s Schema, counts map[string]*int64) (h Health, err error) {
	d := &DB{path: real(path), version: s.Version, key: Key(path)}
	defer func() { err = explain(d.path, err) }()
	h.Programs = programs(d.path)
	if err := inspect(d.path, d.key); err != nil {
		return h, err
	}
	for _, c := range copies(d.path) {
		if c.whole {
			h.Copies = append(h.Copies, c.path)
		}
	}
	for end, size := range map[string]*int64{"": &h.Size, "-wal": &h.Log} {
		if info, err := os.Stat(d.path + end); err == nil {
			*size = info.Size()
		}
	}
	err = d.open(!vfs.SupportsSharedMemory)
	if d.c == nil {
		return h, err
	}
	// The last program that closes a database writes the log into it.
	_, set := d.c.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true)
	err = errors.Join(err, set)
	if err == nil {
		err = d.Read(func() error { return d.examine(&h, counts) })
	}
	return h, errors.Join(err, d.Close())
}

func (d *DB) examine(h *Health, counts map[string]*int64) error {
	if err := d.check(); err != nil {
		return err
	}
	h.Waiting = d.pending
	if err := d.first(&h.Version, "pragma user_version"); err != nil {
		return err
	}
	for sql, n := range counts {
		if err := d.first(n, sql); err != nil {
			return err
		}
	}
	return d.Whole()
}
