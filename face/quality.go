// SPDX-License-Identifier: Apache-2.0

package face

import (
	"math"
)

// Quality describes the picture of a face, before anybody is recognised in it.
type Quality struct {
	Size int `json:"size"` // shorter side of the box in pixels
	// variance of the Laplacian of the grey face scaled to 96x96, grey values 0..255
	Sharpness  float64 `json:"sharpness"`
	Brightness float64 `json:"brightness"` // mean grey value, 0..255
	Contrast   float64 `json:"contrast"`   // standard deviation of the grey values
	// Colour is how far the means of red, green and blue are apart, as a share of Brightness: 0 in
	// a grey picture.
	Colour float64 `json:"colour,omitempty"`
	// Turn is the sideways asymmetry of the landmarks: 0 frontal, towards -1 or 1 in profile; 0
	// without landmarks.
	Turn float64 `json:"turn"`
	// tilt of the line through both eyes, in degrees clockwise; 0 without landmarks
	Roll float64 `json:"roll"`
	// Cut is the share of the face that the edge of the frame or a black bar cuts off, guessed by
	// the shape of a box there.
	Cut float64 `json:"cut"`
	// Streak is 1 minus the ratio of the detail along the direction with the least to that along
	// the direction with the most: about .3, and more in a picture that a movement has smeared.
	Streak float64 `json:"streak"`
	// Eyes and Mouth are the standard deviations of the grey values around the eyes and the mouth,
	// as shares of the mean of the cheeks and of the mouth. What covers them has little contrast.
	// Eyes is 1 for eyes that are not much darker than the cheeks, and both are 1 without
	// landmarks.
	Eyes  float64 `json:"eyes"`
	Mouth float64 `json:"mouth"`
	// Partial says that a part of the picture did not come, as when a file or a frame of a camera
	// ends too early.
	Partial bool `json:"partial,omitempty"`
	// Gain is the factor by which a dim frame was brightened before the face was found and
	// measured; 0 if it was not.
	Gain float64 `json:"gain,omitempty"`
	// Noise is the standard deviation of the noise in colour, in grey levels; 0 if it was not
	// measured. It is measured where liveness is: noise hides a screen.
	Noise float64 `json:"noise,omitempty"`
	// Norm is the length of the embedding before it is scaled to 1, or 0 if it was not measured, as
	// for pixels. A small norm predicts a missed match. It is no gate against impostors: see the
	// package documentation.
	Norm float64 `json:"norm,omitempty"`
}

// frontal is the greatest turn of a frontal head, measured as lab/NOTES.md says (Morphs).
const frontal = .45

// Frontal reports whether the head is not known to be turned: Turn is at most .45, or there were no
// landmarks.
func (q Quality) Frontal() bool { return math.Abs(q.Turn) <= frontal }

// LeastSide is the least side in pixels of a face that is found for certain and may be learned. A
// smaller one is still recognised if it is found: smaller faces do not raise the false match rate.
const LeastSide = 40

// Reason says in words for a person why a picture of a face was refused. The empty Reason means
// that the picture is good enough.
type Reason string

// Reasons that a quality gate gives.
const (
	TooSmall   Reason = "too small"
	TooDark    Reason = "too dark"
	TooBright  Reason = "too bright"
	Flat       Reason = "too little contrast"
	Blurred    Reason = "blurred"
	TurnedAway Reason = "turned away"
	Moved      Reason = "blurred by a movement"
	Tilted     Reason = "tilted"
	CutOff     Reason = "cut off by the edge of the picture"
	Covered    Reason = "covered, as by sunglasses or a mask"
	NoVector   Reason = "no vector could be made of it"
	Incomplete Reason = "in a picture of which a part is missing"
	// Unclear is given after the gate, for a small [Quality].Norm.
	Unclear Reason = "hard to recognise"
)
