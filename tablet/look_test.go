// SPDX-License-Identifier: Apache-2.0

package tablet_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/sighting"
	"github.com/faceauth/faceauth/tablet"
)

// A still lets nobody in, however long it is shown; a person who moves is let in with the third
// look.
func TestStill(t *testing.T) {
	line := face.Space{ID: "line", Dim: 1, Scale: 1, Look: .12}
	for _, c := range []struct {
		name  string
		match bool
		at    func(frame int) float32
		want  tablet.Word
	}{
		{"a still", true, func(int) float32 { return 0 }, "taken-for-picture"},
		{"a still with noise", true, func(n int) float32 { return .1 * float32(n%2) },
			"taken-for-picture"},
		{"two stills by turns", true, func(n int) float32 { return .2 * float32(n%2) },
			"taken-for-picture"},
		{"somebody else's still", false, func(int) float32 { return 0 }, tablet.NoMatch},
		{"a person", true, func(n int) float32 { return .01 * float32(n) }, tablet.Match},
	} {
		s := fixture.Must(tablet.NewSession(tablet.Policy{}, line, tablet.TurnLeft, noon))(t)
		n := 0
		for ; !s.Result().Final; n++ {
			s.Frame(noon.Add(time.Duration(n)*40*time.Millisecond),
				[]tablet.Face{{Track: 1, Match: c.match,
					Look: sighting.Look{Vector: []float32{c.at(n)}}}})
		}
		if got := s.Result().Word; got != c.want {
			t.Errorf("%s: %q after %d frames, want %q", c.name, got, n, c.want)
		}
	}
}

// Somebody else is not taken for a picture when they go out of the picture at the end.
func TestStrangerLeaves(t *testing.T) {
	line := face.Space{ID: "line", Dim: 1, Scale: 1, Look: .12}
	for _, moves := range []bool{false, true} {
		s := fixture.Must(tablet.NewSession(tablet.Policy{}, line, tablet.TurnLeft, noon))(t)
		for n := range 20 {
			look := float32(0)
			if moves {
				look = float32(n)
			}
			s.Frame(noon.Add(time.Duration(n)*40*time.Millisecond), []tablet.Face{{Track: 1,
				Look: sighting.Look{Vector: []float32{look}}}})
		}
		s.Frame(noon.Add(time.Second), nil)
		if r := s.Tick(noon.Add(time.Minute)); r.Word != tablet.NoMatch {
			t.Errorf("moves %t: %q", moves, r.Word)
		}
	}
}

// Nobody is let in without three looks of the user that all differ, whatever is shown.
func TestLooksOfRandomSessions(t *testing.T) {
	line := face.Space{ID: "line", Dim: 1, Scale: 1, Look: .12}
	random := rand.New(rand.NewPCG(5, 6))
	let := 0
	for range 2000 {
		s := fixture.Must(tablet.NewSession(tablet.Policy{}, line, tablet.TurnLeft, noon))(t)
		spread := []float64{.05, .1, .3}[random.IntN(3)]
		var mine []float64 // looks of the user on this track, each .12 from the others
		for n := 0; !s.Result().Final; n++ {
			f := tablet.Face{Track: 1 + n/40, Match: random.IntN(4) > 0,
				Look: sighting.Look{Vector: []float32{float32(spread * random.Float64())}}}
			if n%40 == 0 {
				mine = nil
			}
			if f.Match {
				mine = append(mine, float64(f.Look.Vector[0]))
			}
			if s.Frame(noon.Add(time.Duration(n)*40*time.Millisecond),
				[]tablet.Face{f}).Word == tablet.Match {
				let++
				if most(mine, line.Look) < 3 {
					t.Fatalf("let in after %v", mine)
				}
			}
		}
	}
	if let < 100 || let > 1900 {
		t.Errorf("%d of 2000 were let in: the test shows only one side", let)
	}
}

// most returns the largest number of values of a line that are all at least apart from each other.
func most(x []float64, apart float64) (n int) {
	last := -1.
	for _, v := range slices.Sorted(slices.Values(x)) {
		if v-last >= apart-1e-6 {
			n, last = n+1, v
		}
	}
	return n
}
