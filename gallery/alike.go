// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"errors"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// ErrAlike is wrapped by the error of [Gallery.Enroll] for a new name that people take for the name of another person.
var ErrAlike = errors.New("somebody has nearly the same name")

// plain returns a text that is the same for names that differ only by upper and lower case, by spaces or by characters
// that do not show.
func plain(name string) string {
	shown := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return r
	}, norm.NFKC.String(name))
	return cases.Fold().String(strings.Join(strings.Fields(shown), " "))
}

// Alike returns another enrolled person whose name people would take for a name, or "".
func (g *Gallery) Alike(name string) string {
	same := plain(name)
	for _, other := range g.people {
		if other.Name != name && plain(other.Name) == same {
			return other.Name
		}
	}
	return ""
}
