// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

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

type member struct {
	id       string
	order    uint64 // place of the first admission
	name     string
	scope    Scope
	admitted time.Time
	revoked  bool
	muted    bool
	in       map[ID]bool // people of the scope
}

// A person is what is kept under one number. Its records are never changed in place, as a copy of the ledger has them,
// too.
type person struct {
	creator string
	records []record // of the sealed kinds, in the order of the log
}

type merge struct {
	record
	from, to ID
}

type undoing struct {
	record
	person ID
}

// A parent is whom a person was merged into, and where in the log.
type parent struct {
	to  ID
	seq uint64
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

// admits returns nil for an author who is a member now.
func (l *Ledger) admits(author string) error {
	if author == l.fleet {
		return nil
	}
	switch m, known := l.members[author]; {
	case !known:
		return fmt.Errorf("%w: %s", ErrStranger, author)
	case m.revoked:
		return fmt.Errorf("%w: %s", ErrRevoked, author)
	}
	return nil
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

// writes returns nil where a device may write about a person. It rests on nothing but its admission and who enrolled
// the person: merges may have been purged from the log with somebody who is forgotten, and all devices must agree.
func (l *Ledger) writes(device string, id ID) error {
	m := l.members[device]
	if p, known := l.people[id]; m.scope.All || m.in[id] || !known || p.creator == device {
		return nil
	}
	return ErrScope
}

// fold changes the state by an entry, or returns why it does not. It decides by nothing but the log.
func (l *Ledger) fold(seq uint64, e Entry, at place) (forgotten []ID, err error) {
	if e.Kind.Sealed() || e.Kind == Merge || e.Kind == Undo {
		if l.gone[e.Person] || l.gone[e.Other] {
			return nil, ErrForgotten
		}
		if err := l.writes(e.Device, e.Person); err != nil {
			return nil, err
		}
		if _, known := l.people[e.Person]; !known && e.Kind != Label && e.Kind != Name {
			return nil, ErrNobody
		}
	}
	var content any
	if !e.Kind.Sealed() && e.Kind != Merge {
		if content, err = e.Content(); err != nil {
			return nil, err
		}
	}
	e.Device = l.intern(e.Device)
	switch c := content.(type) {
	case nil:
		if e.Kind == Merge {
			return nil, l.foldMerge(seq, e, at)
		}
		return nil, l.foldSealed(seq, e, at)
	case Ref:
		return nil, l.foldUndo(seq, e, c, at)
	case Forgetting:
		return l.foldForget(seq, e, c, at)
	case Withdrawal:
		return nil, l.foldWithdraw(seq, e, c, at)
	case Admission:
		return nil, l.foldAdmit(seq, e, c, at)
	case Revocation:
		return nil, l.foldRevoke(seq, e, c, at)
	case Restoration:
		return nil, l.foldRestored(seq, e, c, at)
	}
	panic("ledger: an entry of a kind that is not folded")
}

// intern returns the string of an author that is kept already, so that there is one of each.
func (l *Ledger) intern(author string) string {
	if author == l.fleet {
		return l.fleet
	}
	return cmp.Or(l.members[author].id, author)
}

func (l *Ledger) foldSealed(seq uint64, e Entry, at place) error {
	p, known := l.people[e.Person]
	if !known {
		p.creator = e.Device
	}
	if e.Kind == Lessons {
		if l.members[e.Device].muted {
			return ErrMuted
		}
		p.records = l.without(p.records, func(r record) bool { return r.ref.Device == e.Device && r.part >= e.Part })
	}
	p.records = append(p.records, newRecord(seq, e, at))
	l.people[e.Person] = p
	return nil
}

// without returns a copy of the records without some lessons.
func (l *Ledger) without(records []record, drop func(record) bool) []record {
	return slices.DeleteFunc(slices.Clone(records), func(r record) bool {
		gone := r.kind == Lessons && drop(r)
		if gone {
			delete(l.undone, r.ref)
		}
		return gone
	})
}

func (l *Ledger) foldMerge(seq uint64, e Entry, at place) error {
	if err := l.writes(e.Device, e.Other); err != nil {
		return err
	}
	if _, known := l.people[e.Other]; !known {
		return ErrNobody
	}
	m := merge{newRecord(seq, e, at), e.Other, e.Person}
	l.merges = append(l.merges, m)
	l.join(m)
	return nil
}

// join has an active merge hold.
func (l *Ledger) join(m merge) {
	if from, to := l.root(m.from), l.root(m.to); from != to {
		l.parents[from] = parent{to, m.seq}
	}
}

// root returns the number under which a person is known.
func (l *Ledger) root(id ID) ID {
	for {
		p, ok := l.parents[id]
		if !ok {
			return id
		}
		id = p.to
	}
}

// rejoin has all merges hold anew that are not undone, in the order of the log.
func (l *Ledger) rejoin() {
	l.parents = make(map[ID]parent)
	for _, m := range l.merges {
		if _, undone := l.undone[m.ref]; !undone {
			l.join(m)
		}
	}
}

func (l *Ledger) foldUndo(seq uint64, e Entry, what Ref, at place) error {
	if _, undone := l.undone[what]; undone {
		return ErrNoEffect
	}
	isMerge := slices.ContainsFunc(l.merges, func(m merge) bool { return m.ref == what && m.to == e.Person })
	if !isMerge && !slices.ContainsFunc(l.people[e.Person].records, func(r record) bool { return r.ref == what }) {
		return ErrNoEntry
	}
	l.undone[what] = undoing{newRecord(seq, e, at), e.Person}
	if isMerge {
		l.rejoin()
	}
	return nil
}

func (l *Ledger) foldForget(seq uint64, e Entry, c Forgetting, at place) (forgotten []ID, err error) {
	all := append([]ID{e.Person}, c.Also...)
	for _, id := range all {
		// Nothing of an unknown person may be left in the log of somebody who comes late: the author could write about
		// them when it was said, or else nothing of them would have been purged.
		if err := l.writes(e.Device, id); err != nil {
			return nil, err
		}
	}
	for _, id := range all {
		if !l.gone[id] {
			l.gone[id] = true
			forgotten = append(forgotten, id)
		}
	}
	if len(forgotten) == 0 {
		return nil, ErrNoEffect
	}
	l.forgets = append(l.forgets, newRecord(seq, e, at))
	for _, id := range forgotten {
		delete(l.people, id)
	}
	dropped := make(map[Ref]bool)
	merges := slices.Clone(l.merges)
	l.merges = slices.DeleteFunc(merges, func(m merge) bool {
		drop := l.gone[m.from] || l.gone[m.to]
		if drop {
			dropped[m.ref] = true
		}
		return drop
	})
	maps.DeleteFunc(l.undone, func(what Ref, u undoing) bool { return l.gone[u.person] || dropped[what] })
	if len(dropped) > 0 {
		l.rejoin()
	}
	return forgotten, nil
}

func (l *Ledger) foldWithdraw(seq uint64, e Entry, c Withdrawal, at place) error {
	m, known := l.members[c.Device]
	switch {
	case !known:
		return ErrNobody
	case !l.members[e.Device].scope.All && e.Device != c.Device:
		return ErrScope
	}
	m.muted = c.Mute
	l.members[c.Device] = m
	l.withdrew[c.Device] = newRecord(seq, e, at)
	for id, p := range l.people {
		of := func(r record) bool { return r.kind == Lessons && r.ref.Device == c.Device }
		if slices.ContainsFunc(p.records, of) {
			p.records = l.without(p.records, of)
			l.people[id] = p
		}
	}
	return nil
}

func (l *Ledger) foldAdmit(seq uint64, e Entry, c Admission, at place) error {
	m, known := l.members[c.Device]
	if !known {
		m.order = seq
	}
	if known && !c.Scope.All {
		l.rotated = seq // it may be less than it was
	}
	m.id, m.name, m.scope, m.admitted, m.revoked = c.Device, c.Name, c.Scope, e.Time, false
	m.in = make(map[ID]bool, len(c.Scope.People))
	for _, id := range c.Scope.People {
		m.in[id] = true
	}
	l.members[c.Device] = m
	l.rules = append(l.rules, newRecord(seq, e, at))
	return nil
}

func (l *Ledger) foldRevoke(seq uint64, e Entry, c Revocation, at place) error {
	m, known := l.members[c.Device]
	switch {
	case !known:
		return ErrNobody
	case m.revoked:
		return ErrNoEffect
	}
	m.revoked = true
	l.members[c.Device] = m
	l.rotated = seq
	l.rules = append(l.rules, newRecord(seq, e, at))
	return nil
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

// Member is a device of a fleet.
type Member struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Scope    Scope     `json:"scope"`
	Admitted time.Time `json:"admitted"` // by the clock of the join service
	Revoked  bool      `json:"revoked,omitempty"`
	Muted    bool      `json:"muted,omitempty"` // its lessons are withdrawn
	Entries  uint64    `json:"entries"`         // its counter: how many entries it has written
	Gaps     uint64    `json:"gaps,omitempty"`  // of these, how many never came
}

// Devices returns the devices that were ever admitted, in the order of their first admission.
func (l *Ledger) Devices() []Member {
	ids := slices.SortedFunc(maps.Keys(l.members), func(a, b string) int {
		return cmp.Or(cmp.Compare(l.members[a].order, l.members[b].order), cmp.Compare(a, b))
	})
	all := make([]Member, len(ids))
	for i, id := range ids {
		all[i], _ = l.Device(id)
	}
	return all
}

// Device returns a device by its number, and whether it was ever admitted.
func (l *Ledger) Device(id string) (Member, bool) {
	m, known := l.members[id]
	c := l.counters[id]
	return Member{
		ID: id, Name: m.name, Scope: Scope{m.scope.All, slices.Clone(m.scope.People)}, Admitted: m.admitted,
		Revoked: m.revoked, Muted: m.muted, Entries: c.last, Gaps: c.gaps,
	}, known
}

// MayWrite reports whether a device is a member that may write about a person, or make one of that number.
func (l *Ledger) MayWrite(device string, id ID) bool {
	return l.admits(device) == nil && !l.gone[id] && l.writes(device, id) == nil
}

// MayRead reports whether a device is a member that may have the keys of a person: one that may write about this
// person, or about somebody who was merged with them.
func (l *Ledger) MayRead(device string, id ID) bool {
	p, known := l.people[id]
	if !known || device == l.fleet || l.admits(device) != nil {
		return false
	}
	m := l.members[device]
	if m.scope.All || m.in[id] || p.creator == device {
		return true
	}
	root := l.root(id)
	if _, merged := l.parents[id]; !merged && !l.hasChildren(id) {
		return false
	}
	for other := range m.in {
		if l.root(other) == root {
			return true
		}
	}
	for _, m := range l.merges { // everybody who was merged is in one of these
		for _, other := range []ID{m.from, m.to} {
			if l.root(other) == root && l.people[other].creator == device {
				return true
			}
		}
	}
	return false
}

func (l *Ledger) hasChildren(id ID) bool {
	for _, p := range l.parents {
		if p.to == id {
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
