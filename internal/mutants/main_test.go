// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Each mutant finds the text that it breaks, so that a change of a guard changes its mutant, too.
func TestTexts(t *testing.T) {
	for _, m := range all {
		text, err := os.ReadFile(filepath.Join("..", "..", m.file))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if n := bytes.Count(text, []byte(m.from)); n != 1 {
			t.Errorf("%s: its text is in %s %d times, want once", m.name, m.file, n)
		}
	}
}
