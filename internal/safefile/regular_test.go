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

	"github.com/faceauth/faceauth/internal/safefile"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file, pipe, link := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		f, err := safefile.Open(path)
		if err != nil {
			t.Fatal(err)
		}
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
