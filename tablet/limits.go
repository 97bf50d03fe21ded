// SPDX-License-Identifier: Apache-2.0

package tablet

import "time"

// moment is a time by two clocks: the wall clock, which an administrator can set, and the time
// since the boot of the device, which nobody can set.
type moment struct {
	Wall time.Duration `cbor:"wall"` // since 1970
	Boot string        `cbor:"boot"` // identifies the boot of the device; "" if not known
	Up   time.Duration `cbor:"up"`   // time since the boot, with sleep
}

// onWall returns a moment with the wall clock only.
func onWall(t time.Time) moment { return moment{Wall: time.Duration(t.UnixNano())} }

// setBack is how far a clock may differ between two boots without counting as set back.
const setBack = time.Minute

// since returns the longest and the shortest time that may have passed since an earlier moment.
// Back is true if the wall clock was set back, and no other clock tells how far.
func (m moment) since(then moment) (longest, shortest time.Duration, back bool) {
	wall := m.Wall - then.Wall
	switch {
	case m.Boot == "" || then.Boot == "":
		return max(wall, 0), max(wall, 0), wall < 0
	case m.Boot == then.Boot:
		up := max(m.Up-then.Up, 0)
		return max(wall, up), max(min(wall, up), 0), false
	}
	return max(wall, m.Up), max(wall, 0), wall < -setBack
}

// limits are the record of a user's attempts. The zero value belongs to a user who never gave the
// password: face login is refused until then.
type limits struct {
	Failures int           `cbor:"failures"` // number of failures since the last match or password
	Last     moment        `cbor:"last"`     // time of the last failure
	Given    bool          `cbor:"given"`    // the password was given at least once
	Noted    moment        `cbor:"noted"`    // time of the last change
	Age      time.Duration `cbor:"age"`      // age of the password at that time
}

const (
	mostDelay   = time.Minute    // the longest pause after a failure
	passwordDue = 48 * time.Hour // until only the password works
)

// Refusal is the reason why a session may not begin.
type Refusal string

// Refusals. The last two end only with the password.
const (
	Wait            Refusal = "too soon after a failure"
	tooManyFailures Refusal = "too many failures"
	due             Refusal = "the password has not been used for too long"
)

// Ask returns "" if a session may begin at a moment, or the reason why not; for [Wait] also the
// remaining time. If the clock was set back while the device was off, the password is due. Setting
// the clock while the device is on has no effect. No clock makes a user wait longer than the delay.
func (l limits) ask(p Policy, now moment) (why Refusal, wait time.Duration) {
	p = p.Defaults()
	longest, _, back := now.since(l.Noted)
	switch {
	case l.Failures >= p.Failures:
		return tooManyFailures, 0
	case !l.Given || back || l.Age+longest >= passwordDue:
		return due, 0
	case l.Failures == 0:
		return "", 0
	}
	delay := p.Delay
	for range l.Failures - 1 {
		delay = min(2*delay, mostDelay)
	}
	if _, shortest, _ := now.since(l.Last); shortest < delay {
		return Wait, delay - shortest
	}
	return "", 0
}

// knowing returns the same limits with a password of just now.
func (l limits) knowing(now moment) limits {
	l.Given, l.Noted, l.Age = true, now, 0
	return l
}

// givenSince reports whether the password was given after a moment.
func (l limits) givenSince(then, now moment) bool {
	passed, _, _ := now.since(then)
	longest, _, _ := now.since(l.Noted)
	return l.Given && l.Age+longest < passed
}

// note updates the times before a change.
func (l *limits) note(now moment) {
	longest, _, back := now.since(l.Noted)
	if back { // the passed time is unknown
		l.Given = false
	}
	l.Age, l.Noted = l.Age+longest, now
}

// Failed records a failed attempt.
func (l *limits) failed(now moment) {
	l.note(now)
	l.Failures, l.Last = l.Failures+1, now
}

// ended records the end of a failed attempt: the delay begins then.
func (l *limits) ended(now moment) {
	l.note(now)
	l.Last = now
}

// matched records a match. It does not change when the password is due.
func (l *limits) matched(now moment) {
	l.note(now)
	l.Failures = 0
}

// Password records that the password was given.
func (l *limits) password(now moment) { *l = limits{Given: true, Noted: now} }
