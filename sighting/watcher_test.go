// SPDX-License-Identifier: Apache-2.0

package sighting_test

import (
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

const alice, bob online.Person = 1, 2

// watched returns a watcher of a plane in which impostors were measured, with alice at (0,0) and
// bob at (5,0).
func watched(t *testing.T) (*sighting.Watcher, *online.Learner) {
	t.Helper()
	space := plane
	space.Sigma, space.Gamma, space.Reach = .2, 1e-3, .6
	space.Stills = face.Impostors{People: 100, Pairs: 10000,
		Distances: [5]float64{1.2, 1.1, 1, .9, .8}}
	l := fixture.Must(online.New(space, online.Settings{}))(t)
	for name, x := range map[online.Person]float32{alice: 0, bob: 5} {
		fixture.Check(t, l.Label([]float32{x, 0}, name))
	}
	return sighting.NewWatcher(l), l
}

// see shows a watcher a face at each of the places, one frame after the other, and returns the
// result for the last face.
func see(t *testing.T, w *sighting.Watcher, from time.Duration,
	places ...float32) (last sighting.Seen) {
	t.Helper()
	for i, x := range places {
		seen := fixture.Must(w.See(from+time.Duration(i)*frame, []face.Sample{at(0, x, 0)}, nil))(t)
		last = seen[0]
	}
	return last
}

// Two faces near an enrolled face confirm a person. Before that no face is learned, and then both
// are.
func TestConfirmed(t *testing.T) {
	w, l := watched(t)
	if s := see(t, w, 0, .1); s.Trust != sighting.Likely || s.Verdict.Learned || s.Known {
		t.Errorf("one face: %+v", s)
	}
	if s := see(t, w, frame, .15); s.Trust != sighting.Likely || !s.Verdict.Learned || s.Known ||
		l.Counts().Learned != 2 || l.Counts().Observed != 2 {
		t.Errorf("two faces: %+v, %+v", s, l.Counts())
	}
	s := see(t, w, 2*frame, .2)
	if s.Trust != sighting.Confirmed || s.Belief.Person != alice || !s.Known || s.Since != 0 ||
		!s.Verdict.Learned {
		t.Errorf("three faces: %+v", s)
	}
	// A head that turns is followed in steps if nobody else is near, and its faces far away are not
	// confirmed.
	for i, x := range []float32{1, 1.9, 2.8} {
		s := see(t, w, time.Duration(3+i)*frame, x)
		if s.Verdict.Person != alice || !s.Verdict.Learned ||
			(s.Trust == sighting.Confirmed) != (s.Verdict.Distance <= l.Radii().Enrolled) {
			t.Errorf("turned to %g: %+v", x, s)
		}
	}
	// The learned faces confirm nobody: in another sighting these faces are recognised, and nothing
	// is learned.
	before := l.Counts().Learned
	if s := see(t, w, time.Minute, 2.8, 2.8, 2.8, 2.8, 2.8); s.Belief.Person != alice ||
		s.Trust != sighting.Likely ||
		s.Belief.Trust != sighting.Likely || l.Counts().Learned != before {
		t.Errorf("later: %+v", s)
	}
}

// Of the faces that wait for a confirmation only the latest are learned: a track may wait for
// hours.
func TestLatestWait(t *testing.T) {
	_, l := watched(t)
	space := l.Space()
	space.Look = .2
	fixture.Check(t, l.SetMeasured(space))
	w := sighting.NewWatcher(l)
	alike := slices.Repeat([]float32{.1}, 30)
	if s := see(t, w, 0, alike...); s.Belief.Trust == sighting.Confirmed ||
		l.Counts().Learned != 0 {
		t.Fatalf("before another look: %+v, and %d are learned", s, l.Counts().Learned)
	}
	s := see(t, w, 30*frame, .5)
	if s.Belief.Trust != sighting.Confirmed || len(s.Lessons) != 8 || slices.Min(s.Lessons) != 24 {
		t.Errorf("after another look: %+v", s)
	}
}

// A bridge of faces in separate sightings has no effect: no face far from an enrolled face is
// learned.
func TestBridge(t *testing.T) {
	w, _ := watched(t)
	for i := range 40 {
		x := float32(i) * .1
		s := see(t, w, time.Duration(i)*time.Minute, x, x, x, x)
		if s.Trust == sighting.Confirmed && x > 1 || s.Verdict.Learned && x > 1 {
			t.Errorf("at %g: %+v", x, s)
		}
	}
}

// A person stays confirmed for a while without a face near an enrolled one, and no longer; a clock
// that is set back adds nothing.
func TestLapse(t *testing.T) {
	for from, then := range map[time.Duration]time.Duration{0: time.Second, time.Hour: 0} {
		w, _ := watched(t)
		see(t, w, from, .1, .1, .1, .1, .7, 1.2, 1.7)
		for s := range 12 {
			last := see(t, w, then+time.Duration(s)*time.Second, 1.7)
			want := last.Track == 1 && s < 10
			if (last.Belief.Trust == sighting.Confirmed) != want {
				t.Errorf("from %v, after %d s: %+v", from, s, last)
			}
		}
	}
}

// A track that jumps is in doubt, because another person may have taken the place. It is not
// confirmed, and nothing is learned from it. A face like those before the jump ends the doubt, and
// so does a face near an enrolled face.
func TestDoubt(t *testing.T) {
	for name, back := range map[string][]float32{"like those before": {.45, 0},
		"near an enrolled one": {-.3, .5}} {
		w, l := watched(t)
		if s := see(t, w, 0, .1, .1, .1, .1, .5, .5, .5, .5,
			.5); s.Belief.Trust != sighting.Confirmed ||
			!s.Verdict.Learned {
			t.Fatalf("before the jump: %+v", s)
		}
		learned := l.Counts().Learned
		show := func(i int, looks ...float32) sighting.Seen {
			t.Helper()
			seen := fixture.Must(w.See(time.Duration(9+i)*frame, []face.Sample{at(0, looks...)},
				nil))(t)
			return seen[0]
		}
		for i := range 5 {
			s := show(i, .5, .95)
			if s.Track != 1 || s.Belief.Person != alice || s.Belief.Trust != sighting.Likely ||
				s.Trust == sighting.Confirmed ||
				s.Verdict.Learned || l.Counts().Learned != learned {
				t.Errorf("face %d after the jump: %+v, %+v", i, s, s.Verdict)
			}
		}
		if s := show(5, back...); s.Track != 1 || s.Belief.Trust != sighting.Confirmed ||
			!s.Verdict.Learned ||
			len(s.Lessons) != 1 {
			t.Errorf("a face %s: %+v, %+v", name, s, s.Verdict)
		}
	}
}

// A learner that was read again, with what another program has learned, has given the numbers of a
// track's faces and observations to others: none of them is learned late, or joined to a new face.
func TestRestored(t *testing.T) {
	w, l := watched(t)
	data := fixture.Must(l.MarshalBinary())(t)
	see(t, w, 0, 9, 9, 9)
	see(t, w, time.Minute, .1)
	fixture.Check(t, l.UnmarshalBinary(data))
	if s := see(t, w, time.Minute+frame, .15); s.Trust != sighting.Likely || !s.Verdict.Learned ||
		len(s.Lessons) != 1 ||
		l.Counts().Learned != 1 {
		t.Errorf("%+v, %+v", s, l.Counts())
	}
	if s := see(t, w, time.Minute+2*frame, .2); s.Trust != sighting.Confirmed {
		t.Errorf("%+v", s)
	}
	fixture.Check(t, l.UnmarshalBinary(data))
	// What is at this number now is bob's.
	fixture.Must(l.Observe([]float32{5.1, 0}))(t)
	if s := see(t, w, time.Minute+3*frame, 1.2); s.Verdict.Person == bob || s.Verdict.Learned {
		t.Errorf("%+v", s.Verdict)
	}
}
