// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/faceauth/faceauth/tablet/profile"
)

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etc", "key")
	keys := make([]profile.Key, 8)
	var wait sync.WaitGroup
	for i := range keys { // several goroutines use it for the first time at once
		wait.Go(func() {
			var err error
			if keys[i], err = profile.KeyFile(path); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, k := range keys {
		if k != keys[0] || k == (profile.Key{}) {
			t.Fatal("several keys were made")
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 32 {
		t.Errorf("%v, %v", info, err)
	}
	if all, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(all) != 1 {
		t.Errorf("files are left: %q", all)
	}
	if other, err := profile.KeyFile(path + "2"); err != nil || other == keys[0] {
		t.Errorf("another file has the same key: %v", err)
	}
	if a, b := profile.NewKey(), profile.NewKey(); a == b {
		t.Error("two new keys are one")
	}
}

// No way of printing a key shows its bytes.
func TestKeyHidden(t *testing.T) {
	k := profile.NewKey()
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		if got := fmt.Sprintf(format, k); got != "key" {
			t.Errorf("%s prints %s", format, got)
		}
		if got := fmt.Sprintf(format, struct{ K profile.Key }{k}); !strings.Contains(got, "key") || len(got) > 120 {
			t.Errorf("%s of a struct prints %s", format, got)
		}
	}
}

func TestKeyFileErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, n int, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ path, want string }{
		"readable by others": {write("open", 32, 0o644), "other users may use"},
		"too short":          {write("short", 31, 0o600), "does not hold 32 bytes"},
		"too long":           {write("long", 33, 0o600), "does not hold 32 bytes"},
		"empty":              {write("empty", 0, 0o600), "does not hold 32 bytes"},
		"a folder":           {dir, "not a regular file"},
		"a pipe":             {fifo, "not a regular file"},
	} {
		if _, err := profile.KeyFile(c.path); !errors.Is(err, profile.ErrKeyFile) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	if _, err := profile.KeyFile(filepath.Join(dir, "empty", "below a file")); err == nil {
		t.Error("a key below a file")
	}
}

func TestCredential(t *testing.T) {
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	if _, ok, err := profile.Credential("faceauth"); ok || err != nil {
		t.Errorf("without a service manager: %t, %v", ok, err)
	}
	dir := t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	if _, ok, err := profile.Credential("faceauth"); ok || err != nil {
		t.Errorf("without that credential: %t, %v", ok, err)
	}
	want, err := profile.KeyFile(filepath.Join(dir, "faceauth"))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok, err := profile.Credential("faceauth"); !ok || err != nil || got != want {
		t.Errorf("the credential: %t, %v", ok, err)
	}
	// An ACL for the user of the service, as newer systemd sets it, looks like the rights of a group.
	if err := os.Chmod(filepath.Join(dir, "faceauth"), 0o440); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := profile.Credential("faceauth"); !ok || err != nil || got != want {
		t.Errorf("the credential with an ACL: %t, %v", ok, err)
	}
	if err := os.Chmod(filepath.Join(dir, "faceauth"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "faceauth"), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := profile.Credential("faceauth"); ok || !errors.Is(err, profile.ErrKeyFile) {
		t.Errorf("one that is too short: %t, %v", ok, err)
	}
}
