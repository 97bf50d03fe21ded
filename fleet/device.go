// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/nats-io/nkeys"
)

// Settings of a [Device]. A zero field means the default.
type Settings struct {
	Now func() time.Time // default time.Now
	// Tell is called with a line about each event, without secrets. It must not call the device. Default: none.
	Tell func(string)
	// Patience is the longest time for one request to the server. Default 10 s.
	Patience time.Duration
	// Retry is the first pause after a lost connection. It doubles up to 30 s. Default 250 ms.
	Retry time.Duration
	// Grace is how long the key of a forgotten person is kept, from when this device learned of it. Default a day.
	Grace time.Duration
	// Turn is the longest pause before this device does what any of several devices could do. Default 5 s.
	Turn time.Duration
}

func (s Settings) defaults() Settings {
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Tell == nil {
		s.Tell = func(string) {}
	}
	s.Patience = cmp.Or(s.Patience, 10*time.Second)
	s.Retry = cmp.Or(s.Retry, 250*time.Millisecond)
	s.Grace = cmp.Or(s.Grace, 24*time.Hour)
	s.Turn = cmp.Or(s.Turn, 5*time.Second)
	return s
}

// Device is a device of a fleet: it keeps what all devices say, and says things itself. Its methods may be called at
// once.
//
// What it says is on disk and counts for this device when the method returns. The other devices get it when there is a
// connection to the server.
type Device struct {
	folder, fleet, id string
	key               nkeys.KeyPair
	s                 Settings
	lock              *os.File

	mu      sync.Mutex
	db      *store.DB
	members *Members
	said    map[string]map[string]*entry // by device and name
	notes   map[string]*notes            // by device
	secrets map[ID]secret                // keys of people
	dead    map[ID]bool                  // people whose key was destroyed for ever
	seen    map[ID]time.Time             // when this device learned that a person is forgotten
	at      map[string]uint64            // place up to which the stream of a device was read
	own     state
	people  map[ID]*joined // what is said about each person, without vectors
	derived
	late bool // somebody's clock is ahead: look again later

	server              Server // of the present session
	saved               []byte // the state on disk
	connected, caughtUp bool
	inStep              bool
	since               time.Time
	refused             map[string]string // why a value is skipped, by place
	trouble             string
	turns               map[string]time.Time // when this device does what others have not done, by duty
	taken               taken
	meetings            map[string]*meeting // by gallery

	wake, changed chan struct{}
}

// entry is the last value of a name.
type entry struct {
	n, forget uint64
	born      bool // the device made the person
	box       bool // it has a box
	sent      bool // of this device: the server has it
}

// state is what a device keeps of itself.
type state struct {
	Counter uint64 `cbor:"1,keyasint"`
	Clock   uint64 `cbor:"2,keyasint"`
	Epoch   uint64 `cbor:"3,keyasint"`
	Secret  []byte `cbor:"4,keyasint"` // of the epoch
	Private []byte `cbor:"5,keyasint"` // to open what others seal for this device
	Public  []byte `cbor:"6,keyasint"`
	Begun   int64  `cbor:"7,keyasint"` // when this device took the epoch, in seconds since 1970
	// Destroyed means that keys of people were destroyed in this epoch.
	Destroyed bool `cbor:"8,keyasint"`
}

// The tables of a device.
var schema = []string{
	"create table if not exists value(device text, name text, n integer, forget integer, sent integer, data blob, " +
		"primary key(device, name)) strict",
	"create index if not exists value_name on value(name)",
	"create table if not exists fact(kind text, name text, data blob, primary key(kind, name)) strict",
}

// Kinds of facts.
const (
	stateFact   = "state"
	recordFact  = "record" // of the admin key
	keyFact     = "key"    // of a person
	deadFact    = "dead"   // a person whose key was destroyed
	seenFact    = "seen"   // when a person was found to be forgotten
	placeFact   = "place"  // in the stream of a device
	galleryFact = "gallery"
)

// Open opens the folder of a device that has joined a fleet. The error wraps [ErrNotJoined], [ErrBusy] or [ErrDamaged].
// The caller closes the device.
func Open(folder string, s Settings) (*Device, error) {
	d := &Device{folder: folder, s: s.defaults(), wake: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	d.empty()
	if err := d.open(); err != nil {
		d.closeFiles()
		return nil, err
	}
	return d, nil
}

func (d *Device) empty() {
	d.said, d.notes = make(map[string]map[string]*entry), make(map[string]*notes)
	d.secrets, d.dead, d.seen = make(map[ID]secret), make(map[ID]bool), make(map[ID]time.Time)
	d.at, d.people, d.meetings = make(map[string]uint64), make(map[ID]*joined), make(map[string]*meeting)
	d.refused, d.turns = make(map[string]string), make(map[string]time.Time)
	d.forgetDerived()
}

// lockPatience is how long [Open] waits for another program to unlock the folder.
const lockPatience = 2 * time.Second

func (d *Device) open() (err error) {
	if d.fleet, err = Joined(d.folder); err != nil {
		return err
	}
	if d.lock, err = os.OpenFile(filepath.Join(d.folder, lockFile), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("opening the fleet's folder of this device: %w", err)
	}
	if err := safefile.Lock(d.lock, lockPatience); errors.Is(err, safefile.ErrLocked) {
		return fmt.Errorf("%w: %s", ErrBusy, d.folder)
	} else if err != nil {
		return fmt.Errorf("locking the fleet's folder of this device: %w", err)
	}
	if d.key, err = Identity(d.folder); err != nil {
		return err
	}
	if d.id, err = d.key.PublicKey(); err != nil {
		return err
	}
	d.members = NewMembers(d.fleet)
	path := filepath.Join(d.folder, dataFile)
	if d.db, err = store.Open(path, true); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	err = d.db.Write(func() (err error) {
		for _, table := range schema {
			err = errors.Join(err, d.db.Exec(table))
		}
		return err
	})
	if err = errors.Join(err, d.load()); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	admission, err := safefile.ReadBytes(filepath.Join(d.folder, admissionFile))
	if err == nil {
		err = d.db.Write(func() error { return d.acceptRecord(admission) })
	}
	if err != nil {
		return fmt.Errorf("%w: the admission of this device: %w; join the fleet again", ErrDamaged, err)
	}
	if d.own.Public == nil {
		d.own.newBox()
	}
	d.since = d.s.Now()
	return nil
}

// load reads the database.
func (d *Device) load() error {
	err := d.db.Query("select kind, name, data from fact", func(r store.Row) error {
		kind, name, data := r.ColumnText(0), r.ColumnText(1), r.ColumnBlob(2, nil)
		switch kind {
		case stateFact:
			return decoding.Unmarshal(data, &d.own)
		case recordFact:
			_, _, err := d.members.Add(data)
			return err
		case placeFact:
			d.at[name] = number(data)
			return nil
		case galleryFact:
			return nil
		}
		id, err := ParseID(name)
		if err != nil {
			return err
		}
		switch kind {
		case keyFact:
			if len(data) != len(secret{}) {
				return errValue
			}
			d.secrets[id] = secret(data)
		case deadFact:
			d.dead[id] = true
		case seenFact:
			d.seen[id] = time.Unix(int64(number(data)), 0)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.db.Query("select device, name, n, forget, sent, data from value", func(r store.Row) error {
		device, name := r.ColumnText(0), r.ColumnText(1)
		e := &entry{n: uint64(r.ColumnInt64(2)), forget: uint64(r.ColumnInt64(3)), sent: r.ColumnBool(4)}
		_, v, err := parseValue(r.ColumnBlob(5, nil))
		if err != nil {
			return err
		}
		e.box, e.born = len(v.Box) > 0, len(v.Born) > 0
		d.of(device)[name] = e
		if strings.HasPrefix(name, "_") {
			d.note(device).take(name, v.Note)
		}
		if device == d.id {
			d.own.Counter = max(d.own.Counter, e.n)
		}
		return nil
	})
}

// of returns the values of a device by name.
func (d *Device) of(device string) map[string]*entry {
	if d.said[device] == nil {
		d.said[device] = make(map[string]*entry)
	}
	return d.said[device]
}

// Close closes the folder. [Device.Run] must have ended.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closeFiles()
}

func (d *Device) closeFiles() error {
	var errs []error
	if d.db != nil {
		errs = append(errs, d.db.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

// setFact keeps a fact; nil removes it. It is called in a transaction.
func (d *Device) setFact(kind, name string, data []byte) error {
	if data == nil {
		return d.db.Exec("delete from fact where kind = ? and name = ?", kind, name)
	}
	return d.db.Exec("insert or replace into fact(kind, name, data) values(?, ?, ?)", kind, name, data)
}

// ID returns the public key of the device.
func (d *Device) ID() string { return d.id }

// Changed returns a channel that gets a value when people may have changed. Several changes may share one value.
func (d *Device) Changed() <-chan struct{} { return d.changed }

// signal puts a value into a channel with room for one, and does nothing if there is one already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// State tells how far a device and the fleet know each other's words.
type State struct {
	Status
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since"` // when InStep last changed
}

// State returns the present state of d.
func (d *Device) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state()
}

func (d *Device) state() State {
	s := State{Connected: d.connected, Since: d.since}
	for _, e := range d.said[d.id] {
		if !e.sent {
			s.Waiting++
		}
	}
	s.Keys = d.lacking()
	s.InStep = d.connected && d.caughtUp && s.Waiting == 0
	if s.InStep != d.inStep {
		d.inStep, d.since = s.InStep, d.s.Now()
		s.Since = d.since
	}
	s.Trouble = d.trouble
	for place, why := range d.refused {
		device, _, _ := strings.Cut(place, ".")
		if s.Refused == nil {
			s.Refused = make(map[string]string)
		}
		s.Refused[device] = why
	}
	return s
}

// countLacking returns the number of people whose key is missing.
func (d *Device) countLacking() (n int) {
	for id := range d.spoken() {
		if d.joined(id).sealed > 0 && !d.forgotten(id) {
			n++
		}
	}
	return n
}

// Members returns the devices of the fleet.
func (d *Device) Members() []Member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.members.Devices()
}

// Member returns a device of the fleet, and whether it was ever admitted.
func (d *Device) Member(id string) (Member, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.members.Device(id)
}

// Clocks are hybrid: milliseconds since 1970 in the upper 48 bits, and a count in the lower 16.
const (
	clockBits = 16
	ahead     = time.Hour // words from a clock that is further ahead wait
)

func (d *Device) tick() uint64 {
	d.own.Clock = max(d.own.Clock+1, uint64(d.s.Now().UnixMilli())<<clockBits)
	return d.own.Clock
}

func clockTime(c uint64) time.Time { return time.UnixMilli(int64(c >> clockBits)) }

// early reports whether a clock is too far ahead to count now.
func (d *Device) early(c uint64) bool {
	if clockTime(c).Before(d.s.Now().Add(ahead)) {
		return false
	}
	d.late = true
	return true
}

// follow moves the own clock behind another one, so that what is said after it counts after it.
func (d *Device) follow(c uint64) {
	if !d.early(c) {
		d.own.Clock = max(d.own.Clock, c)
	}
}

// number and bytesOf convert numbers of facts.
func number(data []byte) uint64 {
	if len(data) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(data)
}

func bytesOf(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// full reports whether this device may read and write about everybody. Before it has read its admission it may.
func (d *Device) full() bool {
	m, known := d.members.Device(d.id)
	return !known || m.full()
}

// speakers returns the devices with words, in a fixed order.
func (d *Device) speakers() []string {
	var all []string
	for device := range d.said {
		all = append(all, device)
	}
	slices.Sort(all)
	return all
}
