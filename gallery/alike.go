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

// twins maps letters to Latin letters, or to letters of Persian, that look the same.
var twins = strings.NewReplacer(func() (pairs []string) {
	for _, set := range [][2]string{
		{"АВЕКМНОРСТХІЈЅаеорсухіјѕ", "ABEKMHOPCTXIJSaeopcyxijs"}, // Cyrillic
		{"ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABEZHIKMNOPTYXo"},                   // Greek
		{"يىك", "ییک"}, // Arabic
	} {
		latin := []rune(set[1])
		for i, r := range []rune(set[0]) {
			pairs = append(pairs, string(r), string(latin[i]))
		}
	}
	return pairs
}()...)

// looks returns two texts. The first is the same for names that differ only by upper and lower case, by spaces or by
// characters that do not show; the second for those that differ by letters that look the same, too.
func looks(name string) (plain, seen string) {
	shown := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return r
	}, norm.NFKC.String(name))
	shown = strings.Join(strings.Fields(shown), " ")
	return cases.Fold().String(shown), cases.Fold().String(twins.Replace(shown))
}

// Alike returns another enrolled person whose name people would take for a name, or "".
func (g *Gallery) Alike(name string) string {
	plain, seen := looks(name)
	for _, other := range g.people {
		if p, s := looks(other.Name); other.Name != name && (p == plain || s == seen) {
			return other.Name
		}
	}
	return ""
}
