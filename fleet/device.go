// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/lines"
	"github.com/faceauth/faceauth/online"
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
	base      *ledger.Ledger       // what the log has come to
	view      *ledger.Ledger       // the same with what waits in the outbox; nil where it is to be made anew
	names     map[ledger.ID]string // of the view; nil where they are to be found anew
	ring      *ledger.Ring
	ringStale bool // the ring is not what is on disk
	tail      *lines.File
	saved     int64 // bytes of the snapshot on disk
	tailed    int64 // bytes of the tail
	hole      bool  // an entry is missing in the tail
	outbox    *lines.File
	pending   []waiting
	last      uint64 // counter of the last entry that this device has written

	connected bool
	moved     time.Time         // when the log last gave something
	end       uint64            // last entry of the log, as far as it is known
	put       uint64            // place of the latest snapshot that is known
	lacking   map[ledger.ID]int // how many keys of people are missing
	trouble   string
	inStep    bool
	since     time.Time

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
	Waiting   int       `json:"waiting"` // own entries that were not seen in the log yet
	Keys      int       `json:"keys"`    // keys that are missing
	Trouble   string    `json:"trouble,omitempty"`
}

// State returns how far d is.
func (d *Device) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step()
	s := State{
		Connected: d.connected, InStep: d.inStep, Since: d.since, Seq: d.base.Seq(), Waiting: len(d.pending),
		Trouble: d.trouble,
	}
	for _, n := range d.lacking {
		s.Keys += n
	}
	if d.end > s.Seq {
		s.Behind = d.end - s.Seq
	}
	return s
}

// step notes whether d is in step.
func (d *Device) step() {
	now := d.connected && d.base.Seq() >= d.end && len(d.pending) == 0
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

// now returns the ledger with what waits in the outbox.
func (d *Device) now() *ledger.Ledger {
	if len(d.pending) == 0 {
		d.view = nil
		return d.base
	}
	if d.view == nil {
		all := make([][]byte, len(d.pending))
		for i, w := range d.pending {
			all[i] = w.data
		}
		d.view = d.base.With(all...)
	}
	return d.view
}

// People returns the people as this device knows them, with what it said itself and is not in the log yet.
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
	return ledger.Person{}, fmt.Errorf("%w: %s", ErrUnknown, name)
}

// A statement is an entry that is to be said, and its content.
type statement struct {
	e       ledger.Entry
	content any
}

// may returns the number under which the device writes about a person: of those that stand for the person, one that
// it may write about.
func (d *Device) may(id ledger.ID) (ledger.ID, error) {
	view := d.now()
	if view.Forgotten(id) {
		return id, fmt.Errorf("%w: %s", ledger.ErrForgotten, id)
	}
	if !view.Known(id) {
		return id, fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	if m, known := view.Device(d.id); !known || !m.Revoked && m.Scope.All {
		return id, nil
	} else if m.Revoked {
		return id, ledger.ErrRevoked
	}
	for _, other := range view.Group(id) {
		if view.MayWrite(d.id, other) {
			return other, nil
		}
	}
	return id, fmt.Errorf("%w: %s", ledger.ErrScope, id)
}

// say writes entries, all or none, and has them hold. It returns the name of the last one.
func (d *Device) say(all ...statement) (ledger.Ref, error) {
	view := d.now()
	if m, known := view.Device(d.id); known && m.Revoked {
		return ledger.Ref{}, ledger.ErrRevoked
	}
	keys := make(map[ledger.ID]ledger.Key) // that are made now
	var b batch
	var made []waiting
	n := d.last
	for _, s := range all {
		e := s.e
		n++
		e.Device, e.N, e.Time = d.id, n, d.s.Now()
		if e.Kind.Sealed() {
			key, ok := view.WriteKey(e.Person, d.ring)
			if !ok {
				if key, ok = keys[e.Person]; !ok {
					key = ledger.NewKey()
					keys[e.Person] = key
				}
			}
			e.Seal(d.fleet, key, s.content)
		} else if s.content != nil {
			e.Put(s.content)
		}
		if err := e.Sign(d.fleet, d.key); err != nil {
			return ledger.Ref{}, err
		}
		data := e.Encode()
		b.Entries = append(b.Entries, data)
		made = append(made, waiting{e: e, data: data})
	}
	// A key that nothing is sealed with does no harm; an entry without its key would be lost.
	for id, key := range keys {
		d.ring.Add(id, key)
		d.ringStale = true
	}
	if err := d.saveRing(); err != nil {
		return ledger.Ref{}, err
	}
	if err := d.keepOutbox(b); err != nil {
		return ledger.Ref{}, fmt.Errorf("keeping what was said: %w", err)
	}
	if len(d.pending) == 0 {
		d.view = d.base.With()
	}
	d.pending, d.last, d.names = append(d.pending, made...), n, nil
	if d.view != nil {
		for _, w := range made {
			d.view.Say(w.data)
		}
	}
	signal(d.wake)
	return made[len(made)-1].e.Ref(), nil
}

// mostLine is how many bytes of entries a line of the outbox has, at most, where there are several.
const mostLine = 8 << 20

// keepOutbox writes entries that are said together into one line, so that a program that is killed has said all or none.
// Very many faces are several lines.
func (d *Device) keepOutbox(b batch) error {
	for len(b.Entries) > 0 {
		n, size := 1, len(b.Entries[0])
		for n < len(b.Entries) && size+len(b.Entries[n]) <= mostLine {
			size += len(b.Entries[n])
			n++
		}
		if err := d.outbox.Append(batch{Entries: b.Entries[:n]}); err != nil {
			return err
		}
		b.Entries = b.Entries[n:]
	}
	return nil
}

// mostOf is how many bytes of vectors one entry has, at most.
const mostOf = ledger.MaxEntry - 100_000

// portions cuts n things of that many bytes each into runs that an entry can hold.
func portions(n, bytes int) (all [][2]int) {
	each := max(1, mostOf/max(bytes+32, 1))
	for from := 0; from < n; from += each {
		all = append(all, [2]int{from, min(n, from+each)})
	}
	return all
}

func (d *Device) faces(kind ledger.Kind, id ledger.ID, space string, faces []ledger.Face) (all []statement, err error) {
	if len(faces) == 0 {
		return nil, fmt.Errorf("%s: there are no faces", kind)
	}
	for _, f := range faces {
		if len(f.Vector) == 0 || len(f.Vector) != len(faces[0].Vector) {
			return nil, fmt.Errorf("%s: a face has %d values", kind, len(f.Vector))
		}
	}
	for _, p := range portions(len(faces), 4*len(faces[0].Vector)) {
		all = append(all, statement{ledger.Entry{Kind: kind, Person: id}, ledger.Faces{Space: space, Faces: faces[p[0]:p[1]]}})
	}
	return all, nil
}

// Enroll makes a person with these faces. The error is that of [online.CheckName], or of the disk.
func (d *Device) Enroll(name, space string, faces []ledger.Face) (ledger.ID, error) {
	if err := online.CheckName(name); err != nil {
		return ledger.ID{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := ledger.NewID()
	all := []statement{{ledger.Entry{Kind: ledger.Name, Person: id}, ledger.Naming{Name: name}}}
	more, err := d.faces(ledger.Label, id, space, faces)
	if err != nil {
		return id, err
	}
	_, err = d.say(append(all, more...)...)
	return id, err
}

func (d *Device) sayFaces(kind ledger.Kind, person ledger.ID, space string, faces []ledger.Face) (ledger.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.may(person)
	if err != nil {
		return ledger.Ref{}, err
	}
	all, err := d.faces(kind, id, space, faces)
	if err != nil {
		return ledger.Ref{}, err
	}
	return d.say(all...)
}

// Label says that faces are a person's. The errors of this and the next methods wrap [ErrUnknown],
// [ledger.ErrForgotten], [ledger.ErrScope] or [ledger.ErrRevoked], or are those of the disk; nothing was said then.
func (d *Device) Label(person ledger.ID, space string, faces []ledger.Face) (ledger.Ref, error) {
	return d.sayFaces(ledger.Label, person, space, faces)
}

// Confirm says that it is still this person: learned faces become labelled ones.
func (d *Device) Confirm(person ledger.ID, space string, faces []ledger.Face) (ledger.Ref, error) {
	return d.sayFaces(ledger.Confirm, person, space, faces)
}

// Deny says that faces are not a person's.
func (d *Device) Deny(person ledger.ID, space string, faces []ledger.Face) (ledger.Ref, error) {
	return d.sayFaces(ledger.Deny, person, space, faces)
}

// sayOf says something of a person.
func (d *Device) sayOf(kind ledger.Kind, person ledger.ID, content any) (ledger.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.may(person)
	if err != nil {
		return ledger.Ref{}, err
	}
	return d.say(statement{ledger.Entry{Kind: kind, Person: id}, content})
}

// Retract takes labelled faces of a person back.
func (d *Device) Retract(person ledger.ID, faces ...ledger.FaceID) (ledger.Ref, error) {
	return d.sayOf(ledger.Retract, person, ledger.Refs{Faces: faces})
}

// Rename gives a person another name. The error may also be that of [online.CheckName].
func (d *Device) Rename(person ledger.ID, name string) (ledger.Ref, error) {
	if err := online.CheckName(name); err != nil {
		return ledger.Ref{}, err
	}
	return d.sayOf(ledger.Name, person, ledger.Naming{Name: name})
}

// Merge says that other is the same person as into, and has the name of into. The error may also wrap
// [ledger.ErrNoEffect].
func (d *Device) Merge(other, into ledger.ID) (ledger.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	from, err := d.may(other)
	if err != nil {
		return ledger.Ref{}, err
	}
	to, err := d.may(into)
	if err != nil {
		return ledger.Ref{}, err
	}
	if slices.Contains(d.now().Group(from), to) {
		return ledger.Ref{}, fmt.Errorf("%w: both are one person", ledger.ErrNoEffect)
	}
	return d.say(statement{ledger.Entry{Kind: ledger.Merge, Person: to, Other: from}, nil})
}

// Undo takes back an entry about a person: not a forgetting, an undoing or a withdrawal. The error may also wrap
// [ledger.ErrNoEntry] or [ledger.ErrNoEffect].
func (d *Device) Undo(what ledger.Ref) (ledger.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.now().Undoable(what)
	if err != nil {
		return ledger.Ref{}, err
	}
	if !d.now().MayWrite(d.id, id) {
		if _, err := d.may(id); err != nil { // a device that is not a member yet may
			return ledger.Ref{}, err
		}
	}
	return d.say(statement{ledger.Entry{Kind: ledger.Undo, Person: id}, what})
}

// Forget forgets a person for ever, everywhere, with everybody who was merged with them, and destroys the keys.
func (d *Device) Forget(person ledger.ID) (ledger.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.may(person)
	if err != nil {
		return ledger.Ref{}, err
	}
	group := d.now().Group(id)
	also := slices.DeleteFunc(slices.Clone(group), func(other ledger.ID) bool { return other == id })
	for _, other := range also {
		if m, known := d.now().Device(d.id); known && !m.Scope.All && !d.now().MayWrite(d.id, other) {
			return ledger.Ref{}, fmt.Errorf("%w: %s, with whom this person was merged", ledger.ErrScope, other)
		}
	}
	ref, err := d.say(statement{ledger.Entry{Kind: ledger.Forget, Person: id}, ledger.Forgetting{Also: also}})
	if err != nil {
		return ref, err
	}
	for _, other := range group {
		d.ring.Destroy(other)
	}
	d.ringStale = true
	return ref, d.saveRing()
}

// Teach gives the others what this device learned of a person, in place of what it gave before. Nothing is said where it
// gave the same before.
func (d *Device) Teach(person ledger.ID, lesson ledger.Lesson) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.may(person)
	if err != nil {
		return err
	}
	if p, ok := d.now().Person(id, d.ring); ok {
		i := slices.IndexFunc(p.Lessons, func(x ledger.PersonLesson) bool { return x.Device == d.id && x.Of == id })
		if i < 0 && len(lesson.Centroids) == 0 || i >= 0 && p.Lessons[i].Lesson.Equal(lesson) {
			return nil
		}
	}
	all := []statement{{ledger.Entry{Kind: ledger.Lessons, Person: id}, ledger.Lesson{Space: lesson.Space}}}
	if c := lesson.Centroids; len(c) > 0 {
		all = nil
		for i, p := range portions(len(c), 4*len(c[0].Vector)) {
			part := ledger.Lesson{Space: lesson.Space, Centroids: c[p[0]:p[1]]}
			for _, link := range lesson.Links { // with the part that has the later one
				if later := max(link[0], link[1]); p[0] <= later && later < p[1] {
					part.Links = append(part.Links, link)
				}
			}
			all = append(all, statement{ledger.Entry{Kind: ledger.Lessons, Person: id, Part: uint64(i)}, part})
		}
	}
	_, err = d.say(all...)
	return err
}

// Withdraw takes back all that a device taught; with mute also what it teaches later, until a withdrawal without mute.
func (d *Device) Withdraw(device string, mute bool) (ledger.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.now().Device(device); !known {
		return ledger.Ref{}, fmt.Errorf("withdrawing lessons: %w: %s", ledger.ErrNobody, device)
	}
	if m, known := d.now().Device(d.id); known && !m.Scope.All && device != d.id {
		return ledger.Ref{}, fmt.Errorf("withdrawing lessons: this device is limited to some people: %w", ledger.ErrScope)
	}
	return d.say(statement{ledger.Entry{Kind: ledger.Withdraw}, ledger.Withdrawal{Device: device, Mute: mute}})
}

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
	d.view, d.names = nil, nil
	if o.Reason != nil && !errors.Is(o.Reason, ledger.ErrRepeated) {
		d.s.Tell(o.Reason.Error())
	}
	d.record(seq, data)
	for _, id := range o.Forgotten {
		if d.ring.Destroy(id) {
			d.ringStale = true
		}
	}
	if err := d.saveRing(); err != nil {
		d.complain(err) // it is tried again with the next entry
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
			d.lacks(e.Person)
		} else if d.mayReadMore(e) {
			d.lackAll()
		}
		if len(d.lacking) > 0 {
			signal(d.ask)
		}
		signal(d.changed)
	}
	return nil
}

// lacks notes how many keys of a person are missing.
func (d *Device) lacks(id ledger.ID) {
	if n := len(d.base.WantsOf(d.id, id, d.ring)); n > 0 {
		d.lacking[id] = n
	} else {
		delete(d.lacking, id)
	}
}

// lackAll looks anew which keys are missing.
func (d *Device) lackAll() {
	d.lacking = make(map[ledger.ID]int)
	for _, w := range d.base.Wants(d.id, d.ring) {
		d.lacking[w.Person]++
	}
}

// mayReadMore reports whether this device may read more people after an entry: its own admission, or where it is limited
// to some people a merge.
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

// record keeps an entry of the log on disk.
func (d *Device) record(seq uint64, data []byte) {
	if !d.hole {
		if err := d.tail.Append(logged{seq, data}); err != nil {
			d.hole = true // what came later must not be taken in without it
			d.complain(fmt.Errorf("keeping an entry of the log: %w", err))
		}
	}
	d.tailed += int64(len(data))
	if d.tailed > max(leastTail, d.saved/2) {
		if err := d.saveLedger(); err != nil {
			d.tailed = 0 // it is tried again after as much
			d.hole = true
			d.complain(err)
		}
	}
}

// leastTail is how many bytes the tail has, at least, before a snapshot takes its place.
const leastTail = 16 << 20

func (d *Device) complain(err error) {
	d.trouble = err.Error()
	d.s.Tell(d.trouble)
}

// confirm takes out of the outbox what the log has come to. Where it has come to other entries of this device with the
// same counters, which happens after an old copy of its folder was put back, those that wait are written anew.
func (d *Device) confirm(came func(w waiting) bool) error {
	seen := d.base.Last(d.id)
	d.last = max(d.last, seen)
	d.pending = slices.DeleteFunc(slices.Clone(d.pending), came)
	if len(d.pending) > 0 && d.pending[0].e.N <= seen {
		return d.rewrite()
	}
	if n := d.outbox.Lines(); len(d.pending) == 0 && n > 64 || n > 2*len(d.pending)+1024 {
		if err := d.saveOutbox(); err != nil {
			d.complain(err)
		}
	}
	d.step()
	return nil
}

// rewrite gives new counters to all that waits.
func (d *Device) rewrite() error {
	d.s.Tell("the log has other entries of this device than its folder: what waits is said anew")
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
		if what, ok := all[i].content.(ledger.Ref); ok {
			if to, ok := renamed[what]; ok {
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
