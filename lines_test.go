// SPDX-License-Identifier: Apache-2.0

package faceauth_test

import (
	"bytes"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// Lines of Go have at most 120 columns, and a tab counts as four. Lines of literals of more than 100 bytes may be
// longer: text that a program prints, and patterns.
func TestLines(t *testing.T) {
	checked := 0
	eachFile(t, func(file string) error {
		if filepath.Ext(file) != ".go" {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		checked++
		literal := longLiterals(text)
		for i, line := range bytes.Split(text, []byte("\n")) {
			n := utf8.RuneCount(line) + 3*bytes.Count(line, []byte("\t"))
			if n > 120 && !literal[i+1] {
				t.Errorf("%s:%d has %d columns", file, i+1, n)
			}
		}
		return nil
	})
	if checked < 200 {
		t.Errorf("only %d files were looked at", checked)
	}
}

// longLiterals returns the numbers of the lines on which a literal of more than 100 bytes lies.
func longLiterals(text []byte) map[int]bool {
	lines := make(map[int]bool)
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return lines
		}
		if kind == token.STRING && len(literal) > 100 {
			for i := range strings.Count(literal, "\n") + 1 {
				lines[file.Line(pos)+i] = true
			}
		}
	}
}
