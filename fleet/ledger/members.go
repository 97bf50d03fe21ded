// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

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

// checkMember returns nil if an author is a member at present.
func (l *Ledger) checkMember(author string) error {
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

// checkWrites returns nil if a device may write about a person. Only its admission and the person's first author
// decide. Merges do not: they may have been purged with a forgotten person, and all devices must agree.
func (l *Ledger) checkWrites(device string, id ID) error {
	m := l.members[device]
	if p, known := l.people[id]; m.scope.All || m.in[id] || !known || p.creator == device {
		return nil
	}
	return ErrScope
}

// Member is a device of a fleet.
type Member struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Scope    Scope     `json:"scope"`
	Admitted time.Time `json:"admitted"` // by the clock of the join service
	Revoked  bool      `json:"revoked,omitempty"`
	Muted    bool      `json:"muted,omitempty"` // its lessons are withdrawn
	Entries  uint64    `json:"entries"`         // its counter: the number of entries that it has written
	Gaps     uint64    `json:"gaps,omitempty"`  // the number of these that never came
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

// Source returns the name of the lessons that a device gives now. A withdrawal of its lessons changes the name, so that
// [Lesson].Through tells lessons that were learned through earlier lessons from lessons that were learned through later
// ones: it is the device's number, and after a withdrawal also "@" and the place of the last one in the log.
func (l *Ledger) Source(device string) string {
	if r, there := l.withdrew[device]; there {
		return fmt.Sprintf("%s@%d", device, r.seq)
	}
	return device
}

// Outdated reports whether lessons learned through this source do not count: the lessons of its device were withdrawn
// since, or the device was never admitted.
func (l *Ledger) Outdated(source string) bool {
	device, _, _ := strings.Cut(source, "@")
	_, known := l.members[device]
	return !known || l.Source(device) != source
}

// MayWrite reports whether a device is a member that may write about a person, or may enrol a new person with this
// number.
func (l *Ledger) MayWrite(device string, id ID) bool {
	return l.checkMember(device) == nil && !l.gone[id] && l.checkWrites(device, id) == nil
}

// MayRead reports whether a device is a member that may have the keys of a person: it may write about this person, or
// about a person who was merged with this one.
func (l *Ledger) MayRead(device string, id ID) bool {
	p, known := l.people[id]
	if !known || device == l.fleet || l.checkMember(device) != nil {
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
	for _, m := range l.merges { // every merged person is in one of these
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
