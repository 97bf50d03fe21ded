// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/fxamacker/cbor/v2"
)

// fingerprint is a hash of what a snapshot holds beside labels.
func (g *Gallery) fingerprint() [32]byte {
	l := g.learner
	h := sha256.New()
	c := l.Counts()
	c.Labelled -= int64(len(l.Labels())) // labels that are gone: their numbers are not in the database
	fmt.Fprintf(h, "%+v %+v %+v %d\n", l.Space(), l.Settings(), c, l.Time().Unix())
	stored, _ := l.Stored("") // without margins there is no error
	var b []byte
	for _, s := range stored {
		if !s.Labelled {
			b = binary.BigEndian.AppendUint64(b, uint64(s.ID))
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(s.Points))
		}
	}
	h.Write(b)
	return [32]byte(h.Sum(nil))
}

// change lists what g has changed since it was in line with the database.
type change struct {
	gone      []int64         // numbers of faces
	added     []added         // new faces
	forgotten []int64         // numbers of people
	names     map[int64]entry // new names and dates of people, by number
}

// added is a face that is not in the database yet.
type added struct {
	id       int64  // the learner's number
	number   uint64 // 0: it has none yet
	person   int64  // 0: not in the database yet
	entry           // of the person
	negative bool
	vector   []float32
}

// own compares g with the database.
func (g *Gallery) own() (c change) {
	g.settle()
	c.names = make(map[int64]entry)
	here := make(map[int64]bool)
	entries := make(map[string]entry)
	for _, p := range g.people {
		e := entry{name: p.Name, enrolled: p.Enrolled.Unix(), upright: int64(p.Upright)}
		entries[p.Name] = e
		if id := g.numbers[p.Name]; id != 0 {
			here[id] = true
			if e != g.database.people[id] {
				c.names[id] = e
			}
		}
	}
	for id := range g.erased {
		if _, there := g.database.people[id]; there && !here[id] {
			c.forgotten = append(c.forgotten, id)
		}
	}
	labels := make(map[int64]bool)
	for _, l := range g.learner.Labels() {
		k, there := g.faces[l.ID]
		if labels[l.ID] = true; there && k.person == g.numbers[l.Name] && k.negative == l.Negative {
			continue
		}
		if there { // the face has another person now: its row goes, and a new one comes
			c.gone = append(c.gone, k.row)
		}
		c.added = append(c.added, added{l.ID, g.labels[l.ID], g.numbers[l.Name],
			cmp.Or(entries[l.Name], entry{name: l.Name}), l.Negative, g.learner.Vector(l.ID)})
	}
	for id, k := range g.faces {
		if !labels[id] && !slices.Contains(c.forgotten, k.person) {
			c.gone = append(c.gone, k.row)
		}
	}
	slices.Sort(c.gone)
	slices.Sort(c.forgotten)
	return c
}

// write writes what g has changed, and returns what the database then has. Gone means that personal records were
// removed.
func (g *Gallery) write() (next database, gone bool, err error) {
	c := g.own()
	next = g.database
	next.faces, next.people = maps.Clone(g.faces), maps.Clone(g.database.people)
	for _, id := range c.forgotten {
		if err := g.db.Exec("delete from person where id = ?", id); err != nil {
			return next, false, err
		}
		maps.DeleteFunc(next.people, func(other int64, e entry) bool { return other == id || e.same == id })
	}
	for _, row := range c.gone {
		if err := g.db.Exec("delete from face where id = ?", row); err != nil {
			return next, false, err
		}
	}
	renamed, err := next.rename(c.names)
	if err != nil {
		return next, false, err
	}
	next.fresh = make(map[string]int64)
	if err := next.reserve(len(c.added)); err != nil {
		return next, false, err
	}
	next.numbered = make(map[int64]uint64)
	for _, a := range c.added {
		person := cmp.Or(a.person, next.fresh[a.name])
		if person == 0 {
			if person, err = next.person(a.entry); err != nil {
				return next, false, err
			}
			next.fresh[a.name] = person
		}
		if a.number == 0 {
			next.given++
			a.number = next.given
		}
		next.numbered[a.id] = a.number
		if err := g.db.Exec("insert into face(number, person, rejected, vector) values(?, ?, ?, ?)", int64(a.number),
			person, a.negative, vector.Bytes(a.vector)); err != nil {
			return next, false, err
		}
		next.last, next.loose = g.db.Last(), next.loose+1
		next.faces[a.id] = kept{next.last, person, a.negative}
	}
	labels := make(map[int64]bool)
	for _, l := range g.learner.Labels() {
		labels[l.ID] = true
	}
	maps.DeleteFunc(next.faces, func(id int64, _ kept) bool { return !labels[id] })
	maps.DeleteFunc(g.labels, func(id int64, _ uint64) bool { return !labels[id] })
	gone = len(c.forgotten) > 0 || len(c.gone) > 0 || renamed
	next.learned = g.fingerprint()
	if gone || next.learned != g.learned || next.generation == 0 {
		next.generation++
	} else if next.loose <= mostLoose {
		return next, gone, nil
	}
	snapshot, err := g.learner.MarshalLearned()
	if err != nil {
		return next, false, err
	}
	rows := make(map[int64]int64, len(next.faces))
	for id, k := range next.faces {
		rows[id] = k.row
	}
	faces, err := cbor.Marshal(rows)
	if err != nil {
		return next, false, err
	}
	next.loose, next.observed = 0, g.learner.Counts().Observed
	err = g.db.Exec("insert or replace into learned values(1, ?, ?, ?)", next.generation, faces, snapshot)
	return next, gone, err
}

// reserve reserves numbers for n faces, in a transaction.
func (d *database) reserve(n int) error {
	if d.reserved-d.given >= uint64(n) {
		return nil
	}
	return d.db.Query(`insert into number values('face', ?1) on conflict(kind) do update set last = last + ?1
		returning last`, func(r store.Row) error {
		d.reserved = uint64(r.ColumnInt64(0))
		d.given = d.reserved - uint64(n)
		return nil
	}, int64(n))
}

// rename gives people new names and dates, and reports whether a name is another one. Two people may have swapped
// their names. A person without faces who has a new name of another person becomes that person.
func (d *database) rename(names map[int64]entry) (renamed bool, err error) {
	aside := func(id int64) error {
		return d.db.Exec("update person set name = ? where id = ?", fmt.Sprintf("\n%d", id), id)
	}
	for id := range names {
		if err := aside(id); err != nil {
			return false, err
		}
	}
	for id, e := range names {
		for other, o := range d.people {
			if _, also := names[other]; also || o.name != e.name {
				continue
			}
			if err := aside(other); err != nil {
				return false, err
			}
			if err := d.db.Exec("update person set same = ? where id = ? or same = ?", id, other, other); err != nil {
				return false, err
			}
			o.name, o.same = fmt.Sprintf("\n%d", other), id
			d.people[other] = o
		}
		err := d.db.Exec("update person set name = ?, enrolled = ?, upright = ? where id = ?", e.name, e.enrolled,
			e.upright, id)
		if err != nil {
			return false, err
		}
		renamed = renamed || e.name != d.people[id].name
		d.people[id] = e
	}
	return renamed, nil
}

// person returns the number of the person with a name, and makes one if there is none.
func (d *database) person(e entry) (int64, error) {
	for id, known := range d.people {
		if known.name == e.name {
			err := d.db.Exec("update person set enrolled = ?, upright = ? where id = ?", e.enrolled, e.upright, id)
			d.people[id] = e
			return id, err
		}
	}
	err := d.db.Exec("insert into person(name, enrolled, upright) values(?, ?, ?)", e.name, e.enrolled, e.upright)
	if err != nil {
		return 0, err
	}
	id := d.db.Last()
	d.people[id] = e
	return id, nil
}

// sweep removes people without faces whom nothing mentions.
func (d *database) sweep() error {
	with := make(map[int64]bool)
	for _, k := range d.faces {
		with[k.person] = true
	}
	for id := range d.people {
		if with[id] {
			continue
		}
		said := false
		err := d.db.Query(`with who(id) as (select ?1 union select id from person where same = ?1)
			select 1 where exists (select 1 from face where person in who) or
			exists (select 1 from mention where person in who) or exists (select 1 from event where person in who) or
			exists (select 1 from present where person in who)`, func(store.Row) error {
			said = true
			return nil
		}, id)
		if err == nil && !said {
			err = d.db.Exec("delete from person where id = ?", id)
			maps.DeleteFunc(d.people, func(other int64, e entry) bool { return other == id || e.same == id })
		}
		if err != nil {
			return err
		}
	}
	return nil
}
