// SPDX-License-Identifier: Apache-2.0

// Command mutants breaks one guard of the program after the other, and says which of them no test
// notices. It changes no file: Go reads the broken text by -overlay. It takes half an hour, so it
// is run before a release, with make mutants.
//
// Arguments are regular expressions: only mutants that match one of them in their name or file are
// tried.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// mutant is a guard that is broken: in a file, a text that is there once is replaced. The tests of
// the packages, which are separated by spaces, should notice it.
type mutant struct{ name, file, from, to, packages string }

func main() {
	log.SetFlags(0)
	dir, err := os.MkdirTemp("", "faceauth-mutants-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var passed, broken []string
	tried := 0
	for _, m := range all {
		if !chosen(m) {
			continue
		}
		tried++
		begun := time.Now()
		noticed, err := m.try(dir)
		took := time.Since(begun).Round(time.Second)
		switch {
		case err != nil:
			broken = append(broken, m.name)
			fmt.Printf("UNUSABLE  %s (%s): %v\n", m.name, m.file, err)
		case len(noticed) == 0:
			passed = append(passed, m.name)
			fmt.Printf("PASSED    %s (%s), %v\n", m.name, m.file, took)
		default:
			fmt.Printf("noticed   %s: %s, %v\n", m.name,
				strings.Join(noticed[:min(3, len(noticed))], " "), took)
		}
	}
	fmt.Printf("%d mutants: %d noticed, %d passed, %d unusable\n", tried,
		tried-len(passed)-len(broken), len(passed), len(broken))
	if len(passed)+len(broken) > 0 {
		os.RemoveAll(dir)
		os.Exit(1)
	}
}

func chosen(m mutant) bool {
	return len(os.Args) < 2 || slices.ContainsFunc(os.Args[1:], func(pattern string) bool {
		return regexp.MustCompile(pattern).MatchString(m.name + " " + m.file)
	})
}

// broken returns the text of the file with the broken guard. The file lies below root.
func (m mutant) broken(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.from); n != 1 {
		return "", fmt.Errorf("the text %q is there %d times", m.from, n)
	}
	return strings.Replace(string(text), m.from, m.to, 1), nil
}

// try returns the tests that notice a mutant.
func (m mutant) try(dir string) (noticed []string, err error) {
	text, err := m.broken(".")
	if err != nil {
		return nil, err
	}
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(m.file)
	if err != nil {
		return nil, err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return nil, err
	}
	replaced := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(replaced, overlay, 0o600); err != nil {
		return nil, err
	}
	for _, p := range strings.Fields(m.packages) {
		c := exec.Command("go", "test", "-overlay", replaced, "-vet=off", "-short", "-skip",
			"^TestSystem", "-failfast", "-json", "-timeout", "10m", "./"+p)
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, failed := c.Output()
		for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
			var e struct{ Action, Test string }
			if json.Unmarshal(lines.Bytes(), &e) != nil {
				continue
			}
			if e.Action == "build-fail" {
				return nil, fmt.Errorf("it does not build with %s", p)
			}
			if e.Action == "fail" && e.Test != "" && !strings.Contains(e.Test, "/") {
				noticed = append(noticed, p+"."+e.Test)
			}
		}
		if failed != nil && len(noticed) == 0 {
			noticed = append(noticed, p)
		}
		if len(noticed) > 0 {
			return noticed, nil
		}
	}
	return nil, nil
}
