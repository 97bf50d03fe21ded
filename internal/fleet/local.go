// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fleet/protocol"
	"github.com/faceauth/faceauth/internal/gallery"
)

// local is the gallery of a device with the records beside it.
type local struct {
	rows  *gallery.Rows
	space face.Space
	own   string // name of the presence that this device writes
}

// state is the record of a person with its place in the gallery.
type state struct {
	kept
	person   int64  // number in the gallery; 0: nobody there
	name     string // in the gallery
	enrolled int64
	first    []byte // the vector of the first label, or nil
	have     map[faceKey]*held
}

// held is a face of a person in the gallery.
type held struct {
	rows   []int64 // of its labels
	not    bool
	vector []byte
}

// kept is a record with what the server has of it, or whom another device sees.
type kept struct {
	here  string // the name of what it says of them; "": a record
	there gallery.There
	id    ID
	rec   Record
	write string
	rev   uint64
	key   uint32
	sent  bool
}

// ledger is a transaction on the records and rows of a gallery. After an error nothing is written.
// It holds the people whom it concerns until now.
type ledger struct {
	*local
	*gallery.Tx
	err    error // a record that cannot be read
	states map[ID]*state
	order  []*state
}

// write calls do in one transaction.
func (d *local) write(do func(b *ledger)) error {
	return d.rows.Write(false, func(t *gallery.Tx) error {
		b := &ledger{local: d, Tx: t, states: make(map[ID]*state)}
		do(b)
		return cmp.Or(b.err, b.Err())
	})
}

// Statements that find people of the fleet.
const (
	namesakes = "select id from shared where person in (select id from person where name = ?)"
	ofPerson  = "select id from shared where person = ?"
	// unsent finds records that the server does not have as they are, and outdated those that a key
	// before the present one has sealed: of each at most [atOnce].
	unsent   = "select id from shared where not sent limit 256"
	outdated = "select id from shared where sent and rev > 0 and key < ? limit 256"
)

// ids returns the people of the fleet whom a statement finds.
func (b *ledger) ids(statement string, args ...any) (all []ID) {
	for r := range b.Rows(statement, args...) {
		all = append(all, ID(r.ColumnRawBlob(0)))
	}
	return all
}

// load returns the record of a person, or nil.
func (b *ledger) load(id ID) (s *state) {
	for r := range b.Rows(`select id, coalesce(person, 0), write, rev, key, sent, data from shared
		where id = ?`, id[:]) {
		s = &state{person: r.ColumnInt64(1), kept: kept{
			id: ID(r.ColumnRawBlob(0)), write: r.ColumnText(2), rev: uint64(r.ColumnInt64(3)),
			key: uint32(r.ColumnInt64(4)), sent: r.ColumnInt64(5) == 1,
		}}
		if data := r.ColumnRawBlob(6); len(data) > 0 { // otherwise it was removed with the person
			b.err = cmp.Or(b.err, protocol.Decode(data, &s.rec))
		}
	}
	if s != nil {
		b.read(s)
	}
	return s
}

// read reads the rows of a person, and gives the record their vectors.
func (b *ledger) read(s *state) {
	s.have, s.name, s.first = make(map[faceKey]*held), "", nil
	for r := range b.Rows("select name, enrolled from person where id = ?", s.person) {
		s.name, s.enrolled = r.ColumnText(0), r.ColumnInt64(1)
	}
	for r := range b.Rows(`select id, rejected, vector from label where person = ? and valid
		order by id`, s.person) {
		h := &held{not: r.ColumnInt64(1) == 1, vector: bytes.Clone(r.ColumnRawBlob(2))}
		key := keyOf(b.space.ID, h.not, h.vector)
		if s.have[key] == nil {
			s.have[key] = h
		}
		s.have[key].rows = append(s.have[key].rows, r.ColumnInt64(0))
		if s.first == nil && !h.not {
			s.first = h.vector
		}
		if f, there := s.rec.Faces[key]; there && !f.Gone {
			f.Vector = h.vector
			s.rec.Faces[key] = f
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
	b.Exec(`insert into shared values(?1, nullif(?2, 0), ?3, ?4, ?5, ?6, ?7, ?8)
		on conflict(id) do update set person = nullif(?2, 0), write = ?3, rev = ?4, key = ?5,
		sent = ?6, clock = max(clock, ?7), data = ?8`,
		s.id[:], s.person, s.write, int64(s.rev), int64(s.key), s.sent, int64(rec.clock()),
		protocol.Encode(rec))
}

// tick returns the clock of the next change. A member that lies sets clocks to which no changes
// lead: they count for their record alone.
func (b *ledger) tick() uint64 {
	n, _ := b.Int("select coalesce(max(clock), 0) + 1 from shared where clock < ?", int64(1)<<40)
	return uint64(n)
}

// look takes what programs have changed in the gallery into the records.
func (d *local) look() error {
	n, err := d.rows.Int("select exists (select 1 from touched)")
	if err != nil || n == 0 {
		return err
	}
	return d.write((*ledger).scan)
}

// lacking returns the notes of values of others that this device has not seen.
func (d *local) lacking(notes []note) (all []note, err error) {
	for _, n := range notes {
		news := strings.HasPrefix(n.name, protocol.Here) && n.name != d.own &&
			time.Since(n.at) < gallery.Lasting
		id, ok := parseID(n.name)
		if ok {
			seen, failed := d.rows.Int("select count(*) from shared where id = ? and write = ?",
				id[:], n.write)
			err = cmp.Or(err, failed)
			news = seen == 0
		}
		if news {
			all = append(all, n)
		}
	}
	return all, err
}

// missing finds records that the server had once and has no more, because it is an old copy or a
// new one. They are given to it again.
func (d *local) missing(there map[string]bool) error {
	return d.write(func(b *ledger) {
		names, _ := json.Marshal(there) // text can be encoded
		b.Exec(`update shared set sent = 0, rev = 0 where rev > 0 and
			lower(hex(id)) not in (select key from json_each(?))`, string(names))
	})
}

// some returns some of the records that a statement finds.
func (d *local) some(statement string, args ...any) (all []*state, err error) {
	err = d.rows.Look(func(t *gallery.Tx) error {
		b, size := &ledger{local: d, Tx: t}, 0
		for _, id := range b.ids(statement, args...) {
			if size >= portion {
				break
			}
			if s := b.load(id); s != nil && s.whole() {
				all, size = append(all, s), size+len(protocol.Encode(s.rec))
			}
		}
		return cmp.Or(b.err, b.Err())
	})
	return all, err
}

// whole reports whether a record can be given to others: not if nothing has come yet of the person
// but that, or faces of, another one who was found to be this person, nor if a program has just
// removed labels. What no device can read is written over even if nothing is known.
func (s *state) whole() bool {
	for _, f := range s.rec.Faces {
		if !f.Gone && f.Vector == nil {
			return false
		}
	}
	return s.rec.Name != "" || s.rec.ended() || s.rev > 0 && len(s.rec.Faces) == 0
}

// written notes what the server has acknowledged. What programs have changed since is in the table
// touched.
func (d *local) written(all []*state) error {
	return d.write(func(b *ledger) {
		for _, s := range all {
			b.acknowledge(s.kept)
		}
	})
}

// acknowledge notes that the server has a record.
func (b *ledger) acknowledge(k kept) {
	b.Exec("update shared set write = ?, rev = ?, key = ?, sent = 1 where id = ?", k.write,
		int64(k.rev), int64(k.key),
		k.id[:])
}
