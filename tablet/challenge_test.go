// SPDX-License-Identifier: Apache-2.0

package tablet_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/tablet"
)

// act plays frames of the user, 40 ms apart, and returns the words of the session.
//
//   - straight on > < turned to the user's left, right . nobody ? without landmarks f a flat
//     picture that is turned w less n somebody else, straight on N turned to the left 2 two people
func act(t *testing.T, p tablet.Policy, side tablet.Word,
	script string) (*tablet.Session, []tablet.Word) {
	t.Helper()
	s := fixture.Must(tablet.NewSession(p, face.Space{}, side, noon))(t)
	var words []tablet.Word
	now := noon
	for _, c := range script {
		now = now.Add(40 * time.Millisecond)
		f := tablet.Face{Track: 1, Match: true, Pose: &face.Pose{Turn: .05, Nod: .5, Width: .9}}
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
			f.Pose.Turn, f.Pose.Width = .2, .75
		case 'n':
			f.Match = false
		}
		faces := []tablet.Face{f}
		switch c {
		case '.':
			faces = nil
		case '2':
			faces = append(faces, tablet.Face{Track: 2})
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
		side   tablet.Word
		script string
		want   tablet.Word
	}{
		{"turned as asked", tablet.TurnLeft, "----->>>>----", tablet.Match},
		{"turned to the right as asked", tablet.TurnRight, "-----<<<<----", tablet.Match},
		{"turned to the other side", tablet.TurnLeft, "-----<<<>>>---", tablet.NoMatch},
		{"turned both ways, the right one first", tablet.TurnLeft, "----->>><<<---", tablet.Match},
		{"turned before it was asked", tablet.TurnLeft, ">>>>" + still, tablet.NoMatch},
		{"not back yet", tablet.TurnLeft, "----->>>>-", tablet.Straight},
		{"turned so far that the face is not known", tablet.TurnLeft, "-----NNNN--", tablet.Match},
		{"somebody else comes back", tablet.TurnLeft, "----->>>>nnnnnnnn", tablet.Straight},
		{"somebody else turns", tablet.TurnLeft, "-----nNNNNn-----" + still, tablet.NoMatch},
		{"gone in between", tablet.TurnLeft, "-----.>>>---", tablet.TurnLeft},
		{"gone after the turn, and back", tablet.TurnLeft, "----->.>>---", tablet.Match},
		{"hardly back", tablet.TurnLeft, "----->.>>--", tablet.Straight},
		{"somebody else comes instead", tablet.TurnLeft, "----->.n---", tablet.TurnLeft},
		{"somebody else comes beside", tablet.TurnLeft, "----->.-2---", tablet.TurnLeft},
		{"a flat picture that is turned", tablet.TurnLeft, "-----ffff----" + still, tablet.NoMatch},
		{"one that was turned from the start", tablet.TurnLeft, strings.Repeat("w", 9) + "ffff----",
			tablet.TurnLeft},
		{"a flat picture", tablet.TurnLeft, still, tablet.NoMatch},
		{"hardly seen after it was asked", tablet.TurnLeft, "---" + strings.Repeat("?", 300),
			"too-few-pictures"},
		{"hardly seen after the turn", tablet.TurnLeft, "----->>>-" + strings.Repeat(">", 300),
			"too-few-pictures"},
		{"somebody else", tablet.TurnLeft, "nnnnn>>>>nnnn" + strings.Repeat("n", 300),
			tablet.NoMatch},
		{"without landmarks", tablet.TurnLeft, strings.Repeat("?", 99), tablet.TurnLeft},
		{"without landmarks from then on", tablet.TurnLeft, "-----" + strings.Repeat("?", 9),
			tablet.TurnLeft},
	} {
		s, words := act(t, tablet.Policy{Challenge: tablet.Turn}, c.side, c.script)
		if s.Result().Word != c.want {
			t.Errorf("%s: %q, want %q (%q)", c.name, s.Result().Word, c.want, words)
		}
	}
	for _, c := range []struct {
		name, script string
		want         tablet.Word
	}{
		{"to both sides, in the order", "----->>>---<<<--", tablet.Match},
		{"to one side", "----->>>" + strings.Repeat("-", 400), tablet.NoMatch},
		{"in the other order", "-----<<<--->>>--", tablet.NoMatch},
		{"twice to the first side", "----->>>--->>>---" + strings.Repeat("-", 400), tablet.NoMatch},
		{"past the middle at once", "----->>>-<<<--", tablet.Match},
		{"gone after the first side", "----->>>--.-<<<--", tablet.TurnLeft},
		{"gone after both", "----->>>---<.---", tablet.TurnLeft},
	} {
		if s, words := act(t, tablet.Policy{Challenge: tablet.TurnBoth}, tablet.TurnLeft,
			c.script); s.Result().Word != c.want {
			t.Errorf("both sides, %s: %q, want %q (%q)", c.name, s.Result().Word, c.want, words)
		}
	}
	_, words := act(t, tablet.Policy{Challenge: tablet.Turn}, tablet.TurnLeft, "----->>>>----")
	if want := []tablet.Word{"looking", tablet.TurnLeft, tablet.Straight,
		tablet.Match}; !slices.Equal(words,
		want) {
		t.Errorf("words %q, want %q", words, want)
	}
}

// The score that decides is a mean over the matching frames of the last five. A frame without a
// score counts as 0.
func TestSessionLiveness(t *testing.T) {
	const none = -1 // no score
	for _, c := range []struct {
		scores []float32
		want   tablet.Word
		end    tablet.Word // at the deadline
		mean   float64
	}{
		{[]float32{.9, .9, .9}, tablet.Match, tablet.Match, .9},
		{[]float32{.9, .1, .9}, tablet.Match, tablet.Match, 1.9 / 3}, // the mean counts
		{[]float32{.5, .5, .5}, tablet.Match, tablet.Match, .5},      // at the threshold
		// two frames decide nothing
		{[]float32{.9, .9}, "looking", "too-few-pictures", math.NaN()},
		{[]float32{.1, .1, .9}, "not-live", "taken-for-picture", 1.1 / 3},
		// of the last five
		{[]float32{.1, .1, .1, .9, .9, .9}, tablet.Match, tablet.Match, 2.9 / 5},
		{[]float32{none, none, none, none}, "not-live", "taken-for-picture", 0},
		{[]float32{1, none, none}, "not-live", "taken-for-picture", 1. / 3},
		{nil, "looking", "too-few-pictures", math.NaN()},
	} {
		s := fixture.Must(tablet.NewSession(tablet.Policy{MinLiveness: .5}, face.Space{},
			tablet.TurnLeft, noon))(t)
		for i, x := range c.scores {
			f := tablet.Face{Track: 1, Match: true, Liveness: &x}
			if x == none {
				f.Liveness = nil
			}
			s.Frame(noon.Add(time.Duration(i+1)*40*time.Millisecond), []tablet.Face{f})
		}
		if s.Result().Word != c.want {
			t.Errorf("%v: %q, want %q", c.scores, s.Result().Word, c.want)
		}
		mean, ok := s.Liveness()
		// scores are single precision
		if ok == math.IsNaN(c.mean) || ok && math.Abs(mean-c.mean) > 1e-6 {
			t.Errorf("%v: mean %v, %v, want %v", c.scores, mean, ok, c.mean)
		}
		if got := s.Tick(noon.Add(time.Minute)).Word; got != c.end {
			t.Errorf("%v: ends with %q, want %q", c.scores, got, c.end)
		}
	}
}

// A challenge needs live frames before and after it.
func TestLivenessWithChallenge(t *testing.T) {
	alive, dead := float32(1), float32(0)
	s := fixture.Must(tablet.NewSession(tablet.Policy{MinLiveness: .5, Challenge: tablet.Turn},
		face.Space{}, tablet.TurnLeft, noon))(t)
	straight := face.Pose{Nod: .5, Width: .9}
	for i := range 5 {
		if got := s.Frame(noon.Add(time.Duration(i+1)*40*time.Millisecond),
			[]tablet.Face{{Track: 1, Match: true, Pose: &straight,
				Liveness: &dead}}).Word; got == tablet.TurnLeft {
			t.Fatal("a picture is asked to turn its head")
		}
	}
	for i := range 5 {
		s.Frame(noon.Add(time.Second+time.Duration(i)*40*time.Millisecond),
			[]tablet.Face{{Track: 1, Match: true, Pose: &straight, Liveness: &alive}})
	}
	if got := s.Result().Word; got != tablet.TurnLeft {
		t.Errorf("a live user: %q", got)
	}
}
