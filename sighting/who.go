// SPDX-License-Identifier: Apache-2.0

package sighting

import (
	"math"

	"github.com/faceauth/faceauth/face"
)

// Who says who somebody is, and how that is known.
type Who struct {
	Name   string `json:"name"`             // the present name; "" for nobody known, or not yet
	Person int64  `json:"person,omitempty"` // number of that person
	Trust  Trust  `json:"trust,omitempty"`  // how the name is known
	Near
}

// Near says how near a face is to the enrolled faces of its person.
type Near struct {
	Distance float64 `json:"distance,omitempty"` // to the nearest of them; 0 without a name
	// Rarity says how seldom a stranger comes as near, in words; "" in a space that was not
	// measured.
	Rarity string `json:"rarity,omitempty"`
}

// NearAt returns how near a face at a distance is, in words, too.
func NearAt(space face.Space, distance float64) Near {
	return Near{math.Round(distance*1e4) / 1e4, space.Stills.Rarity(distance)}
}
