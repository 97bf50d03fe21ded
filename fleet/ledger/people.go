// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Person is a person of a fleet, as far as the keys of a ring open the entries.
type Person struct {
	ID       ID
	IDs      []ID         // all numbers of the person, ID first; several after merges
	Name     string       // the given name; "" without a name or without its key
	Shown    string       // a unique form of the name: "alice (2)"
	Faces    []PersonFace // the labelled faces, the oldest first
	Denied   []PersonFace // faces that are not the person's, the oldest first, at most [MaxDenied]
	Gone     []FaceID     // faces that were labelled or taken back once and are not labelled now
	Allowed  []FaceID     // faces that were denied once and are not now
	Names    []string     // all names that were ever given
	Lessons  []PersonLesson
	Enrolled time.Time // time of the last labelled face, by its device's clock
	Sealed   int       // number of entries that no key of the ring opens
}

// MaxDenied is the number of denied faces of a person that count: the newest ones.
const MaxDenied = 16

// PersonFace is a labelled or denied face of a person.
type PersonFace struct {
	ID    FaceID
	Space string
	Face
	By        Ref  // the entry that labelled or denied it
	Confirmed bool // a learned face that was confirmed
}

// PersonLesson is a device's lesson about a person.
type PersonLesson struct {
	Device string
	Of     ID // the number under which the device knew the person
	Lesson
}

// groups returns all numbers of each person, by the number under which the person is known.
func (l *Ledger) groups() map[ID][]ID {
	all := make(map[ID][]ID, len(l.people))
	for id := range l.people {
		root := l.root(id)
		all[root] = append(all[root], id)
	}
	for root, ids := range all {
		l.order(root, ids)
	}
	return all
}

// order puts the root first and sorts the others.
func (l *Ledger) order(root ID, ids []ID) {
	slices.SortFunc(ids, func(a, b ID) int {
		if (a == root) != (b == root) {
			if a == root {
				return -1
			}
			return 1
		}
		return slices.Compare(a[:], b[:])
	})
}

// group returns all numbers of id's person.
func (l *Ledger) group(id ID) []ID {
	root := l.root(id)
	all := []ID{root}
	for other := range l.parents {
		if other != root && l.root(other) == root {
			all = append(all, other)
		}
	}
	l.order(root, all)
	return all
}

// MergedBy returns the entry that merged this number into another person, if there is one.
func (l *Ledger) MergedBy(id ID) (by Ref, merged bool) {
	p, merged := l.parents[id]
	i := slices.IndexFunc(l.merges, func(m merge) bool { return m.seq == p.seq })
	if !merged || i < 0 {
		return Ref{}, false
	}
	return l.merges[i].ref, true
}

// Merged reports whether an entry is a merge, and whether it was undone.
func (l *Ledger) Merged(entry Ref) (isMerge, undone bool) {
	_, undone = l.undone[entry]
	return slices.ContainsFunc(l.merges, func(m merge) bool { return m.ref == entry }), undone
}

// joined returns the place of the merge in the log: later entries about the number are about its root.
func (l *Ledger) joined(id ID) (seq uint64) {
	for {
		p, ok := l.parents[id]
		if !ok {
			return seq
		}
		seq, id = max(seq, p.seq), p.to
	}
}

// A name is the name of a person before it is made different from others'.
type name struct {
	name string
	seq  uint64 // of the entry that gave it
}

// name returns the name of the person with these numbers. A name that a merged number had before the merge counts only
// if the person has no other.
func (l *Ledger) name(ids []ID, ring *Ring) (n name) {
	var late, early name
	for _, id := range ids {
		joined := l.joined(id)
		for _, r := range l.people[id].records {
			if r.kind != Name {
				continue
			}
			if _, undone := l.undone[r.ref]; undone {
				continue
			}
			best := &early
			if r.seq > joined {
				best = &late
			}
			if r.seq < best.seq {
				continue
			}
			if _, c, err := l.open(id, r, ring); err == nil {
				*best = name{c.(Naming).Name, r.seq}
			}
		}
	}
	if late.seq > 0 {
		return late
	}
	return early
}

// open returns a person's entry and its content.
func (l *Ledger) open(id ID, r record, ring *Ring) (e Entry, content any, err error) {
	key, ok := ring.Key(id, r.key)
	if !ok {
		return e, nil, errNoKey
	}
	data, err := r.bytes()
	if err != nil {
		return e, nil, err
	}
	if e, err = parseAgain(data); err == nil {
		content, err = e.Open(l.fleet, key)
	}
	return e, content, err
}

var errNoKey = fmt.Errorf("%w: the key is missing", ErrUnsealed)

// longestShown is the greatest length of a name with a number after it, in characters, so that both are a valid name.
const longestShown = 90

// names returns the shown name of each person, by root. Of two people with the same name, the one who got it later in
// the log has a number after the name.
func (l *Ledger) names(groups map[ID][]ID, ring *Ring) map[ID]string {
	given := make(map[ID]name, len(groups))
	for root, ids := range groups {
		if n := l.name(ids, ring); n.seq > 0 {
			given[root] = n
		}
	}
	roots := slices.SortedFunc(maps.Keys(given), func(a, b ID) int {
		return cmp.Or(cmp.Compare(given[a].seq, given[b].seq), slices.Compare(a[:], b[:]))
	})
	shown, taken, last := make(map[ID]string, len(roots)), make(map[string]bool, len(roots)), make(map[string]int)
	for _, root := range roots {
		n := given[root].name
		s := n
		for i := max(last[n], 1) + 1; taken[s]; i++ {
			short := []rune(n)
			s = fmt.Sprintf("%s (%d)", string(short[:min(len(short), longestShown)]), i)
			last[n] = i
		}
		taken[s], shown[root] = true, s
	}
	return shown
}

// opened is a record about a person with its content.
type opened struct {
	record
	of      ID // the number in the entry
	at      time.Time
	content any
	faces   []FaceID // of its content
	undone  bool
}

// opened returns the entries about the person with these numbers, in the order of the log. It leaves out entries
// without a key, and unreadable entries; so the result is the same on all devices with the same keys. Sealed is the
// number of entries whose key is missing.
func (l *Ledger) opened(ids []ID, ring *Ring) (all []opened, sealed int) {
	for _, id := range ids {
		for _, r := range l.people[id].records {
			_, undone := l.undone[r.ref]
			e, content, err := l.open(id, r, ring)
			if err == errNoKey && !undone {
				sealed++
			}
			if err != nil {
				continue
			}
			o := opened{record: r, of: id, at: e.Time, content: content, undone: undone}
			switch c := content.(type) {
			case Faces:
				for _, f := range c.Faces {
					o.faces = append(o.faces, NewFaceID(c.Space, f.Vector))
				}
			case Refs:
				o.faces = c.Faces
			}
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b opened) int { return cmp.Compare(a.seq, b.seq) })
	return all, sealed
}

// person folds the entries about the person with these numbers.
func (l *Ledger) person(ids []ID, ring *Ring) Person {
	p := Person{ID: ids[0], IDs: ids, Name: l.name(ids, ring).name}
	all, sealed := l.opened(ids, ring)
	p.Sealed = sealed
	for _, o := range all {
		// These three lists also count undone entries.
		switch c := o.content.(type) {
		case Naming:
			p.Names = append(p.Names, c.Name)
		case Faces, Refs:
			p.Gone = append(p.Gone, o.faces...)
			if o.kind == Deny {
				p.Allowed = append(p.Allowed, o.faces...)
			}
		}
		if o.undone {
			continue
		}
		switch c := o.content.(type) {
		case Faces:
			for i, f := range c.Faces {
				x := PersonFace{ID: o.faces[i], Space: c.Space, Face: f, By: o.ref, Confirmed: o.kind == Confirm}
				p.take(x, o.kind == Deny)
			}
			if o.kind != Deny {
				p.Enrolled = o.at
			}
		case Refs:
			p.Faces = slices.DeleteFunc(p.Faces, func(f PersonFace) bool { return slices.Contains(o.faces, f.ID) })
		case Lesson:
			if !slices.ContainsFunc(c.Through, l.Outdated) {
				p.learn(o, c)
			}
		}
	}
	for i := range p.Lessons { // some parts of the lesson may be missing
		x := &p.Lessons[i]
		x.Links = slices.DeleteFunc(x.Links, func(link [2]int) bool { return link[1] >= len(x.Centroids) })
	}
	if n := len(p.Denied); n > MaxDenied {
		p.Denied = slices.Clone(p.Denied[n-MaxDenied:])
	}
	p.Gone, p.Allowed = notAmong(p.Gone, p.Faces), notAmong(p.Allowed, p.Denied)
	slices.Sort(p.Names)
	p.Names = slices.Compact(p.Names)
	return p
}

// take labels or denies a face.
func (p *Person) take(f PersonFace, denied bool) {
	is := func(o PersonFace) bool { return o.ID == f.ID }
	p.Denied = slices.DeleteFunc(p.Denied, is)
	if denied {
		p.Faces, p.Denied = slices.DeleteFunc(p.Faces, is), append(p.Denied, f)
	} else if !slices.ContainsFunc(p.Faces, is) {
		p.Faces = append(p.Faces, f)
	}
}

// learn adds a lesson, or a further part of one.
func (p *Person) learn(o opened, c Lesson) {
	i := slices.IndexFunc(p.Lessons, func(x PersonLesson) bool {
		return o.part > 0 && x.Device == o.ref.Device && x.Of == o.of && x.Space == c.Space &&
			slices.Equal(x.Through, c.Through)
	})
	if i < 0 {
		p.Lessons = append(p.Lessons, PersonLesson{o.ref.Device, o.of, c})
		return
	}
	x := &p.Lessons[i]
	x.Centroids, x.Links = append(x.Centroids, c.Centroids...), append(x.Links, c.Links...)
}

// notAmong returns the ids without those of the faces, sorted, each once.
func notAmong(ids []FaceID, faces []PersonFace) []FaceID {
	some := make(map[FaceID]bool, len(faces))
	for _, f := range faces {
		some[f.ID] = true
	}
	ids = slices.DeleteFunc(ids, func(id FaceID) bool { return some[id] })
	slices.SortFunc(ids, func(a, b FaceID) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}

// hasEntries reports whether these numbers have an entry that counts.
func (l *Ledger) hasEntries(ids []ID) bool {
	for _, id := range ids {
		for _, r := range l.people[id].records {
			if _, undone := l.undone[r.ref]; !undone {
				return true
			}
		}
	}
	return false
}

// firstSeq returns the place of a person's first entry in the log.
func (l *Ledger) firstSeq(id ID) uint64 {
	if records := l.people[id].records; len(records) > 0 {
		return records[0].seq
	}
	return 0
}

// EachPerson calls f with each person, in the order of their first entries, until f returns false. Contents are as far
// as the keys of the ring open them. A person whose entries are all undone is left out.
func (l *Ledger) EachPerson(ring *Ring, f func(Person) bool) {
	groups := l.groups()
	shown := l.names(groups, ring)
	roots := slices.SortedFunc(maps.Keys(groups), func(a, b ID) int {
		return cmp.Or(cmp.Compare(l.firstSeq(a), l.firstSeq(b)), slices.Compare(a[:], b[:]))
	})
	for _, root := range roots {
		if !l.hasEntries(groups[root]) {
			continue
		}
		p := l.person(groups[root], ring)
		p.Shown = shown[root]
		if !f(p) {
			return
		}
	}
}

// People returns the people of [Ledger.EachPerson].
func (l *Ledger) People(ring *Ring) (all []Person) {
	l.EachPerson(ring, func(p Person) bool {
		all = append(all, p)
		return true
	})
	return all
}

// Names returns the shown names, by the numbers under which people are known.
func (l *Ledger) Names(ring *Ring) map[ID]string {
	groups := l.groups()
	maps.DeleteFunc(groups, func(_ ID, ids []ID) bool { return !l.hasEntries(ids) })
	return l.names(groups, ring)
}

// Person returns a person by any of its numbers, and whether there is one. It leaves Shown empty.
func (l *Ledger) Person(id ID, ring *Ring) (Person, bool) {
	if !l.Known(id) {
		return Person{}, false
	}
	ids := l.group(id)
	return l.person(ids, ring), l.hasEntries(ids)
}

// Hash returns a hash of the state, including sealed contents. Two devices that have applied the same entries have the
// same hash, even if their keys differ.
func (l *Ledger) Hash() (sum [32]byte) {
	h := sha256.New()
	add := func(parts ...any) { h.Write(marshal(parts)) }
	add("faceauth fleet state", Version, l.fleet)
	if l.epoch > 0 {
		add("restored", l.epoch)
	}
	for _, m := range l.Devices() {
		add("member", m.ID, m.Name, m.Scope, m.Revoked, m.Muted)
	}
	for _, id := range slices.SortedFunc(maps.Keys(l.people), func(a, b ID) int { return slices.Compare(a[:], b[:]) }) {
		p := l.people[id]
		add("person", id[:], p.creator)
		for _, r := range p.records {
			u, undone := l.undone[r.ref]
			add(r.seq, r.sum[:], undone, u.seq)
		}
	}
	for _, m := range l.merges {
		u, undone := l.undone[m.ref]
		add("merge", m.seq, m.sum[:], undone, u.seq)
	}
	for _, id := range slices.SortedFunc(maps.Keys(l.gone), func(a, b ID) int { return slices.Compare(a[:], b[:]) }) {
		add("gone", id[:])
	}
	for _, device := range slices.Sorted(maps.Keys(l.forgot)) {
		add("forgot", device, l.forgot[device])
	}
	h.Sum(sum[:0])
	return sum
}

// ContentHash returns a hash of the people that [Ledger.People] returns.
func (l *Ledger) ContentHash(ring *Ring) (sum [32]byte) {
	h := sha256.New()
	add := func(parts ...any) { h.Write(marshal(parts)) }
	add("faceauth fleet people", Version, l.fleet)
	l.EachPerson(ring, func(p Person) bool {
		add(p.ID[:], p.Name, p.Shown, len(p.IDs), len(p.Faces), len(p.Denied), len(p.Lessons), p.Sealed)
		for _, id := range p.IDs {
			add(id[:])
		}
		for _, faces := range [][]PersonFace{p.Faces, p.Denied} {
			for _, f := range faces {
				add(f.ID[:], f.Taken.UnixMilli(), f.Quality, f.By.Device, f.By.N, f.Confirmed)
			}
		}
		for _, id := range append(p.Gone, p.Allowed...) {
			add(id[:])
		}
		add(p.Names)
		for _, x := range p.Lessons {
			add(x.Device, encodeContent(Lessons, x.Lesson))
		}
		return true
	})
	h.Sum(sum[:0])
	return sum
}

// Want names a key that a device lacks.
type Want struct {
	Person ID
	Key    KeyID
	Author string // of the first entry that was sealed with the key
}

// Wants returns the keys that a device may have and the ring lacks.
func (l *Ledger) Wants(device string, ring *Ring) (all []Want) {
	for id, p := range l.people {
		all = l.wants(all, device, id, p, ring)
	}
	return all
}

// WantsOf returns the [Ledger.Wants] for one person.
func (l *Ledger) WantsOf(device string, id ID, ring *Ring) []Want {
	return l.wants(nil, device, id, l.people[id], ring)
}

func (l *Ledger) wants(all []Want, device string, id ID, p person, ring *Ring) []Want {
	begin := len(all)
	for _, r := range p.records {
		_, have := ring.Key(id, r.key)
		if have || slices.ContainsFunc(all[begin:], func(w Want) bool { return w.Key == r.key }) {
			continue
		}
		all = append(all, Want{id, r.key, r.ref.Device})
	}
	if len(all) > begin && !l.MayRead(device, id) {
		return all[:begin]
	}
	return all
}

// WriteKey returns the ring's key for new entries about a person, if there is one: the newest key that was first used
// after a device last lost the right to read.
func (l *Ledger) WriteKey(id ID, ring *Ring) (key Key, ok bool) {
	seen := make(map[KeyID]bool)
	for _, r := range l.people[id].records {
		if !seen[r.key] && r.seq > l.rotated {
			if k, have := ring.Key(id, r.key); have {
				key, ok = k, true
			}
		}
		seen[r.key] = true
	}
	return key, ok
}
