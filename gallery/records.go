// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"errors"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/internal/store"
)

// Records are what a program keeps in the database of a gallery beside the people: for example sightings of them. They
// change in the transactions of the gallery.
type Records interface {
	// Write writes what has changed since the last transaction that was committed. It must not use the gallery.
	Write(t *Transaction) error
	// Written tells whether the transaction was committed, and whether it was one of [Gallery.Save].
	Written(committed, saved bool)
}

// Transaction is a transaction on the database of a gallery.
type Transaction struct {
	// Observed is the last observation of the learner in the database after the transaction. Later ones may get other
	// numbers.
	Observed int64
	Gone     bool // set by Records: something was deleted of which no trace may stay

	db      *store.DB
	d       *database
	news    News             // what the records do not know yet
	numbers map[string]int64 // of people, by name
}

// Row is a row of a result. The bytes of a blob are valid until the next row.
type Row interface {
	ColumnInt64(column int) int64
	ColumnText(column int) string
	ColumnRawBlob(column int) []byte
}

// Exec runs a statement. Arguments are int64, float64, string, []byte, bool or nil.
func (t *Transaction) Exec(sql string, args ...any) error { return t.db.Exec(sql, args...) }

// Query runs a statement, and calls each with its rows.
func (t *Transaction) Query(sql string, each func(Row) error, args ...any) error {
	return t.db.Query(sql, func(r store.Row) error { return each(r) }, args...)
}

// Name returns the present name of a person, or "". If the person was found to be another one, it is the name of that
// one, and now is their number.
func (t *Transaction) Name(person int64) (name string, now int64) {
	if same := t.d.people[person].same; same != 0 {
		person = same
	}
	return t.d.people[person].name, person
}

// ErrForgotten is returned by [Transaction.Person] for a person whom another program has just forgotten.
var ErrForgotten = errors.New("the person is forgotten")

// Person returns the number of the person with a name, also if another program has just renamed them. If nobody has the
// name, the person has no faces any more, and gets a number. The error may be [ErrForgotten].
func (t *Transaction) Person(name string) (int64, error) {
	if t.numbers == nil {
		t.numbers = make(map[string]int64, len(t.d.people))
		for id, e := range t.d.people {
			t.numbers[e.name] = id
		}
	}
	for _, r := range t.news.Renamed {
		if _, there := t.numbers[name]; !there && r[0] == name {
			name = r[1]
		}
	}
	id, there := t.numbers[name]
	if there {
		return id, nil
	}
	if slices.Contains(t.news.Forgotten, name) {
		return 0, ErrForgotten
	}
	id, err := t.d.person(entry{name: name})
	if err == nil {
		t.numbers[name] = id
	}
	return id, err
}

// Attach makes the records part of each save of g.
func (g *Gallery) Attach(r Records) { g.records = r }

// SaveRecords writes the records alone, in one transaction. What the learner has learned, and labels, stay unsaved. If
// lazy is set it does not wait for the disk: the end of the program loses nothing, and a failure of the machine may
// lose the last seconds. Without a path it does nothing.
func (g *Gallery) SaveRecords(lazy bool) error {
	if g.path == "" || g.records == nil {
		return nil
	}
	if lazy && !g.begun {
		if err := g.attach(g.path); err != nil {
			return fmt.Errorf("changing gallery %s: %w", g.path, err)
		}
		if err := g.db.Lazily(true); err != nil {
			return err
		}
		defer g.db.Lazily(false)
	}
	return g.keep(false)
}

// Look calls do, which sees one state of the database of g. G must have a path; a missing database is made.
func (g *Gallery) Look(do func(t *Transaction) error) error {
	err := g.attach(g.path)
	if err == nil {
		err = g.db.Read(func() error {
			d := g.database
			if g.generation == 0 && !g.begun { // nothing was read yet
				d.people = make(map[int64]entry)
				if err := d.readPeople(); err != nil {
					return err
				}
			}
			return do(&Transaction{db: g.db, d: &d, Observed: g.observed})
		})
	}
	if err != nil {
		return fmt.Errorf("reading gallery %s: %w", g.path, err)
	}
	return nil
}
