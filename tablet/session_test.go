// SPDX-License-Identifier: Apache-2.0

package tablet_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/tablet"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// play plays a script with one letter for each frame, a tenth of a second apart. It returns the
// state of the session after each frame.
//
//	m n     the user, or somebody else, on track 1; M N on track 2
//	d       too dark a picture, on track 1
//	.       nobody       2  two faces
func play(t *testing.T, p tablet.Policy, script string) (s *tablet.Session, words []tablet.Word) {
	t.Helper()
	s = fixture.Must(tablet.NewSession(p, face.Space{}, tablet.TurnLeft, noon))(t)
	now := noon
	for _, c := range script {
		now = now.Add(100 * time.Millisecond)
		words = append(words, step(s, now, c).Word)
	}
	return s, words
}

func step(s *tablet.Session, now time.Time, c rune) tablet.Result {
	track := 1
	if c == 'M' || c == 'N' {
		track = 2
	}
	switch c {
	case '.':
		return s.Frame(now, nil)
	case '2':
		return s.Frame(now, []tablet.Face{{Track: 1, Match: true}, {Track: 2}})
	case 'd':
		return s.Frame(now, []tablet.Face{{Track: 1, Reason: face.TooDark}})
	}
	return s.Frame(now, []tablet.Face{{Track: track, Match: c == 'm' || c == 'M'}})
}

// The words of a session besides the rule of a match, which TestSessionAlwaysEnds has.
func TestSession(t *testing.T) {
	long := func(s string) string { return s + strings.Repeat(".", 50) }
	for _, c := range []struct {
		script string
		want   tablet.Word
		reason face.Reason
	}{
		{"2", "two-faces", ""},
		{"d", tablet.Retry, face.TooDark},
		{long(""), "no-face", ""},
		{long("dd"), "poor-picture", face.TooDark},
		{long("22"), "poor-picture", ""},
		{long("nnnn"), tablet.NoMatch, ""},
		{long("mm"), "too-few-pictures", ""}, // a decision needs three
		{long("nn"), "too-few-pictures", ""},
		{long("nndnn.n"), tablet.NoMatch, ""},
		{long("m.m.m.n.n.n"), "too-few-pictures", ""},
	} {
		s, _ := play(t, tablet.Policy{}, c.script)
		r := s.Result()
		final := c.want != "looking" && c.want != "two-faces" && c.want != tablet.Retry
		if r.Word != c.want || r.Reason != c.reason || r.Final != final {
			t.Errorf("%q: %+v, want %q %q", c.script, r, c.want, c.reason)
		}
	}
}

// Every session is over at its deadline, and nothing changes its result. It ends with a match only
// after three of five consecutive judged frames matched, with one and the same face alone in view.
func TestSessionAlwaysEnds(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	ends := make(map[tablet.Word]int)
	for range 20_000 {
		script := ""
		for range 60 {
			script += string("mmmMnNd.2"[r.IntN(9)])
		}
		s, words := play(t, tablet.Policy{}, script)
		if !s.Result().Final {
			t.Fatalf("%q does not end", script)
		}
		end := s.Result().Word
		ends[end]++
		at := len(words) - 1
		for at > 0 && words[at-1] == end {
			at--
		}
		if at > 50 {
			t.Fatalf("%q ends at frame %d", script, at)
		}
		if end == tablet.Match && !deserved(script[:at+1]) {
			t.Fatalf("%q ends with a match", script[:at+1])
		}
		if end != tablet.Match {
			for i := range at { // and with no other word if it is deserved
				if deserved(script[:i+1]) {
					t.Fatalf("%q ends with %q, and was a match at %q", script, end, script[:i+1])
				}
			}
		}
	}
	if ends[tablet.Match] < 1000 || ends[tablet.NoMatch] < 1000 {
		t.Errorf("ends %v", ends)
	}
}

// deserved is the rule written out. It looks at the last five judged frames since another face,
// nobody, or two faces were seen: three of them match, and the last one does.
func deserved(script string) bool {
	var last []bool
	track := ' '
	for _, c := range script {
		switch {
		case c == '.' || c == '2':
			last, track = nil, ' '
		case c == 'd':
			if track != '1' {
				last, track = nil, '1'
			}
		default:
			now := '1'
			if c == 'M' || c == 'N' {
				now = '2'
			}
			if now != track {
				last, track = nil, now
			}
			last = append(last, c == 'm' || c == 'M')
		}
	}
	last = last[max(0, len(last)-5):]
	n := 0
	for _, m := range last {
		if m {
			n++
		}
	}
	return n >= 3 && last[len(last)-1] && !strings.HasSuffix(script, "d")
}

// Without frames, as from a camera that hangs, the clock alone ends a session. A clock that was set
// back ends it, too.
func TestTick(t *testing.T) {
	s := fixture.Must(tablet.NewSession(tablet.Policy{Deadline: 3 * time.Second}, face.Space{},
		tablet.TurnLeft, noon))(t)
	if r := s.Tick(noon.Add(2999 * time.Millisecond)); r.Final {
		t.Errorf("over too soon: %+v", r)
	}
	if r := s.Tick(noon.Add(3 * time.Second)); !r.Final || r.Word != "too-few-pictures" {
		t.Errorf("at the deadline: %+v", r)
	}
	if r := s.Frame(noon.Add(4*time.Second),
		[]tablet.Face{{Track: 1, Match: true}}); r.Word != "too-few-pictures" {
		t.Errorf("after the end: %+v", r)
	}
	s, _ = play(t, tablet.Policy{}, "mm")
	if r := s.Frame(noon.Add(-time.Second), []tablet.Face{{Track: 1, Match: true}}); !r.Final ||
		r.Word != tablet.Failed {
		t.Errorf("a clock that was set back: %+v", r)
	}
	// A frame that comes too late does not count, even if it would have completed the match.
	s, _ = play(t, tablet.Policy{}, "mm")
	if r := s.Frame(noon.Add(5*time.Second),
		[]tablet.Face{{Track: 1, Match: true}}); r.Word != "too-few-pictures" {
		t.Errorf("too late: %+v", r)
	}
}

func TestPolicyErrors(t *testing.T) {
	for _, p := range []tablet.Policy{
		{Deadline: -1}, {Deadline: time.Hour},
		{Challenge: "sing"}, {MinLiveness: 1.1}, {MinLiveness: math.NaN()},
	} {
		if _, err := tablet.NewSession(p, face.Space{}, tablet.TurnLeft, noon); !errors.Is(err,
			tablet.ErrPolicy) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}
