// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/tablet/profile"
)

// No way of printing a key shows its bytes.
func TestKeyHidden(t *testing.T) {
	k := profile.NewKey([32]byte{})
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		if got := fmt.Sprintf(format, k); got != "key" {
			t.Errorf("%s prints %s", format, got)
		}
		if got := fmt.Sprintf(format, struct{ K profile.Key }{k}); !strings.Contains(got, "key") ||
			len(got) > 120 {
			t.Errorf("%s of a struct prints %s", format, got)
		}
	}
}

func TestReadKey(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, n int) string {
		t.Helper()
		path := filepath.Join(dir, name)
		fixture.Check(t, os.WriteFile(path, make([]byte, n), 0o600))
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	fixture.Check(t, syscall.Mkfifo(fifo, 0o600))
	for what, c := range map[string]struct{ path, want string }{
		"too short": {write("short", 31), "does not hold 32 bytes"},
		"too long":  {write("long", 33), "does not hold 32 bytes"},
		"empty":     {write("empty", 0), "does not hold 32 bytes"},
		"a folder":  {dir, "not a regular file"},
		"a pipe":    {fifo, "not a regular file"},
	} {
		if _, err := profile.ReadKey(c.path); !errors.Is(err, profile.ErrKeyFile) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	if _, err := profile.ReadKey(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
