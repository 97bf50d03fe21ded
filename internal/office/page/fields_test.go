// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	source "go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
)

var update = flag.Bool("update", false, "write fields.json anew")

// The description of the API explains fields by the comments in the source: fields.json has them. After a change of a
// comment: go test ./internal/office/page -run TestFields -update
func TestFields(t *testing.T) {
	all := make(map[string]string)
	only := map[string]string{ // what answers have
		"gallery": "Person", "online": "Room Drift", "sighting": "Near Face Album", "internal/office/sink": "Status",
	}
	for _, folder := range []string{
		"internal/office", "internal/office/presence", "internal/office/page", "internal/office/sink", "gallery", "online", "sighting",
	} {
		files, err := filepath.Glob(filepath.Join("../../..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, name := range files {
			f := fixture.Must(parser.ParseFile(source.NewFileSet(), name, nil,
				parser.ParseComments))(t)
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				of, ok := s.Type.(*ast.StructType)
				if ok && (only[folder] == "" || slices.Contains(strings.Fields(only[folder]), s.Name.Name)) {
					comments(of, folder+"."+s.Name.Name, all)
				}
				return false
			})
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	fixture.Check(t, e.Encode(all))
	if *update {
		fixture.Check(t, os.WriteFile("fields.json", b.Bytes(), 0o644))
	}
	if is, err := os.ReadFile("fields.json"); err != nil || !bytes.Equal(is, b.Bytes()) {
		t.Errorf("fields.json is not what the comments say (%v); run: go test ./internal/office/page -run TestFields -update", err)
	}
}

// comments adds the comments on the fields of a struct that JSON has.
func comments(of *ast.StructType, name string, all map[string]string) {
	for _, f := range of.Fields.List {
		if f.Tag == nil || !strings.Contains(f.Tag.Value, "json:") || strings.Contains(f.Tag.Value, `json:"-"`) {
			continue
		}
		text := strings.TrimSpace(f.Comment.Text() + f.Doc.Text())
		text = strings.NewReplacer("\n", " ", "[", "", "]", "").Replace(text)
		for _, n := range f.Names {
			if text != "" {
				all[name+"."+n.Name] = strings.ToUpper(text[:1]) + text[1:]
			}
		}
	}
}
