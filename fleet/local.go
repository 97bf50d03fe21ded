// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"crypto/sha256"
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

// load returns the record of a person, or nil.
func (d *local) load(t *gallery.Tx, condition string, arg any) (s *state, err error) {
	err = t.Query(`select id, coalesce(person, 0), write, rev, key, n, sent, data from shared where `+condition,
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
		}, arg)
	if err != nil || s == nil {
		return nil, err
	}
	return s, d.read(t, s)
}

// read reads the rows of a person, and gives the record their vectors.
func (d *local) read(t *gallery.Tx, s *state) (err error) {
	s.have, s.known = make(map[faceKey][]int64), gallery.Known{}
	if s.person == 0 {
		return nil
	}
	if s.known, err = t.Known(s.person); err != nil {
		return err
	}
	for _, f := range s.known.Faces {
		key := keyOf(d.space.ID, f.Rejected, f.Vector)
		s.have[key] = append(s.have[key], f.Row)
		if r, there := s.rec.Faces[key]; there && !r.Gone {
			r.Vector = f.Vector
			s.rec.Faces[key] = r
		}
	}
	return nil
}

// faces returns the number of labelled faces that a person has in the gallery.
func (s *state) faces() (n int) {
	for _, f := range s.known.Faces {
		if !f.Rejected {
			n++
		}
	}
	return n
}

// save writes a record, without the vectors that its labels have.
func (d *local) save(t *gallery.Tx, s *state) error {
	rec := s.rec
	rec.Faces = maps.Clone(rec.Faces)
	for key := range s.have {
		if f, there := rec.Faces[key]; there && f.Space == d.space.ID {
			f.Vector = nil
			rec.Faces[key] = f
		}
	}
	var person any
	if s.person != 0 {
		person = s.person
	}
	return t.Exec(`insert into shared values(?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8) on conflict(id) do update
		set person = ?2, write = ?3, rev = ?4, key = ?5, n = n + 1, sent = ?6, clock = max(clock, ?7), data = ?8`,
		s.id[:], person, s.write, int64(s.rev), int64(s.key), s.sent, int64(rec.clock()), encode(rec))
}

// tick returns the clock of the next change.
func tick(t *gallery.Tx) (uint64, error) {
	n, err := t.Int("select coalesce(max(clock), 0) + 1 from shared")
	return uint64(n), err
}

// scan takes what programs have changed in the gallery into the records.
func (d *local) scan(t *gallery.Tx) error {
	people, err := t.Touched()
	if err != nil || len(people) == 0 {
		return err
	}
	// What is gone has the earlier clock, so that a face that went from one person to another one is
	// not lost where only half of it has arrived.
	clock, err := tick(t)
	if err != nil {
		return err
	}
	var there, gone []*state
	for _, person := range people {
		s, err := d.of(t, person)
		if err != nil {
			return err
		}
		switch {
		case s == nil: // never shared
		case s.faces() > 0:
			there = append(there, s)
		case !s.rec.ended():
			gone = append(gone, s)
		}
		if err := t.Looked(person); err != nil {
			return err
		}
	}
	// Faces that another one of these people had before keep their clocks: nothing new is said of them.
	var moved map[faceKey]Face
	for _, s := range gone {
		moved = joinFaces(moved, s.rec.Faces)
	}
	holds := make(map[faceKey]*state)
	for _, s := range there {
		if err := d.fold(t, s, clock, moved); err != nil {
			return err
		}
		for _, f := range s.known.Faces {
			if !f.Rejected {
				holds[keyOf(d.space.ID, false, f.Vector)] = s
			}
		}
	}
	for _, s := range gone {
		into := whither(s.rec, holds)
		for _, rows := range s.have { // faces that are not those of nobody
			err = errors.Join(err, t.Drop(rows...))
		}
		if err = errors.Join(err, t.Looked(s.person)); err != nil {
			return err
		}
		s.person, s.sent = 0, false
		if into == nil {
			s.rec = join(s.rec, Record{Forgotten: true})
		} else {
			if bytes.Compare(s.id[:], into.id[:]) < 0 { // the smaller number stays: two merges make no ring
				s.kept, into.kept = into.kept, s.kept
			}
			into.rec.Faces = joinFaces(into.rec.Faces, s.rec.Faces)
			s.rec = join(s.rec, Record{Into: into.id})
		}
		if err := d.save(t, s); err != nil {
			return err
		}
		if into == nil {
			continue
		}
		into.sent = false
		if err := d.fold(t, into, clock, moved); err != nil {
			return err
		}
	}
	return nil
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
		if count[s] > most || count[s] == most && bytes.Compare(s.id[:], into.id[:]) < 0 {
			into, most = s, count[s]
		}
	}
	return into
}

// of returns the record of a person of the gallery, and makes one for somebody new who has faces.
func (d *local) of(t *gallery.Tx, person int64) (*state, error) {
	s, err := d.load(t, "person = ?", person)
	if err != nil || s != nil {
		return s, err
	}
	s = &state{person: person}
	if err := d.read(t, s); err != nil {
		return nil, err
	}
	first := slices.IndexFunc(s.known.Faces, func(f gallery.KnownFace) bool { return !f.Rejected })
	if first < 0 {
		return nil, nil
	}
	key := keyOf(d.space.ID, false, s.known.Faces[first].Vector)
	for i := 0; ; i++ {
		h := sha256.Sum256(fmt.Appendf(nil, "%d %s", i, key))
		s.id = ID(h[:])
		// The number is taken if this person was forgotten or merged, and is here again.
		n, err := t.Int("select count(*) from shared where id = ?", s.id[:])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return s, d.save(t, s)
		}
	}
}

// fold takes the present rows of a person into the record, and saves it if that changes anything.
func (d *local) fold(t *gallery.Tx, s *state, clock uint64, moved map[faceKey]Face) error {
	changed := !s.sent
	if s.rec.Faces == nil {
		s.rec.Faces = make(map[faceKey]Face)
	}
	for key, f := range s.rec.Faces {
		if s.have[key] == nil && !f.Gone && f.Space == d.space.ID {
			s.rec.Faces[key], changed = Face{Clock: clock, Gone: true}, true
		}
	}
	for _, k := range s.known.Faces {
		key := keyOf(d.space.ID, k.Rejected, k.Vector)
		old, there := s.rec.Faces[key]
		if there && !old.Gone {
			continue
		}
		f := Face{Clock: clock + 1, Not: k.Rejected, Space: d.space.ID, Vector: k.Vector}
		if was, there := moved[key]; there && !was.Gone && was.Clock > old.Clock {
			f.Clock = was.Clock
		}
		s.rec.Faces[key], changed = f, true
	}
	if s.known.Name != s.rec.Name {
		s.rec.Name, s.rec.Named, changed = s.known.Name, clock+1, true
	}
	if !changed {
		return nil
	}
	s.rec.Enrolled, s.sent = max(s.rec.Enrolled, s.known.Enrolled), false
	s.rec.trim()
	return d.save(t, s)
}

// take brings records and gallery in line with values of the server.
func (d *local) take(all []kept) error {
	return d.rows.Change(func(t *gallery.Tx) error {
		if err := d.scan(t); err != nil {
			return err
		}
		b := &batch{local: d, t: t, states: make(map[ID]*state)}
		for _, r := range all {
			if err := b.join(r); err != nil {
				return err
			}
		}
		if err := b.namesakes(); err != nil {
			return err
		}
		// Merges come first, so that faces go along with what is known of them.
		for _, do := range []func(*state) error{b.merge, b.apply} {
			for _, s := range b.order {
				if err := do(s); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// batch are the people whom some values of the server concern.
type batch struct {
	*local
	t      *gallery.Tx
	states map[ID]*state
	order  []*state
	named  map[string][]ID // the people of the gallery by name
}

func (b *batch) of(id ID) (*state, error) {
	if s := b.states[id]; s != nil {
		return s, nil
	}
	s, err := b.load(b.t, "id = ?", id[:])
	if err != nil {
		return nil, err
	}
	if s == nil {
		s = &state{kept: kept{id: id}}
	}
	b.states[id], b.order = s, append(b.order, s)
	return s, nil
}

// join joins a value into its record, and into those of the people whom it was found to be.
func (b *batch) join(r kept) error {
	s, err := b.of(r.id)
	if err != nil {
		return err
	}
	before := s.rec
	s.rec, s.write, s.rev, s.key = join(before, r.rec), r.write, r.rev, r.key
	s.sent = bytes.Equal(encode(s.rec), encode(r.rec))
	for _, into := range []ID{before.Into, r.rec.Into} {
		if into == (ID{}) {
			continue
		}
		if err := b.unite(s, into, before); err != nil {
			return err
		}
	}
	return nil
}

// unite makes one person of a person who has ended and the one they were found to be: what only this
// device knew of them goes along, and who is forgotten is forgotten under all numbers. A number leads
// to a smaller one, so this ends.
func (b *batch) unite(s *state, into ID, before Record) error {
	for {
		next, err := b.of(into)
		if err != nil {
			return err
		}
		was := encode(next.rec)
		if s.rec.Forgotten {
			next.rec = join(next.rec, Record{Forgotten: true})
		} else if !before.ended() {
			next.rec = join(next.rec, before)
		}
		if s.rec.Into != into && !s.rec.Forgotten { // others found another one: all three are one
			lo, hi := s.rec.Into, into
			if bytes.Compare(lo[:], hi[:]) > 0 {
				lo, hi = hi, lo
			}
			next.sent = next.sent && bytes.Equal(was, encode(next.rec))
			if next, err = b.of(hi); err != nil {
				return err
			}
			was, before = encode(next.rec), next.rec
			next.rec = join(next.rec, Record{Into: lo})
		}
		next.sent = next.sent && bytes.Equal(was, encode(next.rec))
		if s, into = next, next.rec.Into; into == (ID{}) {
			return nil
		}
	}
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

// holders returns the people of the gallery and of the batch who have a name, by their numbers.
func (b *batch) holders(name string) (ids []ID, err error) {
	if b.named == nil {
		b.named = make(map[string][]ID)
		err = b.t.Query("select s.id, p.name from shared s join person p on p.id = s.person",
			func(r gallery.Row) error {
				id := ID(r.ColumnRawBlob(0))
				b.named[r.ColumnText(1)] = append(b.named[r.ColumnText(1)], id)
				return nil
			})
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
	slices.SortFunc(ids, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
	return ids, err
}

// namesakes looks at people of one name. If their faces are alike, they are one person, whom two
// devices have enrolled. Otherwise the one with the greater number gets another name, in the fleet;
// so all devices do the same.
func (b *batch) namesakes() error {
	for i := 0; i < len(b.order); i++ {
		s := b.order[i]
		for b.lives(s.rec) {
			ids, err := b.holders(s.rec.Name)
			if err != nil {
				return err
			}
			if len(ids) < 2 {
				break
			}
			if err := b.tellApart(ids[0], ids[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// tellApart makes two people of one name one person, or gives the second another name.
func (b *batch) tellApart(first, second ID) error {
	stays, err := b.of(first)
	if err != nil {
		return err
	}
	other, err := b.of(second)
	if err != nil {
		return err
	}
	other.sent = false
	if b.alike(stays.rec, other.rec) {
		stays.rec, other.rec = join(stays.rec, other.rec), join(other.rec, Record{Into: stays.id})
		stays.sent = false
		return nil
	}
	clock, err := tick(b.t)
	if err != nil {
		return err
	}
	name := other.rec.Name
	for k := 2; ; k++ {
		free := fmt.Sprintf("%s (%d)", name, k)
		taken, err := b.holders(free)
		if err != nil {
			return err
		}
		if len(taken) == 0 {
			other.rec.Name, other.rec.Named = free, max(clock, other.rec.clock()+1)
			return nil
		}
	}
}

// merge gives the rows of a person who was found to be another one to that one.
func (b *batch) merge(s *state) error {
	if s.person == 0 || s.rec.Into == (ID{}) {
		return nil
	}
	to, err := b.of(s.rec.Into)
	for err == nil && to.rec.Into != (ID{}) {
		to, err = b.of(to.rec.Into)
	}
	if err != nil || to.rec.Forgotten {
		return err
	}
	from := s.person
	s.person = 0
	err = b.save(b.t, s) // before the row of the person goes
	if to.person == 0 {
		to.person = from
	} else if err == nil {
		err = b.t.Merge(from, to.person)
	}
	return errors.Join(err, b.t.Looked(from), b.read(b.t, to))
}

// apply brings the gallery in line with a record, and saves it.
func (b *batch) apply(s *state) error {
	lives := b.lives(s.rec)
	if gone := s.person; gone != 0 && s.rec.ended() {
		s.person = 0
		if err := b.save(b.t, s); err != nil {
			return err
		}
		return errors.Join(b.t.Forget(gone), b.t.Looked(gone))
	}
	if lives && s.person == 0 {
		number, err := b.t.Add(s.rec.Name)
		if err != nil {
			return err
		}
		s.person, s.known.Name, s.have = number, s.rec.Name, make(map[faceKey][]int64)
	}
	if s.person == 0 {
		return b.save(b.t, s)
	}
	var drop []int64
	for key, rows := range s.have {
		if f, there := s.rec.Faces[key]; !lives || !there || f.Gone {
			drop = append(drop, rows...)
			delete(s.have, key)
		}
	}
	err := b.t.Drop(drop...)
	if err == nil && lives && s.known.Name != s.rec.Name {
		err = b.t.Call(s.person, s.rec.Name)
	}
	if err == nil && lives {
		err = b.add(s)
	}
	if err != nil {
		return err
	}
	return errors.Join(b.save(b.t, s), b.t.Looked(s.person))
}

// add adds the faces of a record that the gallery lacks.
func (b *batch) add(s *state) error {
	var faces [2][]Face
	for key, f := range s.rec.Faces {
		if s.have[key] != nil || !b.usable(f) {
			continue
		}
		kind := 1
		if !f.Not {
			kind = 0
			lost, err := b.claim(s, key, f)
			if err != nil {
				return err
			}
			if lost {
				continue
			}
		}
		faces[kind], s.have[key] = append(faces[kind], f), []int64{0}
	}
	for kind, all := range faces { // who has no face cannot have one that is not theirs
		slices.SortFunc(all, func(a, b Face) int {
			return cmp.Or(cmp.Compare(a.Clock, b.Clock), bytes.Compare(a.Vector, b.Vector))
		})
		var x [][]float32
		for _, f := range all {
			x = append(x, vector.Floats(f.Vector))
		}
		if err := b.t.Learnt(s.person, kind == 1, x, s.rec.Enrolled); err != nil {
			return err
		}
	}
	return nil
}

// claim finds the one to whom a face belongs that two people have: the one of whom it was said later.
// It reports whether that is the other one.
func (b *batch) claim(s *state, key faceKey, f Face) (lost bool, err error) {
	row, person, err := b.t.Held(f.Vector, s.person)
	if err != nil || row == 0 {
		return false, err
	}
	other, err := b.load(b.t, "person = ?", person)
	if err != nil || other == nil {
		return false, err
	}
	if b.states[other.id] != nil {
		other = b.states[other.id]
	}
	its, there := other.rec.Faces[key]
	if !there || its.Gone { // it goes when the other one is looked at
		return false, nil
	}
	lost = cmp.Or(cmp.Compare(f.Clock, its.Clock), bytes.Compare(other.id[:], s.id[:])) < 0
	gone := Face{Clock: min(f.Clock, its.Clock), Gone: true}
	f.Clock = max(f.Clock, its.Clock, gone.Clock+1) // later than the mark, if the two are merged
	s.sent, other.sent = false, false
	if lost {
		s.rec.Faces[key], other.rec.Faces[key] = gone, f
		return true, b.save(b.t, other)
	}
	s.rec.Faces[key], other.rec.Faces[key] = f, gone
	delete(other.have, key)
	return false, errors.Join(b.t.Drop(row), b.save(b.t, other), b.t.Looked(person))
}

// look takes what programs have changed in the gallery into the records.
func (d *local) look() error { return d.rows.Change(d.scan) }

// lacks reports whether this device has not seen a write of the server's value of a person.
func (d *local) lacks(id ID, write string) (bool, error) {
	seen := int64(0)
	err := d.rows.Look(func(t *gallery.Tx) (err error) {
		seen, err = t.Int("select count(*) from shared where id = ? and write = ?", id[:], write)
		return err
	})
	return seen == 0, err
}

// missing finds records that the server had once and has no more, because it is an old copy or a new
// one. They are given to it again.
func (d *local) missing(there map[ID]bool) (n int, err error) {
	err = d.rows.Change(func(t *gallery.Tx) error {
		ids, err := idsOf(t, "rev > 0")
		for _, id := range ids {
			if err == nil && !there[id] {
				n++
				err = t.Exec("update shared set sent = 0, rev = 0 where id = ?", id[:])
			}
		}
		return err
	})
	return n, err
}

// idsOf returns the people of the fleet for whom a condition holds.
func idsOf(t *gallery.Tx, condition string) (all []ID, err error) {
	err = t.Query("select id from shared where "+condition, func(r gallery.Row) error {
		all = append(all, ID(r.ColumnRawBlob(0)))
		return nil
	})
	return all, err
}

// unsent returns some records that the server does not have as they are.
func (d *local) unsent() (all []*state, err error) {
	err = d.rows.Look(func(t *gallery.Tx) error {
		ids, err := idsOf(t, fmt.Sprint("not sent limit ", portion))
		for _, id := range ids {
			if err != nil {
				return err
			}
			var s *state
			if s, err = d.load(t, "id = ?", id[:]); err == nil && whole(s.rec) {
				all = append(all, s)
			}
		}
		return err
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
	return d.rows.Change(func(t *gallery.Tx) (err error) {
		for _, s := range all {
			err = errors.Join(err, t.Exec("update shared set write = ?, rev = ?, key = ?, sent = (n = ?) where id = ?",
				s.write, int64(s.rev), int64(s.key), s.n, s.id[:]))
		}
		return err
	})
}
