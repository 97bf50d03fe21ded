// SPDX-License-Identifier: Apache-2.0

package preprocess

import (
	"image"
	"math"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
)

// Measure returns what can be measured of the picture of a face in a box: see [face.Quality].
// Landmarks may be nil.
func Measure(img *facedet.Picture, box image.Rectangle, landmarks []face.Point) (face.Quality, error) {
	small, err := scaledFace(img, box)
	if err != nil {
		return face.Quality{}, err
	}
	defer small.Close()
	q := face.Quality{Size: min(box.Dx(), box.Dy()), Sharpness: small.Sharpness(), Turn: turn(landmarks)}
	q.Brightness, q.Contrast = small.Stats()
	return q, nil
}

// turn returns [face.Pose].Turn, or where that cannot be had 0 without landmarks, and 1 for landmarks that fit no
// face.
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

// Gate says from which pictures a face may be labelled or learned.
type Gate struct {
	MinSize       int
	MinSharpness  float64
	MinBrightness float64
	MaxBrightness float64
	MinContrast   float64
	MaxTurn       float64 // absolute value of Quality.Turn
}

// LearnGate is what a face must pass to be learned. A turned head passes: learning it from the
// frames before is what the graph is for. A profile does not: the landmarks are then guesses, and
// embeddings of two people come as near as .54, which in faces that pass never are nearer than .84
// (umist; docs/results.md).
var LearnGate = Gate{MinSize: 40, MinSharpness: 15, MinBrightness: 25, MaxBrightness: 235, MinContrast: 12,
	MaxTurn: 1.5}

// LoginGate is what a face must pass to be let in by: as to be learned, and not turned away.
var LoginGate = Gate{MinSize: 40, MinSharpness: 15, MinBrightness: 25, MaxBrightness: 235, MinContrast: 12, MaxTurn: .6}

// EnrolGate is what a face must pass to be labelled: better, and not turned away. It asks for no more
// light than LearnGate: a bound of 40 refused every picture of one person of faces94_subset, and with
// the pictures the person.
var EnrolGate = Gate{MinSize: 48, MinSharpness: 25, MinBrightness: 25, MaxBrightness: 220, MinContrast: 18, MaxTurn: .6}

// Check returns why a picture is refused, or "".
func (g Gate) Check(q face.Quality) face.Reason {
	switch {
	case q.Size < g.MinSize:
		return face.TooSmall
	case q.Brightness < g.MinBrightness:
		return face.TooDark
	case q.Brightness > g.MaxBrightness:
		return face.TooBright
	case q.Contrast < g.MinContrast:
		return face.Flat
	case q.Sharpness < g.MinSharpness:
		return face.Blurred
	case math.Abs(q.Turn) > g.MaxTurn:
		return face.TurnedAway
	}
	return ""
}

// Passes reports whether g refuses nothing of q.
func (g Gate) Passes(q face.Quality) bool { return g.Check(q) == "" }
