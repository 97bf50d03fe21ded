// SPDX-License-Identifier: Apache-2.0

package footage_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/footage"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b/10.jpg", "b/2.jpg", "a/deep/c10.avi", "a/deep/c2.avi", ".trash/x.avi", "alone.txt",
		"notes/a.txt"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("a note"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := footage.Find([]string{filepath.Join(dir, "alone.txt"), dir})
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i], _ = filepath.Rel(dir, got[i])
	}
	if want := []string{"alone.txt", "a/deep/c2.avi", "a/deep/c10.avi", "b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := footage.Find([]string{filepath.Join(dir, "none")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: error %v", err)
	}
	for _, name := range []string{"0", "http://camera", filepath.Join(dir, "notes")} {
		if _, err := footage.Find([]string{name}); !errors.Is(err, footage.ErrNone) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
