// SPDX-License-Identifier: Apache-2.0

// Package store keeps the records of one device in one SQLite database, which several programs use at once.
//
// [Open] opens the database, [DB.Write] changes it in one transaction, and [DB.Read] reads one state of it.
//
// # Rules
//
// A write is on the disk when Write returns. The database and its log lie in a folder that only the owner can read, and
// are files that only the owner can read, from the first byte. Each page has a checksum. Deleted records are
// overwritten; [DB.Erase] removes what is left of them. [DB.Daily] keeps copies of a week beside the database. Numbers of rows are never used again.
//
// # Caveats
//
// A DB is not safe for concurrent use. Without a key ([SetKey]) the database is not encrypted. It must not lie on a
// network file system, where locks do not hold.
package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// Errors of [Open] and of every other call. A missing file is [fs.ErrNotExist].
var (
	ErrNotStore = known("not a faceauth database", "name another file")
	ErrVersion  = known("a database of a newer faceauth", "update this program")
	ErrOld      = known("a database of an older faceauth", "enrol the people into a new one")
	ErrDamaged  = known("a damaged database", "end all programs, and restore a backup")
	ErrFull     = known("the disk is full", "make room")
	errReadOnly = known("the file or its folder cannot be written",
		"give this user the right to write there, or name another file")
	errDenied = known("this user may not open the file, or not write beside it",
		"run the program as the owner of the file, or name another file")
	ErrBusy = known("another program has kept the database locked for too long",
		"end the other program, and try again")
	ErrEncrypted = known("the file is encrypted, or it is not a faceauth database", "give its key with --key FILE")
	ErrKey       = known("the key is not that of the database, or its beginning is damaged",
		"give the right one with --key FILE")
	ErrPlain = known("the database is not encrypted, and a key was given",
		"leave the key out, or make an encrypted copy: faceauth backup FILE --new-key KEY")
	errNetwork = known("the folder is on a network file system, where locks do not hold",
		"name a file on a local disk")
)

// fault is an error with what to do about it.
type fault struct{ text, advice string }

func (f *fault) Error() string { return f.text }

func known(text, advice string) error { return &fault{text, advice} }

// advice says what to do about an error that is known.
func advice(known error) string { return known.(*fault).advice }

var errClosed = errors.New("the database is closed")

const (
	magic       = "SQLite format 3\x00"
	application = 0x66616365 // "face": SQLite's application_id
	pageSize    = 8192       // a face of 512 values and its row fit four times
	patience    = 10000      // milliseconds to wait for another program's write
)

// Row is one row of a result: ColumnInt64(i), ColumnText(i), ColumnRawBlob(i), which is valid until the next row.
type Row = *sqlite3.Stmt

// DB is an open database.
type DB struct {
	c        *sqlite3.Conn
	path     string
	key      []byte // nil: the database is not encrypted
	prepared map[string]*sqlite3.Stmt
	pending  bool // Erase must be tried again
}

// Open opens the database at path. With create it makes a missing database and its folder, or one in memory if path is
// ""; otherwise the error of a missing file wraps [fs.ErrNotExist]. The other errors are those of the package.
func Open(path string, create bool) (*DB, error) {
	if path == "" && create {
		return memory()
	}
	d := &DB{path: path, key: Key(path), prepared: make(map[string]*sqlite3.Stmt)}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		d.path = target // SQLite keeps the log beside the target
	}
	err := d.inspect()
	if errors.Is(err, fs.ErrNotExist) && create {
		err = d.create()
		if err == nil {
			err = d.inspect()
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
		err = d.explain(err)
		d.Close() // the database is as it was
		return nil, err
	}
	if d.pending {
		d.Erase() // what another program still reads is tried again at the next start
	}
	return d, nil
}

func memory() (*DB, error) {
	c, err := sqlite3.Open(":memory:")
	if err != nil {
		return nil, err
	}
	d := &DB{c: c, prepared: make(map[string]*sqlite3.Stmt)}
	if err := c.Exec("pragma foreign_keys = on; pragma temp_store = memory;" + schema); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return d, nil
}

// begin opens the database and checks it.
func (d *DB) begin(alone bool) error {
	err := d.open(d.path, alone)
	if err == nil {
		err = d.check()
	}
	if err == nil {
		err = d.c.Exec("pragma journal_mode = wal") // a copy has no log
	}
	return d.explain(err)
}

// inspect returns an error if the file cannot be a database. SQLite would wait at a pipe, and makes a missing file.
func (d *DB) inspect() error {
	f, err := safefile.Open(d.path)
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
	case string(head[:n]) == magic && d.key != nil:
		return ErrPlain
	case string(head[:n]) == magic, d.key != nil && fits(f, d.key):
		return local(filepath.Dir(d.path))
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case d.key != nil && n == len(head):
		return ErrKey
	case encrypted(f):
		return ErrEncrypted
	}
	return ErrNotStore
}

// create makes an empty database beside path and renames it, so that no other program sees half of it. A database
// that another program has made meanwhile stays.
func (d *DB) create() error {
	dir := filepath.Dir(d.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := local(dir); err != nil {
		return err
	}
	made, err := safefile.Create(d.path)
	if err != nil {
		return err
	}
	defer discard(made)
	if err := d.open(made.Name(), false); err != nil {
		return err
	}
	err = d.c.EnableChecksums("main")
	if err == nil {
		// Without a log a full disk shows at once, and not when the log is to be written into the file.
		err = d.c.Exec("pragma journal_mode = memory; begin immediate;" + schema + fmt.Sprintf(
			"pragma application_id = %d; pragma user_version = %d; commit; pragma journal_mode = wal", application, version))
	}
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	err = publish(made, func() error {
		if there(d.path) {
			return fs.ErrExist
		}
		// The log of a database that somebody has deleted would bring its people back.
		for _, end := range beside {
			if err := os.Remove(d.path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return err
}

// discard removes a temporary database, unless it is committed.
func discard(made *safefile.File) {
	made.Abort()
	for _, end := range beside {
		os.Remove(made.Name() + end)
	}
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

// beside are the endings of the files beside a database that is open: its log, and the index of the log.
var beside = []string{"-wal", "-shm"}

// private makes the files beside a database before SQLite does, because SQLite lets other users read them.
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

// open opens a file as a database, alone without the index that programs share.
func (d *DB) open(path string, alone bool) (err error) {
	if err := private(path); err != nil {
		return err
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return err
	}
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: query(d.key)}
	d.c, err = sqlite3.OpenFlags(uri.String(), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err != nil {
		return err
	}
	exclusive := ""
	if alone {
		exclusive = "pragma locking_mode = exclusive;"
	}
	return d.c.Exec(fmt.Sprintf(`pragma page_size = %d; %s pragma busy_timeout = %d; pragma synchronous = full;
		pragma secure_delete = on; pragma foreign_keys = on; pragma trusted_schema = off; pragma cell_size_check = on;
		pragma temp_store = memory`, pageSize, exclusive, patience))
}

// check returns an error if the database has another schema.
func (d *DB) check() error {
	id, is, pending := int64(0), int64(0), int64(0)
	err := d.first(&id, "pragma application_id")
	if err == nil {
		err = d.first(&is, "pragma user_version")
	}
	switch {
	case err != nil:
		return err
	case id != application:
		return ErrNotStore
	case is != version:
		err = ErrVersion
		if is < version {
			err = ErrOld
		}
		return fmt.Errorf("%w: it has version %d, and this program reads %d; %s", err, is, version, advice(err))
	}
	err = d.first(&pending, "select count(*) from meta where key = 'erase'")
	d.pending = pending > 0
	return err
}

func (d *DB) first(n *int64, sql string) error {
	return d.Query(sql, func(r Row) error { *n = r.ColumnInt64(0); return nil })
}

// Close closes the database.
func (d *DB) Close() error {
	for _, s := range d.prepared {
		s.Close()
	}
	clear(d.prepared)
	if d.c == nil {
		return nil
	}
	c := d.c
	d.c = nil
	return c.Close()
}

// Path returns the path of the file.
func (d *DB) Path() string { return d.path }

// Write calls do in one transaction, while no other program writes. It is on the disk when Write returns. On error
// nothing has changed.
func (d *DB) Write(do func() error) error {
	err := d.Exec("begin immediate")
	if err != nil {
		return err
	}
	err = do()
	if err == nil {
		err = d.explain(d.c.Exec("commit"))
	}
	if err != nil {
		d.rollback()
	}
	return err
}

// WriteLazily is Write without waiting for the disk: the end of the program loses nothing, and a failure of the machine
// loses what the system has not written yet.
func (d *DB) WriteLazily(do func() error) error {
	d.c.Exec("pragma synchronous = normal")
	defer d.c.Exec("pragma synchronous = full")
	return d.Write(do)
}

// rollback ends a transaction, if there is one, without its changes.
func (d *DB) rollback() {
	if !d.c.GetAutocommit() {
		d.c.Exec("rollback") // after an error of the disk SQLite may have rolled back itself
	}
}

// Read calls do, which sees one state of the database.
func (d *DB) Read(do func() error) error {
	if !d.c.GetAutocommit() { // in a transaction already
		return do()
	}
	if err := d.c.Exec("begin"); err != nil {
		return d.explain(err)
	}
	defer d.rollback()
	return do()
}

// Exec runs a statement. Arguments are int64, float64, string, []byte, bool or nil.
func (d *DB) Exec(sql string, args ...any) error { return d.Query(sql, nil, args...) }

// Query runs a statement, and calls each with its rows.
func (d *DB) Query(sql string, each func(Row) error, args ...any) error {
	return d.explain(d.query(sql, each, args))
}

func (d *DB) query(sql string, each func(Row) error, args []any) error {
	if d.c == nil {
		return errClosed
	}
	s := d.prepared[sql]
	if s == nil {
		var err error
		s, _, err = d.c.Prepare(sql)
		if err != nil {
			return err
		}
		d.prepared[sql] = s
	}
	defer s.Reset()
	for i, a := range args {
		var err error
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
			panic(fmt.Sprintf("store: an argument of type %T", a))
		}
		if err != nil {
			return err
		}
	}
	for s.Step() {
		if each == nil {
			continue
		}
		if err := each(s); err != nil {
			return err
		}
	}
	return s.Err()
}

// Erasing notes, in a transaction that deletes personal records, that [DB.Erase] must follow.
func (d *DB) Erasing() error {
	err := d.c.Exec("insert into meta values('erased', 1) on conflict(key) do update set value = value + 1; " +
		"insert or replace into meta select 'erase', value from meta where key = 'erased'")
	return d.explain(err)
}

// erased returns how often personal records were deleted, and whether an Erase is still due or under way.
func (d *DB) erased() (n int64, erasing bool, err error) {
	left := int64(0)
	err = errors.Join(d.first(&n, "select value from meta where key = 'erased'"),
		d.first(&left, "select count(*) from meta where key = 'erase'"))
	return n, left > 0, err
}

// Erase removes what is left of deleted records: in the copies of [DB.Daily], in the free parts of the file, which it
// writes anew, and in the log. If another program reads or writes, it waits a moment, and the next Open or Daily tries
// again.
func (d *DB) Erase() error {
	if d.path == "" {
		return nil
	}
	d.c.Exec("pragma busy_timeout = 1000")
	defer d.c.Exec(fmt.Sprintf("pragma busy_timeout = %d", patience))
	err := d.erase()
	d.pending = err != nil
	if errors.Is(err, sqlite3.BUSY) || errors.Is(err, safefile.ErrLocked) {
		return nil
	}
	return d.explain(err)
}

func (d *DB) erase() error {
	n, _, err := d.erased()
	if err != nil {
		return err
	}
	if err := d.dropCopies(); err != nil {
		return err
	}
	if err := d.vacuum(); err != nil {
		return err
	}
	if _, _, err := d.c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE); err != nil {
		return err
	}
	// Another program may have deleted more meanwhile.
	return d.query("delete from meta where key = 'erase' and value = ?", nil, []any{n})
}

// mostMemory is the size of a database in bytes that is written anew in memory, and not in a temporary file.
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

// advised returns an error with what to do about it.
func (d *DB) advised(err, known error) error {
	do := advice(known)
	if last := d.lastCopy(); known == ErrDamaged && last != "" {
		do = fmt.Sprintf("end all programs, remove %[1]s-wal and %[1]s-shm, and restore the last daily copy: "+
			"cp -p %[2]s %[1]s", d.path, last)
	}
	return fmt.Errorf("%w; %s", err, do)
}

// explain gives an error of SQLite or of the system the meaning for a user.
func (d *DB) explain(err error) error {
	var meant *fault
	var known error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &meant):
		if err == error(meant) {
			err = d.advised(err, err)
		}
		return err
	case errors.Is(err, sqlite3.NOTADB):
		known = ErrNotStore
	case errors.Is(err, sqlite3.CORRUPT), errors.Is(err, sqlite3.IOERR_DATA), errors.Is(err, sqlite3.IOERR_SHORT_READ),
		errors.Is(err, sqlite3.IOERR_CORRUPTFS), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		known = ErrDamaged
	case errors.Is(err, sqlite3.FULL), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT),
		errors.Is(err, sqlite3.IOERR) && crowded(filepath.Dir(d.path), 1<<20):
		known = ErrFull
	case errors.Is(err, sqlite3.READONLY), errors.Is(err, syscall.EROFS):
		known = errReadOnly
	case errors.Is(err, fs.ErrPermission), errors.Is(err, sqlite3.CANTOPEN), errors.Is(err, sqlite3.PERM):
		known = errDenied
	case errors.Is(err, sqlite3.BUSY), errors.Is(err, sqlite3.LOCKED), errors.Is(err, safefile.ErrLocked):
		known = ErrBusy
	default:
		return err
	}
	return d.advised(fmt.Errorf("%w (%w)", known, err), known)
}
