// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// patience is how long to wait for another program's write, in milliseconds.
const patience = 10000

// Row is one row of a result: ColumnInt64(i), ColumnText(i), ColumnRawBlob(i), which is valid until
// the next row.
type Row = *sqlite3.Stmt

// DB is an open database. Nil is a closed one.
type DB struct {
	c        *sqlite3.Conn
	path     string
	version  int64  // of its schema; 0: any
	key      []byte // nil: the database is not encrypted
	prepared map[string]*sqlite3.Stmt
	pending  bool // Erase must be tried again
	fixed    bool // the file system is read-only: nothing is locked or written
	alone    bool // no other connection can use the file meanwhile
	prompt   bool // see Prompt
}

func (d *DB) closed() bool { return d == nil || d.c == nil }

// Close closes the database, once.
func (d *DB) Close() error {
	if d.closed() {
		return nil
	}
	for _, s := range d.prepared {
		s.Close()
	}
	clear(d.prepared)
	c := d.c
	d.c = nil
	return c.Close()
}

// Path returns the path of the file.
func (d *DB) Path() string { return d.path }

// Prompt sets whether a write fails at once with [ErrBusy] while another program writes, instead of
// waiting for it.
func (d *DB) Prompt(on bool) {
	if d.closed() {
		return
	}
	d.prompt = on
	d.wait()
}

// wait sets how long a write waits for another program's.
func (d *DB) wait() {
	ms := patience
	if d.prompt {
		ms = 0
	}
	d.c.Exec(fmt.Sprintf("pragma busy_timeout = %d", ms))
}

// Alone reports whether no other connection can use the database meanwhile: it is in memory, or the
// system or its disk has no room for what programs share.
func (d *DB) Alone() bool { return d.closed() || d.path == "" || d.alone }

// Write calls do in one transaction, while no other program writes. It is on the disk when Write
// returns. On error nothing has changed.
func (d *DB) Write(do func() error) error {
	err := d.Exec("begin immediate")
	if err != nil {
		return err
	}
	defer d.rollback() // unless it was committed
	err = do()
	if err != nil {
		return err
	}
	return d.Exec("commit")
}

// WriteLazily is Write without waiting for the disk: the end of the program loses nothing, and a
// failure of the machine loses what the system has not written yet.
func (d *DB) WriteLazily(do func() error) error {
	d.Exec("pragma synchronous = normal")
	defer d.Exec("pragma synchronous = full")
	return d.Write(do)
}

// rollback ends a transaction, if there is one, without its changes.
func (d *DB) rollback() {
	if !d.closed() && !d.c.GetAutocommit() {
		d.c.Exec("rollback") // after an error of the disk SQLite may have rolled back itself
	}
}

// Read calls do, which sees one state of the database.
func (d *DB) Read(do func() error) error {
	if !d.closed() && !d.c.GetAutocommit() { // in a transaction already
		return do()
	}
	if err := d.Exec("begin"); err != nil {
		return err
	}
	defer d.rollback()
	return do()
}

// Prepared, if a test has set it, is called with each statement that a connection runs for the
// first time.
var Prepared func(sql string)

// Exec runs a statement. Arguments are int64, float64, string, []byte, bool or nil.
func (d *DB) Exec(sql string, args ...any) error {
	return d.Query(sql, func(Row) error { return nil }, args...)
}

// Query runs a statement, and calls each with its rows.
func (d *DB) Query(sql string, each func(Row) error, args ...any) (err error) {
	if d.closed() {
		return ErrClosed
	}
	defer func() { err = explain(d.path, err) }()
	s := d.prepared[sql]
	if s == nil {
		s, _, err = d.c.Prepare(sql)
		if err != nil {
			return err
		}
		if Prepared != nil {
			Prepared(sql)
		}
		d.prepared[sql] = s
	}
	defer s.Reset()
	for i, a := range args {
		switch a := a.(type) {
		case int64:
			err = s.BindInt64(i+1, a)
		case float64:
			err = s.BindFloat(i+1, a)
		case string:
			err = s.BindText(i+1, a)
		case []byte:
			err = s.BindBlob(i+1, a)
		case bool:
			err = s.BindBool(i+1, a)
		case nil:
			err = s.BindNull(i + 1)
		default:
			err = fmt.Errorf("an argument of type %T", a)
		}
		if err != nil {
			return err
		}
	}
	for s.Step() {
		err = each(s)
		if err != nil {
			return err
		}
	}
	return s.Err()
}

// first reads the number in the one row of a result.
func (d *DB) first(n *int64, sql string) error {
	return d.Query(sql, func(r Row) error { *n = r.ColumnInt64(0); return nil })
}
