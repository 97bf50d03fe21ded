// SPDX-License-Identifier: Apache-2.0

package sighting_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// A track is confirmed once two faces near an enrolled one are two looks, and never by one look that comes again and
// again: random tracks against the definition.
func TestLooksConfirm(t *testing.T) {
	space := face.Space{ID: "plane", Dim: 2, Scale: 1, Look: .12}
	random := rand.New(rand.NewPCG(3, 4))
	confirmed := 0
	for run := range 500 {
		who := sighting.NewIdentities(space, sighting.Rules{})
		spread := []float64{.02, .04, .08, .2}[run%4]
		var shown [][]float32
		for n := range 40 {
			x := []float32{float32(spread * random.NormFloat64()), float32(spread * random.NormFloat64())}
			shown = append(shown, x)
			at := time.Duration(n) * 40 * time.Millisecond
			who.Add(1, at, sighting.Look{Vector: x}, online.Verdict{Person: alice, Anchored: true})
			// The first look counts, and so the first face that is far enough from it.
			two := false
			for _, y := range shown[1:] {
				two = two || math.Hypot(float64(y[0]-shown[0][0]), float64(y[1]-shown[0][1])) >= space.Look
			}
			b := who.Who(at, []int{1})[0]
			if want := two && n >= 2; (b.Trust == sighting.Confirmed) != want {
				t.Fatalf("run %d, face %d: %+v, want confirmed %t", run, n, b, want)
			}
			if n == 39 && two {
				confirmed++
			}
		}
	}
	if confirmed < 50 || confirmed > 450 {
		t.Errorf("%d of 500 tracks were confirmed: the test shows only one side", confirmed)
	}
}

// A picture whose vector changes with the light is one look as long as its landmarks do not move against each other, and
// a face whose landmarks move is another look only if its vector is another, too.
func TestDusk(t *testing.T) {
	space := face.Space{ID: "line", Dim: 1, Scale: 1, Look: .2}
	look := func(x float32, turn float64) sighting.Look {
		l := fixture.Landmarks(turn, .5, .3+turn)
		for i := range l {
			l[i].X, l[i].Y = 3*l[i].X+10*x, 3*l[i].Y // another place and size
		}
		return sighting.Look{Vector: []float32{x}, Landmarks: l}
	}
	day, night := look(0, 0), look(.4, 0)
	if sighting.NewLook(space, night, []sighting.Look{day}) {
		t.Error("a picture at dusk is two looks")
	}
	if sighting.NewLook(space, look(.1, .9), []sighting.Look{day}) {
		t.Error("a head that turns and looks the same is two looks")
	}
	turned := look(.4, .9)
	if !sighting.NewLook(space, turned, []sighting.Look{day}) {
		t.Error("a head that turns is one look")
	}
	if !sighting.NewLook(space, look(-.4, 0), []sighting.Look{day, turned}) {
		t.Error("a head that has turned back and looks otherwise is no new look")
	}
	who := sighting.NewIdentities(space, sighting.Rules{})
	for n := range 200 {
		l := day
		if n > 100 {
			l = night
		}
		who.Add(1, time.Duration(n)*40*time.Millisecond, l, online.Verdict{Person: alice, Anchored: true})
		if b := who.Who(time.Duration(n)*40*time.Millisecond, []int{1})[0]; b.Trust == sighting.Confirmed {
			t.Fatalf("frame %d: a photograph is confirmed", n)
		}
	}
}
