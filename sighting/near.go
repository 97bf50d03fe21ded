// SPDX-License-Identifier: Apache-2.0

package sighting

import (
	"math"

	"github.com/faceauth/faceauth/face"
)

// Near says how near a face is to the enrolled faces of its person.
type Near struct {
	Distance float64 `json:"distance,omitempty"` // to the nearest of them; 0 without a name
	// Rarity says how seldom a stranger comes as near, in words; "" in a space that was not measured.
	Rarity string `json:"rarity,omitempty"`
}

// NearAt returns how near a face at a distance is, in words, too.
func NearAt(space face.Space, distance float64) Near {
	return Near{math.Round(distance*1e4) / 1e4, space.Stills.Rarity(distance)}
}
