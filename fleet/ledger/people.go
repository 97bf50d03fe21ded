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

// Person is a person of a fleet, as far as the keys of a ring go.
type Person struct {
	ID       ID
	IDs      []ID         // with those that were merged into this one, ID first
	Name     string       // as it was given; "" where there is none, or no key for it
	Shown    string       // the same, made different from those of others: "alice (2)"
	Faces    []PersonFace // the labelled ones, the oldest first
	Denied   []PersonFace // faces that are not the person's, the oldest first, at most [MaxDenied]
	Gone     []FaceID     // faces that were labelled or taken back once, and are not labelled now
	Allowed  []FaceID     // faces that were denied once and are not now
	Names    []string     // all that were ever given
	Lessons  []PersonLesson
	Enrolled time.Time // when the last face was labelled, by its device's clock
	Sealed   int       // entries that no key of the ring opens
}

// MaxDenied is how many denied faces of a person count, the newest.
const MaxDenied = 16

// PersonFace is a labelled or denied face of a person.
type PersonFace struct {
	ID    FaceID
	Space string
	Face
	By        Ref  // the entry that says so
	Confirmed bool // it was learned before it was labelled
}

// PersonLesson is what a device learned of a person.
type PersonLesson struct {
	Device string
	Of     ID // the number under which the device knew the person
	Lesson
}

// groups returns the numbers that stand for one person each, by the number under which the person is known.
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

// group returns the numbers that stand for the same person as id.
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

// MergedBy returns the entry by which the person of a number is another one's, and whether there is one.
func (l *Ledger) MergedBy(id ID) (by Ref, merged bool) {
	p, merged := l.parents[id]
	i := slices.IndexFunc(l.merges, func(m merge) bool { return m.seq == p.seq })
	if !merged || i < 0 {
		return Ref{}, false
	}
	return l.merges[i].ref, true
}

// Merged reports whether an entry says that two people are one, and whether that was undone.
func (l *Ledger) Merged(what Ref) (says, undone bool) {
	_, undone = l.undone[what]
	return slices.ContainsFunc(l.merges, func(m merge) bool { return m.ref == what }), undone
}

// joined returns the place in the log from which on that is said of a number is said of its root.
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

// name returns the name of the person who has these numbers. A name that was given to somebody before they were merged
// into another counts only where the other has none.
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

// open returns a record of a person with its content.
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

var errNoKey = fmt.Errorf("%w: there is no key for it", ErrUnsealed)

// longestShown is how many characters a name has before a number is put after it, so that both are a usable name.
const longestShown = 90

// names returns the name that each person is shown with, by their roots. Of two who have the same name, the one who got
// it later in the log has a number after it.
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

// An opened record is what was said of a person.
type opened struct {
	record
	of      ID // the number that it was said of
	at      time.Time
	content any
	faces   []FaceID // of its content
	undone  bool
}

// opened returns what was said of the person who has these numbers, in the order of the log, as far as keys open it and
// it can be read, which is the same on all devices that have the keys. Sealed is how many entries want a key.
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

// person folds what is known of the person who has these numbers.
func (l *Ledger) person(ids []ID, ring *Ring) Person {
	p := Person{ID: ids[0], IDs: ids, Name: l.name(ids, ring).name}
	all, sealed := l.opened(ids, ring)
	p.Sealed = sealed
	for _, o := range all {
		// What was ever said, undone or not.
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
				p.take(PersonFace{ID: o.faces[i], Space: c.Space, Face: f, By: o.ref, Confirmed: o.kind == Confirm}, o.kind == Deny)
			}
			if o.kind != Deny {
				p.Enrolled = o.at
			}
		case Refs:
			p.Faces = slices.DeleteFunc(p.Faces, func(f PersonFace) bool { return slices.Contains(o.faces, f.ID) })
		case Lesson:
			p.learn(o, c)
		}
	}
	for i := range p.Lessons { // some of its parts may not be there yet
		x := &p.Lessons[i]
		x.Links = slices.DeleteFunc(x.Links, func(link [2]int) bool { return link[1] >= len(x.Centroids) })
	}
	if n := len(p.Denied); n > MaxDenied {
		p.Denied = slices.Clone(p.Denied[n-MaxDenied:])
	}
	p.Gone, p.Allowed = but(p.Gone, p.Faces), but(p.Allowed, p.Denied)
	slices.Sort(p.Names)
	p.Names = slices.Compact(p.Names)
	return p
}

// take has a face be labelled, or denied.
func (p *Person) take(f PersonFace, denied bool) {
	is := func(o PersonFace) bool { return o.ID == f.ID }
	p.Denied = slices.DeleteFunc(p.Denied, is)
	if denied {
		p.Faces, p.Denied = slices.DeleteFunc(p.Faces, is), append(p.Denied, f)
	} else if !slices.ContainsFunc(p.Faces, is) {
		p.Faces = append(p.Faces, f)
	}
}

// learn takes in a lesson, or another part of one.
func (p *Person) learn(o opened, c Lesson) {
	i := slices.IndexFunc(p.Lessons, func(x PersonLesson) bool {
		return o.part > 0 && x.Device == o.ref.Device && x.Of == o.of && x.Space == c.Space
	})
	if i < 0 {
		p.Lessons = append(p.Lessons, PersonLesson{o.ref.Device, o.of, c})
		return
	}
	x := &p.Lessons[i]
	x.Centroids, x.Links = append(x.Centroids, c.Centroids...), append(x.Links, c.Links...)
}

// but returns the numbers that are those of no face of some, sorted, each once.
func but(ids []FaceID, faces []PersonFace) []FaceID {
	some := make(map[FaceID]bool, len(faces))
	for _, f := range faces {
		some[f.ID] = true
	}
	ids = slices.DeleteFunc(ids, func(id FaceID) bool { return some[id] })
	slices.SortFunc(ids, func(a, b FaceID) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}

// says reports whether anything counts of what was said of these numbers.
func (l *Ledger) says(ids []ID) bool {
	for _, id := range ids {
		for _, r := range l.people[id].records {
			if _, undone := l.undone[r.ref]; !undone {
				return true
			}
		}
	}
	return false
}

// began returns the place in the log where a person came to be.
func (l *Ledger) began(id ID) uint64 {
	if records := l.people[id].records; len(records) > 0 {
		return records[0].seq
	}
	return 0
}

// EachPerson gives f the people, in the order in which they came to be, with what the keys of the ring open, until it
// returns false. Somebody of whom all was undone is none of them.
func (l *Ledger) EachPerson(ring *Ring, f func(Person) bool) {
	groups := l.groups()
	shown := l.names(groups, ring)
	roots := slices.SortedFunc(maps.Keys(groups), func(a, b ID) int {
		return cmp.Or(cmp.Compare(l.began(a), l.began(b)), slices.Compare(a[:], b[:]))
	})
	for _, root := range roots {
		if !l.says(groups[root]) {
			continue
		}
		p := l.person(groups[root], ring)
		p.Shown = shown[root]
		if !f(p) {
			return
		}
	}
}

// People returns the people as [Ledger.EachPerson] gives them.
func (l *Ledger) People(ring *Ring) (all []Person) {
	l.EachPerson(ring, func(p Person) bool {
		all = append(all, p)
		return true
	})
	return all
}

// Names returns the names that people are shown with, by the numbers under which they are known.
func (l *Ledger) Names(ring *Ring) map[ID]string {
	groups := l.groups()
	maps.DeleteFunc(groups, func(_ ID, ids []ID) bool { return !l.says(ids) })
	return l.names(groups, ring)
}

// Person returns a person, also by the number of one that was merged into it, and whether there is one. It leaves Shown
// empty.
func (l *Ledger) Person(id ID, ring *Ring) (Person, bool) {
	if !l.Known(id) {
		return Person{}, false
	}
	ids := l.group(id)
	return l.person(ids, ring), l.says(ids)
}

// Hash returns a hash of all that the log has come to, sealed contents among it: two devices that have applied the same
// entries have the same one, whatever keys they have.
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
	h.Sum(sum[:0])
	return sum
}

// ContentHash returns a hash of the people as [Ledger.People] gives them.
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

// Want names a key that a device has not got.
type Want struct {
	Person ID
	Key    KeyID
	Author string // of the first entry that is sealed with it
}

// Wants returns the keys that a device may have and the ring has not got.
func (l *Ledger) Wants(device string, ring *Ring) (all []Want) {
	for id, p := range l.people {
		all = l.wants(all, device, id, p, ring)
	}
	return all
}

// WantsOf is Wants for one person.
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

// WriteKey returns the key of the ring that new entries about a person are to be sealed with, and whether there is one:
// the newest that came into use after somebody last lost the right to read.
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
