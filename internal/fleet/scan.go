// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"slices"
)

// scan takes what programs have changed in the gallery into the records.
func (b *ledger) scan() {
	people, _ := b.Ints("select person from touched order by 1")
	if len(people) == 0 {
		return
	}
	// What is gone has the earlier clock, so that a face that went from one person to another one
	// is not lost where only half of it has arrived.
	clock := b.tick()
	var there, gone []*state
	// nothing new is said of faces that another one of these people had: they keep their clocks
	var moved map[faceKey]Face
	for _, person := range people {
		s := b.of(person)
		switch {
		case s == nil: // never shared
		case s.first != nil:
			there = append(there, s)
		case !s.rec.ended():
			gone, moved = append(gone, s), joinFaces(moved, s.rec.Faces)
		}
	}
	holds := make(map[faceKey]*state)
	for _, s := range there {
		for key := range s.have {
			holds[key] = s
		}
		b.fold(s, clock, moved)
	}
	for _, s := range gone {
		into := whither(s.rec, holds)
		b.drop(s, slices.Collect(maps.Keys(s.have))...)
		s.person, s.sent = 0, false
		if into == nil {
			s.rec = join(s.rec, Record{Forgotten: true})
			b.save(s)
			continue
		}
		if s.id.compare(into.id) < 0 { // the smaller number stays: two merges make no ring
			s.kept, into.kept = into.kept, s.kept
		}
		into.rec.Faces, into.sent = joinFaces(into.rec.Faces, s.rec.Faces), false
		s.rec = join(s.rec, Record{Into: into.id})
		b.save(s)
		for key := range into.have {
			if into.rec.Faces[key].Gone { // one of them lost it, later than the other one got it
				b.drop(into, key)
			}
		}
		b.fold(into, clock, moved)
	}
	b.Exec("delete from touched")
}

// whither returns the person who has most faces of a person who has none any more: they were
// merged.
func whither(r Record, holds map[faceKey]*state) (into *state) {
	count, most := make(map[*state]int), 0
	for key, f := range r.Faces {
		if f.Gone || f.Not || holds[key] == nil {
			continue
		}
		s := holds[key]
		count[s]++
		if count[s] > most || count[s] == most && s.id.compare(into.id) < 0 {
			into, most = s, count[s]
		}
	}
	return into
}

// drop removes faces that were taken back.
func (b *ledger) drop(s *state, keys ...faceKey) {
	for _, key := range keys {
		b.Drop(s.have[key].rows...)
		delete(s.have, key)
	}
}

// of returns the record of a person of the gallery, and makes one for somebody new who has faces.
func (b *ledger) of(person int64) *state {
	for _, id := range b.ids(ofPerson, person) {
		return b.load(id)
	}
	s := &state{person: person}
	b.read(s)
	if s.first == nil {
		// somebody without faces has none that are not theirs
		b.drop(s, slices.Collect(maps.Keys(s.have))...)
		return nil
	}
	// The number is taken if this person was forgotten or merged, and is here again.
	for i, taken := 0, int64(1); taken > 0; i++ {
		s.id = idOf(b.space.ID, s.first, i)
		taken, _ = b.Int("select count(*) from shared where id = ?", s.id[:])
	}
	b.save(s)
	return s
}

// fold takes the present rows of a person into the record, and saves it if that changes anything.
func (b *ledger) fold(s *state, clock uint64, moved map[faceKey]Face) {
	changed := !s.sent
	clock = min(max(clock, s.rec.clock()+1), latest-1)
	s.rec.Faces = joinFaces(s.rec.Faces) // no nil map, as of a record that a member has forged
	for key, f := range s.rec.Faces {
		if s.have[key] == nil && !f.Gone && f.Space == b.space.ID {
			s.rec.Faces[key], changed = Face{Clock: clock, Gone: true}, true
		}
	}
	for key, h := range s.have {
		old, there := s.rec.Faces[key]
		if there && !old.Gone {
			continue
		}
		f := Face{Clock: clock + 1, Not: h.not, Space: b.space.ID, Vector: h.vector}
		if was, there := moved[key]; there && !was.Gone {
			f.Clock = was.Clock
		}
		if old.Gone && old.Clock >= f.Clock { // it was taken back since
			b.drop(s, key)
			continue
		}
		s.rec.Faces[key], changed = f, true
	}
	if s.name != s.rec.Name {
		s.rec.Name, s.rec.Named, changed = s.name, clock+1, true
	}
	if changed {
		s.rec.Enrolled, s.sent = max(s.rec.Enrolled, s.enrolled), false
		b.save(s)
	}
}
