// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/lines"
	"github.com/nats-io/nkeys"
	"golang.org/x/time/rate"
)

// Settings of a [Device]. A zero field means the default.
type Settings struct {
	Now           func() time.Time // the time of entries, for people only. Default time.Now
	SnapshotEvery uint64           // entries of the log between snapshots. Default 5,000
	// Tell is called with a line about each event, without secrets. It must not call the device. Default: none.
	Tell func(string)
	// Patience is the longest time for one call of the log. Default 10 s.
	Patience time.Duration
	// Look is the pause between two questions for the length of the log. Default 10 s.
	Look time.Duration
	// Retry is the first pause after a lost connection. It doubles up to 30 s. Default 250 ms.
	Retry time.Duration
}

func (s Settings) defaults() Settings {
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Tell == nil {
		s.Tell = func(string) {}
	}
	s.SnapshotEvery = cmp.Or(s.SnapshotEvery, 5000)
	s.Patience = cmp.Or(s.Patience, 10*time.Second)
	s.Look = cmp.Or(s.Look, 10*time.Second)
	s.Retry = cmp.Or(s.Retry, 250*time.Millisecond)
	return s
}

// Device is a device of a fleet: it follows the log and adds entries. Its methods may be called at once.
//
// An entry is on disk and counts for this device when the method returns. The other devices get it when there is a
// connection to the log.
type Device struct {
	folder, fleet, id string
	key               nkeys.KeyPair
	s                 Settings
	lock              *os.File

	mu        sync.Mutex
	store     *ledger.Store
	base      *ledger.Ledger       // the fold of the log; the ledger of store
	view      *ledger.Ledger       // base with the waiting entries of the outbox; nil: to be made again
	names     map[ledger.ID]string // of the view; nil: to be found again
	ring      *ledger.Ring
	ungiven   map[ledger.KeyID]ledger.ID // keys made here that no other device was given yet, with their people
	ringStale bool                       // the ring differs from its file
	saveAt    int64                      // after a failure: save the ledger again at this size of the tail, in bytes
	unkept    int                        // entries since the tail has a hole
	outbox    *lines.File
	pending   []waiting
	last      uint64 // counter of the last entry that this device has written
	follow    uint64 // number of the log that the ledger was read from
	aside     *aside // entries to give back to a restored log; nil for none

	passed    rate.Sometimes // limits the lines about ignored entries
	connected bool
	moved     time.Time         // when the last entry came
	end       uint64            // number of the last known entry of the log
	put       uint64            // place of the latest known snapshot
	lacking   map[ledger.ID]int // number of missing keys, by person
	trouble   string
	inStep    bool
	since     time.Time

	taken taken

	wake, ask, snap, changed chan struct{}
}

// waiting is an entry that this device has not read in the log yet.
type waiting struct {
	e      ledger.Entry
	data   []byte
	stored bool // the log has confirmed that it has the entry
}

// ID returns the public key of the device.
func (d *Device) ID() string { return d.id }

// Fleet returns the public key of the fleet.
func (d *Device) Fleet() string { return d.fleet }

// Changed returns a channel that gets a value when people may have changed, because entries or keys came. Several
// changes may share one value.
func (d *Device) Changed() <-chan struct{} { return d.changed }

// signal puts a value into a channel with room for one, and does nothing if there is one already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// State tells how far a device has followed the fleet's log.
type State struct {
	Connected bool      `json:"connected"`
	InStep    bool      `json:"in_step"` // all entries of the log are applied, and no own entry waits
	Behind    uint64    `json:"behind"`  // at most this many entries of the log are not read yet
	Since     time.Time `json:"since"`   // when InStep last changed
	Seq       uint64    `json:"seq"`     // place in the log
	Waiting   int       `json:"waiting"` // entries that this device has not read in the log yet
	Keys      int       `json:"keys"`    // number of missing keys
	Trouble   string    `json:"trouble,omitempty"`
}

// State returns the present state of d.
func (d *Device) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.updateInStep()
	s := State{
		Connected: d.connected, InStep: d.inStep, Since: d.since, Seq: d.base.Seq(),
		Waiting: len(d.pending) + d.aside.left(),
		Trouble: d.trouble,
	}
	for _, n := range d.lacking {
		s.Keys += n
	}
	if d.end > s.Seq {
		s.Behind = d.end - s.Seq
	}
	if err := d.damage(); err != nil {
		s.Trouble = err.Error()
	}
	return s
}

// damage returns an error if entries on disk could not be read.
func (d *Device) damage() error {
	if err := d.store.Damage(); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// updateInStep notes whether d is in step with the log.
func (d *Device) updateInStep() {
	inStep := d.connected && d.base.Seq() >= d.end && len(d.pending) == 0 && d.aside == nil
	if inStep != d.inStep {
		d.inStep, d.since = inStep, d.s.Now()
	}
}

// Members returns the devices of the fleet.
func (d *Device) Members() []ledger.Member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.base.Devices()
}

// Member returns a device of the fleet, whether it was ever admitted, and the place in the log up to which this is
// known.
func (d *Device) Member(id string) (m ledger.Member, known bool, seq uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, known = d.base.Device(id)
	return m, known, d.base.Seq()
}

// Hash returns the [ledger.Ledger.Hash] of the fold of the log, and the place in the log.
func (d *Device) Hash() (seq uint64, hash [32]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.base.Seq(), d.base.Hash()
}

// current returns the ledger together with the entries that were set aside and those that wait in the outbox.
func (d *Device) current() *ledger.Ledger {
	if len(d.pending) == 0 && d.aside == nil {
		d.view = nil
		return d.base
	}
	if d.view == nil {
		d.view = d.base.With()
		d.aside.each(d.view.Give)
		for _, w := range d.pending {
			d.view.Say(w.data)
		}
	}
	return d.view
}

// Person returns a person by number, and whether the fleet knows the number. The number of a merged person works, too.
// It leaves Shown empty.
func (d *Device) Person(id ledger.ID) (ledger.Person, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current().Person(id, d.ring)
}

// People returns the people as this device knows them, with its own entries that are not in the log yet. People whose
// entries on disk cannot be read are missing; [Device.State] then shows the damage.
func (d *Device) People() []ledger.Person {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current().People(d.ring)
}

// ContentHash returns the [ledger.Ledger.ContentHash] of the fold of the log.
func (d *Device) ContentHash() [32]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.base.ContentHash(d.ring)
}

// shown returns the names that are shown for people.
func (d *Device) shown() map[ledger.ID]string {
	if d.names == nil {
		d.names = d.current().Names(d.ring)
	}
	return d.names
}

// Find returns a person by the shown name or by the number. The error wraps [ErrUnknown] or [ErrDamaged].
func (d *Device) Find(name string) (ledger.Person, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, shown := range d.shown() {
		if shown == name {
			p, _ := d.current().Person(id, d.ring)
			p.Shown = shown
			return p, nil
		}
	}
	if id, err := ledger.ParseID(name); err == nil {
		if p, ok := d.current().Person(id, d.ring); ok {
			p.Shown = d.shown()[p.ID]
			return p, nil
		}
	}
	if err := d.damage(); err != nil {
		return ledger.Person{}, err
	}
	return ledger.Person{}, fmt.Errorf("%w: %s", ErrUnknown, name)
}
