// SPDX-License-Identifier: Apache-2.0

package faceauth_test

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/demo/film"
	"github.com/faceauth/faceauth/internal/fixture"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The program of docs/library.md is built in a folder of its own and says who is in a recording.
func TestLibrary(t *testing.T) {
	_, program, _ := strings.Cut(read(t, "docs/library.md"), "```go\n")
	program, _, ok := strings.Cut(program, "```\n")
	if formatted, err := format.Source([]byte(program)); !ok || err != nil || string(formatted) != program {
		t.Fatalf("the program is not formatted Go: %v", err)
	}
	if testing.Short() {
		t.Skip("the program is linked, and replays half a minute")
	}
	stills, err := demo.Find()
	if err != nil {
		t.Fatal(err)
	}
	films, dir := t.TempDir(), t.TempDir()
	if _, err := film.Write(t.Context(), stills, films); err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	// In place of go get, which needs a released version: the same modules, and this one from here.
	mod := strings.Replace(read(t, "go.mod"), "module github.com/faceauth/faceauth\n", "module who\n", 1)
	mod += "\nrequire github.com/faceauth/faceauth v0.0.0\n\nreplace github.com/faceauth/faceauth => " + here + "\n"
	for name, text := range map[string]string{"main.go": program, "go.mod": mod, "go.sum": read(t, "go.sum")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("go", "run", "-mod=mod", ".", filepath.Join(films, "recording.avi"),
		"alice="+filepath.Join(films, "alice.avi"), "bob="+filepath.Join(films, "bob.avi"))
	c.Dir, c.Env = dir, append(os.Environ(), "FACEAUTH_MODELS="+fixture.Models(t), "GOFLAGS=", "GOPROXY=off")
	out, err := c.CombinedOutput()
	if err != nil || !regexp.MustCompile(`(?m)^  alice +2\d\d faces`).Match(out) ||
		!regexp.MustCompile(`(?m)^  bob +\d+ faces`).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
}

// What the README refers to is there.
func TestReadmeLinks(t *testing.T) {
	text := read(t, "README.md")
	for _, file := range []string{"docs/results.md", "docs/hero.svg", "docs/library.md", "docs/commands.md"} {
		if _, err := os.Stat(file); err != nil || !strings.Contains(text, file) {
			t.Errorf("%s: in the README %t, %v", file, strings.Contains(text, file), err)
		}
	}
}
