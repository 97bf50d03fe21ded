// SPDX-License-Identifier: Apache-2.0

package faceauth_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sourceFiles calls f with every Go file of both modules, except tests.
func sourceFiles(t *testing.T, f func(file string, tree *ast.File, positions *token.FileSet)) {
	t.Helper()
	positions := token.NewFileSet()
	eachFile(t, func(file string) error {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		tree, err := parser.ParseFile(positions, file, nil, parser.SkipObjectResolution)
		if err == nil {
			f(file, tree, positions)
		}
		return err
	})
}

// imports returns the path of each import of a file by the name that the file uses.
func imports(tree *ast.File) map[string]string {
	names := map[string]string{}
	for _, i := range tree.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		name := path.Base(p)
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = p
	}
	return names
}

// A user of the library can name every type that an exported name takes or returns: no such type is of an internal
// package.
func TestNoInternalTypesInTheAPI(t *testing.T) {
	// A picture is a defined type over a type of internal/cv, and Mat is an alias of gocv's type.
	allowed := map[string]bool{"facedet/picture.go Picture": true, "facedet/picture.go Mat": true}
	checked := 0
	sourceFiles(t, func(file string, tree *ast.File, positions *token.FileSet) {
		if strings.Contains("/"+file, "/internal/") || tree.Name.Name == "main" ||
			strings.HasPrefix(file, "lab/") {
			return
		}
		from := imports(tree)
		check := func(name string, part ast.Node) {
			checked++
			ast.Inspect(part, func(n ast.Node) bool {
				if field, ok := n.(*ast.Field); ok && len(field.Names) > 0 && !field.Names[0].IsExported() {
					if _, isFunc := part.(*ast.FuncType); !isFunc {
						return false // a private field of a struct
					}
				}
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := s.X.(*ast.Ident); ok && strings.Contains(from[x.Name]+"/", "/internal/") &&
					!allowed[file+" "+name] {
					t.Errorf("%s: %s names %s.%s of %s", positions.Position(s.Pos()), name, x.Name, s.Sel.Name,
						from[x.Name])
				}
				return true
			})
		}
		for _, d := range tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv.List[0].Type)) {
					check(d.Name.Name, d.Type)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Name.IsExported() {
							check(spec.Name.Name, spec.Type)
						}
					case *ast.ValueSpec:
						if spec.Names[0].IsExported() && spec.Type != nil {
							check(spec.Names[0].Name, spec.Type)
						}
					}
				}
			}
		}
	})
	if checked < 300 {
		t.Errorf("only %d exported names were looked at", checked)
	}
}

func exportedReceiver(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StarExpr:
		return exportedReceiver(e.X)
	case *ast.IndexExpr:
		return exportedReceiver(e.X)
	case *ast.Ident:
		return e.IsExported()
	}
	return false
}

// Only internal/cv imports gocv, and the main module imports nothing of the laboratory.
func TestImports(t *testing.T) {
	sourceFiles(t, func(file string, tree *ast.File, _ *token.FileSet) {
		for _, p := range imports(tree) {
			if strings.HasPrefix(p, "gocv.io/") && path.Dir(file) != "internal/cv" {
				t.Errorf("%s imports %s; only internal/cv may", file, p)
			}
			if strings.HasPrefix(p, "github.com/faceauth/faceauth/lab/") && !strings.HasPrefix(file, "lab/") {
				t.Errorf("%s imports %s; only lab may", file, p)
			}
		}
	})
}

// The program, and the packages that judge faces of an eye, link no decoder: only faceauth-eye does.
func TestProgramLinksNoDecoder(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./cmd/faceauth", "./eye").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	for _, p := range packages {
		for _, bad := range []string{"gocv.io/", "faceauth/internal/cv", "faceauth/facedet",
			"faceauth/pipeline", "faceauth/eye/serve"} {
			if strings.Contains(p+"/", bad+"/") || strings.HasPrefix(p, bad) {
				t.Errorf("the program holds %s", p)
			}
		}
	}
	if len(packages) < 100 {
		t.Errorf("only %d packages were looked at", len(packages))
	}
}

// words returns the texts between single backquotes, outside blocks of code.
func words(text string) (all []string) {
	for i, part := range strings.Split(text, "```") {
		if i%2 == 0 {
			for j, word := range strings.Split(part, "`") {
				if j%2 == 1 {
					all = append(all, word)
				}
			}
		}
	}
	return all
}

// Every file and folder that ARCHITECTURE.md names exists, and every name after a file is declared in that file.
func TestArchitectureNames(t *testing.T) { checkNames(t, "ARCHITECTURE.md", 60) }

// checkNames checks the files, folders and names of a document, of which there are at least some.
func checkNames(t *testing.T, document string, least int) {
	t.Helper()
	checked := 0
	for _, word := range words(read(t, document)) {
		file, name, named := strings.Cut(word, ":")
		if !strings.Contains(file, "/") && !strings.HasSuffix(file, ".go") {
			continue
		}
		checked++
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s: %v", word, err)
			continue
		}
		if named && !regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type )`+name+`\b`).MatchString(read(t, file)) {
			t.Errorf("%s declares no %s", file, name)
		}
	}
	if checked < least {
		t.Errorf("only %d names were checked", checked)
	}
}

// The table of ARCHITECTURE.md has every package outside internal, and each package imports only packages above it.
func TestArchitectureImports(t *testing.T) {
	const module = "github.com/faceauth/faceauth/"
	place := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(read(t, "ARCHITECTURE.md"),
		-1) {
		place[row[1]] = len(place) + 1
	}
	sourceFiles(t, func(file string, tree *ast.File, _ *token.FileSet) {
		dir := path.Dir(file)
		if dir == "." || strings.Contains("/"+dir+"/", "/internal/") {
			return
		}
		if place[dir] == 0 {
			t.Errorf("%s is not in the table of ARCHITECTURE.md", dir)
			return
		}
		for _, p := range imports(tree) {
			p, ours := strings.CutPrefix(p, module)
			if ours && !strings.Contains("/"+p+"/", "/internal/") && p != dir &&
				!(place[p] > 0 && place[p] < place[dir]) {
				t.Errorf("%s imports %s, which is not above %s in the table of ARCHITECTURE.md", file, p, dir)
			}
		}
	})
}

// THIRD_PARTY.md names every module that the programs link.
func TestThirdParty(t *testing.T) {
	text := read(t, "THIRD_PARTY.md")
	for _, dir := range []string{".", "lab"} {
		out, err := exec.Command("go", "-C", dir, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}",
			"./cmd/...").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range strings.Fields(string(out)) {
			m = regexp.MustCompile(`/v[0-9]+$`).ReplaceAllString(m, "")
			name := m
			if short, ok := strings.CutPrefix(m, "golang.org/x/"); ok {
				name = short
			}
			if !strings.HasPrefix(m, "github.com/faceauth/faceauth") && !strings.Contains(text, name) {
				t.Errorf("THIRD_PARTY.md does not name %s", m)
			}
		}
	}
}

// What a build of the program fetches and links stays small: no large module, nothing that only a tool needs.
func TestModules(t *testing.T) {
	list := func(format string) []string {
		out, err := exec.Command("go", "list", "-deps", "-f", format, "./cmd/faceauth").Output()
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Fields(string(out))
		slices.Sort(all)
		return slices.Compact(all)
	}
	for _, p := range list("{{.ImportPath}}") {
		if strings.HasPrefix(p, "google.golang.org/grpc") || p == "github.com/spf13/cobra/doc" {
			t.Errorf("faceauth links %s", p)
		}
	}
	linked := list("{{with .Module}}{{if .Version}}{{.Path}}@{{.Version}}{{end}}{{end}}")
	if len(linked) > 40 || len(linked) < 10 {
		t.Errorf("faceauth links %d modules, want at most 40: %q", len(linked), linked)
	}
	out, err := exec.Command("go", append([]string{"mod", "download", "-json"}, linked...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for all := json.NewDecoder(bytes.NewReader(out)); all.More(); {
		var m struct{ Path, Zip string }
		if err := all.Decode(&m); err != nil {
			t.Fatal(err)
		}
		zip, err := os.Stat(m.Zip)
		if err != nil {
			t.Fatal(err)
		}
		if mb := zip.Size() / 1e6; mb > 20 {
			t.Errorf("%s has %d MB, want at most 20", m.Path, mb)
		}
	}
}

// Both modules use the same versions of other modules: what the laboratory measures is what the program does.
func TestModuleVersions(t *testing.T) {
	version := regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`)
	ours := map[string]string{}
	for _, m := range version.FindAllStringSubmatch(read(t, "go.mod"), -1) {
		ours[m[1]] = m[2]
	}
	same := 0
	for _, m := range version.FindAllStringSubmatch(read(t, "lab/go.mod"), -1) {
		if v, both := ours[m[1]]; both && v != m[2] {
			t.Errorf("lab/go.mod has %s %s, and go.mod has %s; run: go -C lab mod tidy", m[1], m[2], v)
		} else if both {
			same++
		}
	}
	if same < 10 {
		t.Errorf("only %d modules were compared", same)
	}
}
