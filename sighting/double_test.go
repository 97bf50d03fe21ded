// SPDX-License-Identifier: Apache-2.0

package sighting_test

import (
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// names counts the names in a frame.
func names(seen []sighting.Seen) map[online.Person]int {
	n := make(map[online.Person]int)
	for _, s := range seen {
		if s.Verdict != nil && s.Verdict.Person != 0 {
			n[s.Verdict.Person]++
		}
	}
	return n
}

// Alice sits still, and her face is held. A photograph of her comes: nobody is twice in a frame,
// she keeps her name, and nothing is learned of the photograph.
func TestHeldKeepsName(t *testing.T) {
	w, l := watched(t)
	for i := range 40 {
		see(t, w, time.Duration(i)*frame, .1*float32(i%2))
	}
	before := l.Counts().Learned
	for i := range 30 {
		sitting := at(0)
		sitting.Held = true
		photograph := at(500, .05*float32(i%3), .1)
		photograph.Track = 2
		seen := fixture.Must(w.See(time.Duration(40+i)*frame, []face.Sample{sitting, photograph},
			nil))(t)
		if n := names(seen); n[alice] != 1 || seen[0].Verdict.Person != alice ||
			seen[1].Verdict.Reason != online.BetterFace {
			t.Fatalf("frame %d: %v, %+v", i, n, seen[1].Verdict)
		}
		if seen[0].Belief.Person != alice || seen[0].Trust != sighting.Confirmed ||
			seen[1].Belief.Person != 0 {
			t.Fatalf("frame %d: %+v, %+v", i, seen[0].Belief, seen[1].Belief)
		}
		if double := seen[1].Belief.Double; i > 3 && double != alice {
			t.Fatalf("frame %d: a double of %d", i, double)
		}
	}
	if l.Counts().Learned != before {
		t.Errorf("%d faces are learned of a photograph", l.Counts().Learned-before)
	}
}

// A photograph on the wall, held and never confirmed, takes no name from alice herself.
func TestHeldGivesNameUp(t *testing.T) {
	_, l := watched(t)
	space := l.Space()
	space.Look = .2
	fixture.Check(t, l.SetMeasured(space))
	w := sighting.NewWatcher(l)
	see(t, w, 0, .5, .5, .5)
	for i := range 30 {
		wall := at(0)
		wall.Held = true
		herself := at(500, .3*float32(i%2), 0)
		herself.Track = 2
		seen := fixture.Must(w.See(time.Duration(3+i)*frame, []face.Sample{wall, herself}, nil))(t)
		if n := names(seen); n[alice] != 1 || seen[1].Verdict.Person != alice {
			t.Fatalf("frame %d: %v, %+v", i, n, seen[1].Verdict)
		}
		if i > 8 && (seen[1].Belief.Person != alice || seen[1].Trust != sighting.Confirmed) {
			t.Fatalf("frame %d: %+v", i, seen[1].Belief)
		}
	}
}

// Two faces that take a name from each other, frame by frame, are one person: neither loses it, and
// the other is no stranger. Somebody who is like neither stays unknown.
func TestDouble(t *testing.T) {
	who := sighting.NewIdentities(plane)
	for n := range 40 {
		now := time.Duration(n) * frame
		named := online.Verdict{Person: alice, Best: alice, Anchored: true}
		worse := online.Verdict{Best: alice, Reason: online.BetterFace}
		if n%2 == 1 {
			named, worse = worse, named
		}
		who.Add(1, now, sighting.Look{}, named)
		who.Add(2, now, sighting.Look{}, worse)
		stranger := online.Verdict{Reason: online.Outlier}
		if n%4 == 0 {
			stranger = online.Verdict{Best: alice, Reason: online.BetterFace}
		}
		who.Add(3, now, sighting.Look{}, stranger)
		b := who.Who(now, []int{1, 2, 3})
		if n < 3 {
			continue
		}
		if b[0].Person+b[1].Person != alice || b[0].Double+b[1].Double != alice ||
			b[2].Person != 0 || b[2].Double != 0 {
			t.Fatalf("frame %d: %+v", n, b)
		}
	}
	who.Deny(2, alice)
	now := 40 * frame
	for range 4 {
		who.Add(2, now, sighting.Look{}, online.Verdict{Best: alice, Reason: online.BetterFace})
	}
	if b := who.Who(now, []int{1, 2}); b[1].Double != 0 {
		t.Errorf("after a denial: %+v", b)
	}
}
