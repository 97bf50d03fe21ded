// SPDX-License-Identifier: Apache-2.0

package safefile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/safefile"
	"golang.org/x/sys/unix"
)

func content(t *testing.T, path string) string {
	t.Helper()
	b := fixture.Must(os.ReadFile(path))(t)
	return string(b)
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, s := range []string{"first", "second and longer", ""} {
		fixture.Check(t, safefile.Write(path, []byte(s)))
		if got := content(t, path); got != s {
			t.Errorf("content %q, want %q", got, s)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := safefile.Write(filepath.Join(path, "g"), nil); err == nil {
		t.Error("writing below a file gave no error")
	}
	if err := safefile.Write(filepath.Join(t.TempDir(), "no", "g"), nil); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("writing into a missing directory: error %v", err)
	}
}

// A write that ends before Commit leaves the old file, and no other file.
func TestAbort(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	fixture.Check(t, safefile.Write(path, []byte("old")))
	f := fixture.Must(safefile.Create(path))(t)
	fixture.Must(f.WriteString("half"))(t)
	fd, unable := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR, 0o600)
	unix.Close(fd)
	if _, err := os.Stat(f.Name()); err == nil && unable == nil {
		t.Errorf("a kill would leave %s", f.Name())
	}
	f.Abort()
	f.Abort()
	if err := f.Commit(); err == nil {
		t.Error("Commit after Abort gave no error")
	}
	// A file cannot replace a directory.
	blocked := filepath.Join(dir, "d")
	fixture.Check(t, os.MkdirAll(filepath.Join(blocked, "full"), 0o700))
	if err := safefile.Write(blocked, []byte("x")); err == nil {
		t.Error("replacing a directory gave no error")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 || content(t, path) != "old" {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file, pipe, link := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"),
		filepath.Join(dir, "link")
	fixture.Check(t, os.WriteFile(file, []byte("content"), 0o600))
	fixture.Check(t, syscall.Mkfifo(pipe, 0o600))
	fixture.Check(t, os.Symlink(file, link))
	for _, path := range []string{file, link} {
		f := fixture.Must(safefile.Open(path))(t)
		if b, err := io.ReadAll(f); err != nil || string(b) != "content" {
			t.Errorf("%s: %q, %v", path, b, err)
		}
		f.Close()
	}
	for path, want := range map[string]error{
		pipe: safefile.ErrNotRegular, dir: safefile.ErrNotRegular,
		"/dev/zero":              safefile.ErrNotRegular,
		filepath.Join(dir, "no"): fs.ErrNotExist,
	} {
		if _, err := safefile.Open(path); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", path, err, want)
		}
	}
}

// A secret is read only from a file that nobody but its owner can read.
func TestReadSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	fixture.Check(t, os.WriteFile(path, []byte("word"), 0o600))
	for mode, readable := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false,
		0o604: false,
		0o620: false, 0o700: true} {
		fixture.Check(t, os.Chmod(path, mode))
		b, err := safefile.ReadSecret(path)
		if readable != (err == nil) || readable && string(b) != "word" {
			t.Errorf("mode %o: %q, %v", mode, b, err)
		}
	}
}
