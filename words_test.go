// SPDX-License-Identifier: Apache-2.0

package faceauth_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// The names in docs/words.md exist, no identifier that is declared has a word that the page rejects, and all methods of
// a type name their receiver alike.
func TestWords(t *testing.T) {
	checkNames(t, "docs/words.md", 20)
	_, list, _ := strings.Cut(read(t, "docs/words.md"), "No identifier has the words:")
	var rejected []string
	for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(list, -1) {
		rejected = append(rejected, m[1])
	}
	if len(rejected) < 5 {
		t.Fatalf("docs/words.md rejects %q alone", rejected)
	}
	receivers := make(map[string]string)
	eachFile(t, func(file string) error {
		if path.Ext(file) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			for _, name := range declared(n) {
				for _, word := range camel(name) {
					if slices.Contains(rejected, word) {
						t.Errorf("%s: %s has the word %s", file, name, word)
					}
				}
			}
			if f, ok := n.(*ast.FuncDecl); ok && f.Recv != nil && len(f.Recv.List[0].Names) == 1 {
				kind, name := path.Dir(file)+"."+receiver(f.Recv.List[0].Type), f.Recv.List[0].Names[0].Name
				if was := receivers[kind]; was != "" && was != name && name != "_" {
					t.Errorf("%s: the receiver of %s is %s here, and %s elsewhere", file, f.Name.Name, name, was)
				}
				if name != "_" {
					receivers[kind] = name
				}
			}
			return true
		})
		return nil
	})
}

// declared returns the names that a node declares.
func declared(n ast.Node) (names []string) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		names = []string{n.Name.Name}
	case *ast.TypeSpec:
		names = []string{n.Name.Name}
	case *ast.ValueSpec:
		for _, x := range n.Names {
			names = append(names, x.Name)
		}
	case *ast.Field:
		for _, x := range n.Names {
			names = append(names, x.Name)
		}
	}
	return names
}

// receiver returns the name of a receiver's type.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// camel returns the words of an identifier in small letters.
func camel(name string) (words []string) {
	begin := 0
	for i, r := range name {
		if i > begin && unicode.IsUpper(r) && !unicode.IsUpper(rune(name[i-1])) {
			words, begin = append(words, strings.ToLower(name[begin:i])), i
		}
	}
	return append(words, strings.ToLower(name[begin:]))
}
