// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"errors"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
)

// What the caller says about a face decides whether it is learned: as whom. It must not be far from all enrolled faces
// of this person.
func TestTeaches(t *testing.T) {
	space := line
	space.Stills = face.Impostors{People: 10, Pairs: 1e7, Distances: [5]float64{1.2, 1.1, 1, .9, .8}}
	space.GenuineRadius = 1.6
	for name, c := range map[string]struct {
		x       float32
		as      string
		learned bool
	}{
		"near":              {.5, "", true},
		"within the limit":  {1.5, "", true},
		"far":               {1.8, "", false},
		"as who it is":      {.5, "alice", true},
		"as somebody else":  {.5, "bob", false},
		"far, as who it is": {1.8, "alice", false},
	} {
		l, err := online.New(space, online.Settings{K: 60})
		if err != nil {
			t.Fatal(err)
		}
		shown(t, l, "alice", 0)
		var follows []int64
		for x := float32(.3); x < c.x; x += .3 { // she turns her head, and each face follows the one before
			v, err := l.ObserveFrame([]online.Observation{{Vector: []float32{x, 0}, Follows: follows}})
			if err != nil || !v[0].Learned {
				t.Fatalf("%s: the face at %g: %+v, %v", name, x, v, err)
			}
			follows = []int64{v[0].Stored}
		}
		v, err := l.ObserveFrame([]online.Observation{{Vector: []float32{c.x, 0}, As: c.as, Follows: follows}})
		if err != nil || v[0].Learned != c.learned {
			t.Errorf("%s: learned %t, want %t: %+v, radii %+v, %v", name, v[0].Learned, c.learned, v[0], l.Radii(), err)
		}
	}
}

// A face can be learned later by the number of its observation, and by no other number.
func TestRecallBound(t *testing.T) {
	l := fresh(t)
	shown(t, l, "alice", 0)
	const observed = 3
	for range observed {
		if _, err := l.ObserveFrame([]online.Observation{{Vector: []float32{.2, 0}, Hold: true}}); err != nil {
			t.Fatal(err)
		}
	}
	for number, allowed := range map[int64]bool{-1: false, 0: false, 1: true, observed: true, observed + 1: false} {
		_, err := l.Recall(online.Observation{Vector: []float32{.2, 0}}, number)
		if allowed != (err == nil) || !allowed && !errors.Is(err, online.ErrSettings) {
			t.Errorf("observation %d of %d: %v", number, observed, err)
		}
	}
}
