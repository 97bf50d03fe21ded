// SPDX-License-Identifier: Apache-2.0

package xdg_test

import (
	"testing"

	"github.com/faceauth/faceauth/internal/xdg"
)

func TestHomes(t *testing.T) {
	for _, c := range []struct{ variable, home, data string }{
		{"", "/home/a", "/home/a/.local/share"},
		{"/x", "/home/a", "/x"},
		{"relative", "/home/a", "/home/a/.local/share"},
		{"/x", "", "/x"},
	} {
		t.Setenv("HOME", c.home)
		t.Setenv("XDG_DATA_HOME", c.variable)
		data, err := xdg.Data()
		if data != c.data || err != nil {
			t.Errorf("%q, home %q: %s, want %s; %v", c.variable, c.home, data, c.data, err)
		}
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_DATA_HOME", "")
	if dir, err := xdg.Data(); err == nil {
		t.Errorf("without a home: %s", dir)
	}
}
