// SPDX-License-Identifier: Apache-2.0

package sighting_test

import (
	"math"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/sighting"
)

// A face that is moved, turned in its plane and seen nearer is unmoved; one that turns its head, or
// opens its mouth, is not.
func TestStir(t *testing.T) {
	before := fixture.Landmarks(0, .5, .3)
	moved := make([]face.Point, len(before))
	for i, p := range before {
		sin, cos := float32(math.Sin(.4)), float32(math.Cos(.4))
		moved[i] = face.Point{X: 300 + 1.7*(cos*p.X-sin*p.Y), Y: 20 + 1.7*(sin*p.X+cos*p.Y)}
	}
	if s := sighting.Stir(before, moved); s > 1e-6 {
		t.Errorf("a picture that was moved stirs by %g", s)
	}
	turned := sighting.Stir(before, fixture.Landmarks(.3, .5, .3))
	further := sighting.Stir(before, fixture.Landmarks(.6, .5, .3))
	if !(turned > .001 && further > turned) {
		t.Errorf("a head that turns stirs by %g, and then by %g", turned, further)
	}
	for _, x := range [][]face.Point{nil, before[:5], make([]face.Point, len(before))} {
		if s := sighting.Stir(before, x); !math.IsInf(s, 1) {
			t.Errorf("nothing to compare: %g", s)
		}
	}
}
