// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nkeys"
)

// Reasons in [Outcome] why an entry does not count. [ErrFormat], [ErrTooLarge], [ErrSignature] and [ErrContent] are
// further reasons.
var (
	ErrOld       = errors.New("this device has applied it already")
	ErrRepeated  = errors.New("repeated: the log has this entry or a later one of its author already")
	ErrStranger  = errors.New("its author was not admitted to this fleet")
	ErrRevoked   = errors.New("its author was revoked")
	ErrScope     = errors.New("its author may not write about this person")
	ErrForgotten = errors.New("the person is forgotten")
	ErrNobody    = errors.New("no such person or device")
	ErrNoEntry   = errors.New("no such entry, or it cannot be undone")
	ErrMuted     = errors.New("the lessons of its author are withdrawn")
	ErrNoEffect  = errors.New("it would change nothing")
	ErrForgets   = fmt.Errorf("one device can forget %d people a day; forget others tomorrow, at another device, "+
		"or after faceauth fleet allow on the server", DailyForgets)
)

// Outcome is the result of applying an entry.
type Outcome struct {
	Entry     Entry // as far as it could be read
	Accepted  bool
	Counted   bool   // the entry has used a counter of its author, accepted or not
	Reason    error  // why it was not accepted; wraps one of the errors above
	Gap       uint64 // number of missing entries of its author before it
	Forgotten []ID   // people whose keys must be destroyed now
}

// Ledger is the state of a fleet: the fold of its log. It is not safe for concurrent use.
type Ledger struct {
	fleet        string
	seq          uint64
	epoch        uint64             // of the last restoration
	counters     map[string]counter // by author
	members      map[string]member
	people       map[ID]person
	gone         map[ID]bool // forgotten
	forgets      []record
	forgot       map[string]int // number of people whom each device has forgotten since the day began
	day          time.Time      // when the day began, by the clock of the server
	adminEntries []record       // admissions, revocations, restorations and allowances
	withdrew     map[string]record
	merges       []merge
	undone       map[Ref]undoing
	parents      map[ID]parent // from merges that are not undone
	rotated      uint64        // place where a device last lost the right to read
	keys         map[string]ed25519.PublicKey
	keep         func(seq uint64, data []byte) place // stores an entry that is about to count; nil: in memory
}

// A counter tells how many entries of an author came, and how many are missing.
type counter struct{ last, gaps uint64 }

// A person holds the records of one number. Copies of the ledger share the records, so they never change, except for
// the places of their bytes.
type person struct {
	creator string
	records []record // of the sealed kinds, in the order of the log
}

// New returns the ledger of an empty log. Fleet is the public key of the fleet's admin key, "A…".
func New(fleet string) (*Ledger, error) {
	if !nkeys.IsValidPublicAccountKey(fleet) {
		return nil, fmt.Errorf("%q is not the public key of a fleet; it begins with A", fleet)
	}
	return &Ledger{
		fleet: fleet, counters: make(map[string]counter), members: make(map[string]member), people: make(map[ID]person),
		gone: make(map[ID]bool), forgot: make(map[string]int), withdrew: make(map[string]record),
		undone: make(map[Ref]undoing), parents: make(map[ID]parent), keys: make(map[string]ed25519.PublicKey),
	}, nil
}

// Fleet returns the public key of the fleet.
func (l *Ledger) Fleet() string { return l.fleet }

// Seq returns the place in the log of the last applied entry, even if that does not count.
func (l *Ledger) Seq() uint64 { return l.seq }

// clone returns an independent copy of l.
func (l *Ledger) clone() *Ledger {
	c := *l
	c.keep = nil
	c.counters, c.members, c.people = maps.Clone(l.counters), maps.Clone(l.members), maps.Clone(l.people)
	c.forgot = maps.Clone(l.forgot)
	c.gone, c.withdrew, c.undone = maps.Clone(l.gone), maps.Clone(l.withdrew), maps.Clone(l.undone)
	c.parents, c.keys = maps.Clone(l.parents), maps.Clone(l.keys)
	// Clip, so that appending to one ledger does not change the other.
	c.forgets, c.adminEntries, c.merges = slices.Clip(l.forgets), slices.Clip(l.adminEntries), slices.Clip(l.merges)
	for id, p := range c.people {
		p.records = slices.Clip(p.records)
		c.people[id] = p
	}
	return &c
}

// With returns a copy of l with entries of one device after it, as they will be once the log has them. They are not
// verified, and count even if the device is not a member yet. Entries that cannot be read are left out.
func (l *Ledger) With(own ...[]byte) *Ledger {
	c := l.clone()
	for _, data := range own {
		c.Say(data)
	}
	return c
}

// Say applies an entry that is not in the log yet, as [Ledger.With] does. Use it only on a ledger that With returned;
// do not apply entries of the log to that ledger any more.
func (l *Ledger) Say(data []byte) {
	e, err := Parse(data)
	if err != nil {
		return
	}
	if _, known := l.members[e.Device]; !known {
		l.members[e.Device] = member{id: e.Device, name: e.Device, scope: Scope{All: true}}
	}
	l.seq++
	l.take(l.seq, e, inMemory(data))
}

// Apply applies the entry at a place in the log. Places must rise and may have gaps. An entry that does not count only
// changes the place, and its author's counter if the signature is right; the outcome gives the reason.
//
// The error wraps [ErrFuture] if an entry of the admin key has a newer version. Then l is unchanged, and cannot
// continue until the program is updated. A newer entry of a member does not count, so that no member can stop the
// others.
func (l *Ledger) Apply(seq uint64, data []byte) (Outcome, error) { return l.apply(seq, data, true) }

func (l *Ledger) apply(seq uint64, data []byte, verify bool) (Outcome, error) {
	if seq <= l.seq {
		return Outcome{Reason: fmt.Errorf("entry %d of the log: %w", seq, ErrOld)}, nil
	}
	parse := Parse
	if !verify {
		parse = parseAgain
	}
	e, err := parse(data)
	refuse := func(err error) (Outcome, error) {
		l.seq = seq
		return Outcome{Entry: e, Reason: fmt.Errorf("entry %d of the log is ignored: %w", seq, err)}, nil
	}
	if err != nil && !errors.Is(err, ErrFuture) {
		return refuse(err)
	}
	if err := l.checkMember(e.Device); err != nil {
		return refuse(err)
	}
	if e.Version <= Version && err == nil && l.repeated(&e) {
		return refuse(fmt.Errorf("%w: %s", ErrRepeated, &e))
	}
	if verify {
		if err := l.verify(&e); err != nil {
			return refuse(err)
		}
	}
	if err != nil && e.Device != l.fleet {
		return refuse(err)
	}
	if err != nil {
		return Outcome{Entry: e, Reason: err}, err
	}
	l.seq = seq
	keep := l.keep
	if keep == nil {
		keep = func(_ uint64, data []byte) place { return inMemory(data) }
	}
	o := l.take(seq, e, keep(seq, data))
	if o.Reason != nil {
		o.Reason = fmt.Errorf("entry %d of the log is ignored: %w: %s", seq, o.Reason, &e)
	}
	return o, nil
}

// verify does the same as [Entry.Verify] with decoded keys from a cache.
func (l *Ledger) verify(e *Entry) error {
	key, ok := l.keys[e.Device]
	if !ok {
		prefix := nkeys.PrefixByteUser
		if e.Device == l.fleet {
			prefix = nkeys.PrefixByteAccount
		}
		raw, err := nkeys.Decode(prefix, []byte(e.Device))
		if err != nil || len(raw) != ed25519.PublicKeySize {
			return fmt.Errorf("%w: %s is not the key of a device", ErrSignature, e.Device)
		}
		key = raw
		l.keys[e.Device] = key
	}
	if !ed25519.Verify(key, signed("entry", l.fleet, e.Version, e.Device, e.payload), e.Sig) {
		return fmt.Errorf("%w: its author should be %s", ErrSignature, e.Device)
	}
	return nil
}

// take applies an entry whose author and signature are right.
func (l *Ledger) take(seq uint64, e Entry, at place) Outcome {
	o := Outcome{Entry: e}
	if l.repeated(&e) {
		o.Reason = ErrRepeated
		return o
	}
	if c := l.counters[e.Device]; !l.beforeRestoration(&e) {
		if o.Counted = true; e.Kind != Restored { // its counter jumps on purpose
			o.Gap = e.N - c.last - 1
		}
		l.counters[e.Device] = counter{last: e.N, gaps: c.gaps + o.Gap}
	}
	o.Forgotten, o.Reason = l.fold(seq, e, at)
	o.Accepted = o.Reason == nil
	return o
}

// Last returns the last counter that an author has used, or 0.
func (l *Ledger) Last(author string) uint64 { return l.counters[author].last }

// Holds reports whether exactly this entry is part of the state. Replaced entries are not.
func (l *Ledger) Holds(data []byte) bool {
	e, err := Parse(data)
	if err != nil {
		return false
	}
	sum := e.sum()
	same := func(r record) bool {
		if r.ref != e.Ref() || r.sum != sum {
			return false
		}
		had, err := r.bytes()
		return err == nil && bytes.Equal(had, data)
	}
	for _, records := range [][]record{l.people[e.Person].records, l.adminEntries, l.forgets} {
		if slices.ContainsFunc(records, same) {
			return true
		}
	}
	for _, m := range l.merges {
		if same(m.record) {
			return true
		}
	}
	for _, u := range l.undone {
		if same(u.record) {
			return true
		}
	}
	for _, r := range l.withdrew {
		if same(r) {
			return true
		}
	}
	return false
}

// Group returns all numbers of id's person. The first is the number under which the person is known.
func (l *Ledger) Group(id ID) []ID { return l.group(id) }

// Undoable returns the person of an entry that can be undone. The error wraps [ErrNoEntry] or [ErrNoEffect].
func (l *Ledger) Undoable(entry Ref) (ID, error) {
	if _, undone := l.undone[entry]; undone {
		return ID{}, fmt.Errorf("entry %d of %s: %w", entry.N, entry.Device, ErrNoEffect)
	}
	for id, p := range l.people {
		if slices.ContainsFunc(p.records, func(r record) bool { return r.ref == entry }) {
			return id, nil
		}
	}
	for _, m := range l.merges {
		if m.ref == entry {
			return m.to, nil
		}
	}
	return ID{}, fmt.Errorf("entry %d of %s: %w", entry.N, entry.Device, ErrNoEntry)
}

// Known reports whether there is a person with this number.
func (l *Ledger) Known(id ID) bool {
	_, known := l.people[id]
	return known
}

// Forgotten reports whether a person was forgotten.
func (l *Ledger) Forgotten(id ID) bool { return l.gone[id] }

// ForgottenPeople returns the number of forgotten people.
func (l *Ledger) ForgottenPeople() int { return len(l.gone) }
