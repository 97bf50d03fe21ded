// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
)

// Several recordings at the same time give the same results as one after the other.
func TestSeveralAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("recordings are looked through several times")
	}
	t.Parallel()
	gallery, dir := enrolled(t, 0, 1), t.TempDir()
	p0, p1, p4 := fixture.Sparse(t, "faces/vidtimit_rot/p0", 4), fixture.Sparse(t, "faces/vidtimit_rot/p1", 4),
		fixture.Sparse(t, "faces/vidtimit_rot/p4", 4)
	replay := func(out string, args ...string) string {
		args = append([]string{"replay", "--gallery", gallery, "--models", fixture.Models(t), "--out",
			filepath.Join(dir, out)}, args...)
		said := fixture.Must(exec.CommandContext(t.Context(), "faceauth", args...).Output())(t)
		return string(said)
	}
	content := func(path ...string) string {
		b, err := os.ReadFile(filepath.Join(dir, filepath.Join(path...), "events.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	one, several := replay("one", p0, p1, p4, p0, "--jobs", "1"), replay("several", p0, p1, p4, p0, "--jobs", "3")
	if strings.ReplaceAll(several, "/several/", "/one/") != one || strings.Count(one, "events:") != 4 {
		t.Errorf("%s\nand one after the other\n%s", several, one)
	}
	for _, name := range []string{"p0", "p1", "p4", "p0-2"} {
		if a := content("one", name); a == "" || a != content("several", name) {
			t.Errorf("%s differs where several are replayed at once", name)
		}
	}
	replay("alone", p1)
	if content("alone") != content("several", "p1") {
		t.Error("a recording replayed alone comes to something else than among others")
	}
}
