// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// docs/flags.md has every flag of the program. FLAGS=1 go test -run Flags ./cmd/faceauth writes it.
func TestFlags(t *testing.T) {
	for _, v := range []string{"FACEAUTH_GALLERY", "FACEAUTH_KEY", "FACEAUTH_MODELS",
		"XDG_DATA_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(v, "")
	}
	const home = "/nonexistent"
	t.Setenv("HOME", home)
	t.Setenv("XDG_DATA_DIRS", home)
	commands := map[string][]string{} // by row
	add := func(c *cobra.Command, f *pflag.Flag) {
		kind, usage := pflag.UnquoteUsage(f)
		said := strings.Contains(usage, "default")
		if d := f.DefValue; !said && d != "" && d != "false" && d != "0" && d != "[]" {
			usage += fmt.Sprintf(" (default %s)", d)
		}
		row := fmt.Sprintf("| `%s` | %s | ", strings.TrimSpace("--"+f.Name+" "+kind),
			strings.ReplaceAll(strings.ReplaceAll(usage, home, "~"), "|", `\|`))
		name := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "faceauth"), " ")
		commands[row] = append(commands[row], name)
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" {
				add(c, f)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	var page strings.Builder
	page.WriteString("# Flags\n\nEvery flag of the program `faceauth`, made from it. Flags of " +
		"`office` are also keys of [its file](office-reference.md#the-configuration-file).\n\n" +
		"| flag | what it does | commands |\n|---|---|---|\n")
	for _, row := range slices.Sorted(maps.Keys(commands)) {
		of := strings.Trim(strings.Join(commands[row], ", "), ", ")
		if of == "" {
			of = "all"
		}
		page.WriteString(row + of + " |\n")
	}
	const file = "../../docs/flags.md"
	if os.Getenv("FLAGS") != "" {
		fixture.Check(t, os.WriteFile(file, []byte(page.String()), 0o644))
	}
	if string(fixture.Must(os.ReadFile(file))(t)) != page.String() {
		t.Error("docs/flags.md has other flags than the program; run: " +
			"FLAGS=1 go test -run Flags ./cmd/faceauth")
	}
}
