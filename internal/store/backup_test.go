// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/store"
)

// key is a key that is drawn from a number.
func key(n int) []byte {
	k := sha256.Sum256(fmt.Append(nil, n))
	return k[:]
}

func setKey(t testing.TB, path string, k []byte) {
	t.Helper()
	fixture.Check(t, store.SetKey(path, k))
}

// schema makes a table of people with one face each.
var schema = store.Schema{Version: 9, Tables: `
create table person(id integer primary key autoincrement, name text not null) strict;
create table label(
	id integer primary key autoincrement,
	person integer not null references person(id) on delete cascade,
	vector blob not null
) strict;`}

func open(t testing.TB, path string) *store.DB {
	t.Helper()
	d := fixture.Must(store.Open(path, schema, true))(t)
	t.Cleanup(func() { d.Close() })
	return d
}

// vector is a face of 512 values.
func vector(name string) []byte {
	h := sha256.Sum256([]byte(name))
	return bytes.Repeat(h[:], 64)
}

func enrol(t testing.TB, d *store.DB, names ...string) {
	t.Helper()
	for _, name := range names {
		fixture.Check(t, d.Write(func() error {
			if err := d.Exec("insert into person(name) values(?)", name); err != nil {
				return err
			}
			return d.Exec("insert into label(person, vector) values(last_insert_rowid(), ?)",
				vector(name))
		}))
	}
}

func forget(t testing.TB, d *store.DB, name string) {
	t.Helper()
	fixture.Check(t, d.Exec("delete from person where name = ?", name))
}

// names lists the people of a database.
func names(t testing.TB, d *store.DB) string {
	t.Helper()
	var all []string
	fixture.Check(t, d.Query("select name from person order by name", func(r store.Row) error {
		all = append(all, r.ColumnText(0))
		return nil
	}))
	return strings.Join(all, " ")
}

// hits counts names and vectors in the bytes of a database and of its log.
func hits(path string, people ...string) (n int) {
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		data, _ := os.ReadFile(path + end)
		for _, name := range people {
			n += bytes.Count(data, []byte(name)) + bytes.Count(data, vector(name)[:32])
		}
	}
	return n
}

// left lists the files of a folder.
func left(t testing.TB, dir string) string {
	t.Helper()
	entries := fixture.Must(os.ReadDir(dir))(t)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// A backup beside an open database has its people, checksums and pages, and nobody who is
// forgotten.
func TestBackup(t *testing.T) {
	for _, k := range [][]byte{nil, key(1)} {
		path := filepath.Join(t.TempDir(), "faceauth.db")
		setKey(t, path, k)
		d, other := open(t, path), open(t, path)
		enrol(t, d, "alexandria", "bobolink")
		forget(t, d, "bobolink")
		if n := hits(path, "bobolink"); n == 0 && k == nil {
			t.Error("the log does not have the forgotten person, so this tests nothing")
		}
		dir := t.TempDir()
		to := filepath.Join(dir, "copy.db")
		setKey(t, to, k)
		fixture.Check(t, other.Backup(to))
		info, err := os.Stat(to)
		if err != nil || info.Mode() != 0o600 || left(t, dir) != "copy.db" {
			t.Fatalf("%v, %v, and the folder has %s", info, err, left(t, dir))
		}
		if hits(to, "bobolink") > 0 || (hits(to, "alexandria") > 0) != (k == nil) {
			t.Errorf("%d and %d hits", hits(to, "bobolink"), hits(to, "alexandria"))
		}
		copied := open(t, to)
		if s := names(t, copied); s != "alexandria" {
			t.Errorf("the copy has %q", s)
		}
		for pragma, want := range map[string]string{
			"page_size": "8192", "journal_mode": "wal", "checksum_verification": "1",
			"integrity_check": "ok",
		} {
			if err := copied.Query("pragma "+pragma, func(r store.Row) error {
				if s := r.ColumnText(0); s != want {
					t.Errorf("%s is %s, want %s", pragma, s, want)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
		before, err := os.ReadFile(to)
		fixture.Check(t, err)
		err = other.Backup(to)
		if want := to + " exists (file already exists); name another file"; !errors.Is(err,
			fs.ErrExist) ||
			err.Error() != want {
			t.Errorf("error %v", err)
		}
		if after, err := os.ReadFile(to); err != nil || !bytes.Equal(after, before) {
			t.Errorf("the file has changed, %v", err)
		}
		enrol(t, d, "carol") // the database goes on
		if s := names(t, other); s != "alexandria carol" {
			t.Errorf("the database has %q", s)
		}
	}
}

// A backup may have another key than the database, or none.
func TestBackupNewKey(t *testing.T) {
	from := [][]byte{nil, key(1), key(2)}
	for _, k := range from {
		path := filepath.Join(t.TempDir(), "faceauth.db")
		setKey(t, path, k)
		d := open(t, path)
		enrol(t, d, "alexandria")
		for i, other := range from {
			to := filepath.Join(t.TempDir(), fmt.Sprint("copy", i))
			setKey(t, to, other)
			fixture.Check(t, d.Backup(to))
			if s := names(t, open(t, to)); s != "alexandria" {
				t.Errorf("the copy has %q", s)
			}
			if n := hits(to, "alexandria"); (n > 0) != (other == nil) {
				t.Errorf("%d hits", n)
			}
		}
	}
}

// A backup that is larger than SQLite's cache has the checksum of every page.
func TestBackupLarge(t *testing.T) {
	for _, k := range [][]byte{nil, key(1)} {
		path := filepath.Join(t.TempDir(), "faceauth.db")
		d := open(t, path)
		enrol(t, d, "alice")
		fixture.Check(t, d.Exec(
			"with recursive n(i) as (select 1 union all select i + 1 from n where i < 4000) "+
				"insert into label(person, vector) select 1, randomblob(2048) from n"))
		to := filepath.Join(t.TempDir(), "copy")
		setKey(t, to, k)
		fixture.Check(t, d.Backup(to))
		var faces int64
		_, err := store.Inspect(to, schema, map[string]*int64{"select count(*) from label": &faces})
		if err != nil || faces != 4001 {
			t.Errorf("%d faces, %v", faces, err)
		}
	}
}

// On a disk without room for a new database there is none, or a whole one.
func TestCreateFullDisk(t *testing.T) {
	for _, size := range []int{16, 40, 64, 100, 400} {
		dir := fixture.NewDisk(t, size<<10).Dir
		path := filepath.Join(dir, "faceauth.db")
		d, err := store.Open(path, schema, true)
		if err == nil {
			err = d.Close()
		} else if !errors.Is(err, store.ErrFull) || left(t, dir) != "" {
			t.Errorf("%d KB: error %v, and the folder has %q", size, err, left(t, dir))
		}
		if h, damaged := store.Inspect(path, schema, nil); err == nil &&
			!errors.Is(damaged, store.ErrFull) &&
			(damaged != nil || h.Size == 0) {
			t.Errorf("%d KB: %+v, %v", size, h, damaged)
		}
	}
}

// On a full disk a backup leaves nothing, and says why.
func TestBackupFullDisk(t *testing.T) {
	dir := fixture.NewDisk(t, 256<<10).Dir
	d := open(t, filepath.Join(t.TempDir(), "faceauth.db"))
	for i := range 100 {
		enrol(t, d, fmt.Sprint("person ", i))
	}
	err := d.Backup(filepath.Join(dir, "copy"))
	if !errors.Is(err, store.ErrFull) || left(t, dir) != "" {
		t.Errorf("error %v, and the folder has %q", err, left(t, dir))
	}
}

// An encrypted database opens with its key alone. No name or vector is in its bytes or in those of
// its log.
func TestKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faceauth.db")
	setKey(t, path, key(1))
	d := open(t, path)
	enrol(t, d, "alexandria", "bobolink")
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Errorf("there is no log: %v", err)
	}
	if n := hits(path, "alexandria", "bobolink", "create table"); n > 0 {
		t.Errorf("%d hits beside the open database", n)
	}
	log, err := os.ReadFile(path + "-wal")
	fixture.Check(t, errors.Join(err, d.Close()))
	if n := hits(path, "alexandria", "bobolink", "create table"); n > 0 {
		t.Errorf("%d hits", n)
	}
	plain := filepath.Join(t.TempDir(), "plain.db")
	enrol(t, open(t, plain), "alexandria")
	if hits(plain, "alexandria") == 0 {
		t.Error("the search finds nothing")
	}
	const give = "the file is encrypted, or it is not a faceauth database; give its key with " +
		"--key FILE"
	const wrong = "the key is not that of the database, or its beginning is damaged; give the " +
		"right one with --key FILE"
	const none = "the database is not encrypted, and a key was given; leave the key out, or make " +
		"an encrypted copy: faceauth backup FILE --new-key KEY"
	for _, c := range []struct {
		path string
		key  []byte
		want string
	}{
		{path, nil, give}, {path, key(2), wrong}, {path, key(1), ""}, {plain, key(1), none},
		{plain, nil, ""},
	} {
		before, err := os.ReadFile(c.path)
		if err == nil { // the log of a killed program
			err = os.WriteFile(c.path+"-wal", log, 0o600)
		}
		fixture.Check(t, err)
		setKey(t, c.path, c.key)
		d, err := store.Open(c.path, schema, true)
		said := ""
		if err != nil {
			said = err.Error()
		} else {
			d.Close()
		}
		if said != c.want {
			t.Errorf("error %q, want %q", said, c.want)
		}
		if after, err := os.ReadFile(c.path + "-wal"); c.want != "" &&
			(err != nil || !bytes.Equal(after, log)) {
			t.Errorf("after %q the log has changed, %v", c.want, err)
		}
		if after, err := os.ReadFile(c.path); err != nil || !bytes.Equal(after, before) {
			t.Errorf("after %q the file has changed, %v", c.want, err)
		}
	}
	if err := store.SetKey(path, []byte("short")); err == nil ||
		err.Error() != "a key has 32 bytes, and this one has 5" {
		t.Errorf("error %v", err)
	}
}
