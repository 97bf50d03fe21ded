// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/internal/vector"
)

// local is the gallery of a device with the records beside it.
type local struct {
	rows  *gallery.Rows
	space face.Space
}

// state is the record of a person with its place in the gallery.
type state struct {
	kept
	person int64 // number in the gallery; 0: nobody there
	known  gallery.Known
	have   map[faceKey][]int64 // the rows of the person's labels
}

// kept is a record with what the server has of it.
type kept struct {
	id    ID
	rec   Record
	write string
	rev   uint64
	key   uint32
	n     int64
	sent  bool
}

// ledger is a transaction on the records and rows of a gallery. Its first error ends it: what follows
// is not written either. It holds the people whom it concerns until now.
type ledger struct {
	*local
	*gallery.Tx
	err    error
	states map[ID]*state
	order  []*state
	named  map[string][]ID // the people of the gallery by name
}

// write calls do in one transaction.
func (d *local) write(do func(b *ledger)) error {
	return d.rows.Change(func(t *gallery.Tx) error {
		b := &ledger{local: d, Tx: t, states: make(map[ID]*state)}
		do(b)
		return b.err
	})
}

// note notes errors, and reports whether there was none until now.
func (b *ledger) note(errs ...error) bool {
	if b.err == nil {
		b.err = errors.Join(errs...)
	}
	return b.err == nil
}

// looked says that what has changed of a person until now is known.
func (b *ledger) looked(person int64) { b.note(b.Exec("delete from touched where person = ?", person)) }

func (b *ledger) count(sql string, args ...any) int64 {
	n, err := b.Int(sql, args...)
	b.note(err)
	return n
}

// ids returns the people of the fleet for whom a condition holds.
func (b *ledger) ids(condition string) (all []ID) {
	b.note(b.Query("select id from shared where "+condition, func(r gallery.Row) error {
		all = append(all, ID(r.ColumnRawBlob(0)))
		return nil
	}))
	return all
}

// load returns the record of a person, or nil.
func (b *ledger) load(condition string, arg any) (s *state) {
	b.note(b.Query(`select id, coalesce(person, 0), write, rev, key, n, sent, data from shared where `+condition,
		func(r gallery.Row) error {
			s = &state{person: r.ColumnInt64(1), kept: kept{
				id: ID(r.ColumnRawBlob(0)), write: r.ColumnText(2), rev: uint64(r.ColumnInt64(3)),
				key: uint32(r.ColumnInt64(4)), n: r.ColumnInt64(5), sent: r.ColumnInt64(6) == 1,
			}}
			data := r.ColumnRawBlob(7)
			if len(data) == 0 { // removed with the person
				return nil
			}
			return decoding.Unmarshal(data, &s.rec)
		}, arg))
	if s != nil {
		b.read(s)
	}
	return s
}

// read reads the rows of a person, and gives the record their vectors.
func (b *ledger) read(s *state) {
	s.have, s.known = make(map[faceKey][]int64), gallery.Known{}
	if s.person == 0 {
		return
	}
	var err error
	s.known, err = b.Known(s.person)
	b.note(err)
	for _, f := range s.known.Faces {
		key := keyOf(b.space.ID, f.Rejected, f.Vector)
		s.have[key] = append(s.have[key], f.Row)
		if r, there := s.rec.Faces[key]; there && !r.Gone {
			r.Vector = f.Vector
			s.rec.Faces[key] = r
		}
	}
}

// save writes a record, without the vectors that its labels have.
func (b *ledger) save(s *state) {
	rec := s.rec
	rec.Faces = maps.Clone(rec.Faces)
	for key := range s.have {
		if f, there := rec.Faces[key]; there && f.Space == b.space.ID {
			f.Vector = nil
			rec.Faces[key] = f
		}
	}
	b.note(b.Exec(`insert into shared values(?1, nullif(?2, 0), ?3, ?4, ?5, 1, ?6, ?7, ?8) on conflict(id) do update
		set person = nullif(?2, 0), write = ?3, rev = ?4, key = ?5, n = n + 1, sent = ?6, clock = max(clock, ?7), data = ?8`,
		s.id[:], s.person, s.write, int64(s.rev), int64(s.key), s.sent, int64(rec.clock()), encode(rec)))
}

// tick returns the clock of the next change.
func (b *ledger) tick() uint64 {
	return uint64(b.count("select coalesce(max(clock), 0) + 1 from shared"))
}

// scan takes what programs have changed in the gallery into the records.
func (b *ledger) scan() {
	people, err := b.Ints("select person from touched order by 1")
	if !b.note(err) || len(people) == 0 {
		return
	}
	// What is gone has the earlier clock, so that a face that went from one person to another one is
	// not lost where only half of it has arrived.
	clock := b.tick()
	var there, gone []*state
	for _, person := range people {
		s := b.of(person)
		switch {
		case s == nil: // never shared
		case s.first() != nil:
			there = append(there, s)
		case !s.rec.ended():
			gone = append(gone, s)
		}
		b.looked(person)
	}
	// Faces that another one of these people had before keep their clocks: nothing new is said of them.
	var moved map[faceKey]Face
	for _, s := range gone {
		moved = joinFaces(moved, s.rec.Faces)
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
		for _, rows := range s.have { // faces that are not those of nobody
			b.note(b.Drop(rows...))
		}
		b.looked(s.person)
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
}

// whither returns the person who has most faces of a person who has none any more: they were merged.
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

// drop removes a face that was taken back.
func (b *ledger) drop(s *state, key faceKey) {
	b.note(b.Drop(s.have[key]...))
	b.looked(s.person)
	delete(s.have, key)
}

// first returns the first labelled face that a person has in the gallery, or nil.
func (s *state) first() []byte {
	for _, f := range s.known.Faces {
		if !f.Rejected {
			return f.Vector
		}
	}
	return nil
}

// of returns the record of a person of the gallery, and makes one for somebody new who has faces.
func (b *ledger) of(person int64) *state {
	s := b.load("person = ?", person)
	if s != nil {
		return s
	}
	s = &state{person: person}
	b.read(s)
	if s.first() == nil {
		for _, rows := range s.have { // faces that are not those of nobody
			b.note(b.Drop(rows...))
		}
		return nil
	}
	for i := 0; s.n == 0; i++ {
		s.id = idOf(b.space.ID, s.first(), i)
		// The number is taken if this person was forgotten or merged, and is here again.
		if b.count("select count(*) from shared where id = ?", s.id[:]) == 0 {
			s.n = 1
		}
	}
	b.save(s)
	return s
}

// fold takes the present rows of a person into the record, and saves it if that changes anything.
func (b *ledger) fold(s *state, clock uint64, moved map[faceKey]Face) {
	changed := !s.sent
	if s.rec.Faces == nil {
		s.rec.Faces = make(map[faceKey]Face)
	}
	for key, f := range s.rec.Faces {
		if s.have[key] == nil && !f.Gone && f.Space == b.space.ID {
			s.rec.Faces[key], changed = Face{Clock: clock, Gone: true}, true
		}
	}
	for _, k := range s.known.Faces {
		key := keyOf(b.space.ID, k.Rejected, k.Vector)
		old, there := s.rec.Faces[key]
		if there && !old.Gone || s.have[key] == nil {
			continue
		}
		f := Face{Clock: clock + 1, Not: k.Rejected, Space: b.space.ID, Vector: k.Vector}
		if was, there := moved[key]; there && !was.Gone {
			f.Clock = was.Clock
		}
		if old.Gone && old.Clock >= f.Clock { // it was taken back since
			b.drop(s, key)
			continue
		}
		s.rec.Faces[key], changed = f, true
	}
	if s.known.Name != s.rec.Name {
		s.rec.Name, s.rec.Named, changed = s.known.Name, clock+1, true
	}
	if changed {
		s.rec.Enrolled, s.sent = max(s.rec.Enrolled, s.known.Enrolled), false
		s.rec.trim()
		b.save(s)
	}
}

// take brings records and gallery in line with values of the server.
func (d *local) take(all []kept) error {
	return d.write(func(b *ledger) {
		b.scan()
		for _, r := range all {
			b.join(r)
		}
		b.namesakes()
		for _, s := range b.order { // first, so that faces go along with what is known of them
			b.merge(s)
		}
		for _, s := range b.order {
			b.apply(s)
		}
	})
}

// state returns the record of a person, which is empty if nothing is known.
func (b *ledger) state(id ID) *state {
	if s := b.states[id]; s != nil {
		return s
	}
	s := b.load("id = ?", id[:])
	if s == nil {
		s = &state{kept: kept{id: id}}
	}
	b.states[id], b.order = s, append(b.order, s)
	return s
}

// become gives a person another record, and notes whether the server has it.
func (s *state) become(r Record) {
	s.sent = s.sent && bytes.Equal(encode(s.rec), encode(r))
	s.rec = r
}

// join joins a value into its record. If they were found to be other people, they all are one: the
// least number stays and has what is known of all, and who is forgotten is forgotten under all numbers.
func (b *ledger) join(r kept) {
	s := b.state(r.id)
	before := s.rec
	s.rec, s.write, s.rev, s.key, s.sent = r.rec, r.write, r.rev, r.key, true
	s.become(join(before, r.rec))
	if s.rec.Into == (ID{}) {
		return
	}
	one, least := Record{Forgotten: s.rec.Forgotten}, b.root(s.rec.Into)
	roots := []*state{least}
	for _, rec := range []Record{before, r.rec} {
		if rec.Into == (ID{}) { // what only this device, or only others knew
			one = join(one, rec)
			continue
		}
		root := b.root(rec.Into)
		roots = append(roots, root)
		if root.id.compare(least.id) < 0 {
			least = root
		}
	}
	for _, root := range roots {
		one = join(one, root.rec)
	}
	for _, root := range roots {
		if root != least && root.rec.Into == (ID{}) {
			root.become(join(root.rec, Record{Into: least.id}))
		}
	}
	least.become(one)
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
	if r.ended() || face.CheckName(r.Name) != nil {
		return false
	}
	for _, f := range r.Faces {
		if d.usable(f) && !f.Not {
			return true
		}
	}
	return false
}

// usable reports whether a face can be a label of this gallery.
func (d *local) usable(f Face) bool {
	return !f.Gone && f.Space == d.space.ID && len(f.Vector) == 4*d.space.Dim &&
		d.space.Check(vector.Floats(f.Vector)) == nil
}

// alike reports whether two people have faces that strangers do not share.
func (d *local) alike(a, b Record) bool {
	for _, x := range a.Faces {
		for _, y := range b.Faces {
			if !d.usable(x) || !d.usable(y) || x.Not || y.Not {
				continue
			}
			if graph.Distance(vector.Floats(x.Vector), vector.Floats(y.Vector), d.space.Scale) <=
				d.space.ImpostorRadius {
				return true
			}
		}
	}
	return false
}

// holders returns the people of the gallery and of this transaction who have a name, by their numbers.
func (b *ledger) holders(name string) (ids []ID) {
	if b.named == nil {
		b.named = make(map[string][]ID)
		b.note(b.Query("select s.id, p.name from shared s join person p on p.id = s.person", func(r gallery.Row) error {
			id, name := ID(r.ColumnRawBlob(0)), r.ColumnText(1)
			b.named[name] = append(b.named[name], id)
			return nil
		}))
	}
	for _, id := range b.named[name] {
		if b.states[id] == nil {
			ids = append(ids, id)
		}
	}
	for _, s := range b.order {
		if s.rec.Name == name && b.lives(s.rec) {
			ids = append(ids, s.id)
		}
	}
	slices.SortFunc(ids, ID.compare)
	return ids
}

// namesakes looks at people of one name. If their faces are alike, they are one person, whom two
// devices have enrolled. Otherwise the one with the greater number gets another name, in the fleet;
// so all devices do the same.
func (b *ledger) namesakes() {
	for i := 0; i < len(b.order); i++ {
		for s := b.order[i]; b.lives(s.rec); {
			ids := b.holders(s.rec.Name)
			if len(ids) < 2 {
				break
			}
			b.tellApart(b.state(ids[0]), b.state(ids[1]))
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
	free := ""
	for k := 2; free == "" || len(b.holders(free)) > 0; k++ {
		free = fmt.Sprintf("%s (%d)", other.rec.Name, k)
	}
	other.rec.Name, other.rec.Named = free, max(b.tick(), other.rec.clock()+1)
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
		b.note(b.Merge(from, to.person))
	}
	b.looked(from)
	b.read(to)
}

// apply brings the gallery in line with a record, and saves it.
func (b *ledger) apply(s *state) {
	lives := b.lives(s.rec)
	if gone := s.person; gone != 0 && s.rec.ended() {
		s.person = 0
		b.save(s)
		b.note(b.Forget(gone))
		b.looked(gone)
		return
	}
	if lives && s.person == 0 {
		number, err := b.Person(s.rec.Name)
		b.note(err)
		s.person, s.known.Name, s.have = number, s.rec.Name, make(map[faceKey][]int64)
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
	if lives && s.known.Name != s.rec.Name {
		b.note(b.Call(s.person, s.rec.Name))
	}
	if lives {
		b.add(s)
	}
	b.save(s)
	b.looked(s.person)
}

// add adds the faces of a record that the gallery lacks.
func (b *ledger) add(s *state) {
	var faces [2][]Face
	for key, f := range s.rec.Faces {
		switch {
		case s.have[key] != nil || !b.usable(f):
			continue
		case f.Not:
			faces[1] = append(faces[1], f)
		case b.claim(s, key, f):
			faces[0] = append(faces[0], f)
		default:
			continue
		}
		s.have[key] = []int64{0}
	}
	for kind, all := range faces { // who has no face cannot have one that is not theirs
		slices.SortFunc(all, func(a, b Face) int {
			return cmp.Or(cmp.Compare(a.Clock, b.Clock), bytes.Compare(a.Vector, b.Vector))
		})
		var x [][]float32
		for _, f := range all {
			x = append(x, vector.Floats(f.Vector))
		}
		err := b.Label(s.person, kind == 1, x, nil)
		b.note(err)
	}
	b.note(b.Exec("update person set enrolled = max(enrolled, ?) where id = ?", s.rec.Enrolled, s.person))
}

// claim reports whether a face belongs to a person. If two people have it, it is the one of whom it
// was said later, and it is taken from the other.
func (b *ledger) claim(s *state, key faceKey, f Face) bool {
	row, person, err := b.Held(f.Vector, s.person)
	b.note(err)
	if row == 0 {
		return true
	}
	other := b.load("person = ?", person)
	if other == nil {
		return true
	}
	if b.states[other.id] != nil {
		other = b.states[other.id]
	}
	its, there := other.rec.Faces[key]
	if !there || its.Gone { // it goes when the other one is looked at
		return true
	}
	wins := cmp.Or(cmp.Compare(f.Clock, its.Clock), other.id.compare(s.id)) > 0
	gone := Face{Clock: min(f.Clock, its.Clock), Gone: true}
	f.Clock = max(f.Clock, its.Clock, gone.Clock+1) // later than the mark, if the two are merged
	s.sent, other.sent = false, false
	if s.rec.Faces[key], other.rec.Faces[key] = gone, f; wins {
		s.rec.Faces[key], other.rec.Faces[key] = f, gone
		b.note(b.Drop(row))
		b.looked(person)
		delete(other.have, key)
	}
	b.save(other)
	return wins
}

// look takes what programs have changed in the gallery into the records.
func (d *local) look() error { return d.write((*ledger).scan) }

// lacks reports whether this device has not seen a write of the server's value of a person.
func (d *local) lacks(id ID, write string) (bool, error) {
	seen, err := d.rows.Int("select count(*) from shared where id = ? and write = ?", id[:], write)
	return seen == 0, err
}

// missing finds records that the server had once and has no more, because it is an old copy or a new
// one. They are given to it again.
func (d *local) missing(there map[ID]bool) (n int, err error) {
	err = d.write(func(b *ledger) {
		for _, id := range b.ids("rev > 0") {
			if !there[id] {
				n++
				b.note(b.Exec("update shared set sent = 0, rev = 0 where id = ?", id[:]))
			}
		}
	})
	return n, err
}

// unsent returns some records that the server does not have as they are.
func (d *local) unsent() (all []*state, err error) {
	err = d.rows.Look(func(t *gallery.Tx) error {
		b := &ledger{local: d, Tx: t}
		for _, id := range b.ids(fmt.Sprint("not sent limit ", portion)) {
			if s := b.load("id = ?", id[:]); s != nil && whole(s.rec) {
				all = append(all, s)
			}
		}
		return b.err
	})
	return all, err
}

// whole reports whether a record can be given to others: not if nothing has come yet of the person
// but faces of another one who was found to be this person, nor if a program has just removed labels.
func whole(r Record) bool {
	for _, f := range r.Faces {
		if !f.Gone && f.Vector == nil {
			return false
		}
	}
	return r.Name != "" || r.ended()
}

// written notes what the server has acknowledged. Records that have changed since are sent again.
func (d *local) written(all []*state) error {
	return d.write(func(b *ledger) {
		for _, s := range all {
			b.note(b.Exec("update shared set write = ?, rev = ?, key = ?, sent = (n = ?) where id = ?",
				s.write, int64(s.rev), int64(s.key), s.n, s.id[:]))
		}
	})
}
