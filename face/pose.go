// SPDX-License-Identifier: Apache-2.0

package face

import "math"

// FivePoints returns the centres of both eyes, the left one of the picture first, the tip of the
// nose, and both corners of the mouth, from 68 landmarks in the iBUG 300-W order, or from these
// five themselves, as YuNet, SCRFD, RetinaFace and MTCNN give them. Ok is false for any other
// number.
func FivePoints(landmarks []Point) (p [5][2]float64, ok bool) {
	if len(landmarks) == 5 {
		for i, q := range landmarks {
			p[i] = [2]float64{float64(q.X), float64(q.Y)}
		}
		return p, true
	}
	if len(landmarks) != 68 {
		return p, false
	}
	mean := func(points []Point) (m [2]float64) {
		for _, q := range points {
			m[0] += float64(q.X) / float64(len(points))
			m[1] += float64(q.Y) / float64(len(points))
		}
		return m
	}
	return [5][2]float64{
		mean(landmarks[36:42]), mean(landmarks[42:48]), mean(landmarks[30:31]),
		mean(landmarks[48:49]),
		mean(landmarks[54:55]),
	}, true
}

// Pose says how a head is held, as far as landmarks in the plane show it. If a flat picture of a
// face is moved, turned or tilted, these values hardly change, because they are ratios along lines
// of the face.
type Pose struct {
	// Turn is the position of the tip of the nose along the line through both eyes: 0 in the
	// middle, -1 and 1 under the left and the right eye of the picture.
	Turn float64
	// Nod is the position of the tip of the nose between the eyes, 0, and the mouth, 1. It is about
	// .5 in a frontal face, and less with the chin up. It differs between people.
	Nod float64
	// Width is the distance between the eyes, divided by the distance from their middle to the
	// mouth: .8 to 1 in a frontal face.
	Width float64
}

// PoseOf returns the pose of a face with 5 or 68 landmarks. Ok is false for any other number, or if
// both eyes are at the same place.
func PoseOf(landmarks []Point) (p Pose, ok bool) {
	f, ok := FivePoints(landmarks)
	if !ok {
		return p, false
	}
	left, right, nose := f[0], f[1], f[2]
	middle := [2]float64{(left[0] + right[0]) / 2, (left[1] + right[1]) / 2}
	mouth := [2]float64{(f[3][0] + f[4][0]) / 2, (f[3][1] + f[4][1]) / 2}
	turn := 2*along(left, right, nose) - 1
	p.Turn = bounded(turn, -2, 2)
	p.Nod = bounded(along(middle, mouth, nose), -1, 2)
	p.Width = bounded(distance(left, right)/distance(middle, mouth), 0, 4)
	return p, !math.IsNaN(turn)
}

// along projects p onto the line from a to b, and returns the position there: 0 at a, 1 at b.
func along(a, b, p [2]float64) float64 {
	dx, dy := b[0]-a[0], b[1]-a[1]
	return ((p[0]-a[0])*dx + (p[1]-a[1])*dy) / (dx*dx + dy*dy)
}

func distance(a, b [2]float64) float64 { return math.Hypot(a[0]-b[0], a[1]-b[1]) }

// bounded returns x limited to [low, high], and 0 if x is not a number.
func bounded(x, low, high float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return math.Max(low, math.Min(high, x))
}
