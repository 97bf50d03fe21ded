// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"unicode"
	"unicode/utf8"
)

// output passes on printed text. Names of files and texts of servers may hold escape codes, which can make a terminal
// show false text; output prints them as plain characters. It remembers the first error of a write.
type output struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

// Write implements [io.Writer]. The number of bytes is that of p.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.w.Write(printable(p)); err != nil {
		if o.err == nil {
			o.err = err
		}
		return 0, err
	}
	return len(p), nil
}

// failed returns the first error of a write.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// printable returns a text with visible escapes for control characters, except ends of lines and tabs.
func printable(text []byte) []byte {
	plain := true
	for _, c := range text {
		if c < 0x20 && c != '\n' && c != '\t' || c >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return text
	}
	var b bytes.Buffer
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\n' || r == '\t' || !unicode.IsControl(r) && !bidi(r):
			b.Write(text[:n])
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return b.Bytes()
}

// bidi reports whether a character changes the direction of text.
func bidi(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }
