// SPDX-License-Identifier: Apache-2.0

package network

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
)

// What Prefer keeps decides what Open opens, on this processor with these libraries alone.
func TestPrefer(t *testing.T) {
	library(t)
	d := models.Default(models.Landmarks)
	dir := t.TempDir()
	for _, name := range []string{d.File, "libonnxruntime.so"} {
		if err := os.Symlink(filepath.Join(fixture.Models(t), name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	runs := func(want error) {
		t.Helper()
		n := fixture.Must(Open(d, d.Kind, dir))(t)
		defer n.Close()
		if name, why := n.Runs(); why != want {
			t.Fatalf("%s runs it, because %v, want %v", name, why, want)
		}
	}
	prefer := func(opencv, want bool) {
		t.Helper()
		if changed, err := Prefer(dir, opencv); err != nil || changed != want {
			t.Fatalf("changed: %v, error %v, want %v", changed, err, want)
		}
	}
	runs(nil)
	prefer(false, false)
	prefer(true, true)
	prefer(true, false)
	runs(ErrSlower)
	prefer(false, true)
	runs(nil)
	fixture.Check(t, os.WriteFile(filepath.Join(dir, faster), []byte("another processor\n"), 0o600))
	runs(nil)
	prefer(true, true)
	runs(ErrSlower)
	c, err := Measure(d, dir)
	if err != nil || c.Runtime <= 0 || c.OpenCV <= 0 {
		t.Fatalf("cost %v, error %v", c, err)
	}
}
