// SPDX-License-Identifier: Apache-2.0

package xdg_test

import (
	"testing"

	"github.com/faceauth/faceauth/internal/xdg"
)

func TestHomes(t *testing.T) {
	for _, c := range []struct{ variable, home, data, config string }{
		{"", "/home/a", "/home/a/.local/share", "/home/a/.config"},
		{"/x", "/home/a", "/x", "/x"},
		{"relative", "/home/a", "/home/a/.local/share", "/home/a/.config"},
		{"/x", "", "/x", "/x"},
	} {
		t.Setenv("HOME", c.home)
		t.Setenv("XDG_DATA_HOME", c.variable)
		t.Setenv("XDG_CONFIG_HOME", c.variable)
		data, err := xdg.Data()
		config, err2 := xdg.Config()
		if data != c.data || config != c.config || err != nil || err2 != nil {
			t.Errorf("%q, home %q: %s and %s, want %s and %s; %v, %v", c.variable, c.home, data, config, c.data,
				c.config, err, err2)
		}
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_DATA_HOME", "")
	if dir, err := xdg.Data(); err == nil {
		t.Errorf("without a home: %s", dir)
	}
}
