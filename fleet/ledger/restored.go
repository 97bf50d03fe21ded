// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
)

// Restoration is the content of [Restored]: the server was put back to an earlier state of the log, and the log goes on
// from there. What it lost is given back by devices, as the entries that its authors signed.
type Restoration struct {
	Epoch  uint64 `cbor:"1,keyasint"` // number of the log from here on, above all earlier ones
	Before uint64 `cbor:"2,keyasint"` // number of the log that was put back; 0 for one that never was
	At     uint64 `cbor:"3,keyasint"` // last place of the log that was put back
}

// epochShift is where the epoch stands in a counter of the admin key. So no entry of the admin key after a restoration
// has the counter of one that was lost.
const epochShift = 32

// Counter returns the counter of the entry that says so.
func (r Restoration) Counter() uint64 { return r.Epoch << epochShift }

// ParseRestoration reads a [Restored] entry, and checks that the admin key of the fleet has signed it. The error wraps
// those of [Parse] and [Entry.Verify].
func ParseRestoration(fleet string, data []byte) (Restoration, error) {
	e, err := Parse(data)
	if err != nil {
		return Restoration{}, err
	}
	if e.Device != fleet || e.Kind != Restored {
		return Restoration{}, fmt.Errorf("%w: %s says nothing of a restored log", ErrSignature, &e)
	}
	if err := e.Verify(fleet); err != nil {
		return Restoration{}, err
	}
	c, err := e.Content()
	if err != nil {
		return Restoration{}, err
	}
	return c.(Restoration), nil
}

// Epoch returns the number of the log: that of its last [Restoration], or 0.
func (l *Ledger) Epoch() uint64 { return l.epoch }

// Restoration returns the entry of the last [Restoration] as it came, or nil. The error is that of the disk.
func (l *Ledger) Restoration() ([]byte, error) {
	for _, r := range slices.Backward(l.rules) {
		if r.kind == Restored {
			return r.bytes()
		}
	}
	return nil, nil
}

// Revocation returns the entry by which a device was revoked as it came, or nil where it is not revoked. The error is
// that of the disk.
func (l *Ledger) Revocation(device string) ([]byte, error) {
	if !l.members[device].revoked {
		return nil, nil
	}
	for _, r := range slices.Backward(l.rules) {
		if r.kind != Revoke {
			continue
		}
		data, err := r.bytes()
		if err != nil {
			return nil, err
		}
		if e, err := Parse(data); err == nil && revokes(e, device) {
			return data, nil
		}
	}
	return nil, nil
}

// CheckRevocation returns nil where an entry says, with the signature of the admin key of the fleet, that a device was
// revoked. The error wraps those of [Parse] and [Entry.Verify], or [ErrContent].
func CheckRevocation(fleet, device string, data []byte) error {
	e, err := Parse(data)
	if err != nil {
		return err
	}
	if e.Device != fleet || !revokes(e, device) {
		return fmt.Errorf("%w: %s does not revoke %s", ErrContent, &e, device)
	}
	return e.Verify(fleet)
}

func revokes(e Entry, device string) bool {
	c, err := e.Content()
	r, ok := c.(Revocation)
	return err == nil && ok && r.Device == device
}

// old reports whether an entry is one of the admin key from before the last restoration. Its counter says nothing: the
// server may have admitted others since. It counts by its effect: it admits nobody a second time, and revokes for ever.
func (l *Ledger) old(e *Entry) bool {
	return e.Device == l.fleet && e.Version <= Version && e.N>>epochShift < l.epoch
}

// repeated reports whether an entry was said already, or something later by its author.
func (l *Ledger) repeated(e *Entry) bool {
	if !l.old(e) {
		return e.N <= l.counters[e.Device].last
	}
	c, err := e.Content()
	if err != nil {
		return false // it is refused for that
	}
	switch c := c.(type) {
	case Admission:
		_, known := l.members[c.Device]
		return known
	case Revocation:
		return l.members[c.Device].revoked
	}
	return true
}

// Spent reports whether an entry would change nothing any more: it was said already, or something later by its author,
// or the person is forgotten.
func (l *Ledger) Spent(e Entry) bool {
	return l.repeated(&e) || e.Kind != Forget && !e.Person.IsZero() && (l.gone[e.Person] || l.gone[e.Other])
}

// EachEntry gives f the entries that make up what l holds, as they came, in the order of the log, until it returns an
// error, and returns that.
func (l *Ledger) EachEntry(f func(seq uint64, data []byte) error) error {
	for _, r := range l.records() {
		data, err := r.bytes()
		if err != nil {
			return err
		}
		if err := f(r.seq, data); err != nil {
			return err
		}
	}
	return nil
}

// Give has an entry hold that the log has lost, as [Ledger.Say] does for what it has not got yet. It is not verified.
func (l *Ledger) Give(data []byte) {
	e, err := Parse(data)
	if err != nil || l.admits(e.Device) != nil || l.Spent(e) {
		return
	}
	l.seq++
	l.take(l.seq, e, inMemory(data))
}

func (l *Ledger) foldRestored(seq uint64, e Entry, c Restoration, at place) error {
	if c.Epoch <= l.epoch || c.Before != l.epoch || e.N != c.Counter() {
		return fmt.Errorf("%w: it says that log %d goes on as log %d, and this is log %d", ErrContent, c.Before, c.Epoch, l.epoch)
	}
	l.epoch = c.Epoch
	l.rules = append(l.rules, newRecord(seq, e, at))
	return nil
}
