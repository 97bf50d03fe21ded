// SPDX-License-Identifier: Apache-2.0

package tablet_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/tablet"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// play plays a script with one letter for each frame, a tenth of a second apart. It returns the state of the session
// after each frame.
//
//	m n     the user, or somebody else, on track 1; M N on track 2
//	d       too dark a picture, on track 1
//	.       nobody       2  two faces       !  a fault
func play(t *testing.T, p tablet.Policy, script string) (s *tablet.Session, words []tablet.Word) {
	t.Helper()
	s, err := tablet.NewSession(p, face.Space{}, tablet.Left, noon)
	if err != nil {
		t.Fatal(err)
	}
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
	case '!':
		return s.Fail()
	}
	return s.Frame(now, []tablet.Face{{Track: track, Match: c == 'm' || c == 'M'}})
}

func TestSession(t *testing.T) {
	long := func(s string) string { return s + strings.Repeat(".", 50) }
	for _, c := range []struct {
		script string
		want   tablet.Word
		reason face.Reason
	}{
		{"mmm", tablet.Match, ""},
		{"mm", tablet.Looking, ""},
		{"m", tablet.Looking, ""},
		{"..ddmmm", tablet.Match, ""},
		{"mdmdm", tablet.Match, ""},
		{"nmnmm", tablet.Match, ""},
		{"mmnnn", tablet.Looking, ""},
		{"mnnmnm", tablet.Looking, ""}, // only two of the last five match
		{"mmnn", tablet.Looking, ""},
		{"mm.m", tablet.Looking, ""}, // somebody may have taken the place
		{"mm2m", tablet.Looking, ""}, // or stand beside the user
		{"mmM", tablet.Looking, ""},  // or be somebody else
		{"mmMMM", tablet.Match, ""},  // another track that matches as well
		{"mmMMmm", tablet.Looking, ""},
		{"2", tablet.TwoFaces, ""},
		{"d", tablet.Retry, face.TooDark},
		{long(""), tablet.NoFace, ""},
		{long("dd"), tablet.Poor, face.TooDark},
		{long("22"), tablet.Poor, ""},
		{long("nnnn"), tablet.NoMatch, ""},
		{long("mm"), tablet.NoMatch, ""},
		{"mm!", tablet.Failed, ""},
		{"mm!mmm", tablet.Failed, ""},
		{"mmm!", tablet.Match, ""},
		{"mmmnnnnn", tablet.Match, ""},
	} {
		s, _ := play(t, tablet.Policy{}, c.script)
		r := s.Result()
		final := c.want != tablet.Looking && c.want != tablet.TwoFaces && c.want != tablet.Retry
		if r.Word != c.want || r.Reason != c.reason || r.Final != final {
			t.Errorf("%q: %+v, want %q %q", c.script, r, c.want, c.reason)
		}
	}
}

// Every session is over at its deadline, and nothing changes its result. It ends with a match only after three of five
// consecutive judged frames matched, with one and the same face alone in view.
func TestSessionAlwaysEnds(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	ends := make(map[tablet.Word]int)
	for range 20_000 {
		script := ""
		for range 60 {
			script += string("mmmMnNd.2!"[r.IntN(10-r.IntN(2))])
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
				if deserved(script[:i+1]) && !strings.Contains(script[:i+1], "!") {
					t.Fatalf("%q ends with %q, and was a match at %q", script, end, script[:i+1])
				}
			}
		}
	}
	if ends[tablet.Match] < 1000 || ends[tablet.NoMatch]+ends[tablet.Failed] < 1000 {
		t.Errorf("ends %v", ends)
	}
}

// deserved is the rule written out. It looks at the last five judged frames since another face, nobody, or two faces
// were seen: three of them match, and the last one does.
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
		case c != '!':
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

// Without frames, as from a camera that hangs, the clock alone ends a session. A clock that was set back ends it, too.
func TestTick(t *testing.T) {
	s, err := tablet.NewSession(tablet.Policy{Deadline: 3 * time.Second}, face.Space{}, tablet.Left, noon)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Tick(noon.Add(2999 * time.Millisecond)); r.Final {
		t.Errorf("over too soon: %+v", r)
	}
	if r := s.Tick(noon.Add(3 * time.Second)); !r.Final || r.Word != tablet.NoFace {
		t.Errorf("at the deadline: %+v", r)
	}
	if r := s.Frame(noon.Add(4*time.Second), []tablet.Face{{Track: 1, Match: true}}); r.Word != tablet.NoFace {
		t.Errorf("after the end: %+v", r)
	}
	s, _ = play(t, tablet.Policy{}, "mm")
	if r := s.Frame(noon.Add(-time.Second), []tablet.Face{{Track: 1, Match: true}}); !r.Final ||
		r.Word != tablet.Failed {
		t.Errorf("a clock that was set back: %+v", r)
	}
	// A frame that comes too late does not count, even if it would have completed the match.
	s, _ = play(t, tablet.Policy{}, "mm")
	if r := s.Frame(noon.Add(5*time.Second), []tablet.Face{{Track: 1, Match: true}}); r.Word != tablet.NoMatch {
		t.Errorf("too late: %+v", r)
	}
}

func TestPolicyErrors(t *testing.T) {
	for _, p := range []tablet.Policy{
		{Needed: 1}, {Needed: -1}, {Window: 2}, {Needed: 6}, {Deadline: -1}, {Deadline: time.Hour}, {Failures: -1},
		{Delay: -1}, {Delay: time.Hour}, {Password: -1},
		{Challenge: "sing"}, {MinLiveness: 1.1}, {MinLiveness: math.NaN()},
	} {
		if _, err := tablet.NewSession(p, face.Space{}, tablet.Left, noon); !errors.Is(err, tablet.ErrPolicy) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	fives := tablet.Policy{Needed: 5, Window: 5, Deadline: time.Minute}
	if _, err := tablet.NewSession(fives, face.Space{}, tablet.Left, noon); err != nil {
		t.Error(err)
	}
}

func TestLimits(t *testing.T) {
	var p tablet.Policy
	var l tablet.Limits
	ask := func(what string, after time.Duration, why tablet.Refusal, wait time.Duration) {
		t.Helper()
		// The remembered state is the same after a restart.
		b, err := l.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var again tablet.Limits
		if err := again.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		for _, l := range []tablet.Limits{l, again} {
			if w, d := l.Ask(p, tablet.At(noon.Add(after))); w != why || d != wait {
				t.Errorf("%s: %q, %v; want %q, %v", what, w, d, why, wait)
			}
		}
	}
	ask("a new user", 0, tablet.PasswordDue, 0)
	l.Password(tablet.At(noon))
	ask("after the password", 0, "", 0)
	ask("just before it is due", 48*time.Hour-1, "", 0)
	ask("when it is due", 48*time.Hour, tablet.PasswordDue, 0)
	ask("before it was given", -time.Hour, tablet.PasswordDue, 0)
	for i, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		l.Failed(tablet.At(noon))
		ask(fmt.Sprint(i+1, " failures"), 0, tablet.Wait, wait)
		ask("the moment before", wait-time.Millisecond, tablet.Wait, time.Millisecond)
		ask("after the wait", wait, "", 0)
	}
	l.Failed(tablet.At(noon))
	ask("five failures", time.Hour, tablet.TooManyFailures, 0)
	l.Password(tablet.At(noon.Add(time.Hour)))
	ask("the password", time.Hour, "", 0)
	l.Failed(tablet.At(noon.Add(time.Hour)))
	l.Matched(tablet.At(noon.Add(time.Hour)))
	ask("a match", time.Hour, "", 0)
	ask("a match does not put the password off", 49*time.Hour, tablet.PasswordDue, 0)
	// The delay grows up to a limit, and no clock makes it longer.
	p = tablet.Policy{Failures: 1000, MaxDelay: 10 * time.Second}
	for range 900 {
		l.Failed(tablet.At(noon.Add(2 * time.Hour)))
	}
	ask("many failures", 2*time.Hour, tablet.Wait, 10*time.Second)
	ask("a clock that was set back", time.Hour, tablet.PasswordDue, 0)
}

// No change of the wall clock delays a password that is due, or shortens a wait.
func TestLimitsClock(t *testing.T) {
	at := func(boot string, wall, up time.Duration) tablet.Moment {
		return tablet.Moment{Wall: noon.Add(wall), Boot: boot, Up: up}
	}
	const hour = time.Hour
	for _, c := range []struct {
		name string
		note func(*tablet.Limits)
		ask  tablet.Moment
		want tablet.Refusal
	}{
		{"the truth", nil, at("a", 47*hour, 48*hour), ""},
		{"the truth, due", nil, at("a", 48*hour, 49*hour), tablet.PasswordDue},
		{"set back while it runs", nil, at("a", -1000*hour, 2*hour), ""},
		{"set back while it runs, due", nil, at("a", hour, 49*hour), tablet.PasswordDue},
		{"set forward", nil, at("a", 1000*hour, 2*hour), tablet.PasswordDue},
		{"set back while it is off", nil, at("b", -2*time.Minute, 0), tablet.PasswordDue},
		{"a clock that runs a little slow", nil, at("b", -30*time.Second, 0), ""},
		{"set back while it is off to after the password, and left on", nil, at("b", hour, 48*hour),
			tablet.PasswordDue},
		{"set back while it is off to before a match", func(l *tablet.Limits) {
			l.Matched(at("a", 40*hour, 41*hour))
		}, at("b", hour, 0), tablet.PasswordDue},
		{"a match after it was set back", func(l *tablet.Limits) {
			l.Matched(at("a", -10*hour, 41*hour))
			l.Matched(at("b", -9*hour, hour))
		}, at("b", -2*hour, 8*hour), tablet.PasswordDue},
		{"a match when it was set back", func(l *tablet.Limits) {
			l.Matched(at("b", -hour, 0))
		}, at("b", 0, hour), tablet.PasswordDue},
		{"a wait", func(l *tablet.Limits) {
			l.Failed(at("a", hour, 2*hour))
		}, at("a", hour+time.Second/2, 2*hour+time.Second/2), tablet.Wait},
		{"a wait, set forward", func(l *tablet.Limits) {
			l.Failed(at("a", hour, 2*hour))
		}, at("a", 2*hour, 2*hour+time.Second/2), tablet.Wait},
		{"a wait, set back", func(l *tablet.Limits) {
			l.Failed(at("a", hour, 2*hour))
		}, at("a", 0, 2*hour+time.Second/2), tablet.Wait},
		{"after a wait", func(l *tablet.Limits) {
			l.Failed(at("a", hour, 2*hour))
		}, at("a", hour+time.Second, 2*hour+time.Second), ""},
	} {
		var l tablet.Limits
		l.Password(at("a", 0, hour))
		if c.note != nil {
			c.note(&l)
		}
		b, err := l.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var again tablet.Limits
		if err := again.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		for _, l := range []tablet.Limits{l, again} {
			if why, _ := l.Ask(tablet.Policy{}, c.ask); why != c.want {
				t.Errorf("%s: %q, want %q", c.name, why, c.want)
			}
		}
	}
}

func TestLimitsUnreadable(t *testing.T) {
	for _, b := range [][]byte{nil, {}, []byte("x"), {0xa1}, []byte("\xa1\x68failures\x20")} {
		var l tablet.Limits
		l.Password(tablet.At(noon))
		if err := l.UnmarshalBinary(b); !errors.Is(err, tablet.ErrLimits) {
			t.Errorf("%q: %v", b, err)
		}
		if why, _ := l.Ask(tablet.Policy{}, tablet.At(noon)); why != tablet.PasswordDue {
			t.Errorf("%q lets in: %q", b, why)
		}
	}
}

func ExampleSession() {
	s, err := tablet.NewSession(tablet.Policy{}, face.Space{}, tablet.Left, noon)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 4 {
		r := s.Frame(noon.Add(time.Duration(i)*100*time.Millisecond), []tablet.Face{{Track: 1, Match: i != 1}})
		fmt.Println(r.Word)
	}
	// Output:
	// looking
	// looking
	// looking
	// match
}

// A session without permission to let in works like any other session, but asks for the password instead of ending with
// a match.
func TestUnproven(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	ends := make(map[tablet.Word]int)
	for range 2000 {
		script := ""
		for range 60 {
			script += string("mmmMnNd.2!"[r.IntN(10-r.IntN(2))])
		}
		_, want := play(t, tablet.Policy{}, script)
		s, err := tablet.NewSession(tablet.Policy{}, face.Space{}, tablet.Left, noon)
		if err != nil {
			t.Fatal(err)
		}
		s.Unproven()
		now := noon
		for i, c := range script {
			now = now.Add(100 * time.Millisecond)
			got := step(s, now, c)
			if w := want[i]; got.Word != w && !(w == tablet.Match && got.Word == tablet.Unproven && got.Final) ||
				got.Word == tablet.Match {
				t.Fatalf("%q, frame %d: %q, another session %q", script, i, got.Word, w)
			}
		}
		ends[s.Result().Word]++
	}
	if ends[tablet.Unproven] == 0 || ends[tablet.NoMatch] == 0 || ends[tablet.Failed] == 0 {
		t.Errorf("they end with %v", ends)
	}
}

// A password that is due does not prevent a session that asks for it. Failures prevent it.
func TestLimitsUnproven(t *testing.T) {
	var l tablet.Limits
	now := tablet.At(noon)
	ask := func(want tablet.Refusal, wait time.Duration) {
		t.Helper()
		if why, w := l.AskUnproven(tablet.Policy{}, now); why != want || w != wait {
			t.Errorf("%q, %v; want %q, %v", why, w, want, wait)
		}
	}
	ask("", 0)
	l.Failed(now)
	ask(tablet.Wait, time.Second)
	now.Wall = now.Wall.Add(time.Second)
	ask("", 0)
	for range 4 {
		l.Failed(now)
	}
	now.Wall = now.Wall.Add(1000 * time.Hour)
	ask(tablet.TooManyFailures, 0)
	l.Password(now)
	now.Wall = now.Wall.Add(1000 * time.Hour)
	ask("", 0)
	if why, _ := l.Ask(tablet.Policy{}, now); why != tablet.PasswordDue {
		t.Errorf("asking changed it: %q", why)
	}
}
