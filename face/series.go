// SPDX-License-Identifier: Apache-2.0

package face

// Series says whether the pictures of a folder are the frames of a film.
type Series string

// How pictures of a folder are taken.
const (
	Photographs Series = "no"  // each is looked at alone
	Followed    Series = ""    // a film if they follow one another, and otherwise photographs
	Filmed      Series = "yes" // the frames of a film, in natural order
)

// Known reports whether s is one of these.
func (s Series) Known() bool {
	return s == Photographs || s == Followed || s == Filmed
}
