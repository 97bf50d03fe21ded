// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
)

// Several recordings at the same time give the same results as one after the other, and as each
// alone.
func TestSeveralAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gallery := filepath.Join(dir, "gallery")
	faceauth := func(args ...string) string {
		c := exec.CommandContext(t.Context(), "faceauth",
			append(args, "--gallery", gallery, "--models",
				fixture.Models(t))...)
		return string(fixture.Must(c.Output())(t))
	}
	alice, bob, all := filepath.Join(films(t), "alice.avi"), filepath.Join(films(t), "bob.avi"),
		filepath.Join(films(t), "recording.avi")
	faceauth("enroll", alice, "--name", "alice")
	one := faceauth("replay", alice, bob, all, "--jobs", "1", "--out", filepath.Join(dir, "one"))
	several := faceauth("replay", alice, bob, all, "--jobs", "3", "--out",
		filepath.Join(dir, "several"))
	if strings.ReplaceAll(several, "/several/", "/one/") != one ||
		strings.Count(one, "events:") != 3 {
		t.Errorf("%s\nand one after the other\n%s", several, one)
	}
	faceauth("replay", all, "--out", filepath.Join(dir, "alone"))
	same := exec.Command("sh", "-ec",
		`cd "$0"; for i in one/*/; do cmp ${i}events.jsonl several/${i#*/}events.jsonl; done
		cmp alone/events.jsonl one/recording.avi/events.jsonl`, dir)
	if out, err := same.CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
}
