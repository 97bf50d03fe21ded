// SPDX-License-Identifier: Apache-2.0

package face_test

import (
	"testing"

	"github.com/faceauth/faceauth/face"
)

// Five landmarks say where the head turns, as 68 do; six are no face.
func TestFiveLandmarks(t *testing.T) {
	five := []face.Point{{X: 10, Y: 10}, {X: 30, Y: 10}, {X: 25, Y: 20}, {X: 12, Y: 30},
		{X: 28, Y: 30}}
	p, ok := face.PoseOf(five)
	if !ok || p.Turn != .5 || p.Nod != .5 || p.Width != 1 {
		t.Errorf("%+v, %v", p, ok)
	}
	if _, ok := face.PoseOf(append(five, face.Point{})); ok {
		t.Error("six landmarks are a face")
	}
}
