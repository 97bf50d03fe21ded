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
)

// Settings of a [Device]. The zero value of each field stands for its default.
type Settings struct {
	Now           func() time.Time // default time.Now; it decides nothing
	SnapshotEvery uint64           // entries of the log between snapshots. Default 5,000
	// Tell is given a line about what happens, without secrets. It must not call the device. Default: none.
	Tell func(string)
	// Patience is how long the log may take for one call. Default 10 s.
	Patience time.Duration
	// Look is how often the log is asked how long it is. Default 10 s.
	Look time.Duration
	// Retry is how long to wait after the connection was lost, at first. It doubles up to 30 s. Default 250 ms.
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

// Device is a device of a fleet: it follows the log, and says what is new. Its methods may be called at once.
//
// What it says holds for itself when the method returns, and is on disk; the others learn of it when there is a log.
type Device struct {
	folder, fleet, id string
	key               nkeys.KeyPair
	s                 Settings
	lock              *os.File

	mu        sync.Mutex
	store     *ledger.Store
	base      *ledger.Ledger       // what the log has come to; the ledger of store
	view      *ledger.Ledger       // the same with what waits in the outbox; nil where it is to be made anew
	names     map[ledger.ID]string // of the view; nil where they are to be found anew
	ring      *ledger.Ring
	ringStale bool  // the ring is not what is on disk
	saveAt    int64 // bytes of the tail from which on it is tried again to save the ledger
	unkept    int   // entries since there is a hole in the tail
	outbox    *lines.File
	pending   []waiting
	last      uint64 // counter of the last entry that this device has written
	follow    uint64 // number of the log that the ledger is read from
	aside     *aside // what this device knows of a log that was put back, until the log has it; nil for nothing

	connected bool
	moved     time.Time         // when the log last gave something
	end       uint64            // last entry of the log, as far as it is known
	put       uint64            // place of the latest snapshot that is known
	lacking   map[ledger.ID]int // how many keys of people are missing
	trouble   string
	inStep    bool
	since     time.Time

	taken taken

	wake, ask, snap, changed chan struct{}
}

// waiting is an entry that was not seen in the log yet.
type waiting struct {
	e      ledger.Entry
	data   []byte
	stored bool // the log says that it has it
}

// ID returns the public key of the device.
func (d *Device) ID() string { return d.id }

// Fleet returns the public key of the fleet.
func (d *Device) Fleet() string { return d.fleet }

// Changed returns a channel that gets a value when people may have changed by what came from the log, or by keys that
// came. Several changes may be one value.
func (d *Device) Changed() <-chan struct{} { return d.changed }

// signal leaves a value in a channel that has room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// State says how far a device is.
type State struct {
	Connected bool      `json:"connected"`
	InStep    bool      `json:"in_step"` // everything of the log was applied, and nothing of its own waits
	Behind    uint64    `json:"behind"`  // entries of the log that are still to come, at most, when it was last looked at
	Since     time.Time `json:"since"`   // when InStep last changed
	Seq       uint64    `json:"seq"`     // place in the log
	Waiting   int       `json:"waiting"` // entries that this device has for the log, and has not seen in it yet
	Keys      int       `json:"keys"`    // keys that are missing
	Trouble   string    `json:"trouble,omitempty"`
}

// State returns how far d is.
func (d *Device) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step()
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

// damage returns an error where entries on disk could not be read.
func (d *Device) damage() error {
	if err := d.store.Damage(); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// step notes whether d is in step.
func (d *Device) step() {
	now := d.connected && d.base.Seq() >= d.end && len(d.pending) == 0 && d.aside == nil
	if now != d.inStep {
		d.inStep, d.since = now, d.s.Now()
	}
}

// Members returns the devices of the fleet.
func (d *Device) Members() []ledger.Member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.base.Devices()
}

// Member returns a device of the fleet, whether it was ever admitted, and the last place in the log that this rests on.
func (d *Device) Member(id string) (m ledger.Member, known bool, seq uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, known = d.base.Device(id)
	return m, known, d.base.Seq()
}

// Hash returns [ledger.Ledger.Hash] of what the log has come to, and the place in the log.
func (d *Device) Hash() (seq uint64, hash [32]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.base.Seq(), d.base.Hash()
}

// now returns the ledger with what was set aside and what waits in the outbox.
func (d *Device) now() *ledger.Ledger {
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

// Person returns a person by the number, also of one that was merged into it, and whether there is one. It leaves Shown
// empty.
func (d *Device) Person(id ledger.ID) (ledger.Person, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now().Person(id, d.ring)
}

// People returns the people as this device knows them, with what it said itself and is not in the log yet. Where entries
// on disk cannot be read, [Device.State] says so, and they are missing.
func (d *Device) People() []ledger.Person {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now().People(d.ring)
}

// ContentHash returns [ledger.Ledger.ContentHash] of what the log has come to.
func (d *Device) ContentHash() [32]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.base.ContentHash(d.ring)
}

// shown returns the names of people.
func (d *Device) shown() map[ledger.ID]string {
	if d.names == nil {
		d.names = d.now().Names(d.ring)
	}
	return d.names
}

// Find returns a person by the name that is shown, or by the number. The error wraps [ErrUnknown].
func (d *Device) Find(name string) (ledger.Person, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, shown := range d.shown() {
		if shown == name {
			p, _ := d.now().Person(id, d.ring)
			p.Shown = shown
			return p, nil
		}
	}
	if id, err := ledger.ParseID(name); err == nil {
		if p, ok := d.now().Person(id, d.ring); ok {
			p.Shown = d.shown()[p.ID]
			return p, nil
		}
	}
	if err := d.damage(); err != nil {
		return ledger.Person{}, err
	}
	return ledger.Person{}, fmt.Errorf("%w: %s", ErrUnknown, name)
}
