// SPDX-License-Identifier: Apache-2.0

package face

// Series says whether the pictures of a folder are the frames of a film.
type Series string

// How the pictures of a folder are taken.
const (
	Followed    Series = ""    // a film if they follow one another, and otherwise photographs
	Photographs Series = "no"  // each is looked at alone
	Filmed      Series = "yes" // the frames of a film, in natural order
)
