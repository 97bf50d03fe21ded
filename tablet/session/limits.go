// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// ErrLimits is returned by [Limits.UnmarshalBinary] for bytes that no Limits are written as.
var ErrLimits = errors.New("unreadable limits")

// Moment is a time by two clocks: the one on the wall, which anybody with the rights may set, and the one that has run
// since the device was started, which nobody can.
type Moment struct {
	Wall time.Time
	Boot string        // names the start of the device; "" where that is not known
	Up   time.Duration // since then, asleep or not
}

// At returns a moment by the clock on the wall alone.
func At(t time.Time) Moment { return Moment{Wall: t} }

// setBack is how far a clock may go back between two starts of a device without being taken for one that was set back.
const setBack = time.Minute

// since returns the longest and the shortest time that may have passed since an earlier moment. Back reports that the
// clock on the wall was set back, and that no other tells how far.
func (m Moment) since(then Moment) (longest, shortest time.Duration, back bool) {
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

// Limits are what is remembered of one user's attempts. The zero value is that of a user whose password was never
// given: face login is refused until it was.
type Limits struct {
	failures int           // since the last match or password
	failed   Moment        // the last of them
	given    bool          // the password was, ever
	noted    Moment        // when something was last noted
	age      time.Duration // of the password at that moment
}

// Refusal says why a session may not begin.
type Refusal string

// Refusals. After the last two only the password helps.
const (
	Wait            Refusal = "too soon after a failure"
	TooManyFailures Refusal = "too many failures"
	PasswordDue     Refusal = "the password has not been used for too long"
)

// limits as they are written.
type written struct {
	Failures int            `cbor:"failures"`
	Failed   *writtenMoment `cbor:"failed,omitempty"`
	Noted    *writtenMoment `cbor:"noted,omitempty"`
	Age      int64          `cbor:"age,omitempty"` // milliseconds

	// What version 0.1 wrote: milliseconds since 1970.
	Last     int64 `cbor:"last,omitempty"`
	Password int64 `cbor:"password,omitempty"`
}

type writtenMoment struct {
	Wall int64  `cbor:"wall"` // milliseconds since 1970
	Boot string `cbor:"boot"`
	Up   int64  `cbor:"up"` // milliseconds
}

func (m Moment) written() *writtenMoment {
	return &writtenMoment{m.Wall.UnixMilli(), m.Boot, m.Up.Milliseconds()}
}

func (w *writtenMoment) moment() Moment {
	return Moment{time.UnixMilli(w.Wall), w.Boot, time.Duration(w.Up) * time.Millisecond}
}

// Ask returns "" when a session may begin at a moment, or why it may not, and with [Wait] how long it takes until it
// may. A clock that was set back while the device was off makes the password due; set while it was on, it makes no
// difference. No clock makes anybody wait for longer than the delay.
func (l Limits) Ask(p Policy, now Moment) (why Refusal, wait time.Duration) {
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
	if _, shortest, _ := now.since(l.failed); shortest < delay {
		return Wait, delay - shortest
	}
	return "", 0
}

// AskUnproven is Ask for a session that lets nobody in ([Session.Unproven]): that the password is due is no reason
// against it, as the password comes next anyway.
func (l Limits) AskUnproven(p Policy, now Moment) (why Refusal, wait time.Duration) {
	l.given, l.noted, l.age = true, now, 0
	return l.Ask(p, now)
}

// note notes that something happens.
func (l *Limits) note(now Moment) {
	longest, _, back := now.since(l.noted)
	if back { // for how long nobody knows
		l.given = false
	}
	l.age, l.noted = l.age+longest, now
}

// Failed notes an attempt as failed.
func (l *Limits) Failed(now Moment) {
	l.note(now)
	l.failures, l.failed = l.failures+1, now
}

// Ended notes when a failed attempt that was noted ended: the wait begins then.
func (l *Limits) Ended(now Moment) {
	l.note(now)
	l.failed = now
}

// Matched notes a match. It does not put off when the password is due.
func (l *Limits) Matched(now Moment) {
	l.note(now)
	l.failures = 0
}

// Password notes that the password was given.
func (l *Limits) Password(now Moment) { *l = Limits{given: true, noted: now} }

// Void makes the password due: what is remembered may not be all that happened.
func (l *Limits) Void() { l.given = false }

// MarshalBinary implements [encoding.BinaryMarshaler]: a CBOR map (RFC 8949), times to the millisecond.
func (l Limits) MarshalBinary() ([]byte, error) {
	w := written{Failures: l.failures, Age: l.age.Milliseconds()}
	if l.failures > 0 {
		w.Failed = l.failed.written()
	}
	if l.given {
		w.Noted = l.noted.written()
	}
	return cbor.Marshal(w)
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]. On error, which wraps [ErrLimits], l refuses everything
// until the password was given.
func (l *Limits) UnmarshalBinary(b []byte) error {
	*l = Limits{}
	var w written
	if err := cbor.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("%w: %w", ErrLimits, err)
	}
	if w.Failures < 0 {
		return fmt.Errorf("%w: %d failures", ErrLimits, w.Failures)
	}
	if w.Age < 0 {
		return fmt.Errorf("%w: a password of %d ms", ErrLimits, w.Age)
	}
	l.failures = w.Failures
	switch {
	case w.Failed != nil:
		l.failed = w.Failed.moment()
	case w.Last != 0:
		l.failed = At(time.UnixMilli(w.Last))
	}
	switch {
	case w.Noted != nil:
		l.given, l.noted, l.age = true, w.Noted.moment(), time.Duration(w.Age)*time.Millisecond
	case w.Password != 0:
		l.given, l.noted = true, At(time.UnixMilli(w.Password))
	}
	return nil
}
