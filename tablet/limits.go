// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// errLimits is returned by limits.UnmarshalBinary for bytes that are not encoded limits.
var errLimits = errors.New("unreadable limits")

// moment is a time by two clocks: the wall clock, which an administrator can set, and the time since the boot of the
// device, which nobody can set.
type moment struct {
	Wall time.Time
	Boot string        // identifies the boot of the device; "" if not known
	Up   time.Duration // time since the boot, with sleep
}

// onWall returns a moment with the wall clock only.
func onWall(t time.Time) moment { return moment{Wall: t} }

// setBack is how far a clock may differ between two boots without counting as set back.
const setBack = time.Minute

// since returns the longest and the shortest time that may have passed since an earlier moment. Back is true if the
// wall clock was set back, and no other clock tells how far.
func (m moment) since(then moment) (longest, shortest time.Duration, back bool) {
	wall := m.Wall.Sub(then.Wall)
	switch {
	case m.Boot == "" || then.Boot == "":
		return max(wall, 0), max(wall, 0), wall < 0
	case m.Boot == then.Boot:
		up := max(m.Up-then.Up, 0)
		return max(wall, up), max(min(wall, up), 0), false
	}
	return max(wall, m.Up), max(wall, 0), wall < -setBack
}

// limits are the record of a user's attempts. The zero value belongs to a user who never gave the password: face login
// is refused until then.
type limits struct {
	failures int           // number of failures since the last match or password
	last     moment        // time of the last failure
	given    bool          // the password was given at least once
	noted    moment        // time of the last change
	age      time.Duration // age of the password at that time
}

// Refusal is the reason why a session may not begin.
type Refusal string

// Refusals. The last two end only with the password.
const (
	Wait            Refusal = "too soon after a failure"
	TooManyFailures Refusal = "too many failures"
	PasswordDue     Refusal = "the password has not been used for too long"
)

// limits is the encoded form.
type written struct {
	Failures int            `cbor:"failures"`
	Failed   *writtenMoment `cbor:"failed,omitempty"`
	Noted    *writtenMoment `cbor:"noted,omitempty"`
	Age      int64          `cbor:"age,omitempty"` // milliseconds
}

type writtenMoment struct {
	Wall int64  `cbor:"wall"` // milliseconds since 1970
	Boot string `cbor:"boot"`
	Up   int64  `cbor:"up"` // milliseconds
}

func (m moment) written() *writtenMoment {
	return &writtenMoment{m.Wall.UnixMilli(), m.Boot, m.Up.Milliseconds()}
}

func (w *writtenMoment) moment() moment {
	return moment{time.UnixMilli(w.Wall), w.Boot, time.Duration(w.Up) * time.Millisecond}
}

// Ask returns "" if a session may begin at a moment, or the reason why not; for [Wait] also the remaining time. If the
// clock was set back while the device was off, the password is due. Setting the clock while the device is on has no
// effect. No clock makes a user wait longer than the delay.
func (l limits) ask(p Policy, now moment) (why Refusal, wait time.Duration) {
	p = p.Defaults()
	longest, _, back := now.since(l.noted)
	switch {
	case l.failures >= p.Failures:
		return TooManyFailures, 0
	case !l.given || back || l.age+longest >= p.Password:
		return PasswordDue, 0
	case l.failures == 0:
		return "", 0
	}
	delay := p.Delay
	for range l.failures - 1 {
		if delay > p.MaxDelay/2 {
			delay = p.MaxDelay
			break
		}
		delay *= 2
	}
	if _, shortest, _ := now.since(l.last); shortest < delay {
		return Wait, delay - shortest
	}
	return "", 0
}

// askUnproven does the same as Ask for a session that lets nobody in ([Session.Unproven]). A due password is no reason
// against it, because the password comes next anyway.
func (l limits) askUnproven(p Policy, now moment) (why Refusal, wait time.Duration) {
	l.given, l.noted, l.age = true, now, 0
	return l.ask(p, now)
}

// note updates the times before a change.
func (l *limits) note(now moment) {
	longest, _, back := now.since(l.noted)
	if back { // the passed time is unknown
		l.given = false
	}
	l.age, l.noted = l.age+longest, now
}

// Failed records a failed attempt.
func (l *limits) failed(now moment) {
	l.note(now)
	l.failures, l.last = l.failures+1, now
}

// ended records the end of a failed attempt: the delay begins then.
func (l *limits) ended(now moment) {
	l.note(now)
	l.last = now
}

// matched records a match. It does not change when the password is due.
func (l *limits) matched(now moment) {
	l.note(now)
	l.failures = 0
}

// Password records that the password was given.
func (l *limits) password(now moment) { *l = limits{given: true, noted: now} }

// MarshalBinary implements [encoding.BinaryMarshaler]: a CBOR map (RFC 8949), with times in milliseconds.
func (l limits) MarshalBinary() ([]byte, error) {
	w := written{Failures: l.failures, Age: l.age.Milliseconds()}
	if l.failures > 0 {
		w.Failed = l.last.written()
	}
	if l.given {
		w.Noted = l.noted.written()
	}
	return cbor.Marshal(w)
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]. On error, which wraps [errLimits], l refuses everything
// until the password is given.
func (l *limits) UnmarshalBinary(b []byte) error {
	*l = limits{}
	var w written
	if err := cbor.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("%w: %w", errLimits, err)
	}
	if w.Failures < 0 {
		return fmt.Errorf("%w: %d failures", errLimits, w.Failures)
	}
	if w.Age < 0 {
		return fmt.Errorf("%w: a password of %d ms", errLimits, w.Age)
	}
	l.failures = w.Failures
	if w.Failed != nil {
		l.last = w.Failed.moment()
	}
	if w.Noted != nil {
		l.given, l.noted, l.age = true, w.Noted.moment(), time.Duration(w.Age)*time.Millisecond
	}
	return nil
}
