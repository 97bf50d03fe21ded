// SPDX-License-Identifier: Apache-2.0

// Command count prints lines and tokens of the program, the laboratory and the tests. Tokens are those of Go without
// semicolons, so that neither long lines nor moved code make them fewer.
package main

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"log"
	"os"
	"os/exec"
	"strings"
)

// onlyTests are packages that only tests import.
var onlyTests = []string{"internal/clitest/", "internal/tape/", "internal/fixture/", "internal/stage/", "internal/axe/",
	"internal/reference/", "internal/mutants/", "internal/boottest/"}

type sum struct{ files, lines, tokens int }

func main() {
	out, err := exec.Command("git", "ls-files", "*.go").Output()
	if err != nil {
		log.Fatal("count: listing the files: ", err)
	}
	sums := map[string]*sum{}
	for _, file := range strings.Fields(string(out)) {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			log.Fatal("count: ", err)
		}
		part := part(file)
		if sums[part] == nil {
			sums[part] = new(sum)
		}
		s := sums[part]
		s.files++
		s.lines += bytes.Count(text, []byte("\n"))
		s.tokens += tokens(text)
	}
	fmt.Printf("%-22s %6s %8s %8s %13s\n", "", "files", "lines", "tokens", "tokens a line")
	for _, name := range []string{"program", "laboratory", "tests", "tests of laboratory"} {
		s := sums[name]
		if s == nil {
			continue
		}
		fmt.Printf("%-22s %6d %8d %8d %13.2f\n", name, s.files, s.lines, s.tokens, float64(s.tokens)/float64(s.lines))
	}
}

// part says what a file is part of.
func part(file string) string {
	test := strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/")
	for _, dir := range onlyTests {
		test = test || strings.HasPrefix(file, dir)
	}
	lab := strings.HasPrefix(file, "lab/")
	switch {
	case test && lab:
		return "tests of laboratory"
	case test:
		return "tests"
	case lab:
		return "laboratory"
	}
	return "program"
}

func tokens(text []byte) (n int) {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		_, kind, _ := s.Scan()
		if kind == token.EOF {
			return n
		}
		if kind != token.SEMICOLON {
			n++
		}
	}
}
