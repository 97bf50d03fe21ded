// SPDX-License-Identifier: Apache-2.0

package preprocess

import (
	"image"
	"math"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
)

// Measure returns the quality of the picture of a face in a box: see [face.Quality]. Landmarks may be nil.
func Measure(img *facedet.Picture, box image.Rectangle, landmarks []face.Point) (face.Quality, error) {
	small, err := scaledFace(img, box)
	if err != nil {
		return face.Quality{}, err
	}
	defer small.Close()
	q := face.Quality{Size: min(box.Dx(), box.Dy()), Sharpness: small.Sharpness(), Turn: turn(landmarks)}
	q.Brightness, q.Contrast = small.Stats()
	grey, size := small.Bytes(), small.Size()
	q.Streak = streak(grey, size)
	if q.Cut, err = cut(img, box, grey, size); err != nil {
		return face.Quality{}, err
	}
	if q.Eyes, q.Mouth, err = contrasts(img, box, landmarks); err != nil {
		return face.Quality{}, err
	}
	if five, ok := face.FivePoints(landmarks); ok {
		q.Roll = 180 / math.Pi * math.Atan2(five[1][1]-five[0][1], five[1][0]-five[0][0])
	}
	return q, nil
}

// turn returns [face.Pose].Turn. It returns 0 without landmarks, and 1 for landmarks that fit no face.
func turn(landmarks []face.Point) float64 {
	if len(landmarks) == 0 {
		return 0
	}
	p, ok := face.PoseOf(landmarks)
	if !ok {
		return 1
	}
	return p.Turn
}

// streaked is the Quality.Streak from which a picture counts as smeared by a movement, if it is not sharp either.
const streaked = .5

// Gate says which pictures of faces may be labelled or learned.
type Gate struct {
	MinSize       int
	MinSharpness  float64
	MinBrightness float64
	MaxBrightness float64
	MinContrast   float64
	MaxTurn       float64 // limit of the absolute value of Quality.Turn
	MinStill      float64 // least sharpness of a picture whose Streak is above .5
	MaxRoll       float64 // limit of the absolute value of Quality.Roll, in degrees; 0 for none
	MaxCut        float64 // limit of Quality.Cut; 0 for none
	MinEyes       float64
	MinMouth      float64
	MaxGain       float64 // limit of Quality.Gain; 0 refuses all faces of brightened frames
	MaxNoise      float64 // limit of Quality.Noise; 0 for none
	MinNorm       float64 // of a measured Quality.Norm; package pipeline sets it to the space's LearnNorm
}

// LearnGate accepts faces that may be learned. It accepts a turned head: the graph learns it from the frames before. It
// refuses a profile, because its landmarks are guesses: embeddings of two people in profile come as near as .54, and in
// accepted faces never nearer than .84 (umist; lab/NOTES.md).
var LearnGate = Gate{MinSize: face.LeastSide, MinSharpness: 15, MinBrightness: 25, MaxBrightness: 235, MinContrast: 12,
	MaxTurn: 1.5, MinStill: 45, MaxRoll: 40, MaxCut: .25, MinEyes: .08, MinMouth: .06, MaxGain: 16}

// LoginGate accepts faces for a login: faces that may be learned, are not turned away, and need no brighter frame.
// Above its noise in colour, replays pass the liveness check (lab/NOTES.md).
var LoginGate = Gate{MinSize: face.LeastSide, MinSharpness: 15, MinBrightness: 25, MaxBrightness: 235, MinContrast: 12,
	MaxTurn: .6, MaxNoise: 2.5}

// EnrolGate accepts faces that may be labelled: good pictures that are not turned away. It needs no more light than
// LearnGate: a bound of 40 refused all pictures of one person of faces94_subset, so this person could not be enrolled.
var EnrolGate = Gate{MinSize: 48, MinSharpness: 25, MinBrightness: 25, MaxBrightness: 220, MinContrast: 18, MaxTurn: .6,
	MinStill: 45, MaxRoll: 40, MaxCut: .25, MinEyes: .08, MinMouth: .06, MaxGain: 4}

// Check returns the reason why a picture is refused, or "".
func (g Gate) Check(q face.Quality) face.Reason {
	switch {
	case q.Size < g.MinSize:
		return face.TooSmall
	case q.Brightness < g.MinBrightness, q.Gain > g.MaxGain, g.MaxNoise > 0 && q.Noise > g.MaxNoise:
		return face.TooDark
	case q.Brightness > g.MaxBrightness:
		return face.TooBright
	case q.Contrast < g.MinContrast:
		return face.Flat
	case g.MaxCut > 0 && q.Cut > g.MaxCut: // half a face has less detail, too
		return face.CutOff
	case q.Sharpness < g.MinSharpness:
		return face.Blurred
	case q.Streak > streaked && q.Sharpness < g.MinStill:
		return face.Moved
	case math.Abs(q.Turn) > g.MaxTurn:
		return face.TurnedAway
	case g.MaxRoll > 0 && math.Abs(q.Roll) > g.MaxRoll:
		return face.Tilted
	case q.Eyes < g.MinEyes, q.Mouth < g.MinMouth:
		return face.Covered
	case q.Norm > 0 && q.Norm < g.MinNorm:
		return face.Unclear
	}
	return ""
}

// Passes reports whether g accepts q.
func (g Gate) Passes(q face.Quality) bool { return g.Check(q) == "" }
