// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

type merge struct {
	record
	from, to ID
}

type undoing struct {
	record
	person ID
}

// A parent is the person that another person was merged into, with the place of the merge in the log.
type parent struct {
	to  ID
	seq uint64
}

// fold changes the state by an entry, or returns the reason why it does not count. Only the log decides.
func (l *Ledger) fold(seq uint64, e Entry, at place) (forgotten []ID, err error) {
	if e.Kind.Sealed() || e.Kind == Merge || e.Kind == Undo {
		if l.gone[e.Person] || l.gone[e.Other] {
			return nil, ErrForgotten
		}
		if err := l.checkWrites(e.Device, e.Person); err != nil {
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
	case Allowance:
		return nil, l.foldAllow(seq, e, c, at)
	}
	panic("ledger: an entry of a kind that is not folded")
}

// intern returns the shared string of an author, to save memory.
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

// without returns a copy of the records without the lessons that drop selects.
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
	if err := l.checkWrites(e.Device, e.Other); err != nil {
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

// join puts a merge into effect.
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

// rejoin puts all merges into effect again that are not undone, in the order of the log.
func (l *Ledger) joinAll() {
	l.parents = make(map[ID]parent)
	for _, m := range l.merges {
		if _, undone := l.undone[m.ref]; !undone {
			l.join(m)
		}
	}
}

func (l *Ledger) foldUndo(seq uint64, e Entry, ref Ref, at place) error {
	if _, undone := l.undone[ref]; undone {
		return ErrNoEffect
	}
	isMerge := slices.ContainsFunc(l.merges, func(m merge) bool { return m.ref == ref && m.to == e.Person })
	if !isMerge && !slices.ContainsFunc(l.people[e.Person].records, func(r record) bool { return r.ref == ref }) {
		return ErrNoEntry
	}
	l.undone[ref] = undoing{newRecord(seq, e, at), e.Person}
	if isMerge {
		l.joinAll()
	}
	return nil
}

func (l *Ledger) foldForget(seq uint64, e Entry, c Forgetting, at place) (forgotten []ID, err error) {
	all := append([]ID{e.Person}, c.Also...)
	for _, id := range all {
		// A device that reads the log late does not find the purged entries of this person. It must decide as the
		// others did: an unknown person may be forgotten by everybody, because entries are purged only if their author
		// could write about them.
		if err := l.checkWrites(e.Device, id); err != nil {
			return nil, err
		}
	}
	for _, id := range all {
		if !l.gone[id] && !slices.Contains(forgotten, id) {
			forgotten = append(forgotten, id)
		}
		if !l.MayForget(e.Device, len(forgotten)) { // before the list is long: finding an id in it takes time
			return nil, ErrForgets
		}
	}
	if len(forgotten) == 0 {
		return nil, ErrNoEffect
	}
	l.forgot[e.Device] += len(forgotten)
	for _, id := range forgotten {
		l.gone[id] = true
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
	maps.DeleteFunc(l.undone, func(ref Ref, u undoing) bool { return l.gone[u.person] || dropped[ref] })
	if len(dropped) > 0 {
		l.joinAll()
	}
	return forgotten, nil
}

// DailyForgets is the number of people whom one device can forget until the admin key signs that a new day begins.
// Forgetting destroys keys for ever, so a device that lies must not be able to forget everybody.
const DailyForgets = 20

// MayForget reports whether a device may forget so many people now.
func (l *Ledger) MayForget(device string, people int) bool {
	return l.forgot[device]+people <= DailyForgets
}

// DayOver reports whether the admin key should sign that a new day begins: a device has forgotten somebody, and the day
// has lasted for 24 hours. Nobody but the server tells the time: a device could lie.
func (l *Ledger) DayOver(now time.Time) bool {
	return len(l.forgot) > 0 && now.Sub(l.day) >= 24*time.Hour
}

func (l *Ledger) foldAllow(seq uint64, e Entry, c Allowance, at place) error {
	if _, known := l.members[c.Device]; c.Device != "" && !known {
		return ErrNobody
	}
	delete(l.forgot, c.Device)
	if c.Device == "" {
		clear(l.forgot)
		l.day = e.Time
	}
	l.adminEntries = append(l.adminEntries, newRecord(seq, e, at))
	return nil
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
	if l.day.IsZero() {
		l.day = e.Time
	}
	if known && !c.Scope.All {
		l.rotated = seq // the device may have lost rights
	}
	m.id, m.name, m.scope, m.admitted, m.revoked = c.Device, c.Name, c.Scope, e.Time, false
	m.in = make(map[ID]bool, len(c.Scope.People))
	for _, id := range c.Scope.People {
		m.in[id] = true
	}
	l.members[c.Device] = m
	l.adminEntries = append(l.adminEntries, newRecord(seq, e, at))
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
	l.adminEntries = append(l.adminEntries, newRecord(seq, e, at))
	return nil
}
