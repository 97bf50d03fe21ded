// SPDX-License-Identifier: Apache-2.0

package display_test

import (
	"errors"
	"testing"

	"github.com/faceauth/faceauth/internal/display"
)

func TestNone(t *testing.T) {
	t.Setenv("WAYLAND_DISPLAY", "")
	for _, name := range []string{"", ":97", "nonsense", "localhost:60001", ":"} {
		t.Setenv("DISPLAY", name)
		if err := display.Answers(); !errors.Is(err, display.ErrNone) {
			t.Errorf("DISPLAY=%q: %v", name, err)
		}
	}
}
