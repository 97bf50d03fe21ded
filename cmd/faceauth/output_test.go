// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

// A name cannot send control codes to the terminal.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain text\nin\ttwo lines": "plain text\nin\ttwo lines",
		"Zoë 张伟":                    "Zoë 张伟",
		"\x1b[2Jgone":               `\u001b[2Jgone`,
		"a\rb\x00\x7f":              `a\u000db\u0000\u007f`,
		"\u009b31m":                 `\u009b31m`,
		"\xff\xfe":                  `\xff\xfe`,
		"evil\u202egpj.exe":         `evil\u202egpj.exe`,
		"":                          "",
	} {
		if got := string(printable([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// An escape code in the name of a file does not reach the terminal, and neither does a line break.
func TestFileNames(t *testing.T) {
	var out, stderr bytes.Buffer
	code := run(context.Background(), []string{"search", "no\x1b[31mfile\nfaceauth: all is well", "--name", "a"}, &out,
		&stderr)
	if code != badSource || strings.Contains(stderr.String(), "\x1b") || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("code %d, %q", code, &stderr)
	}
}

// refusing is a writer that fails like a full device.
type refusing struct{ err error }

func (r refusing) Write([]byte) (int, error) { return 0, r.err }

// If the output cannot be printed, the command fails.
func TestFullOutput(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"doctor"}, {"version"}, {"models", "list"}, {"help", "people"}} {
		var stderr bytes.Buffer
		if code := run(context.Background(), args, refusing{errors.New("no space left")}, &stderr); code != 1 ||
			!strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%v: code %d, %q", args, code, &stderr)
		}
	}
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 21: "21st",
		112: "112th"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
