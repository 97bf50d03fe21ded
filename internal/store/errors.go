// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/ncruces/go-sqlite3"
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
	ErrEncrypted = known("the file is encrypted, or it is not a faceauth database",
		"give its key with --key FILE")
	ErrKey = known("the key is not that of the database, or its beginning is damaged",
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

// ErrClosed is the error of a database after [DB.Close], and of one that was never opened.
var ErrClosed = errors.New("the database is closed")

// advised returns an error of the database at path with what to do about it.
func advised(path string, err, known error) error {
	do := advice(known)
	if last := lastCopy(path); (known == ErrDamaged || known == ErrNotStore) && last != "" {
		do = fmt.Sprintf(
			"end all programs, remove %[1]s-wal and %[1]s-shm, and restore the last daily copy: "+
				"cp -p %[2]s %[1]s", path, last)
	}
	return fmt.Errorf("%w; %s", err, do)
}

// explain gives an error of SQLite or of the system about the database at path the meaning for a
// user.
func explain(path string, err error) error {
	var meant *fault
	var known error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &meant):
		if err == error(meant) {
			err = advised(path, err, err)
		}
		return err
	case errors.Is(err, sqlite3.NOTADB):
		known = ErrNotStore
	case errors.Is(err, sqlite3.CORRUPT), errors.Is(err, sqlite3.IOERR_DATA),
		errors.Is(err, sqlite3.IOERR_SHORT_READ),
		errors.Is(err, sqlite3.IOERR_CORRUPTFS), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF):
		known = ErrDamaged
	case errors.Is(err, sqlite3.FULL), errors.Is(err, syscall.ENOSPC),
		errors.Is(err, syscall.EDQUOT),
		errors.Is(err, sqlite3.IOERR) && crowded(filepath.Dir(path), 1<<20):
		known = ErrFull
	case errors.Is(err, sqlite3.READONLY), errors.Is(err, syscall.EROFS):
		known = errReadOnly
	case errors.Is(err, fs.ErrPermission), errors.Is(err, sqlite3.CANTOPEN),
		errors.Is(err, sqlite3.PERM):
		known = errDenied
	case errors.Is(err, sqlite3.BUSY), errors.Is(err, sqlite3.LOCKED),
		errors.Is(err, safefile.ErrLocked):
		known = ErrBusy
	default:
		return err
	}
	return advised(path, fmt.Errorf("%w (%w)", known, err), known)
}
