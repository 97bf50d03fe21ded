// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/online"
)

// DailyForgets is the number of people whom one device alone can forget in a day. Further ones wait until another
// device forgets them, too, or until the admin allows it ([AdminKey.Allow]).
const DailyForgets = 20

// joined is what all devices say about one number.
type joined struct {
	name   naming
	namer  string
	faces  map[FaceID]heardFace // nil in [Device].people
	faced  bool                 // one of them is labelled
	same   map[ID]heardSame
	sealed int // values that no key opens
}

type heardFace struct {
	PersonFace
	state faceState
}

type heardSame struct {
	sameWord
	device string
}

// later reports whether a word counts more than another one with the same key.
func later(clock uint64, device string, than uint64, other string) bool {
	return cmp.Or(cmp.Compare(clock, than), cmp.Compare(device, other)) > 0
}

// counts reports whether a value counts: its device is a member, or was one and the value stays.
func (d *Device) counts(device, name string, n uint64) bool {
	m, known := d.members.Device(device)
	if device == d.id && !known {
		return true // before it has read its admission
	}
	return known && (!m.Revoked || m.Kept(name, n))
}

// mayWrite reports whether a device may say something about a person.
func (d *Device) mayWrite(device string, id ID) bool {
	m, known := d.members.Device(device)
	if !known {
		return device == d.id
	}
	e := d.said[device][id.String()]
	return m.Scope.All || m.may[id] || e != nil && e.born
}

// derived is what follows from all that is said. Each part is found when it is asked for first, and again after a
// change.
type derived struct {
	spoken  func() map[ID]bool   // numbers that devices speak of
	hidden  func() map[ID]bool   // people who are forgotten at all devices
	groups  func() map[ID][]ID   // the numbers of merged people, the root first, by each of them
	shown   func() map[ID]string // shown names
	lacking func() int           // people whose key is missing
}

// invalidate notes that something about a person has changed.
func (d *Device) invalidate(id ID) {
	delete(d.people, id)
	d.forgetDerived()
	signal(d.changed)
}

// invalidateAll notes that everything may have changed.
func (d *Device) invalidateAll() {
	clear(d.people)
	d.invalidate(ID{})
}

func (d *Device) forgetDerived() {
	d.derived = derived{sync.OnceValue(d.findSpoken), sync.OnceValue(d.hide), sync.OnceValue(d.merge),
		sync.OnceValue(d.show), sync.OnceValue(d.countLacking)}
}

func (d *Device) findSpoken() map[ID]bool {
	all := make(map[ID]bool)
	for device, values := range d.said {
		for name, e := range values {
			if id, part, ok := personOf(name); ok && part < 0 && d.counts(device, name, e.n) {
				all[id] = true
			}
		}
	}
	return all
}

// sayers returns the devices with words about a person that count, and their values.
func (d *Device) sayers(id ID) iter.Seq2[string, *entry] {
	return func(yield func(string, *entry) bool) {
		name := id.String()
		for device, values := range d.said {
			if e := values[name]; e != nil && e.box && d.counts(device, name, e.n) && !yield(device, e) {
				return
			}
		}
	}
}

// heard joins what all devices say about a number.
func (d *Device) heard(id ID) *joined {
	j := &joined{faces: make(map[FaceID]heardFace)}
	name := id.String()
	key, keyed := d.secrets[id]
	err := d.db.Query("select device, n, data from value where name = ?", func(r store.Row) error {
		device, n := r.ColumnText(0), uint64(r.ColumnInt64(1))
		if !d.counts(device, name, n) || !d.mayWrite(device, id) {
			return nil
		}
		_, v, err := parseValue(r.ColumnBlob(2, nil))
		if err != nil || len(v.Box) == 0 {
			return nil
		}
		var w words
		if !keyed {
			err = ErrKeyless
		} else if data, e := key.open(v.Box, placeOf(device, name)); e != nil {
			err = e
		} else {
			w, err = openWords(data)
		}
		if err != nil {
			if keyed || d.full() || d.mayWrite(d.id, id) { // otherwise it is not for this device
				j.sealed++
			}
			return nil
		}
		if m, known := d.members.Device(device); known {
			device = m.ID // one string for all
		}
		j.take(d, device, w)
		return nil
	}, name)
	if err != nil {
		d.trouble = fmt.Sprintf("%v: %v", ErrDamaged, err)
	}
	for _, f := range j.faces {
		j.faced = j.faced || f.state == labelled
	}
	return j
}

// take joins the words of one device.
func (j *joined) take(d *Device, device string, w words) {
	if w.Name != nil && !d.early(w.Name.Clock) && later(w.Name.Clock, device, j.name.Clock, j.namer) {
		j.name, j.namer = *w.Name, device
	}
	var count [allowed + 1]int
	for _, f := range slices.Backward(w.Faces) { // the newest first
		if count[f.State]++; d.early(f.Clock) || f.State == labelled && count[labelled] > MaxFaces ||
			f.State == denied && count[denied] > MaxDenied {
			continue
		}
		old, there := j.faces[f.id()]
		if !there || later(f.Clock, device, old.clock, old.device) {
			x := f.personFace(w.Spaces)
			x.device = device
			j.faces[f.id()] = heardFace{x, f.State}
		}
	}
	for _, s := range w.Same {
		into := ID(s.Into)
		old, there := j.same[into]
		if !d.early(s.Clock) && (!there || later(s.Clock, device, old.Clock, old.device)) {
			if j.same == nil {
				j.same = make(map[ID]heardSame)
			}
			j.same[into] = heardSame{s, device}
		}
	}
}

// joined returns what is said about a number, without its faces: thousands of people must not fill the memory.
func (d *Device) joined(id ID) *joined {
	j := d.people[id]
	if j == nil {
		j = d.heard(id)
		j.faces = nil
		d.people[id] = j
	}
	return j
}

// Forgetting: a person is forgotten if two devices say so, or one that has not used up its forgets.

// forgotten reports whether a person is forgotten, at least at this device.
func (d *Device) forgotten(id ID) bool {
	e := d.said[d.id][id.String()]
	return d.hidden()[id] || e != nil && e.forget > 0
}

// hide finds the people who are forgotten at all devices.
func (d *Device) hide() map[ID]bool {
	type word struct {
		id     ID
		clock  uint64
		device string
	}
	all := make(map[ID][]word)
	for device, values := range d.said {
		for name, e := range values {
			id, part, ok := personOf(name)
			if ok && part < 0 && e.forget > 0 && d.counts(device, name, e.n) && d.mayWrite(device, id) &&
				!d.early(e.forget) {
				all[id] = append(all[id], word{id, e.forget, device})
			}
		}
	}
	hidden := maps.Clone(d.dead)
	alone := make(map[string][]word)
	for id, words := range all {
		w := words[0]
		if len(words) > 1 || d.members.mayForget(w.device, clockTime(w.clock)) || !d.spokenOf(id, w.device) {
			hidden[id] = true
		} else {
			alone[w.device] = append(alone[w.device], w)
		}
	}
	for _, words := range alone {
		slices.SortFunc(words, func(a, b word) int {
			return cmp.Or(cmp.Compare(a.clock, b.clock), bytes.Compare(a.id[:], b.id[:]))
		})
		for _, w := range words[:min(len(words), DailyForgets)] {
			hidden[w.id] = true
		}
	}
	return hidden
}

// spokenOf reports whether another device than this one says something about a person. Otherwise nobody else loses it.
func (d *Device) spokenOf(id ID, but string) bool {
	for device := range d.sayers(id) {
		if device != but {
			return true
		}
	}
	return false
}

// group returns all numbers of a person, the root first.
func (d *Device) group(id ID) []ID {
	if g := d.groups()[id]; g != nil {
		return g
	}
	return []ID{id}
}

// merge finds the numbers of merged people. Merges count in the order of their clocks; one that would close a circle
// does not count.
func (d *Device) merge() map[ID][]ID {
	type edge struct {
		from, into ID
		s          heardSame
	}
	var edges []edge
	for id := range d.spoken() {
		for into, s := range d.joined(id).same {
			// A device that may not write about both would give one of them the other's faces.
			if !s.Off && !d.forgotten(id) && !d.forgotten(into) && d.mayWrite(s.device, into) {
				edges = append(edges, edge{id, into, s})
			}
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.s.Clock, b.s.Clock), cmp.Compare(a.s.device, b.s.device),
			bytes.Compare(a.from[:], b.from[:]))
	})
	parent := make(map[ID]ID)
	root := func(id ID) ID {
		for {
			next, there := parent[id]
			if !there {
				return id
			}
			id = next
		}
	}
	for _, e := range edges {
		if a, b := root(e.from), root(e.into); a != b {
			parent[a] = b
		}
	}
	groups := make(map[ID][]ID)
	for id := range parent {
		r := root(id)
		if groups[r] == nil {
			groups[r] = []ID{r}
		}
		groups[r] = append(groups[r], id)
	}
	for _, g := range slices.Collect(maps.Values(groups)) {
		slices.SortFunc(g[1:], func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
		for _, id := range g {
			groups[id] = g
		}
	}
	return groups
}

// known reports whether anybody says something about a person who is not forgotten.
func (d *Device) known(id ID) bool {
	for range d.sayers(id) {
		return !d.forgotten(id)
	}
	return false
}

// person assembles a person from what is said about each number.
func (d *Device) person(ids []ID, say func(ID) *joined) Person {
	p := Person{ID: ids[0], IDs: slices.Clone(ids)}
	faces := make(map[FaceID]heardFace)
	for i, id := range ids {
		j := say(id)
		p.Sealed += j.sealed
		if i == 0 || p.Name == "" {
			p.Name, p.named = j.name.Name, j.name.Clock
		}
		p.Names = append(p.Names, j.name.Was...)
		if j.name.Name != "" {
			p.Names = append(p.Names, j.name.Name)
		}
		for f, x := range j.faces {
			old, there := faces[f]
			if !there || later(x.clock, x.device, old.clock, old.device) {
				faces[f] = x
			}
		}
	}
	for f, x := range faces {
		switch x.state {
		case labelled:
			p.Faces = append(p.Faces, x.PersonFace)
			if at := clockTime(x.clock); at.After(p.Enrolled) {
				p.Enrolled = at.UTC()
			}
		case denied:
			p.Denied = append(p.Denied, x.PersonFace)
		case retracted:
			p.Gone = append(p.Gone, f)
		case allowed:
			p.Allowed = append(p.Allowed, f)
		}
	}
	for _, list := range [][]PersonFace{p.Faces, p.Denied} {
		slices.SortFunc(list, func(a, b PersonFace) int {
			return cmp.Or(cmp.Compare(a.clock, b.clock), bytes.Compare(a.ID[:], b.ID[:]))
		})
	}
	p.Denied = p.Denied[max(0, len(p.Denied)-MaxDenied):]
	return p
}

// names returns the names of all people that are shown.
func (d *Device) names() map[ID]string { return d.shown() }

// show names all people: if two have the same name, the one who got it later is "alice (2)".
func (d *Device) show() map[ID]string {
	var all []Person
	for id := range d.spoken() {
		if g := d.group(id); g[0] == id && !d.forgotten(id) && d.exists(g) {
			all = append(all, d.person(g, d.joined))
		}
	}
	slices.SortFunc(all, byName)
	names := make(map[ID]string)
	used := make(map[string]bool)
	for _, p := range all {
		used[p.Name] = true
	}
	first := make(map[string]bool)
	for _, p := range all {
		shown := p.Name
		for i := 2; p.Name != "" && (first[shown] || shown != p.Name && used[shown]); i++ {
			shown = numbered(p.Name, i)
		}
		first[shown] = true
		names[p.ID] = shown
	}
	return names
}

// exists reports whether a person is worth showing: it has a name or faces, or its key is missing.
func (d *Device) exists(group []ID) bool {
	faced := false
	for _, id := range group {
		j := d.joined(id)
		if faced = faced || j.faced; j.name.Name != "" || j.sealed > 0 {
			return true
		}
	}
	return faced && len(d.person(group, d.heard).Faces) > 0 // taken back under another number, perhaps
}

// byName orders people by when they got their names.
func byName(a, b Person) int {
	return cmp.Or(cmp.Compare(a.named, b.named), bytes.Compare(a.ID[:], b.ID[:]))
}

// numbered returns a name with a number after it, not longer than a name may be.
func numbered(name string, i int) string {
	short := []rune(name)
	return fmt.Sprintf("%s (%d)", string(short[:min(len(short), 90)]), i)
}

// whole returns a person with vectors and lessons.
func (d *Device) whole(id ID) (Person, bool) {
	g := d.group(id)
	shown, there := d.names()[g[0]]
	if !there {
		return Person{}, false
	}
	p := d.person(g, d.heard)
	p.Shown = shown
	p.Lessons = d.lessons(g)
	return p, true
}

// People returns the people of the fleet, in the order in which they got their names.
func (d *Device) People() []Person {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wholeAll()
}

func (d *Device) wholeAll() (all []Person) {
	for id := range d.names() {
		p, _ := d.whole(id)
		all = append(all, p)
	}
	slices.SortFunc(all, byName)
	return all
}

// briefs returns all people without faces and lessons, from memory.
func (d *Device) briefs() (all []Person) {
	for id, shown := range d.names() {
		p := d.person(d.group(id), d.joined)
		p.Shown = shown
		all = append(all, p)
	}
	slices.SortFunc(all, byName)
	return all
}

// Person returns a person by any of its numbers.
func (d *Device) Person(id ID) (Person, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.whole(id)
}

// Find returns a person by number or by shown name. The error wraps [ErrUnknown].
func (d *Device) Find(name string) (Person, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id, err := ParseID(name); err == nil {
		if p, there := d.whole(id); there {
			return p, nil
		}
	}
	for id, shown := range d.names() {
		if shown == name && name != "" {
			p, _ := d.whole(id)
			return p, nil
		}
	}
	return Person{}, fmt.Errorf("%w: %s", ErrUnknown, name)
}

// Forgotten reports whether a person is forgotten.
func (d *Device) Forgotten(person ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.forgotten(person)
}

// Withdrawals of lessons.

// withdrawal returns the last word about the lessons of a device.
func (d *Device) withdrawal(device string) (w withdrawal, by string) {
	for other, n := range d.notes {
		m, known := d.members.Device(other)
		if x, there := n.withdrawn[device]; there && (known && m.full() || other == device || other == d.id) &&
			!d.early(x.Clock) && later(x.Clock, other, w.Clock, by) {
			w, by = x, other
		}
	}
	return w, by
}

// source returns the name of the lessons that a device gives now: a withdrawal of its lessons changes it.
func (d *Device) source(device string) string {
	if w, by := d.withdrawal(device); by != "" {
		return fmt.Sprintf("%s@%d", device, w.Clock)
	}
	return device
}

// outdated reports whether lessons that were learned through a source do not count any more.
func (d *Device) outdated(source string) bool {
	device, _, _ := strings.Cut(source, "@")
	return !d.counts(device, "", 0) || d.source(device) != source
}

// lessons returns the lessons about a person that count.
func (d *Device) lessons(ids []ID) (all []PersonLesson) {
	for _, device := range d.speakers() {
		for _, id := range ids {
			if d.said[device][id.String()+lessonName(0)] == nil || !d.mayWrite(device, id) {
				continue
			}
			lessons, clock := d.lessonsOf(device, id)
			if w, _ := d.withdrawal(device); w.Mute || clock <= w.Clock || d.early(clock) {
				continue
			}
			for _, l := range lessons {
				if !slices.ContainsFunc(l.Through, d.outdated) {
					all = append(all, PersonLesson{device, id, l})
				}
			}
		}
	}
	return all
}

// taught returns the numbers of people about whom there are lessons.
func (d *Device) taught() map[ID]bool {
	all := make(map[ID]bool)
	for _, values := range d.said {
		for name := range values {
			if person, some := strings.CutSuffix(name, lessonName(0)); some {
				if id, err := ParseID(person); err == nil {
					all[id] = true
				}
			}
		}
	}
	return all
}

// lessonsOf returns a device's lessons about a number, if all parts are there.
func (d *Device) lessonsOf(device string, id ID) (all []online.Lesson, clock uint64) {
	key, keyed := d.secrets[id]
	var data []byte
	for part := uint64(0); keyed && part < mostParts; part++ {
		name := id.String() + lessonName(int(part))
		v, there := d.value(device, name)
		if !there || !d.counts(device, name, v.N) || len(v.Box) == 0 {
			return nil, 0
		}
		b, err := key.open(v.Box, placeOf(device, name))
		var p lessonPart
		if err != nil || decoding.Unmarshal(b, &p) != nil || part > 0 && p.Clock != clock {
			return nil, 0
		}
		clock = p.Clock
		data = append(data, p.Data...)
		if part+1 < p.Parts {
			continue
		}
		if len(data) == 0 {
			return nil, clock
		}
		all, err := decodeLessons(data)
		if err != nil {
			return nil, 0
		}
		return all, clock
	}
	return nil, 0
}

// value returns the last value of a name.
func (d *Device) value(device, name string) (v value, there bool) {
	err := d.db.Query("select data from value where device = ? and name = ?", func(r store.Row) error {
		var err error
		_, v, err = parseValue(r.ColumnBlob(0, nil))
		there = err == nil
		return nil
	}, device, name)
	if err != nil {
		d.trouble = fmt.Sprintf("%v: %v", ErrDamaged, err)
	}
	return v, there
}

// Hash returns a number that is equal at all devices that know the same people.
func (d *Device) Hash() [32]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []any
	for _, p := range d.wholeAll() {
		one := []any{p.ID[:], p.Name, p.Shown, len(p.Gone), len(p.Allowed)}
		for _, list := range [][]PersonFace{p.Faces, p.Denied} {
			for _, f := range list {
				one = append(one, f.ID[:])
			}
		}
		for _, l := range p.Lessons {
			one = append(one, l.Device, encodeLessons([]online.Lesson{l.Lesson}))
		}
		all = append(all, one)
	}
	return hashOf("state", encode(all))
}

// Source returns the name of the lessons that a device gives now, for [online.Lesson].Through.
func (d *Device) Source(device string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.source(device)
}

// age returns how long ago this device learned that a person is forgotten.
func (d *Device) age(id ID) time.Duration { return d.s.Now().Sub(d.seen[id]) }

// Names returns the numbers of all people, in no order.
func (d *Device) Names() (all []ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.names() {
		all = append(all, id)
	}
	return all
}
