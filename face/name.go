// SPDX-License-Identifier: Apache-2.0

package face

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// ErrName is wrapped by the error of [CheckName].
var ErrName = errors.New("unusable name")

// CheckName returns nil if a person can have this name. A name has one to 100 printable characters,
// no white space at its ends, and is not "unknown" in upper or lower case, because reports and
// events use "unknown" for strangers. The error wraps [ErrName].
func CheckName(name string) error {
	if strings.EqualFold(name, "unknown") {
		return fmt.Errorf("%w %q: reports call strangers so; choose another name", ErrName, name)
	}
	var what string
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		what = "it is empty"
	case n > 100:
		return fmt.Errorf("%w: it has %d characters; use at most 100", ErrName, n)
	case !utf8.ValidString(name):
		what = "it is not UTF-8"
	case strings.ContainsFunc(strings.NewReplacer("\u200c", "", "\u200d", "").Replace(name),
		func(r rune) bool {
			return !unicode.IsPrint(r) // but for the joiners of Persian, Hindi and emoji
		}):
		what = "it has a character that does not print"
	case strings.TrimSpace(name) != name:
		what = "it begins or ends with a space"
	case strings.Trim(name, "\u200c\u200d") != name:
		what = "it begins or ends with a character that joins others"
	default:
		return nil
	}
	return fmt.Errorf("%w %q: %s", ErrName, name, what)
}

// PlainName returns a text that is the same for names that people take for one another: they differ
// only by upper and lower case, by spaces or by characters that do not show.
func PlainName(name string) string {
	shown := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return r
	}, norm.NFKC.String(name))
	return cases.Fold().String(strings.Join(strings.Fields(shown), " "))
}
