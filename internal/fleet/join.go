// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fleet/protocol"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/quantized"
)

// take brings records and gallery in line with values of the server.
func (d *local) take(all []kept) error {
	return d.write(func(b *ledger) {
		b.scan()
		for _, r := range all {
			if r.here != "" {
				b.Elsewhere(r.here, r.there)
			} else if !b.same(r) {
				b.join(r)
			}
		}
		b.namesakes()
		for _, s := range b.order { // first, so that faces go along with what is known of them
			b.merge(s)
		}
		for _, s := range b.order {
			b.apply(s)
		}
		b.Exec("delete from touched") // all of it is ours: scan has taken what was there
	})
}

// same reports whether a record is here as the server has it, and notes that: all are when they
// were sealed anew.
func (b *ledger) same(r kept) bool {
	if b.states[r.id] != nil {
		return false
	}
	s := b.load(r.id)
	if s == nil || !bytes.Equal(protocol.Encode(s.rec), protocol.Encode(r.rec)) {
		return false
	}
	b.acknowledge(r)
	return true
}

func byNumber(a, b *state) int { return a.id.compare(b.id) }

// state returns the record of a person, which is empty if nothing is known.
func (b *ledger) state(id ID) *state {
	if s := b.states[id]; s != nil {
		return s
	}
	s := b.load(id)
	if s == nil {
		s = &state{kept: kept{id: id}}
	}
	b.states[id], b.order = s, append(b.order, s)
	return s
}

// become gives a person another record, and notes whether the server has it.
func (s *state) become(r Record) {
	s.sent = s.sent && bytes.Equal(protocol.Encode(s.rec), protocol.Encode(r))
	s.rec = r
}

// join joins a value into its record. If they were found to be other people, they all are one: the
// least number stays and has what is known of all, and who is forgotten is forgotten under all
// numbers.
func (b *ledger) join(r kept) {
	s := b.state(r.id)
	before := s.rec
	s.rec, s.write, s.rev, s.key, s.sent = r.rec, r.write, r.rev, r.key, true
	s.become(join(before, r.rec))
	if s.rec.Into == (ID{}) {
		return
	}
	one, roots := Record{Forgotten: s.rec.Forgotten}, []*state(nil)
	for _, rec := range []Record{before, r.rec} {
		if rec.Into == (ID{}) { // what only this device, or only others knew
			one = join(one, rec)
		} else {
			roots = append(roots, b.root(rec.Into))
		}
	}
	slices.SortFunc(roots, byNumber)
	for _, root := range roots {
		one = join(one, root.rec)
	}
	for _, root := range roots {
		if root != roots[0] && root.rec.Into == (ID{}) {
			root.become(join(root.rec, Record{Into: roots[0].id}))
		}
	}
	roots[0].become(one)
}

// root returns the person whom the people under a number were found to be. A number leads to a
// smaller one, so this ends.
func (b *ledger) root(id ID) *state {
	s := b.state(id)
	for s.rec.Into != (ID{}) {
		s = b.state(s.rec.Into)
	}
	return s
}

// lives reports whether a person has a place in this gallery.
func (d *local) lives(r Record) bool {
	return !r.ended() && face.CheckName(r.Name) == nil && len(d.theirs(r)) > 0
}

// theirs returns the faces of a person that can be labels of this gallery.
func (d *local) theirs(r Record) (all [][]float32) {
	for _, f := range r.Faces {
		if d.usable(f) && !f.Not {
			all = append(all, vector.Floats(f.Vector))
		}
	}
	return all
}

// usable reports whether a face can be a label of this gallery.
func (d *local) usable(f Face) bool {
	return !f.Gone && f.Space == d.space.ID && len(f.Vector) == 4*d.space.Dim &&
		d.space.Check(vector.Floats(f.Vector)) == nil
}

// alike reports whether two people have faces that strangers do not share.
func (d *local) alike(a, b Record) bool {
	others := d.theirs(b)
	return slices.ContainsFunc(d.theirs(a), func(x []float32) bool {
		return slices.ContainsFunc(others, func(y []float32) bool {
			return quantized.Distance(x, y, d.space.Scale) <= d.space.ImpostorRadius
		})
	})
}

// holders returns the people who have a name, by their numbers.
func (b *ledger) holders(name string) (all []*state) {
	for _, id := range b.ids(namesakes, name) {
		b.state(id)
	}
	for _, s := range b.order {
		if s.rec.Name == name && (s.person > 0 || b.lives(s.rec)) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, byNumber)
	return all
}

// namesakes looks at people of one name. If their faces are alike, they are one person, whom two
// devices have enrolled. Otherwise the one with the greater number gets another name, in the fleet;
// so all devices do the same.
func (b *ledger) namesakes() {
	for i := 0; i < len(b.order); i++ {
		for s := b.order[i]; b.lives(s.rec); {
			all := b.holders(s.rec.Name)
			if len(all) < 2 {
				break
			}
			b.tellApart(all[0], all[1])
		}
	}
}

// tellApart makes two people of one name one person, or gives the second another name.
func (b *ledger) tellApart(stays, other *state) {
	other.sent = false
	if b.alike(stays.rec, other.rec) {
		stays.rec, other.rec = join(stays.rec, other.rec), join(other.rec, Record{Into: stays.id})
		stays.sent = false
		return
	}
	free, name := "", []rune(other.rec.Name)
	for k := 2; free == "" || len(b.holders(free)) > 0; k++ {
		// a name has at most 100 characters
		free = fmt.Sprintf("%s (%d)", string(name[:min(len(name), 90)]), k)
	}
	other.rec.Name, other.rec.Named = free, min(max(b.tick(), other.rec.clock()+1), latest)
}

// merge gives the rows of a person who was found to be another one to that one.
func (b *ledger) merge(s *state) {
	if s.person == 0 || s.rec.Into == (ID{}) {
		return
	}
	to := b.root(s.rec.Into)
	if to.rec.Forgotten {
		return
	}
	from := s.person
	s.person = 0
	b.save(s) // before the row of the person goes
	if to.person == 0 {
		to.person = from
	} else {
		b.Merge(from, to.person)
	}
	b.read(to)
}

// apply brings the gallery in line with a record, and saves it.
func (b *ledger) apply(s *state) {
	if gone := s.person; gone != 0 && s.rec.ended() {
		s.person = 0
		b.save(s)
		b.Forget(gone)
		return
	}
	lives := b.lives(s.rec)
	if lives && s.person == 0 {
		s.person, _ = b.Person(s.rec.Name) // the name was checked
		s.name, s.have = s.rec.Name, make(map[faceKey]*held)
	}
	if s.person == 0 {
		b.save(s)
		return
	}
	for key := range s.have {
		if f, there := s.rec.Faces[key]; !lives || !there || f.Gone {
			b.drop(s, key)
		}
	}
	if lives {
		b.add(s)
	}
	b.save(s)
}

// add gives a person the name of the record, and the faces that the gallery lacks.
func (b *ledger) add(s *state) {
	for _, not := range []bool{false, true} { // who has no face cannot have one that is not theirs
		for _, key := range slices.Sorted(maps.Keys(s.rec.Faces)) {
			f := s.rec.Faces[key]
			if f.Not == not && s.have[key] == nil && b.usable(f) && (not || b.claim(s, key, f)) {
				s.have[key] = new(held)
				b.Label(s.person, not, [][]float32{vector.Floats(f.Vector)}, nil)
			}
		}
	}
	if s.name != s.rec.Name {
		b.Call(s.person, s.rec.Name)
	}
	b.Exec("update person set enrolled = max(enrolled, ?) where id = ?", s.rec.Enrolled, s.person)
}

// claim reports whether a face belongs to a person. If two people have it, it belongs to the person
// of whom it was said later, and is taken from the other.
func (b *ledger) claim(s *state, key faceKey, f Face) bool {
	row, person := b.Held(f.Vector, s.person)
	ids := b.ids(ofPerson, person)
	if len(ids) == 0 {
		return true
	}
	other := b.state(ids[0])
	its, there := other.rec.Faces[key]
	if !there || its.Gone { // it goes when the other one is looked at
		return true
	}
	wins := cmp.Or(cmp.Compare(f.Clock, its.Clock), other.id.compare(s.id)) > 0
	gone := Face{Clock: min(f.Clock, its.Clock), Gone: true}
	// later than the mark, if the two are merged
	f.Clock = min(max(f.Clock, its.Clock, gone.Clock+1), latest)
	s.sent, other.sent = false, false
	s.rec.Faces[key], other.rec.Faces[key] = gone, f
	if wins {
		s.rec.Faces[key], other.rec.Faces[key] = f, gone
		b.Drop(row)
		delete(other.have, key)
	}
	b.save(other)
	return wins
}
