// SPDX-License-Identifier: Apache-2.0

package lines_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/lines"
)

func read(t *testing.T, path string, o lines.Options) (*lines.File, []string, error) {
	t.Helper()
	var all []string
	f, err := lines.Open(path, o, func(line []byte) error {
		all = append(all, string(line))
		return nil
	})
	if err == nil {
		t.Cleanup(func() { f.Close() })
	}
	return f, all, err
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path+".new", []byte("left behind"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, all, err := read(t, path, lines.Options{})
	if err != nil || len(all) != 0 {
		t.Fatal(all, err)
	}
	if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file that a killed program left behind is still there: error %v", err)
	}
	for _, v := range []string{"one", "two", "three"} {
		if err := f.Append(v); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := read(t, path, lines.Options{}); !errors.Is(err, lines.ErrBusy) {
		t.Errorf("opening a file that is open: error %v", err)
	}
	f.Close()
	f, all, err = read(t, path, lines.Options{})
	if want := []string{`"one"`, `"two"`, `"three"`}; err != nil || !slices.Equal(all, want) || f.Lines() != 3 {
		t.Fatal(all, err)
	}
	if err := f.Rewrite("two", "four"); err != nil {
		t.Fatal(err)
	}
	if err := f.Append("five"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	_, all, err = read(t, path, lines.Options{})
	if want := []string{`"two"`, `"four"`, `"five"`}; err != nil || !slices.Equal(all, want) {
		t.Fatal(all, err)
	}
	if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte("three")) {
		t.Errorf("a removed line is still in the file: %s, error %v", text, err)
	}
}

// A strict Open refuses a damaged file. A lenient Open keeps the lines before the damage.
func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, _, err := read(t, path, lines.Options{Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"one", "two", "three"} {
		if err := f.Append(v); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[bytes.Index(text, []byte("two"))] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(t, path, lines.Options{}); !errors.Is(err, lines.ErrDamaged) {
		t.Errorf("a strict Open of a damaged file: error %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, text) {
		t.Error("the file was changed")
	}
	f, all, err := read(t, path, lines.Options{Lenient: true})
	if err != nil || !slices.Equal(all, []string{`"one"`}) {
		t.Fatal(all, err)
	}
	if err := f.Append("four"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	again, all, err := read(t, path, lines.Options{})
	if err != nil || !slices.Equal(all, []string{`"one"`, `"four"`}) {
		t.Fatal(all, err)
	}
	again.Close()
	refuse := errors.New("refused")
	if _, err := lines.Open(path, lines.Options{}, func([]byte) error { return refuse }); !errors.Is(err, refuse) {
		t.Error(err)
	}
}

// The first line has the version. A file with another version, or without a version, is refused.
func TestVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	open := func(version int) (got []string, err error) {
		f, err := lines.Open(path, lines.Options{Version: version}, func(line []byte) error {
			got = append(got, string(line))
			return nil
		})
		if err == nil {
			err = f.Append(struct{ A int }{1})
			f.Close()
		}
		return got, err
	}
	for i, want := range [][]string{nil, {`{"version":2}`, `{"A":1}`}} {
		if got, err := open(2); err != nil || !slices.Equal(got, want) {
			t.Errorf("opened %d times before: %q, %v", i, got, err)
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := open(3); !errors.Is(err, lines.ErrVersion) || got != nil {
		t.Errorf("another version: lines %q, error %v", got, err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("a file that was refused has changed: %v", err)
	}
	os.Remove(path)
	if _, err := open(0); err != nil {
		t.Fatal(err)
	}
	if _, err := open(2); !errors.Is(err, lines.ErrVersion) {
		t.Errorf("a file without a version: error %v", err)
	}
}
