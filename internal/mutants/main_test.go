// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"
)

// Each mutant finds the text that it breaks, so that a change of a guard changes its mutant, too.
func TestTexts(t *testing.T) {
	for _, m := range all {
		if _, err := m.broken(filepath.Join("..", "..")); err != nil {
			t.Errorf("%s (%s): %v", m.name, m.file, err)
		}
	}
}
