// SPDX-License-Identifier: Apache-2.0

package faceauth_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every Go, C and shell file says under which licence it is, in its first line or the one after that of the shell.
func TestLicenceLines(t *testing.T) {
	shell := regexp.MustCompile(`^#!\S*[/ ](env )?(sh|bash)\n`)
	checked := 0
	eachFile(t, func(file string) error {
		mark := ""
		switch filepath.Ext(file) {
		case ".go", ".c", ".h":
			mark = "// "
		case ".sh", "", ".config", ".preinst", ".postinst", ".prerm", ".postrm":
			mark = "# "
		default:
			return nil
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text := string(b)
		if mark == "# " {
			first := shell.FindString(text)
			if first == "" && filepath.Ext(file) != ".sh" {
				return nil // no shell script
			}
			text = text[len(first):]
		}
		checked++
		want := mark + "SPDX-License-Identifier: Apache-2.0\n"
		if mark == "// " {
			want += "\n" // it is no part of the package's documentation
		}
		if !strings.HasPrefix(text, want) {
			t.Errorf("%s has no line %q; run: sh scripts/spdx.sh", file, strings.TrimSpace(want))
		}
		return nil
	})
	if checked < 200 {
		t.Errorf("only %d files were looked at", checked)
	}
}
