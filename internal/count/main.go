// SPDX-License-Identifier: Apache-2.0

// Command count prints lines and tokens of the program, the laboratory and the tests, and whether
// they are within their budgets. Tokens of Go are those of its scanner without semicolons, so that
// neither long lines nor moved code make them fewer; those of other languages are words, numbers,
// texts and signs without comments.
package main

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// onlyTests are packages that only tests import.
var onlyTests = []string{"internal/clitest/", "internal/tape/", "internal/fixture/",
	"internal/stage/", "internal/axe/",
	"internal/reference/", "internal/mutants/", "internal/boottest/"}

// parts are what is counted, in this order. Budgets are tokens; 0: none.
var parts = []struct {
	name   string
	budget int
}{
	{"program", 268_000}, {"tests", 265_000}, {"laboratory", 0}, {"tests of laboratory", 0},
	{"JavaScript", 0}, {"CSS", 0}, {"C and C++", 0}, {"shell and make", 0},
}

// labBudget is for the laboratory with its tests.
const labBudget = 100_000

var languages = map[string]string{".js": "JavaScript", ".css": "CSS", ".c": "C and C++",
	".cpp": "C and C++",
	".h":   "C and C++", ".sh": "shell and make"}

type sum struct{ files, lines, tokens, long int }

func main() {
	out, err := exec.Command("git", "ls-files").Output()
	if err != nil {
		log.Fatal("count: listing the files: ", err)
	}
	sums := map[string]*sum{}
	for file := range strings.Lines(string(out)) {
		file = strings.TrimSpace(file)
		part := part(file)
		if part == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			log.Fatal("count: ", err)
		}
		if sums[part] == nil {
			sums[part] = new(sum)
		}
		sums[part].add(file, text)
	}
	fmt.Printf("%-20s %6s %8s %8s %8s %9s %10s\n", "", "files", "lines", "tokens", "a line",
		"budget", "over 100")
	for _, p := range parts {
		s := sums[p.name]
		if s == nil {
			continue
		}
		budget := ""
		if p.budget > 0 {
			budget = fmt.Sprint(p.budget)
		}
		fmt.Printf("%-20s %6d %8d %8d %8.2f %9s %10d\n", p.name, s.files, s.lines, s.tokens,
			float64(s.tokens)/float64(s.lines), budget, s.long)
		tell(p.name, s.tokens, p.budget)
	}
	if lab, tests := sums["laboratory"], sums["tests of laboratory"]; lab != nil && tests != nil {
		tell("the laboratory with its tests", lab.tokens+tests.tokens, labBudget)
	}
}

// tell says what is over its budget.
func tell(what string, tokens, budget int) {
	if budget > 0 && tokens > budget {
		fmt.Printf("%s: %d tokens over the budget of %d\n", what, tokens-budget, budget)
	}
}

func (s *sum) add(file string, text []byte) {
	s.files++
	s.lines += bytes.Count(text, []byte("\n"))
	for line := range bytes.Lines(text) {
		if len([]rune(string(bytes.TrimRight(line, "\n")))) > 100 {
			s.long++
		}
	}
	if filepath.Ext(file) == ".go" {
		s.tokens += tokens(text)
		return
	}
	comments := blocks
	if filepath.Ext(file) == ".sh" || filepath.Base(file) == "Makefile" {
		comments = hashes
	}
	s.tokens += len(signs.FindAll(comments.ReplaceAll(text, nil), -1))
}

var (
	blocks = regexp.MustCompile(`(?s)/\*.*?\*/|(?m:(^|\s)//[^\n]*)`)
	hashes = regexp.MustCompile(`(^|\s)#[^\n]*`)
	signs  = regexp.MustCompile(
		"[\\pL_$][\\pL\\d_$-]*|\\d[\\w.%]*|\"(?:[^\"\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\n]|\\\\.)*'|\\S")
)

// part says what a file is part of, or nothing.
func part(file string) string {
	language := languages[filepath.Ext(file)]
	switch {
	case strings.Contains(file, "static/lit/"): // a work of others
		return ""
	case file == "Makefile":
		return "shell and make"
	case filepath.Ext(file) != ".go":
		return language
	}
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
