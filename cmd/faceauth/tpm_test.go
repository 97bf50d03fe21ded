// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
)

// The real daemon counts with a TPM: if the store, the counters and the key are all put back from one copy, the
// password is due.
func TestDaemonTPM(t *testing.T) {
	if testing.Short() {
		t.Skip("recordings play at their own pace")
	}
	t.Parallel()
	user := fixture.Recordings(t, "faces/vidtimit_rot/p2")
	e := fixture.StartTPM(t)
	d := newDevice(t, "--tpm", e.Path)
	d.start()
	d.enrol(user)
	d.bind()
	d.stop(os.Interrupt)
	state, kept := filepath.Join(d.dir, "state"), filepath.Join(d.dir, "kept")
	if err := os.CopyFS(kept, os.DirFS(state)); err != nil {
		t.Fatal(err)
	}
	d.start()
	if s := d.refusal(); s != "" {
		t.Errorf("started again: %s", s)
	}
	if !d.login("login", "secret\n") { // the profile changes
		t.Fatal("the password")
	}
	d.said(1, "password used")
	d.stop(os.Interrupt)
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(state, os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(state, "key"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.start()
	if s := d.refusal(); s == "" || s == "no answer" {
		t.Errorf("put back: %q", s)
	}
	d.stop(os.Interrupt)
	// Without the TPM the daemon recognises nobody, and says why.
	e.Stop()
	if out, code := d.command("", "faceauth", "daemon", "--tpm", e.Path, "--store", filepath.Join(state, "profiles"),
		"--key-file", filepath.Join(state, "key"),
		"--models", fixture.Models(t)); code != 0 || !strings.Contains(out, "nobody is recognised") ||
		!strings.Contains(out, "reading the counter of the TPM") {
		t.Errorf("without the TPM: %d, %s", code, out)
	}
}
