// SPDX-License-Identifier: Apache-2.0

package cli

import "testing"

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
