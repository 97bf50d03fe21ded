// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nkeys"
)

// Reasons why an entry does not count, in [Outcome]. [ErrFormat], [ErrTooLarge], [ErrSignature] and [ErrContent] are
// others.
var (
	ErrOld       = errors.New("delivered before")
	ErrRepeated  = errors.New("its author has said this already, or something later")
	ErrStranger  = errors.New("its author was not admitted to this fleet")
	ErrRevoked   = errors.New("its author was revoked")
	ErrScope     = errors.New("its author may not write about this person")
	ErrForgotten = errors.New("the person is forgotten")
	ErrNobody    = errors.New("no such person or device")
	ErrNoEntry   = errors.New("no such entry, or one that cannot be undone")
	ErrMuted     = errors.New("the lessons of its author are withdrawn")
	ErrNoEffect  = errors.New("it is so already")
)

// Outcome says what became of an entry.
type Outcome struct {
	Entry     Entry // as far as it could be read
	Accepted  bool
	Counted   bool   // it was its author's turn: the entry has used its counter, whether or not it was accepted
	Reason    error  // where it was not accepted: a sentence that wraps one of the errors above
	Gap       uint64 // how many entries of its author before it never came
	Forgotten []ID   // whose keys are to be destroyed now
}

// Ledger is what a fleet knows: the fold of its log. It is not safe for concurrent use.
type Ledger struct {
	fleet    string
	seq      uint64
	epoch    uint64             // of the last restoration
	counters map[string]counter // by author
	members  map[string]member
	people   map[ID]person
	gone     map[ID]bool // forgotten
	forgets  []record
	rules    []record // admissions, revocations and restorations
	withdrew map[string]record
	merges   []merge
	undone   map[Ref]undoing
	parents  map[ID]parent // by active merges
	rotated  uint64        // place where somebody last lost the right to read
	keys     map[string]ed25519.PublicKey
	keep     func(seq uint64, data []byte) place // keeps an entry that is about to count; nil for in memory
}

// A counter says how far an author is.
type counter struct{ last, gaps uint64 }

// A person is what is kept under one number. Its records are never changed in place, but for where their bytes are, as
// a copy of the ledger has them, too.
type person struct {
	creator string
	records []record // of the sealed kinds, in the order of the log
}

// New returns what a fleet knows before its first entry. Fleet is the public key of its admin key, "A…".
func New(fleet string) (*Ledger, error) {
	if !nkeys.IsValidPublicAccountKey(fleet) {
		return nil, fmt.Errorf("%q is not the public key of a fleet", fleet)
	}
	return &Ledger{
		fleet: fleet, counters: make(map[string]counter), members: make(map[string]member), people: make(map[ID]person),
		gone: make(map[ID]bool), withdrew: make(map[string]record), undone: make(map[Ref]undoing),
		parents: make(map[ID]parent), keys: make(map[string]ed25519.PublicKey),
	}, nil
}

// Fleet returns the public key of the fleet.
func (l *Ledger) Fleet() string { return l.fleet }

// Seq returns the place in the log of the last entry that was applied, whether or not it counts.
func (l *Ledger) Seq() uint64 { return l.seq }

// clone returns a ledger that can be changed without a change of l.
func (l *Ledger) clone() *Ledger {
	c := *l
	c.keep = nil
	c.counters, c.members, c.people = maps.Clone(l.counters), maps.Clone(l.members), maps.Clone(l.people)
	c.gone, c.withdrew, c.undone = maps.Clone(l.gone), maps.Clone(l.withdrew), maps.Clone(l.undone)
	c.parents, c.keys = maps.Clone(l.parents), maps.Clone(l.keys)
	// What is appended to one is not seen by the other.
	c.forgets, c.rules, c.merges = slices.Clip(l.forgets), slices.Clip(l.rules), slices.Clip(l.merges)
	for id, p := range c.people {
		p.records = slices.Clip(p.records)
		c.people[id] = p
	}
	return &c
}

// With returns what the fleet will know once entries of one device are in the log: l as it is, and these entries after
// it. They are not verified, and count where the device is not a member yet. Entries that cannot be read are left out.
func (l *Ledger) With(own ...[]byte) *Ledger {
	c := l.clone()
	for _, data := range own {
		c.Say(data)
	}
	return c
}

// Say has an entry hold that is not in the log yet, as With does. It is for a ledger that With returned: what the log
// gives does not go with it any more.
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

// Apply takes in the entry at a place in the log. Places go up, and need not follow each other. An entry that does not
// count changes nothing but the place, and the counter of its author where that signed it; the outcome says why.
//
// The error wraps [ErrFuture], for an entry of a member whose version this program does not know; l is then as it was,
// and cannot go on until the program is a newer one.
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
		return Outcome{Entry: e, Reason: fmt.Errorf("entry %d of the log is passed over: %w", seq, err)}, nil
	}
	if err != nil && !errors.Is(err, ErrFuture) {
		return refuse(err)
	}
	if err := l.admits(e.Device); err != nil {
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
		o.Reason = fmt.Errorf("entry %d of the log is passed over: %w: %s", seq, o.Reason, &e)
	}
	return o, nil
}

// verify is [Entry.Verify] with keys that were read before.
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
		return fmt.Errorf("%w: it says it is from %s", ErrSignature, e.Device)
	}
	return nil
}

// take has an entry count whose author and signature are right.
func (l *Ledger) take(seq uint64, e Entry, at place) Outcome {
	o := Outcome{Entry: e}
	if l.repeated(&e) {
		o.Reason = ErrRepeated
		return o
	}
	if c := l.counters[e.Device]; !l.old(&e) {
		if o.Counted = true; e.Kind != Restored { // which begins far above the counters before it
			o.Gap = e.N - c.last - 1
		}
		l.counters[e.Device] = counter{last: e.N, gaps: c.gaps + o.Gap}
	}
	o.Forgotten, o.Reason = l.fold(seq, e, at)
	o.Accepted = o.Reason == nil
	return o
}

// Last returns the counter of the last entry of an author that counted or was passed over, or 0.
func (l *Ledger) Last(author string) uint64 { return l.counters[author].last }

// Holds reports whether an entry is among those that make up the state, with exactly these bytes. An entry that another
// one replaced is not.
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
	for _, records := range [][]record{l.people[e.Person].records, l.rules, l.forgets} {
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

// Group returns the numbers that stand for the same person as id, first the one under which the person is known.
func (l *Ledger) Group(id ID) []ID { return l.group(id) }

// Undoable returns whom an entry is about, or an error that wraps [ErrNoEntry] or [ErrNoEffect] where it cannot be
// undone.
func (l *Ledger) Undoable(what Ref) (ID, error) {
	if _, undone := l.undone[what]; undone {
		return ID{}, fmt.Errorf("entry %d of %s: %w", what.N, what.Device, ErrNoEffect)
	}
	for id, p := range l.people {
		if slices.ContainsFunc(p.records, func(r record) bool { return r.ref == what }) {
			return id, nil
		}
	}
	for _, m := range l.merges {
		if m.ref == what {
			return m.to, nil
		}
	}
	return ID{}, fmt.Errorf("entry %d of %s: %w", what.N, what.Device, ErrNoEntry)
}

// Known reports whether there is a person of that number.
func (l *Ledger) Known(id ID) bool {
	_, known := l.people[id]
	return known
}

// Forgotten reports whether a person was forgotten.
func (l *Ledger) Forgotten(id ID) bool { return l.gone[id] }

// ForgottenPeople returns how many people were forgotten.
func (l *Ledger) ForgottenPeople() int { return len(l.gone) }
