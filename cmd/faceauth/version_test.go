// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/clitest"
)

func TestSystemVersion(t *testing.T) {
	want, err := exec.Command("pkg-config", "--modversion", "opencv4").Output()
	got := linked(clitest.Real(t))
	if err != nil || got == "" || !strings.HasPrefix(string(want), got+".") {
		t.Errorf("the eye is linked with OpenCV %q, and pkg-config has %q, %v", got, want, err)
	}
	if got := linked(filepath.Join(t.TempDir(), "missing")); got != "" {
		t.Errorf("OpenCV %q of no program", got)
	}
}
