// SPDX-License-Identifier: Apache-2.0

package xdg_test

import (
	"testing"

	"github.com/faceauth/faceauth/internal/xdg"
)

// A folder in XDG_DATA_HOME counts if its path is absolute.
func TestData(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for set, want := range map[string]string{
		"/x": "/x", "relative": "/home/me/.local/share", "": "/home/me/.local/share",
	} {
		t.Setenv("XDG_DATA_HOME", set)
		if got, err := xdg.Data(); err != nil || got != want {
			t.Errorf("XDG_DATA_HOME=%q: %s, %v", set, got, err)
		}
	}
}
