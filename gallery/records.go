// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"fmt"

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
	*store.DB
	// Observed is the last observation of the learner in the database after the transaction. Later ones may get other
	// numbers.
	Observed int64
	Gone     bool // set by Records: personal records were deleted
	d        *database
	numbers  map[string]int64 // of people, by name
}

// Person returns the number of the person with a name. If nobody has it, the person has no faces any more, and gets a
// number.
func (t *Transaction) Person(name string) (int64, error) {
	if t.numbers == nil {
		t.numbers = make(map[string]int64, len(t.d.people))
		for id, e := range t.d.people {
			t.numbers[e.name] = id
		}
	}
	id, there := t.numbers[name]
	if there {
		return id, nil
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

// Database returns the database of g, which must have a path, and makes it if there is none. Names returns the present
// name of a person by number, or "".
func (g *Gallery) Database() (db *store.DB, names func(person int64) string, err error) {
	if err := g.attach(g.path); err != nil {
		return nil, nil, fmt.Errorf("opening gallery %s: %w", g.path, err)
	}
	if g.database.people == nil {
		g.faces, g.database.people = make(map[int64]kept), make(map[int64]entry)
	}
	if err := g.readPeople(); err != nil {
		return nil, nil, fmt.Errorf("reading gallery %s: %w", g.path, err)
	}
	return g.db, func(person int64) string {
		e := g.database.people[person]
		if e.same != 0 {
			e = g.database.people[e.same]
		}
		return e.name
	}, nil
}

// Observed returns the last observation that is saved.
func (g *Gallery) Observed() int64 { return g.database.observed }
