// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/fxamacker/cbor/v2"

	"github.com/faceauth/faceauth/models"
)

var midday = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// again returns limits as they are after a restart.
func again(t *testing.T, l limits) (read limits) {
	t.Helper()
	b, err := cbor.Marshal(l)
	if err == nil {
		err = cbor.Unmarshal(b, &read)
	}
	fixture.Check(t, err)
	return read
}

func TestLimits(t *testing.T) {
	var p Policy
	var l limits
	ask := func(what string, after time.Duration, why Refusal, wait time.Duration) {
		t.Helper()
		if w, d := again(t, l).ask(p, onWall(midday.Add(after))); w != why || d != wait {
			t.Errorf("%s: %q, %v; want %q, %v", what, w, d, why, wait)
		}
	}
	ask("a new user", 0, due, 0)
	l.password(onWall(midday))
	ask("after the password", 0, "", 0)
	ask("just before it is due", 48*time.Hour-1, "", 0)
	ask("when it is due", 48*time.Hour, due, 0)
	ask("before it was given", -time.Hour, due, 0)
	for i, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second,
		8 * time.Second} {
		l.failed(onWall(midday))
		ask(fmt.Sprint(i+1, " failures"), 0, Wait, wait)
		ask("the moment before", wait-time.Millisecond, Wait, time.Millisecond)
		ask("after the wait", wait, "", 0)
	}
	l.failed(onWall(midday))
	ask("five failures", time.Hour, tooManyFailures, 0)
	l.password(onWall(midday.Add(time.Hour)))
	ask("the password", time.Hour, "", 0)
	l.failed(onWall(midday.Add(time.Hour)))
	l.matched(onWall(midday.Add(time.Hour)))
	ask("a match", time.Hour, "", 0)
	ask("a match does not put the password off", 49*time.Hour, due, 0)
	// The delay grows up to a minute, and no clock makes it longer.
	p = Policy{Failures: 1000}
	for range 900 {
		l.failed(onWall(midday.Add(2 * time.Hour)))
	}
	ask("many failures", 2*time.Hour, Wait, time.Minute)
	ask("a clock that was set back", time.Hour, due, 0)
}

// No change of the wall clock delays a password that is due, or shortens a wait.
func TestLimitsClock(t *testing.T) {
	at := func(boot string, wall, up time.Duration) moment {
		return moment{Wall: onWall(midday.Add(wall)).Wall, Boot: boot, Up: up}
	}
	const hour = time.Hour
	for _, c := range []struct {
		name string
		note func(*limits)
		ask  moment
		want Refusal
	}{
		{"the truth", nil, at("a", 47*hour, 48*hour), ""},
		{"the truth, due", nil, at("a", 48*hour, 49*hour), due},
		{"set back while it runs", nil, at("a", -1000*hour, 2*hour), ""},
		{"set back while it runs, due", nil, at("a", hour, 49*hour), due},
		{"set forward", nil, at("a", 1000*hour, 2*hour), due},
		{"set back while it is off", nil, at("b", -2*time.Minute, 0), due},
		{"a clock that runs a little slow", nil, at("b", -30*time.Second, 0), ""},
		{"set back while it is off to after the password, and left on", nil, at("b", hour, 48*hour),
			due},
		{"set back while it is off to before a match", func(l *limits) {
			l.matched(at("a", 40*hour, 41*hour))
		}, at("b", hour, 0), due},
		{"a match after it was set back", func(l *limits) {
			l.matched(at("a", -10*hour, 41*hour))
			l.matched(at("b", -9*hour, hour))
		}, at("b", -2*hour, 8*hour), due},
		{"a match when it was set back", func(l *limits) {
			l.matched(at("b", -hour, 0))
		}, at("b", 0, hour), due},
		{"a wait", func(l *limits) {
			l.failed(at("a", hour, 2*hour))
		}, at("a", hour+time.Second/2, 2*hour+time.Second/2), Wait},
		{"a wait, set forward", func(l *limits) {
			l.failed(at("a", hour, 2*hour))
		}, at("a", 2*hour, 2*hour+time.Second/2), Wait},
		{"a wait, set back", func(l *limits) {
			l.failed(at("a", hour, 2*hour))
		}, at("a", 0, 2*hour+time.Second/2), Wait},
		{"after a wait", func(l *limits) {
			l.failed(at("a", hour, 2*hour))
		}, at("a", hour+time.Second, 2*hour+time.Second), ""},
	} {
		var l limits
		l.password(at("a", 0, hour))
		if c.note != nil {
			c.note(&l)
		}
		if why, _ := again(t, l).ask(Policy{}, c.ask); why != c.want {
			t.Errorf("%s: %q, want %q", c.name, why, c.want)
		}
	}
}

// A password that is due does not prevent a session that asks for it. Failures prevent it.
func TestLimitsUnproven(t *testing.T) {
	c := account{Told: "another account"}
	l, now := &c.Limits, onWall(midday)
	ask := func(want Refusal, wait time.Duration) {
		t.Helper()
		if why, w := c.ask(0, Policy{}, now); why != want || w != wait {
			t.Errorf("%q, %v; want %q, %v", why, w, want, wait)
		}
	}
	ask("", 0)
	l.failed(now)
	ask(Wait, time.Second)
	now.Wall += time.Second
	ask("", 0)
	for range 4 {
		l.failed(now)
	}
	now.Wall += 1000 * time.Hour
	ask(tooManyFailures, 0)
	l.password(now)
	now.Wall += 1000 * time.Hour
	ask("", 0)
	if why, _ := l.ask(Policy{}, now); why != due {
		t.Errorf("asking changed it: %q", why)
	}
}

// An asker whom the profile does not remember may try, unless it remembers too many already. The
// user always may, as far as the user's own limits go.
func TestAskers(t *testing.T) {
	now := onWall(time.Unix(1e9, 0))
	remembered := func(n int) map[uint32]limits {
		others := make(map[uint32]limits)
		for i := range n {
			others[uint32(1000+i)] = limits{}
		}
		return others
	}
	for name, c := range map[string]struct {
		others int
		asker  uint32
		want   Refusal
	}{
		"the user":                          {mostOthers, 0, ""},
		"the first other":                   {0, 5, ""},
		"the last one who is remembered":    {mostOthers, 1000 + mostOthers - 1, ""},
		"one whom the profile can remember": {mostOthers - 1, 5, ""},
		"one too many":                      {mostOthers, 5, tooManyFailures},
	} {
		a := account{Others: remembered(c.others)}
		a.Limits.password(now)
		if got, _ := a.ask(c.asker, Policy{}, now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The default anchor of the built-in network is the distance that TestAnchor of package pipeline
// measures.
func TestDefaultAnchor(t *testing.T) {
	a := Options{}.defaults(models.Default(models.Embedding).Space()).Anchor
	if math.Abs(a-1) > .0005 {
		t.Error("the anchor is ", a)
	}
}
