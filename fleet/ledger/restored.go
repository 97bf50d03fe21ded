// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
)

// Restoration is the content of [Restored]: the server was put back to an earlier state of the log, and the log
// continues from there. Devices give back the lost entries, with the signatures of their authors.
type Restoration struct {
	Epoch  uint64 `cbor:"1,keyasint"` // number of the log from here on, above all earlier ones
	Before uint64 `cbor:"2,keyasint"` // number of the log before; 0 for the first log
	At     uint64 `cbor:"3,keyasint"` // last place of the log when it was put back
}

// epochShift is the position of the epoch in a counter of the admin key. So an entry of the admin key after a
// restoration never has the counter of a lost one.
const epochShift = 32

// Counter returns the counter of the entry with this restoration.
func (r Restoration) Counter() uint64 { return r.Epoch << epochShift }

// ParseRestoration reads a [Restored] entry, and checks that the admin key of the fleet has signed it. The error wraps
// those of [Parse] and [Entry.Verify].
func ParseRestoration(fleet string, data []byte) (Restoration, error) {
	e, err := Parse(data)
	if err != nil {
		return Restoration{}, err
	}
	if e.Device != fleet || e.Kind != Restored {
		return Restoration{}, fmt.Errorf("%w: %s is not a restoration of the admin key", ErrSignature, &e)
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

// Epoch returns the number of the log: the one in its last [Restoration], or 0.
func (l *Ledger) Epoch() uint64 { return l.epoch }

// Restoration returns the encoded entry of the last [Restoration], or nil. The error comes from the disk.
func (l *Ledger) Restoration() ([]byte, error) {
	for _, r := range slices.Backward(l.adminEntries) {
		if r.kind == Restored {
			return r.bytes()
		}
	}
	return nil, nil
}

// Revocation returns the encoded entry that revoked a device, or nil if the device is not revoked. The error comes from
// the disk.
func (l *Ledger) Revocation(device string) ([]byte, error) {
	if !l.members[device].revoked {
		return nil, nil
	}
	for _, r := range slices.Backward(l.adminEntries) {
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

// CheckRevocation returns nil if data is an entry of the fleet's admin key that revokes a device. The error wraps those
// of [Parse] and [Entry.Verify], or [ErrContent].
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

// beforeRestoration reports whether an entry of the admin key is from before the last restoration. Its counter means
// nothing then, because the server may have admitted others since. It counts by its effect: it admits no device a
// second time, and revokes for ever.
func (l *Ledger) beforeRestoration(e *Entry) bool {
	return e.Device == l.fleet && e.Version <= Version && e.N>>epochShift < l.epoch
}

// repeated reports whether the log already has this entry, or a later one of its author.
func (l *Ledger) repeated(e *Entry) bool {
	if !l.beforeRestoration(e) {
		return e.N <= l.counters[e.Device].last
	}
	c, err := e.Content()
	if err != nil {
		return false // take refuses the entry for this error
	}
	switch c := c.(type) {
	case Admission:
		_, known := l.members[c.Device]
		return known
	case Revocation:
		return l.members[c.Device].revoked
	case Allowance: // without it, lost forgettings would not count a second time
		return slices.ContainsFunc(l.adminEntries, func(r record) bool { return r.ref == e.Ref() })
	}
	return true
}

// Spent reports whether an entry can no longer change anything: the log has it or a later one of its author, or the
// person is forgotten.
func (l *Ledger) Spent(e Entry) bool {
	return l.repeated(&e) || e.Kind != Forget && !e.Person.IsZero() && (l.gone[e.Person] || l.gone[e.Other])
}

// EachEntry calls f with the encoded entries that make up the state, in the order of the log. It stops at the first
// error of f and returns it.
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

// Give applies an entry that the log has lost, as [Ledger.Say] applies a new one. It is not verified.
func (l *Ledger) Give(data []byte) {
	e, err := Parse(data)
	if err != nil || l.checkMember(e.Device) != nil || l.Spent(e) {
		return
	}
	l.seq++
	l.take(l.seq, e, inMemory(data))
}

func (l *Ledger) foldRestored(seq uint64, e Entry, c Restoration, at place) error {
	if c.Epoch <= l.epoch || c.Before != l.epoch || e.N != c.Counter() {
		return fmt.Errorf("%w: the entry continues log %d as log %d, and this is log %d", ErrContent, c.Before, c.Epoch,
			l.epoch)
	}
	l.epoch = c.Epoch
	l.adminEntries = append(l.adminEntries, newRecord(seq, e, at))
	return nil
}
