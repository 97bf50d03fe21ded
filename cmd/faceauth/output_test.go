// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/cli"
)

// An escape code in the name of a file does not reach the terminal, and neither does a line break.
func TestFileNames(t *testing.T) {
	var out, stderr bytes.Buffer
	code := run(context.Background(), []string{"search", "no\x1b[31mfile\nfaceauth: all is well", "--name",
		"a"}, &out,
		&stderr)
	if code != cli.BadSource || strings.Contains(stderr.String(), "\x1b") || strings.Count(stderr.String(),
		"\n") != 1 {
		t.Errorf("code %d, %q", code, &stderr)
	}
}

// refusing is a writer that fails like a full device.
type refusing struct{ err error }

func (r refusing) Write([]byte) (int, error) { return 0, r.err }

// If the output cannot be printed, the command fails.
func TestFullOutput(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"doctor"}, {"version"}, {"models"}, {"help", "people"}} {
		var stderr bytes.Buffer
		if code := run(context.Background(), args, refusing{errors.New("no space left")}, &stderr); code != 1 ||
			!strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%v: code %d, %q", args, code, &stderr)
		}
	}
}
