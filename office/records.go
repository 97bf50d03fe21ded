// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
)

// Limits of the records of one kind. A zero field means the default.
type Limits struct {
	Age     time.Duration // greatest age of a record. Default 7 days
	Bytes   int64         // greatest size of all bodies, plus 1 KB for each head. Default 256 MB
	Records int           // greatest number of records. Default 20,000
}

func (s Limits) defaults() Limits {
	s.Age = cmp.Or(s.Age, 7*24*time.Hour)
	s.Bytes = cmp.Or(s.Bytes, 256<<20)
	s.Records = cmp.Or(s.Records, 20000)
	return s
}

// head is the part of a record that is in memory and can change.
type head[H any] interface {
	// Mapped returns a copy in which each name of a person is replaced by f(name, about), and observations above
	// observed are left out. About says that the record goes when the person is forgotten. F returns "" for a person
	// who is forgotten. Cut reports whether observations were left out.
	Mapped(f func(name string, about bool) string, observed int64) (h H, cut bool)
}

// record is a numbered record without its body.
type record[H any] struct {
	ID   uint64
	At   time.Time
	Size int64 // of the body in bytes
	Head H
}

// records is the set of records of one kind. A record has a head, which is in memory and can change, and a body, such
// as faces, which never changes, and is read from the database. One goroutine may use it at a time.
type records[H head[H]] struct {
	j    *journal
	kind string
	s    Limits

	last   uint64
	ids    []uint64 // ascending
	all    map[uint64]*record[H]
	bodies map[uint64][]byte // bodies that are not in the database
	bytes  int64
	turns  uint64 // number of changes

	changed map[uint64]bool // records that are to be written, or deleted
	writing map[uint64]bool // those of the last write
	cut     map[uint64]bool // records of which the database lacks observations that are not saved
}

// openRecords returns the records of one kind in a journal. Call it once for a kind.
func openRecords[H head[H]](j *journal, kind string, s Limits) (*records[H], error) {
	st := &records[H]{
		j: j, kind: kind, s: s.defaults(), all: make(map[uint64]*record[H]), bodies: make(map[uint64][]byte),
		changed: make(map[uint64]bool), cut: make(map[uint64]bool),
	}
	if j.g != nil {
		if err := j.g.Look(st.read); err != nil {
			return nil, fmt.Errorf("opening office %s: %w", j.name, err)
		}
	}
	j.parts = append(j.parts, st)
	return st, nil
}

// read reads the heads.
func (st *records[H]) read(t *gallery.Transaction) error {
	return t.Query("select number, at, size, head from record where office = ? and kind = ? order by number",
		func(r gallery.Row) error {
			rec := record[H]{ID: uint64(r.ColumnInt64(0)), At: moment(r.ColumnInt64(1)), Size: r.ColumnInt64(2)}
			var head H
			if err := json.Unmarshal([]byte(r.ColumnText(3)), &head); err != nil {
				return fmt.Errorf("%w: record %d: %w", gallery.ErrDamaged, rec.ID, err)
			}
			whole, cut := true, false
			rec.Head, cut = head.Mapped(func(name string, about bool) string {
				if person, ok := named(name); ok {
					name, _ = t.Name(person)
					whole = whole && (name != "" || !about)
				}
				return name
			}, t.Observed)
			st.put(rec)
			if !whole { // a program that knew the person wrote it while another forgot them
				st.drop(rec.ID)
			} else if cut {
				st.changed[rec.ID] = true
			}
			return nil
		}, st.j.office, st.kind)
}

func (st *records[H]) put(r record[H]) {
	st.turns++
	st.last = max(st.last, r.ID)
	if old := st.all[r.ID]; old != nil {
		st.bytes -= cost(*old)
	} else if at, there := slices.BinarySearch(st.ids, r.ID); !there {
		st.ids = slices.Insert(st.ids, at, r.ID)
	}
	st.all[r.ID] = &r
	st.bytes += cost(r)
}

func (st *records[H]) drop(id uint64) {
	r := st.all[id]
	if r == nil {
		return
	}
	st.turns++
	st.bytes -= cost(*r)
	delete(st.all, id)
	delete(st.bodies, id)
	delete(st.cut, id)
	st.changed[id] = true
	if at, there := slices.BinarySearch(st.ids, id); there {
		st.ids = slices.Delete(st.ids, at, at+1)
	}
}

// cost returns the number of bytes that count for a record.
func cost[H any](r record[H]) int64 { return r.Size + 1024 }

// write implements part.
func (st *records[H]) write(t *gallery.Transaction, office int64) error {
	st.writing, st.changed = st.changed, make(map[uint64]bool)
	for _, id := range slices.Sorted(maps.Keys(st.writing)) {
		r := st.all[id]
		if r == nil {
			err := t.Exec("delete from record where office = ? and kind = ? and number = ?", office, st.kind, int64(id))
			if err != nil {
				return err
			}
			continue
		}
		if err := st.writeRecord(t, office, *r); err != nil && !errors.Is(err, gallery.ErrForgotten) {
			return err
		}
	}
	return nil
}

func (st *records[H]) writeRecord(t *gallery.Transaction, office int64, r record[H]) (err error) {
	about := make(map[int64]bool) // by person
	head, cut := r.Head.Mapped(func(name string, of bool) string {
		if name == "" || err != nil {
			return ""
		}
		var person int64
		if person, err = t.Person(name); err == nil {
			about[person] = about[person] || of
		}
		return numbered(person)
	}, t.Observed)
	if err != nil {
		return err
	}
	st.cut[r.ID] = cut
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	body, fresh := st.bodies[r.ID]
	if fresh || r.Size == 0 {
		err = t.Exec(`insert into record(office, kind, number, at, size, head, body) values(?1, ?2, ?3, ?4, ?5, ?6, ?7)
			on conflict(office, kind, number) do update set at = ?4, size = ?5, head = ?6, body = ?7`, office, st.kind, int64(r.ID),
			nanoseconds(r.At), r.Size, string(text), body)
	} else { // if another program has deleted it because somebody is forgotten, it stays deleted
		err = t.Exec("update record set head = ?4 where office = ?1 and kind = ?2 and number = ?3", office, st.kind,
			int64(r.ID), string(text))
	}
	if err != nil {
		return err
	}
	const of = "(select id from record where office = ? and kind = ? and number = ?)"
	if err := t.Exec("delete from mention where record = "+of, office, st.kind, int64(r.ID)); err != nil {
		return err
	}
	for _, person := range slices.Sorted(maps.Keys(about)) {
		err := t.Exec("insert into mention(record, person, about) select id, ?4, ?5 from record where office = ?1 and "+
			"kind = ?2 and number = ?3", office, st.kind, int64(r.ID), person, about[person])
		if err != nil {
			return err
		}
	}
	return nil
}

// written implements part.
func (st *records[H]) written(committed, saved bool) {
	if !committed {
		maps.Copy(st.changed, st.writing)
	} else {
		for id := range st.writing {
			delete(st.bodies, id)
		}
		if saved {
			for id, cut := range st.cut {
				if cut {
					st.changed[id] = true
				}
			}
			clear(st.cut)
		}
	}
	st.writing = nil
}

// dirty implements part.
func (st *records[H]) dirty() bool { return len(st.changed) > 0 }

// Put adds a record, or replaces the one with this number.
func (st *records[H]) Put(id uint64, at time.Time, head H, body []byte) {
	st.put(record[H]{ID: id, At: at, Size: int64(len(body)), Head: head})
	if st.changed[id] = true; len(body) > 0 {
		st.bodies[id] = body
	}
	if st.j.failed {
		for len(st.bodies) > mostLoose {
			st.drop(slices.Min(slices.Collect(maps.Keys(st.bodies))))
		}
	}
	st.Expire(at)
}

// mostLoose is the greatest number of records whose bodies are only in memory while the database cannot be written.
const mostLoose = 64

// Change replaces the heads of some records. It skips numbers without a record.
func (st *records[H]) Change(heads map[uint64]H) {
	for id, h := range heads {
		if r := st.all[id]; r != nil {
			st.turns++
			r.Head = h
			st.changed[id] = true
		}
	}
}

// Expire removes the records that are too many or too old.
func (st *records[H]) Expire(now time.Time) {
	for len(st.ids) > 0 {
		r := st.all[st.ids[0]]
		if len(st.ids) <= st.s.Records && st.bytes <= st.s.Bytes && now.Sub(r.At) <= st.s.Age {
			break
		}
		st.drop(r.ID)
	}
}

// Delete removes records. After Purge no file keeps anything of them.
func (st *records[H]) Delete(ids ...uint64) {
	for _, id := range ids {
		st.drop(id)
	}
}

// Last returns the largest number that any record had.
func (st *records[H]) Last() uint64 { return st.last }

// Turns returns a number that changes with each change of a record. A cache is valid while it stays the same.
func (st *records[H]) Turns() uint64 { return st.turns }

// Len returns the number of records.
func (st *records[H]) Len() int { return len(st.ids) }

// Get returns a record, if there is one. Its head may share memory with the store: do not change it.
func (st *records[H]) Get(id uint64) (record[H], bool) {
	if r := st.all[id]; r != nil {
		return *r, true
	}
	return record[H]{}, false
}

// Before returns the numbers of the records below id (0: all), the largest first.
func (st *records[H]) Before(id uint64) []uint64 {
	at := len(st.ids)
	if id > 0 {
		at, _ = slices.BinarySearch(st.ids, id)
	}
	ids := slices.Clone(st.ids[:at])
	slices.Reverse(ids)
	return ids
}

// Body returns the body of a record, or nil for none. The error wraps errNoRecord, or comes from the database.
func (st *records[H]) Body(id uint64) (body []byte, err error) {
	r := st.all[id]
	switch {
	case r == nil:
		return nil, fmt.Errorf("%w: %d", errNoRecord, id)
	case r.Size == 0:
		return nil, nil
	case st.bodies[id] != nil:
		return st.bodies[id], nil
	}
	err = st.j.g.Look(func(t *gallery.Transaction) error {
		return t.Query("select body from record where office = ? and kind = ? and number = ?",
			func(r gallery.Row) error {
				body = slices.Clone(r.ColumnRawBlob(0))
				return nil
			}, st.j.office, st.kind, int64(id))
	})
	if err == nil && body == nil { // another program has deleted it
		err = fmt.Errorf("%w: %d", errNoRecord, id)
	}
	if err != nil {
		return nil, fmt.Errorf("reading office %s: %w", st.j.name, err)
	}
	return body, nil
}
