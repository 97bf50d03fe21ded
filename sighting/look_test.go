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

// A track is confirmed once two faces near an enrolled one are two looks, and never by one look
// that comes again and again: random tracks against the definition.
func TestLooksConfirm(t *testing.T) {
	space := face.Space{ID: "plane", Dim: 2, Scale: 1, Look: .12}
	random := rand.New(rand.NewPCG(3, 4))
	confirmed := 0
	for run := range 500 {
		who := sighting.NewIdentities(space)
		spread := []float64{.02, .04, .08, .2}[run%4]
		var shown [][]float32
		for n := range 40 {
			x := []float32{float32(spread * random.NormFloat64()),
				float32(spread * random.NormFloat64())}
			shown = append(shown, x)
			at := time.Duration(n) * 40 * time.Millisecond
			who.Add(1, at, sighting.Look{Vector: x}, online.Verdict{Person: alice, Anchored: true})
			// The first look counts, and so the first face that is far enough from it.
			two := false
			for _, y := range shown[1:] {
				two = two || math.Hypot(float64(y[0]-shown[0][0]),
					float64(y[1]-shown[0][1])) >= space.Look
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

// A picture is one look, however its vector changes: with the light, its colour, the size of the
// face, or at all while the landmarks do not move against each other. Somebody who hardly moves
// soon shows two looks.
func TestOneLook(t *testing.T) {
	space := face.Space{ID: "line", Dim: 1, Scale: 1, Look: .2}
	day := face.Quality{Size: 100, Brightness: 120, Contrast: 50, Colour: .4}
	look := func(x float32, turn float64, q face.Quality) sighting.Look {
		l := fixture.Landmarks(turn, .5, .3+turn)
		for i := range l {
			l[i].X, l[i].Y = 3*l[i].X+10*x, 3*l[i].Y // another place and size
		}
		return sighting.Look{Vector: []float32{x}, Landmarks: l, Quality: q}
	}
	first := look(0, 0, day)
	for name, change := range map[string]func(q *face.Quality){
		"dusk": func(q *face.Quality) { q.Brightness = 60 }, "a lamp": func(q *face.Quality) {
			q.Brightness = 140
		},
		"no colour": func(q *face.Quality) { q.Colour = 0 }, "gain": func(q *face.Quality) {
			q.Gain = 2
		}, "contrast": func(q *face.Quality) { q.Contrast = 70 },
		"a zoom": func(q *face.Quality) { q.Size = 110 }, "landmarks at rest": nil,
	} {
		q, turn := day, .4
		if change == nil {
			turn = 0
		} else {
			change(&q)
		}
		second := look(.4, turn, q)
		if still, isNew := sighting.NewLook(space, second, []sighting.Look{first}); isNew &&
			len(still) > 0 {
			t.Errorf("%s: two looks", name)
		}
		if isNew, _ := second.Differs(space, []sighting.Look{first}); isNew {
			t.Errorf("%s: another look", name)
		}
		who := sighting.NewIdentities(space)
		for n := range 200 {
			at, l := time.Duration(n)*40*time.Millisecond, first
			if n > 100 {
				l = second
			}
			who.Add(1, at, l, online.Verdict{Person: alice, Anchored: true})
			if b := who.Who(at, []int{1})[0]; b.Trust == sighting.Confirmed {
				t.Fatalf("%s, frame %d: a photograph is confirmed", name, n)
			}
		}
	}
	second := look(.3, .4, day)
	if still, isNew := sighting.NewLook(space, second, []sighting.Look{first}); !isNew ||
		len(still) != 1 {
		t.Error("somebody who moves a little is one look")
	}
	if _, isNew := sighting.NewLook(space, look(.1, .9, day), []sighting.Look{first}); isNew {
		t.Error("a head that turns and looks the same is two looks")
	}
	if _, isNew := sighting.NewLook(space, look(-.4, 0, day),
		[]sighting.Look{first, second}); !isNew {
		t.Error("a head that has turned back and looks otherwise is no new look")
	}
}

// A photograph whose light goes down is one look, however the noise of its brightened frames moves
// its vectors. A head that turns on in that light is confirmed as soon as the noise is known.
func TestDimmedPhotograph(t *testing.T) {
	const dim = 64
	space := face.Space{ID: "dim", Dim: dim, Scale: 1, Look: .22}
	for name, c := range map[string]struct {
		turns bool
		want  int // the first frame that is confirmed; -1 for none
	}{"a photograph": {false, -1}, "a head": {true, 34}} {
		r := rand.New(rand.NewPCG(7, 8))
		who := sighting.NewIdentities(space)
		first := -1
		for n := range 100 {
			light, noise := face.Quality{Size: 100, Brightness: 120, Contrast: 50, Colour: .4}, .01
			turn := .003 * float64(n%2) // landmarks are never quite at rest
			x := make([]float32, dim)
			if n >= 30 {
				light.Brightness, light.Gain, noise, turn = 100, 3, .05, .1*float64(n%3)
			}
			if c.turns && n >= 30 {
				turn = .1 * float64(n-29)
				x[0] = .2 * float32(n-29)
			}
			for i := range x {
				x[i] += float32(noise * r.NormFloat64())
			}
			at := time.Duration(n) * 40 * time.Millisecond
			l := sighting.Look{Vector: x, Landmarks: fixture.Landmarks(turn, .5, .3),
				Quality: light}
			who.Add(1, at, l, online.Verdict{Person: alice, Anchored: true})
			if who.Who(at, []int{1})[0].Trust == sighting.Confirmed && first < 0 {
				first = n
			}
		}
		if (first < 0) != (c.want < 0) || first > c.want {
			t.Errorf("%s is confirmed at frame %d, want %d", name, first, c.want)
		}
	}
}
