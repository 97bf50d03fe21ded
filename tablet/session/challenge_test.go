// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/tablet/session"
)

// act plays frames of the user, 40 ms apart, and returns the words of the session.
//
//   - straight on   > <  turned to the user's left, right   v  eyes shut   m  eyes half shut   .  nobody
//     n  somebody else, straight on   N  turned to the left   V  with shut eyes
func act(t *testing.T, p session.Policy, side session.Side, script string) (*session.Session, []session.Word) {
	t.Helper()
	s, err := session.New(p, face.Space{}, side, noon)
	if err != nil {
		t.Fatal(err)
	}
	var words []session.Word
	now := noon
	for _, c := range script {
		now = now.Add(40 * time.Millisecond)
		f := session.Face{Track: 1, Match: true, Pose: &face.Pose{Turn: .05, Nod: .5, Eyes: .3, Width: .9}}
		switch c {
		case '>':
			f.Pose.Turn, f.Reason = .9, face.TurnedAway
		case '<':
			f.Pose.Turn, f.Reason = -.9, face.TurnedAway
		case 'N':
			f.Pose.Turn, f.Match, f.Reason = .9, false, face.TurnedAway
		case '?':
			f.Pose = nil
		case 'f':
			f.Pose.Turn, f.Pose.Width = .6, .6
		case 'w':
			f.Pose.Turn, f.Pose.Width, f.Pose.Eyes = .2, .75, .12
		case 'V':
			f.Pose.Eyes, f.Match = .12, false
		case 'v':
			f.Pose.Eyes = .12
		case 'm':
			f.Pose.Eyes = .22
		case 'n':
			f.Match = false
		}
		faces := []session.Face{f}
		if c == '.' {
			faces = nil
		}
		w := s.Frame(now, faces).Word
		if len(words) == 0 || words[len(words)-1] != w {
			words = append(words, w)
		}
	}
	return s, words
}

func TestChallenge(t *testing.T) {
	still := strings.Repeat("-", 300)
	for _, c := range []struct {
		name   string
		kind   session.Challenge
		side   session.Side
		script string
		want   session.Word
	}{
		{"turned as asked", session.Turn, session.Left, "----->>>>----", session.Match},
		{"turned to the right as asked", session.Turn, session.Right, "-----<<<<----", session.Match},
		{"turned to the other side", session.Turn, session.Left, "-----<<<>>>---", session.NoMatch},
		{"turned both ways, the right one first", session.Turn, session.Left, "----->>><<<---", session.Match},
		{"turned before it was asked", session.Turn, session.Left, ">>>>" + still, session.NoMatch},
		{"not back yet", session.Turn, session.Left, "----->>>>--", session.Straight},
		{"somebody else comes back", session.Turn, session.Left, "----->>>>nnnnnnnn", session.Straight},
		{"somebody else turns", session.Turn, session.Left, "-----nNNNNn-----" + still, session.NoMatch},
		{"somebody else blinks", session.Blink, session.Left, "-----------nnVVnn-----", session.BlinkNow},
		{"gone in between", session.Turn, session.Left, "----->.>>>---", session.TurnLeft},
		{"a flat picture that is turned", session.Turn, session.Left, "-----ffff----" + still, session.NoMatch},
		{"one that was turned from the start", session.Turn, session.Left, strings.Repeat("w", 9) + "ffff----",
			session.TurnLeft},
		{"a picture that is waved", session.Blink, session.Left, "-----------ww-----", session.BlinkNow},
		{"a flat picture", session.Turn, session.Left, still, session.NoMatch},
		{"somebody else", session.Turn, session.Left, "nnnnn>>>>nnnn" + strings.Repeat("n", 300), session.NoMatch},
		{"without landmarks", session.Turn, session.Left, strings.Repeat("?", 99), session.TurnLeft},
		{"without landmarks from then on", session.Turn, session.Left, "-----" + strings.Repeat("?", 9),
			session.TurnLeft},
		{"blinked", session.Blink, session.Left, "-----------vv-----", session.Match},
		{"blinked twice", session.Blink, session.Left, "-----------vv---vv---", session.Match},
		{"eyes stay shut", session.Blink, session.Left, "-----------" + strings.Repeat("v", 20) + "-----",
			session.BlinkNow},
		{"half shut", session.Blink, session.Left, "-----------mm-----", session.BlinkNow},
		{"a head that turns", session.Blink, session.Left, "----------->><<----", session.BlinkNow},
		{"a flat picture does not blink", session.Blink, session.Left, still, session.NoMatch},
	} {
		s, words := act(t, session.Policy{Challenge: c.kind}, c.side, c.script)
		if s.Result().Word != c.want {
			t.Errorf("%s: %q, want %q (%q)", c.name, s.Result().Word, c.want, words)
		}
	}
	_, words := act(t, session.Policy{Challenge: session.Turn}, session.Left, "----->>>>----")
	if want := []session.Word{session.Looking, session.TurnLeft, session.Straight, session.Match}; !slices.Equal(words,
		want) {
		t.Errorf("words %q, want %q", words, want)
	}
}

// A picture whose landmarks tremble as much as those of still faces in recordings passes no challenge.
func TestChallengeTremblingPicture(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, kind := range []session.Challenge{session.Turn, session.Blink} {
		for range 200 {
			s, err := session.New(session.Policy{Challenge: kind}, face.Space{}, session.Left, noon)
			if err != nil {
				t.Fatal(err)
			}
			now := noon
			for !s.Result().Final {
				now = now.Add(40 * time.Millisecond)
				p := face.Pose{
					Turn:  .1 + .05*r.NormFloat64(),
					Nod:   .5,
					Eyes:  math.Max(.05, .3+.02*r.NormFloat64()),
					Width: .9,
				}
				s.Frame(now, []session.Face{{Track: 1, Match: true, Pose: &p}})
			}
			if s.Result().Word != session.NoMatch {
				t.Fatalf("%s: %q", kind, s.Result().Word)
			}
		}
	}
}

// The score that decides is a mean over the matching frames of the last five. A frame without a score counts as 0.
func TestLiveness(t *testing.T) {
	const none = -1 // no score
	for _, c := range []struct {
		scores []float32
		want   session.Word
		end    session.Word // at the deadline
		mean   float64
	}{
		{[]float32{.9, .9, .9}, session.Match, session.Match, .9},
		{[]float32{.9, .1, .9}, session.Match, session.Match, 1.9 / 3},    // the mean counts
		{[]float32{.5, .5, .5}, session.Match, session.Match, .5},         // at the threshold
		{[]float32{.9, .9}, session.Looking, session.NoMatch, math.NaN()}, // two frames decide nothing
		{[]float32{.1, .1, .9}, session.Lifeless, session.NotLive, 1.1 / 3},
		{[]float32{.1, .1, .1, .9, .9, .9}, session.Match, session.Match, 2.9 / 5}, // of the last five
		{[]float32{none, none, none, none}, session.Lifeless, session.NotLive, 0},
		{[]float32{1, none, none}, session.Lifeless, session.NotLive, 1. / 3},
		{nil, session.Looking, session.NoFace, math.NaN()},
	} {
		s, err := session.New(session.Policy{MinLiveness: .5}, face.Space{}, session.Left, noon)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range c.scores {
			f := session.Face{Track: 1, Match: true, Liveness: &x}
			if x == none {
				f.Liveness = nil
			}
			s.Frame(noon.Add(time.Duration(i+1)*40*time.Millisecond), []session.Face{f})
		}
		if s.Result().Word != c.want {
			t.Errorf("%v: %q, want %q", c.scores, s.Result().Word, c.want)
		}
		mean, ok := s.Liveness()
		if ok == math.IsNaN(c.mean) || ok && math.Abs(mean-c.mean) > 1e-6 { // scores are single precision
			t.Errorf("%v: mean %v, %v, want %v", c.scores, mean, ok, c.mean)
		}
		if got := s.Tick(noon.Add(time.Minute)).Word; got != c.end {
			t.Errorf("%v: ends with %q, want %q", c.scores, got, c.end)
		}
	}
}

// The liveness of frames that do not match, or that show another face, does not count.
func TestLivenessOfOthers(t *testing.T) {
	alive, dead := float32(1), float32(0)
	s, err := session.New(session.Policy{MinLiveness: .5}, face.Space{}, session.Left, noon)
	if err != nil {
		t.Fatal(err)
	}
	now := noon
	frame := func(faces ...session.Face) session.Word {
		now = now.Add(40 * time.Millisecond)
		return s.Frame(now, faces).Word
	}
	for range 2 {
		frame(session.Face{Track: 1, Liveness: &alive})
	}
	for range 2 {
		frame(session.Face{Track: 1, Match: true, Liveness: &dead})
	}
	if got := frame(session.Face{Track: 1, Match: true, Liveness: &dead}); got != session.Lifeless {
		t.Errorf("after a live stranger: %q", got)
	}
	// Two live frames of the user, and then a picture of the user on another track.
	for range 2 {
		frame(session.Face{Track: 2, Match: true, Liveness: &alive})
	}
	for range 3 {
		if got := frame(session.Face{Track: 3, Match: true, Liveness: &dead}); got == session.Match {
			t.Error("the liveness of one face let in another one")
		}
	}
	// Live frames at last, on one track.
	for range 2 {
		frame(session.Face{Track: 4, Match: true, Liveness: &alive})
	}
	if got := frame(session.Face{Track: 4, Match: true, Liveness: &alive}); got != session.Match {
		t.Errorf("a live user: %q", got)
	}
}

// A challenge needs live frames before and after it.
func TestLivenessWithChallenge(t *testing.T) {
	alive, dead := float32(1), float32(0)
	s, err := session.New(session.Policy{MinLiveness: .5, Challenge: session.Turn}, face.Space{}, session.Left, noon)
	if err != nil {
		t.Fatal(err)
	}
	straight := face.Pose{Nod: .5, Eyes: .3, Width: .9}
	for i := range 5 {
		if got := s.Frame(noon.Add(time.Duration(i+1)*40*time.Millisecond),
			[]session.Face{{Track: 1, Match: true, Pose: &straight, Liveness: &dead}}).Word; got == session.TurnLeft {
			t.Fatal("a picture is asked to turn its head")
		}
	}
	for i := range 5 {
		s.Frame(noon.Add(time.Second+time.Duration(i)*40*time.Millisecond),
			[]session.Face{{Track: 1, Match: true, Pose: &straight, Liveness: &alive}})
	}
	if got := s.Result().Word; got != session.TurnLeft {
		t.Errorf("a live user: %q", got)
	}
}
