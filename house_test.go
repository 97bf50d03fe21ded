// SPDX-License-Identifier: Apache-2.0

package faceauth_test

import (
	"github.com/faceauth/faceauth/internal/fixture"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const module = "github.com/faceauth/faceauth/"

func read(t *testing.T, name string) string {
	t.Helper()
	b := fixture.Must(os.ReadFile(name))(t)
	return string(b)
}

// eachFile calls do with the path and the text of each file of the project that has one of these
// endings.
func eachFile(t *testing.T, do func(file, text string), endings ...string) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		hidden := file != "." && strings.HasPrefix(d.Name(), ".")
		if d.IsDir() && (d.Name() == "testdata" || file == "bin" || hidden) {
			return filepath.SkipDir
		}
		for _, e := range endings {
			if err == nil && d.Type().IsRegular() && path.Ext(file) == e {
				seen++
				do(filepath.ToSlash(file), read(t, file))
			}
		}
		return err
	})
	if err != nil || seen < 10 {
		t.Fatalf("%d files: %v", seen, err)
	}
}

// Only internal/cv imports gocv, the main module imports nothing of the laboratory, and a package
// imports only packages above it in the table of ARCHITECTURE.md, which has every package outside
// internal, and the rooms of programs there.
func TestImports(t *testing.T) {
	place := map[string]int{}
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
	for _, m := range row.FindAllStringSubmatch(read(t, "ARCHITECTURE.md"), -1) {
		place[m[1]] = len(place) + 1
	}
	internal := func(p string) bool { return strings.Contains("/"+p+"/", "/internal/") }
	eachFile(t, func(file, text string) {
		tree := fixture.Must(parser.ParseFile(token.NewFileSet(), file, text,
			parser.ImportsOnly))(t)
		dir, tests := path.Dir(file), strings.HasSuffix(file, "_test.go")
		if !tests && dir != "." && !internal(dir) && place[dir] == 0 {
			t.Errorf("%s is not in the table of ARCHITECTURE.md", dir)
		}
		for _, i := range tree.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			if strings.HasPrefix(p, "gocv.io/") && dir != "internal/cv" {
				t.Errorf("%s imports %s; only internal/cv may", file, p)
			}
			p, ours := strings.CutPrefix(p, module)
			switch {
			case !ours:
			case strings.HasPrefix(p, "lab/") && !strings.HasPrefix(file, "lab/"):
				t.Errorf("%s imports %s; only lab may", file, p)
			case !tests && place[dir] > 0 && (place[p] > 0 || !internal(p)) && p != dir &&
				!(place[p] > 0 && place[p] < place[dir]):
				t.Errorf("%s imports %s, which is not above %s in the table of ARCHITECTURE.md",
					file, p, dir)
			}
		}
	}, ".go")
}

// list returns what go list prints of all packages that others are made of.
func list(t *testing.T, dir, format string, of ...string) []string {
	t.Helper()
	out, err := exec.Command("go",
		append([]string{"-C", dir, "list", "-deps", "-f", format}, of...)...).Output()
	if err != nil || len(out) == 0 {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// The program, and the packages that judge the faces of an eye, link no decoder: only faceauth-eye
// does.
func TestNoDecoder(t *testing.T) {
	decoder := regexp.MustCompile(
		`^gocv\.io/|/faceauth/(internal/cv|facedet|pipeline|eye/serve)(/|$)`)
	for _, p := range list(t, ".", "{{.ImportPath}}", "./cmd/faceauth", "./eye") {
		if decoder.MatchString(p) || p == strings.TrimSuffix(module, "/") {
			t.Errorf("the program holds %s", p)
		}
	}
}

// The program that devices run holds no server of a fleet: faceauth-fleet-server does.
func TestNoServer(t *testing.T) {
	for _, p := range list(t, ".", "{{.ImportPath}}", "./cmd/faceauth") {
		if strings.Contains(p, "/nats-server/") || p == module+"internal/fleet/server" {
			t.Errorf("the program holds %s", p)
		}
	}
}

// Lines of the program have at most 100 columns with tabs of four. What cannot be broken is an
// address or a checksum.
func TestWidth(t *testing.T) {
	whole := regexp.MustCompile(`https://|sha512-`)
	eachFile(t, func(file, text string) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "lab/") {
			return
		}
		for i, line := range strings.Split(text, "\n") {
			columns := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
			if columns > 100 && !whole.MatchString(line) {
				t.Errorf("%s:%d has %d columns", file, i+1, columns)
			}
		}
	}, ".go")
}

// THIRD_PARTY.md names every module that the programs link, and every file of code says under
// which licence it is.
func TestLicences(t *testing.T) {
	text := read(t, "THIRD_PARTY.md")
	for _, dir := range []string{".", "lab"} {
		for _, m := range list(t, dir, "{{with .Module}}{{.Path}}{{end}}", "./cmd/...") {
			m = strings.TrimPrefix(regexp.MustCompile(`/v[0-9]+$`).ReplaceAllString(m, ""),
				"golang.org/x/")
			if !strings.HasPrefix(m+"/", module) && !strings.Contains(text, m) {
				t.Errorf("THIRD_PARTY.md does not name %s", m)
			}
		}
	}
	licence := regexp.MustCompile(`^(#!.*\n)?(//|#) SPDX-License-Identifier: Apache-2\.0\n`)
	eachFile(t, func(file, text string) {
		if !licence.MatchString(text) {
			t.Errorf("%s has no line with its licence; run: sh scripts/spdx.sh", file)
		}
	}, ".go", ".c", ".h", ".sh")
}

// The program of docs/library.md is examples/who.
func TestDocument(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "examples/who/main.go"), "package main\n")
	if !strings.Contains(read(t, "docs/library.md"), "```go\npackage main\n"+text+"```\n") {
		t.Error("docs/library.md shows another program than examples/who")
	}
}

// anchors returns the anchors that GitHub gives the headings of a document.
func anchors(text string) map[string]bool {
	known := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^#{1,6} +(.*)$").FindAllStringSubmatch(text, -1) {
		known[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])] = true
	}
	return known
}

// Every relative link of a document leads to a file, and to a heading in it. The files that
// ARCHITECTURE.md names exist.
func TestLinks(t *testing.T) {
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	link := regexp.MustCompile(`\]\(([^()\s:#]*)(?:#([^()\s]*))?\)`)
	eachFile(t, func(file, text string) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			target := file
			if m[1] != "" {
				target = path.Join(path.Dir(file), m[1])
			}
			_, err := os.Stat(target)
			if err != nil || m[2] != "" && !anchors(read(t, target))[m[2]] {
				t.Errorf("%s: %s leads nowhere (%v)", file, m[0], err)
			}
		}
	}, ".md")
	for _, m := range regexp.MustCompile("`([a-z_/.]+/[a-z_.]+)(:\\w+)?`").FindAllStringSubmatch(
		read(t, "ARCHITECTURE.md"), -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("ARCHITECTURE.md: %v", err)
		}
	}
}
