// SPDX-License-Identifier: Apache-2.0

package sighting_test

import (
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/sighting"
)

// hold shows a held face to a watcher at a given time.
func hold(t *testing.T, w *sighting.Watcher, at time.Duration, s face.Sample) sighting.Seen {
	t.Helper()
	s.Vector, s.Held = nil, true
	seen := fixture.Must(w.See(at, []face.Sample{s}, nil))(t)
	return seen[0]
}

// A held face keeps a person in view, with the same name and trust, and is no evidence.
func TestHeld(t *testing.T) {
	w, l := watched(t)
	for i := range 40 {
		see(t, w, time.Duration(i)*frame, .1)
	}
	before := l.Counts()
	var frames float64
	for i := range 250 { // 25 seconds of frames; a name lapses after 10
		s := hold(t, w, 2*time.Second+time.Duration(i)*100*time.Millisecond, at(0))
		if s.Track != 1 || s.Belief.Person != alice || s.Trust != sighting.Confirmed || s.Known ||
			len(s.Lessons) > 0 {
			t.Fatalf("held for %d frames: %+v", i, s)
		}
		if v := s.Verdict; v == nil || v.Person != alice || v.Learned || v.Stored != 0 {
			t.Fatalf("held for %d frames: %+v", i, v)
		}
		if frames == 0 {
			frames = s.Belief.Frames
		}
		if s.Belief.Frames != frames || w.Look() != nil {
			t.Fatalf("held for %d frames: %g frames judged, look %v", i, s.Belief.Frames, w.Look())
		}
	}
	if l.Counts() != before {
		t.Errorf("learned of held faces: %+v, before %+v", l.Counts(), before)
	}
	// A person whose face is never judged again does not stay confirmed for ever.
	var s sighting.Seen
	for i := range 300 {
		s = hold(t, w, 27*time.Second+time.Duration(i)*100*time.Millisecond, at(0))
	}
	if s.Belief.Person != alice || s.Belief.Trust != sighting.Likely {
		t.Errorf("held for a minute: %+v", s.Belief)
	}
}

// A person who is forgotten while in view, with a held face, loses the name at once.
func TestHeldForgotten(t *testing.T) {
	w, l := watched(t)
	for i := range 40 {
		see(t, w, time.Duration(i)*frame, .1)
	}
	fixture.Check(t, l.Forget(alice))
	for i := range 30 {
		s := hold(t, w, 2*time.Second+time.Duration(i)*100*time.Millisecond, at(0))
		if s.Belief.Person != 0 || s.Verdict != nil || w.Look() == nil {
			t.Fatalf("held for %d frames after she was forgotten: %+v", i, s)
		}
	}
}

// A face that is held from the beginning, and one after the verdicts were taken back, has no
// verdict, and is asked for.
func TestHeldWithoutVerdict(t *testing.T) {
	w, _ := watched(t)
	if s := hold(t, w, 0, at(0)); s.Verdict != nil || s.Belief.Person != 0 || w.Look() == nil {
		t.Errorf("held from the beginning: %+v", s)
	}
	for i := range 40 {
		see(t, w, time.Duration(i+1)*frame, .1)
	}
	w.Deny(1, alice)
	if s := hold(t, w, 2*time.Second, at(0)); s.Verdict != nil || s.Belief.Person != 0 ||
		s.Trust != sighting.Nobody ||
		w.Look() == nil {
		t.Errorf("after a denial: %+v", s)
	}
	s := at(0)
	s.Reason = face.NoVector
	if hold(t, w, 2*time.Second+frame, s); w.Look() != nil {
		t.Error("a face of which no vector can be made is asked for")
	}
}

// doubtful gives a watcher frames of one track: first with the face of alice, later with that of
// bob. It returns the time of the last frame.
func doubtful(t *testing.T, w *sighting.Watcher) time.Duration {
	t.Helper()
	last := -frame
	one := func(x float32) { last += frame; see(t, w, last, x) }
	for range 20 {
		one(.1)
	}
	for x := float32(.6); x < 5; x += .4 { // a head that turns far
		one(x)
	}
	for range 10 {
		one(4.9)
	}
	return last
}

// Where verdicts disagree, another look is wanted, but not with each frame.
func TestHeldInDoubt(t *testing.T) {
	w, _ := watched(t)
	last := doubtful(t, w)
	if s := hold(t, w, last+frame, at(0)); s.Belief.Share > .8 || s.Belief.Person != alice {
		t.Fatalf("no doubt: %+v", s.Belief)
	}
	if w.Look() != nil {
		t.Error("looked at again at once")
	}
	if hold(t, w, last+400*time.Millisecond, at(0)); w.Look() == nil {
		t.Error("not looked at again")
	}
}

// holding is a stream that remembers for which faces it was asked.
type holding struct {
	face.Stream
	asked []int
}

func (h *holding) Look(tracks ...int) { h.asked = tracks }

// Of the people in view those are asked for who are not decided, and nobody else: not alice, who is
// held, while a stranger is beside her.
func TestAsk(t *testing.T) {
	w, _ := watched(t)
	for i := range 90 {
		now := time.Duration(i) * frame
		her, stranger := at(0, .1, 0), at(300, 20, 0)
		her.Track, stranger.Track = 7, 9
		faces := []face.Sample{her}
		if i >= 40 {
			faces[0].Vector, faces[0].Held = nil, true
			faces = append(faces, stranger)
		}
		fixture.Must(w.See(now, faces, nil))(t)
		var h holding
		w.Ask(&h)
		undecided := i < 40+30 // until 25 count, and earlier ones count less
		got := slices.Equal(h.asked, []int{9})
		if i >= 40 && (got != undecided || !got && h.asked != nil) {
			t.Errorf("frame %d: asked for %v", i, h.asked)
		}
	}
}
