// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Rules are switched off, one after the other, and [TestRandom] must notice each.
func TestMutations(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the package for each rule")
	}
	for _, x := range []struct{ name, file, rule, without, notices string }{
		{"devices keep the key with which others seal for them", "epoch.go",
			"	d.own.newBox()\n	d.own.Begun", "	d.own.Begun", "a forgotten person can be read"},
		{"no new epoch begins after keys were destroyed", "epoch.go",
			"d.own.Epoch > 0 && d.own.Destroyed &&", "false &&", "a forgotten person can be read"},
		{"of two words the one that came last counts", "view.go",
			"	return cmp.Or(cmp.Compare(clock, than), cmp.Compare(device, other)) > 0", "	return true",
			"knows other people"},
	} {
		t.Run(x.name, func(t *testing.T) {
			source, err := os.ReadFile(x.file)
			try(t, err)
			if strings.Count(string(source), x.rule) != 1 {
				t.Fatalf("%s does not have the rule %q once", x.file, x.rule)
			}
			dir := t.TempDir()
			mutant := filepath.Join(dir, x.file)
			try(t, os.WriteFile(mutant, []byte(strings.Replace(string(source), x.rule, x.without, 1)), 0o600))
			path, err := filepath.Abs(x.file)
			try(t, err)
			overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: mutant}})
			try(t, err)
			try(t, os.WriteFile(filepath.Join(dir, "overlay"), overlay, 0o600))
			out, err := exec.CommandContext(t.Context(), "go", "test", "-overlay", filepath.Join(dir, "overlay"),
				"-count=1", "-failfast", "-vet=off", "-ldflags=-s -w", "-run", "TestRandom$", ".").CombinedOutput()
			if err == nil || !strings.Contains(string(out), x.notices) {
				t.Errorf("it is not noticed: %v\n%.2000s", err, out)
			}
		})
	}
}
