// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
)

// take applies an entry of the log.
func (d *Device) take(seq uint64, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, err := d.base.Apply(seq, data)
	if err != nil {
		return err
	}
	if errors.Is(o.Reason, ledger.ErrOld) {
		return nil
	}
	d.end, d.moved = max(d.end, seq), time.Now()
	// If this is the first waiting entry, the view stays right: only the places of entries change.
	next := o.Accepted && len(d.pending) > 0 && bytes.Equal(d.pending[0].data, data)
	if !next {
		d.view, d.names = nil, nil
	}
	if o.Reason != nil && !errors.Is(o.Reason, ledger.ErrRepeated) {
		d.passed.Do(func() { d.s.Tell(o.Reason.Error()) })
	}
	d.compactTail()
	d.noteReturned(o.Entry, data)
	for _, id := range o.Forgotten {
		if d.ring.Destroy(id) {
			d.ringStale = true
		}
	}
	if err := d.saveRing(); err != nil {
		d.complain(err) // the next entry tries again
	}
	if o.Entry.Device == d.id {
		if err := d.confirm(func(w waiting) bool { return o.Counted && bytes.Equal(w.data, data) }); err != nil {
			return err
		}
		if o.Accepted && seq >= d.put+d.s.SnapshotEvery {
			signal(d.snap)
		}
	}
	if o.Accepted {
		e := o.Entry
		if e.Kind.Sealed() {
			d.noteMissingKeys(e.Person)
		} else if d.mayReadMore(e) {
			d.noteAllMissingKeys()
		}
		if len(d.lacking) > 0 {
			signal(d.ask)
		}
		signal(d.changed)
	}
	return nil
}

// noteMissingKeys counts the missing keys of a person.
func (d *Device) noteMissingKeys(id ledger.ID) {
	if n := len(d.base.WantsOf(d.id, id, d.ring)); n > 0 {
		d.lacking[id] = n
	} else {
		delete(d.lacking, id)
	}
}

// noteAllMissingKeys counts the missing keys of all people again.
func (d *Device) noteAllMissingKeys() {
	d.lacking = make(map[ledger.ID]int)
	for _, w := range d.base.Wants(d.id, d.ring) {
		d.lacking[w.Person]++
	}
}

// mayReadMore reports whether this device may read more people after an entry. These are its own admission and, for a
// device that is limited to some people, a merge.
func (d *Device) mayReadMore(e ledger.Entry) bool {
	switch e.Kind {
	case ledger.Admit:
		c, err := e.Content()
		return err == nil && c.(ledger.Admission).Device == d.id
	case ledger.Merge:
		m, _ := d.base.Device(d.id)
		return !m.Scope.All
	}
	return false
}

// compactTail replaces the tail by a snapshot if the tail is long or could not be written.
func (d *Device) compactTail() {
	saved, tail := d.store.Sizes()
	hole := d.store.Hole()
	if tail <= max(leastTail, saved/2, d.saveAt) && hole == nil {
		return
	}
	if hole != nil {
		d.unkept++
		if d.unkept%retrySave != 1 {
			return // the disk may stay full for a long time
		}
		d.complain(hole)
	}
	if err := d.saveLedger(); err != nil {
		d.saveAt = tail + leastTail // try again when the tail has grown by this size
		d.complain(err)
		return
	}
	d.saveAt, d.unkept = 0, 0
}

// retrySave is the number of entries between two tries to save a ledger whose tail has a hole.
const retrySave = 100

// leastTail is the least size of a tail, in bytes, that is replaced by a snapshot.
const leastTail = 16 << 20

func (d *Device) complain(err error) {
	d.trouble = err.Error()
	d.s.Tell(d.trouble)
}

// confirm removes the entries from the outbox that the ledger has taken from the log. The log may have other entries of
// this device with the same counters, if an old copy of the folder was put back. Then confirm writes the waiting
// entries again, with new counters.
func (d *Device) confirm(came func(w waiting) bool) error {
	seen := d.base.Last(d.id)
	d.last = max(d.last, seen)
	for len(d.pending) > 0 && came(d.pending[0]) {
		d.pending = d.pending[1:]
	}
	if len(d.pending) > 0 && d.pending[0].e.N <= seen {
		d.pending = slices.DeleteFunc(slices.Clone(d.pending), came)
	}
	if len(d.pending) > 0 && d.pending[0].e.N <= seen {
		return d.rewrite()
	}
	if n := d.outbox.Lines(); len(d.pending) == 0 && n > 64 || n > 2*len(d.pending)+1024 {
		if err := d.saveOutbox(); err != nil {
			d.complain(err)
		}
	}
	d.updateInStep()
	return nil
}

// rewrite gives new counters to all waiting entries.
func (d *Device) rewrite() error {
	d.s.Tell("the log has entries of this device that its folder does not have: waiting entries get new counters")
	old := d.pending
	renamed := make(map[ledger.Ref]ledger.Ref)
	var all []statement
	var from []ledger.Ref
	for _, w := range old {
		s := statement{e: ledger.Entry{Kind: w.e.Kind, Person: w.e.Person, Other: w.e.Other, Part: w.e.Part}}
		var err error
		switch {
		case w.e.Kind.Sealed():
			key, ok := d.ring.Key(w.e.Person, w.e.Key)
			if !ok {
				continue // the person was forgotten since
			}
			s.content, err = w.e.Open(d.fleet, key)
		case w.e.Kind != ledger.Merge:
			s.content, err = w.e.Content()
		}
		if err != nil {
			return fmt.Errorf("%w: an entry of the outbox: %w", ErrDamaged, err)
		}
		all, from = append(all, s), append(from, w.e.Ref())
	}
	for i := range all {
		renamed[from[i]] = ledger.Ref{Device: d.id, N: d.last + uint64(i) + 1}
		if undone, ok := all[i].content.(ledger.Ref); ok {
			if to, ok := renamed[undone]; ok {
				all[i].content = to
			}
		}
	}
	d.pending, d.view, d.names = nil, nil, nil
	if len(all) > 0 {
		_, err := d.say(all...)
		if err != nil {
			d.pending = old
		}
		if errors.Is(err, ledger.ErrRevoked) {
			return nil // it waits until this device is admitted again
		}
		if err != nil {
			return err
		}
	}
	return d.saveOutbox()
}
