// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"

	"github.com/ncruces/go-sqlite3"
)

// Erasing notes, in a transaction that deletes personal records, that [DB.Erase] must follow.
func (d *DB) Erasing() error {
	return errors.Join(
		d.Exec("insert into meta values('erased', 1) on conflict(key) do update set value = "+
			"value + 1"),
		d.Exec("insert or replace into meta select 'erase', value from meta where key = 'erased'"))
}

// erased returns how often personal records were deleted, and whether an Erase is still due or
// under way.
func (d *DB) erased() (n int64, erasing bool, err error) {
	err = d.Query(`select (select value from meta where key = 'erased'), exists (select 1 from meta
		where key = 'erase')`, func(r Row) error {
		n, erasing = r.ColumnInt64(0), r.ColumnBool(1)
		return nil
	})
	return n, erasing, err
}

// Erase removes what is left of deleted records: in the copies of [DB.Daily], in the free parts of
// the file, which it writes anew, and in the log. If another program reads or writes, it waits a
// moment. After an error something may be left, and the next Open or Daily tries again. The error
// wraps [ErrBusy] if another program was in the way.
func (d *DB) Erase() error {
	switch {
	case d.path == "":
		return nil
	case d.closed():
		return ErrClosed
	}
	d.c.Exec("pragma busy_timeout = 1000")
	defer d.wait()
	err := d.erase()
	d.pending = err != nil
	return explain(d.path, err)
}

// Erase does what [DB.Erase] does, if it is due, to the database at path, on a connection of its
// own.
func Erase(path string) error {
	d, err := connect(path, Schema{}, false)
	if err == nil && d.pending {
		err = d.Erase()
	}
	return errors.Join(err, d.Close())
}

func (d *DB) erase() error {
	n, _, err := d.erased()
	if err != nil {
		return err
	}
	if err := dropCopies(d.path); err != nil {
		return err
	}
	if err := d.vacuum(); err != nil {
		return err
	}
	if _, _, err := d.c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE); err != nil {
		return err
	}
	// Another program may have deleted more meanwhile.
	return d.Exec("delete from meta where key = 'erase' and value = ?", n)
}

// mostMemory is the size of a database in bytes that is written anew in memory, and not in a
// temporary file.
const mostMemory = 64 << 20

// vacuum writes all rows into new pages.
func (d *DB) vacuum() error {
	size, err := d.size()
	if err != nil {
		return err
	}
	if size > mostMemory {
		d.c.Exec("pragma temp_store = file")
		defer d.c.Exec("pragma temp_store = memory")
	}
	return d.c.Exec("vacuum")
}

// size returns the size of the database in bytes.
func (d *DB) size() (n int64, err error) {
	err = d.first(&n, "pragma page_count")
	return n * pageSize, err
}
