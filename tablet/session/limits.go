package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// ErrLimits is returned by [Limits.UnmarshalBinary] for bytes that no Limits are written as.
var ErrLimits = errors.New("unreadable limits")

// Limits are what is remembered of one user's attempts. The zero value is that of a user whose password was never
// given: face login is refused until it was.
type Limits struct {
	failures int       // since the last match or password
	last     time.Time // of them
	password time.Time // when it was last given
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
	Failures int   `cbor:"failures"`
	Last     int64 `cbor:"last"`     // milliseconds since 1970
	Password int64 `cbor:"password"` // the same; 0 for never
}

// Ask returns "" when a session may begin at a moment, or why it may not, and with [Wait] how long it takes until it
// may. A clock that was set back to before the last password makes it due, and to before the last failure makes
// nobody wait longer than the delay.
func (l Limits) Ask(p Policy, now time.Time) (why Refusal, wait time.Duration) {
	p = p.Defaults()
	switch age := now.Sub(l.password); {
	case l.failures >= p.Failures:
		return TooManyFailures, 0
	case l.password.IsZero() || age < 0 || age >= p.Password:
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
	if wait = l.last.Add(delay).Sub(now); wait > 0 {
		return Wait, min(wait, delay)
	}
	return "", 0
}

// Failed notes an attempt as failed.
func (l *Limits) Failed(now time.Time) { l.failures, l.last = l.failures+1, now }

// Ended notes when a failed attempt that was noted ended: the wait begins then.
func (l *Limits) Ended(now time.Time) { l.last = now }

// Matched notes a match. It does not put off when the password is due.
func (l *Limits) Matched() { l.failures = 0 }

// Password notes that the password was given.
func (l *Limits) Password(now time.Time) { l.failures, l.password = 0, now }

// MarshalBinary implements [encoding.BinaryMarshaler]: a CBOR map (RFC 8949), times to the millisecond.
func (l Limits) MarshalBinary() ([]byte, error) {
	milli := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.UnixMilli()
	}
	return cbor.Marshal(written{l.failures, milli(l.last), milli(l.password)})
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
	l.failures = w.Failures
	if w.Last != 0 {
		l.last = time.UnixMilli(w.Last)
	}
	if w.Password != 0 {
		l.password = time.UnixMilli(w.Password)
	}
	return nil
}
