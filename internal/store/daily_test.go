// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/store"
)

// noon is a moment of a day in November 2026.
func noon(day int) time.Time { return time.Date(2026, time.November, day, 12, 0, 0, 0, time.UTC) }

// dated lists the days of the copies beside a database, and what else is there.
func dated(t testing.TB, path string) string {
	t.Helper()
	return strings.ReplaceAll(left(t, filepath.Dir(path)), "faceauth.db-2026-11-", "")
}

func daily(t testing.TB, d *store.DB, now time.Time) {
	t.Helper()
	fixture.Check(t, d.Daily(now))
}

// There is one copy of each day of the last week, with the key of the database, whatever the clock
// does.
func TestDaily(t *testing.T) {
	for _, k := range [][]byte{nil, key(1)} {
		path := filepath.Join(t.TempDir(), "faceauth.db")
		setKey(t, path, k)
		d := open(t, path)
		enrol(t, d, "alexandria")
		daily(t, d, noon(1))
		enrol(t, d, "bobolink")
		daily(t, d, noon(1).Add(11*time.Hour)) // the copy of this day is there
		daily(t, d, noon(2))
		for day, want := range map[int]string{1: "alexandria", 2: "alexandria bobolink"} {
			one := fmt.Sprintf("%s-2026-11-%02d", path, day)
			info, err := os.Stat(one)
			if err != nil || info.Mode() != 0o600 || hits(one, "alexandria") > 0 != (k == nil) {
				t.Errorf("%v, %v, %d hits", info, err, hits(one, "alexandria"))
			}
			setKey(t, one, k)
			c := open(t, one)
			if s := names(t, c); s != want {
				t.Errorf("the copy of day %d has %q, want %q", day, s, want)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		for day := 3; day <= 9; day++ {
			daily(t, d, noon(day))
		}
		const week = "faceauth.db 03 04 05 06 07 08 09 faceauth.db-shm faceauth.db-wal"
		if s := dated(t, path); s != week {
			t.Errorf("a week: %s", s)
		}
		// a device without a battery, before it has asked for the time
		daily(t, d, time.Unix(1000, 0))
		daily(t, d, noon(9))
		if s := dated(t, path); s != week {
			t.Errorf("in 1970: %s", s)
		}
		daily(t, d, noon(30)) // a clock that goes wrong, and is set right
		if s := dated(t, path); s != "faceauth.db 30 faceauth.db-shm faceauth.db-wal" {
			t.Errorf("three weeks later: %s", s)
		}
		daily(t, d, noon(10))
		if s := dated(t, path); s != "faceauth.db 10 faceauth.db-shm faceauth.db-wal" {
			t.Errorf("three weeks earlier: %s", s)
		}
	}
}

// A copy from before the database had a key does not stay beside it.
func TestDailyNewKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faceauth.db")
	d := open(t, path)
	enrol(t, d, "alexandria")
	daily(t, d, noon(1))
	sealed := path + ".sealed"
	setKey(t, sealed, key(1))
	fixture.Check(t, errors.Join(d.Backup(sealed), d.Close(), os.Rename(sealed, path)))
	setKey(t, path, key(1))
	daily(t, open(t, path), noon(2))
	if s := dated(t, path); s != "faceauth.db 02 faceauth.db-shm faceauth.db-wal" {
		t.Errorf("the folder has %s", s)
	}
}

// Nobody who is forgotten stays in a copy, nor in a part of one that a killed program has left.
func TestDailyForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faceauth.db")
	d := open(t, path)
	enrol(t, d, "alexandria", "bobolink")
	daily(t, d, noon(1))
	daily(t, d, noon(2))
	part := filepath.Join(filepath.Dir(path), ".faceauth.db-2026-11-02-new-77")
	other := path + "-2026-11-notes"
	for _, file := range []string{part, other} {
		fixture.Check(t, os.WriteFile(file, vector("bobolink"), 0o600))
	}
	forget(t, d, "bobolink")
	fixture.Check(t, errors.Join(d.Erasing(), d.Erase()))
	if s := dated(t, path); s != "faceauth.db notes faceauth.db-shm faceauth.db-wal" {
		t.Errorf("the folder has %s", s)
	}
	if n := hits(path, "bobolink"); n > 0 {
		t.Errorf("%d hits", n)
	}
	daily(t, d, noon(2))
	if n := hits(path+"-2026-11-02", "bobolink"); n > 0 ||
		hits(path+"-2026-11-02", "alexandria") == 0 {
		t.Errorf("%d hits in the next copy", n)
	}
}

// A damaged database names its last copy.
func TestDailyDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faceauth.db")
	d := open(t, path)
	enrol(t, d, "alexandria")
	daily(t, d, noon(1))
	daily(t, d, noon(2))
	fixture.Check(t, d.Close())
	// A clock that was wrong has made this one.
	fixture.Check(t, os.WriteFile(path+"-2099-01-01", nil, 0o600))
	whole, err := os.ReadFile(path)
	fixture.Check(t, err)
	whole[1000] ^= 1
	fixture.Check(t, os.WriteFile(path, whole, 0o600))
	_, err = store.Open(path, schema, false)
	if want := fmt.Sprintf(
		"end all programs, remove %[1]s-wal and %[1]s-shm, and restore the last daily copy: "+
			"cp -p %[1]s-2026-11-02 %[1]s", path); !errors.Is(err, store.ErrDamaged) ||
		!strings.HasSuffix(err.Error(), "; "+want) {
		t.Errorf("error %v", err)
	}
	fixture.Check(t, exec.Command("cp", "-p", path+"-2026-11-02", path).Run())
	if s := names(t, open(t, path)); s != "alexandria" {
		t.Errorf("restored: %q", s)
	}
}

// Programs that copy, enrol and forget at once make one copy, and nobody who was forgotten before
// the end is in it.
func TestDailyTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faceauth.db")
	d := open(t, path)
	enrol(t, d, "alexandria")
	for round := range 20 {
		var all sync.WaitGroup
		name := fmt.Sprintf("gone-%d-", round)
		enrol(t, d, name)
		for range 3 {
			all.Go(func() {
				other, err := store.Open(path, schema, false)
				if err == nil {
					err = errors.Join(other.Daily(noon(1+round)), other.Close())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		fixture.Check(t, d.Write(func() error {
			return errors.Join(d.Exec("delete from person where name = ?", name), d.Erasing())
		}))
		fixture.Check(t, d.Erase())
		all.Wait()
		// if the others were using the database
		fixture.Check(t, errors.Join(d.Erasing(), d.Erase()))
		for _, file := range strings.Fields(left(t, filepath.Dir(path))) {
			if n := hits(filepath.Join(filepath.Dir(path), file), name); n > 0 {
				t.Errorf("round %d: %d hits in %s", round, n, file)
			}
		}
	}
}

// A copy that another program removes while it is made, since it erases somebody, is no error.
func TestDailyRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faceauth.db")
	d := open(t, path)
	enrol(t, d, "alexandria")
	many := "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1500) " +
		"insert into label(person, vector) select 1, randomblob(8000) from n"
	fixture.Check(t, d.Exec(many))
	removed, ended := make(chan bool), make(chan error)
	go func() { ended <- d.Daily(noon(1)) }()
	go func() {
		defer close(removed)
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			parts, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".faceauth.db-2026-*"))
			if len(parts) > 0 && os.Remove(parts[0]) == nil {
				return
			}
		}
	}()
	<-removed
	if err := <-ended; err != nil {
		t.Errorf("error %v", err)
	}
	fixture.Check(t, d.Daily(noon(1)))
	if files := left(t, filepath.Dir(path)); !strings.Contains(files, "-2026-11-01") {
		t.Errorf("there is no copy: %s", files)
	}
}

// On a full disk there is no copy, the old ones make room, and the database goes on.
func TestDailyFullDisk(t *testing.T) {
	dir := fixture.NewDisk(t, 24<<20).Dir
	path := filepath.Join(dir, "faceauth.db")
	d := open(t, path)
	enrol(t, d, "alexandria")
	fixture.Check(t, d.Exec(
		"with recursive n(i) as (select 1 union all select i + 1 from n where i < 1500) "+
			"insert into label(person, vector) select 1, randomblob(2048) from n"))
	fixture.Check(t, d.Exec("pragma wal_checkpoint(truncate)"))
	made := 0
	for day := 1; day <= 9; day++ {
		err := d.Daily(noon(day))
		if err == nil {
			made++
			continue
		}
		if !errors.Is(err, store.ErrFull) {
			t.Fatal(err)
		}
	}
	t.Logf("%d made: %s", made, dated(t, path))
	if made < 2 {
		t.Error("so this tests nothing")
	}
	if strings.HasPrefix(left(t, dir), ".") {
		t.Errorf("the folder has %s", left(t, dir))
	}
	enrol(t, d, "last") // there is room for it
	for i := 0; ; i++ { // until the disk is full
		if err := d.Exec("insert into person(name) values(?)",
			strings.Repeat("x", 50_000)+fmt.Sprint(i)); errors.Is(err, store.ErrFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Daily(noon(20)); !errors.Is(err, store.ErrFull) ||
		strings.HasPrefix(left(t, dir), ".") {
		t.Errorf("error %v, and the folder has %s", err, left(t, dir))
	}
	if s := names(t, d); !strings.Contains(s, "last") {
		t.Errorf("it has %q", s)
	}
}

// churn is a program that enrols two people, says so, forgets one of them, says so, and makes the
// copy of another day.
func churn(path string) error {
	for n := 0; ; n++ {
		d, err := store.Open(path, schema, false)
		if err != nil {
			return err
		}
		stays, goes := fmt.Sprintf("stays-%d-%d-", os.Getpid(), n),
			fmt.Sprintf("goes-%d-%d-", os.Getpid(), n)
		for _, name := range []string{stays, goes} {
			if err := d.Exec("insert into person(name) values(?)", name); err != nil {
				return err
			}
		}
		fmt.Println(stays)
		if err := d.Daily(noon(1 + n%9)); err != nil {
			return err
		}
		if err := d.Write(func() error {
			return errors.Join(d.Exec("delete from person where name = ?", goes), d.Erasing())
		}); err != nil {
			return err
		}
		fmt.Println(goes)
		if err := errors.Join(d.Erase(), d.Close()); err != nil {
			return err
		}
	}
}

func TestMain(m *testing.M) {
	if path := os.Getenv("FACEAUTH_TEST_CHURN"); path != "" {
		fmt.Println("error", churn(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Programs that forget and copy are killed at random. The next start leaves no byte of those who
// were forgotten, in no file, and everybody else is there.
func TestSystemEraseKilled(t *testing.T) {
	kills := fixture.Kills(t, 8)
	path := filepath.Join(t.TempDir(), "faceauth.db")
	fixture.Check(t, open(t, path).Close())
	r := rand.New(rand.NewPCG(4, 4))
	var stay, gone []string
	unfinished := 0
	for range kills {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "FACEAUTH_TEST_CHURN="+path)
		said, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		fixture.Check(t, err)
		time.AfterFunc(time.Duration(50+r.IntN(200))*time.Millisecond, func() { c.Process.Kill() })
		for s := bufio.NewScanner(said); s.Scan(); {
			switch {
			case strings.HasPrefix(s.Text(), "stays"):
				stay = append(stay, s.Text())
			case strings.HasPrefix(s.Text(), "goes"):
				gone = append(gone, s.Text())
			default:
				t.Error(s.Text())
			}
		}
		c.Wait() // it was killed
		if n := len(gone); n > 0 && hits(path, gone[n-1]) > 0 {
			unfinished++
		}
		d := fixture.Must(store.Open(path, schema, false))(t)
		here := make(map[string]bool)
		fixture.Check(t, d.Query("select name from person", func(r store.Row) error {
			here[r.ColumnText(0)] = true
			return nil
		}))
		for _, name := range stay {
			if !here[name] {
				t.Fatalf("%s is lost", name)
			}
		}
		for _, file := range strings.Fields(left(t, filepath.Dir(path))) {
			if n := hits(filepath.Join(filepath.Dir(path), file), gone...); n > 0 {
				t.Errorf("%d hits in %s", n, file)
			}
		}
		fixture.Check(t, d.Close())
	}
	t.Logf("%d kills, %d of them before the bytes were gone, %d people", kills, unfinished,
		len(stay))
}
