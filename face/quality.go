// SPDX-License-Identifier: Apache-2.0

package face

import "math"

// Quality describes the picture of a face, before anybody is recognised in it.
type Quality struct {
	Size int `json:"size"` // shorter side of the box in pixels
	// variance of the Laplacian of the grey face scaled to 96x96, grey values 0..255
	Sharpness  float64 `json:"sharpness"`
	Brightness float64 `json:"brightness"` // mean grey value, 0..255
	Contrast   float64 `json:"contrast"`   // standard deviation of the grey values
	// Turn is the sideways asymmetry of the landmarks: 0 frontal, towards -1 or 1 in profile; 0 without landmarks.
	Turn float64 `json:"turn"`
	// Norm is the length of the embedding before it is scaled to 1, or 0 if it was not measured, as for pixels. A small
	// norm predicts a missed match. It is no gate against impostors: see the package documentation.
	Norm float64 `json:"norm,omitempty"`
}

// frontal is the greatest turn of a frontal head, measured as docs/results.md says (Morphs).
const frontal = .45

// Frontal reports whether the head is not known to be turned: Turn is at most .45, or there were no landmarks.
func (q Quality) Frontal() bool { return math.Abs(q.Turn) <= frontal }

// Reason says in words for a person why a picture of a face was refused. The empty Reason means that the picture is
// good enough.
type Reason string

// Reasons that a quality gate gives, in the order in which the gate checks them.
const (
	TooSmall   Reason = "too small"
	TooDark    Reason = "too dark"
	TooBright  Reason = "too bright"
	Flat       Reason = "too little contrast"
	Blurred    Reason = "blurred"
	TurnedAway Reason = "turned away"
	NoVector   Reason = "no vector could be made of it"
	// Unclear is given after the gate, for a small [Quality].Norm.
	Unclear Reason = "hard to recognise"
)
