// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/store"
)

// Inspect measures the files, and names the programs that have the database open.
func TestInspect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faceauth.db")
	d := open(t, path)
	enrol(t, d, "alice", "bob")
	f := fixture.Must(os.Open(path))(t)
	defer f.Close()
	reader := exec.Command("sleep", "1000")
	reader.Stdin = f
	fixture.Check(t, reader.Start())
	defer reader.Wait()
	defer reader.Process.Kill()
	fixture.Check(t, d.Erasing())
	h := fixture.Must(store.Inspect(path, schema, nil))(t)
	if h.Size == 0 || h.Log == 0 || h.Version != 9 || !h.Waiting ||
		fmt.Sprint(h.Programs) != fmt.Sprintf("[sleep (process %d)]", reader.Process.Pid) {
		t.Errorf("%+v", h)
	}
}

// A damaged database is found in every page, and neither it nor its log changes.
func TestInspectDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faceauth.db")
	d := open(t, path)
	for i := range 20 {
		enrol(t, d, fmt.Sprint("person ", i))
	}
	fixture.Check(t, d.Erase())
	enrol(t, d, "last") // this is in the log alone
	log, err := os.ReadFile(path + "-wal")
	if err != nil || len(log) == 0 {
		t.Fatalf("%d bytes of log, %v", len(log), err)
	}
	whole := fixture.Must(os.ReadFile(path))(t)
	to := filepath.Join(t.TempDir(), "copy.db")
	check := func(what string, data []byte, damaged bool) {
		t.Helper()
		fixture.Check(t, errors.Join(os.WriteFile(to, data, 0o600), os.WriteFile(to+"-wal", log,
			0o600)))
		os.Remove(to + "-shm")
		var people int64
		h, err := store.Inspect(to, schema,
			map[string]*int64{"select count(*) from person": &people})
		if damaged && !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrNotStore) ||
			!damaged && (err != nil || people != 21) {
			t.Errorf("%s: %+v, error %v", what, h, err)
		}
		after, err := os.ReadFile(to)
		wal, errWAL := os.ReadFile(to + "-wal")
		if err != nil || errWAL != nil || !bytes.Equal(after, data) || !bytes.Equal(wal, log) {
			t.Errorf("%s: the files have changed", what)
		}
	}
	check("whole", whole, false)
	replaced := make(map[int]bool) // pages that the log has again
	for i := 32; i < len(log); i += 24 + 8192 {
		replaced[int(log[i+3])-1] = true
	}
	for i := 0; i < len(whole); i += 8192 {
		if replaced[i/8192] && i > 0 {
			continue
		}
		b := bytes.Clone(whole)
		b[i+100] ^= 4
		damaged := !replaced[i/8192]
		check(fmt.Sprintf("a bit of page %d", i/8192), b, damaged)
		clear(b[i : i+8192])
		check(fmt.Sprintf("zeroed page %d", i/8192), b, damaged || i == 0)
	}
	check("half", whole[:len(whole)/2], true)
}
