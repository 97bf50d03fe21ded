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
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file, pipe, link := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
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
		pipe: safefile.ErrNotRegular, dir: safefile.ErrNotRegular, "/dev/zero": safefile.ErrNotRegular,
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
	for mode, readable := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false,
		0o620: false, 0o700: true} {
		fixture.Check(t, os.Chmod(path, mode))
		b, err := safefile.ReadSecret(path)
		if readable != (err == nil) || readable && string(b) != "word" {
			t.Errorf("mode %o: %q, %v", mode, b, err)
		}
	}
}
