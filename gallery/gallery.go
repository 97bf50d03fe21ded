// SPDX-License-Identifier: Apache-2.0

// Package gallery keeps the people that a device knows, their labelled faces and the faces learned
// from them, in the database of the device (package internal/store), which several programs use at once.
//
// [Open] reads a gallery, [Create] and [New] make an empty one, [Gallery.Enroll] adds a person, and [Gallery.Save] writes
// what was learned. [Gallery.Learner] returns its learner, which judges faces.
//
// # Several programs
//
// Labels belong to all programs: [Gallery.Save] and [Gallery.Update] take in what others have committed. A change that
// depends on what is enrolled belongs into [Gallery.Change]: meanwhile no other program writes.
//
// What was learned has a generation. A program that finds a newer one takes it, and learns its own unsaved faces again
// on top of it. Labels are rows; numbers of rows rise and are never used again, so a program finds others' new labels
// by their numbers. Everything else, removed labels, new names and what was learned, has a new generation. Nothing
// lists past changes: a list would keep the names of forgotten people.
//
// # Forgetting
//
// A removed face, name or person is overwritten in the database. Save then empties the log; if another program reads
// at this moment, the next start of a program does it.
//
// # Caveats
//
// The database is not encrypted: a reader can compare faces with it, and a vector of pixels is a picture. For logins,
// use the tablet's encrypted store.
package gallery

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/xdg"
	"github.com/faceauth/faceauth/online"
)

// Errors of [Open], [Gallery.Save] and [Gallery.Change]. Each says what to do.
var (
	ErrNotGallery = store.ErrNotStore
	ErrDamaged    = store.ErrDamaged
	ErrFull       = store.ErrFull
	ErrKey        = store.ErrKey
	ErrSpace      = errors.New("gallery of another feature space")
	ErrClosed     = errors.New("the gallery is closed")
)

// Person is one enrolled person.
type Person struct {
	// ID is the number of the person in the database, which no other person ever has; 0 before the person is saved. It
	// stays when the name changes.
	ID       int64     `json:"id,omitempty"`
	Name     string    `json:"name"`
	Faces    int       `json:"faces"`    // labelled faces
	Enrolled time.Time `json:"enrolled"` // when faces were last added, in UTC
}

// Gallery is a set of people and the learner that recognises them. It is not safe for concurrent use.
type Gallery struct {
	db      *store.DB // nil: closed
	path    string    // of the file itself, if it was opened through a link; "": in memory
	learner online.Learner
	bare    bool // it has no learner: a program that has one erases what is gone
	tx      *Tx  // the open transaction, or nil

	people  []Person         // those with faces, by number
	numbers map[string]int64 // by name
	names   map[int64]string
	labels  map[int64]Label // by the learner's number
	last    int64           // the newest label when g was brought in line
	turn    uint64          // changes with each change of people or labels
	saved   saved
	version int64 // of the database
	rows    int64 // how often a program without a learner has changed rows

	unsaved    []online.Taught // faces learned since the last save
	renumbered map[int64]int64
	given      map[string]numbers // by kind
}

// New returns an empty gallery in memory, for a feature space. Close it after use. The error comes from [online.New].
func New(space face.Space, s online.Settings) (*Gallery, error) { return Create("", space, s) }

// Create makes an empty gallery at path, with its folder. The error wraps [fs.ErrExist] if there is one, or comes from
// [online.New] or the database.
func Create(path string, space face.Space, s online.Settings) (*Gallery, error) {
	l, err := online.New(space, s)
	if err != nil {
		return nil, err
	}
	db, err := store.Open(path, true)
	if err != nil {
		return nil, explained("making", path, err)
	}
	g := made(db, *l)
	err = g.Change(func(t *Tx) error {
		n, err := t.Int("select count(*) from learned")
		if err == nil && n > 0 {
			err = explained("making", path, fs.ErrExist)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func made(db *store.DB, l online.Learner) *Gallery {
	g := &Gallery{db: db, path: db.Path(), learner: l, labels: make(map[int64]Label), renumbered: make(map[int64]int64)}
	g.learner.OnLearned(func(t online.Taught) { // so that it can be learned again on top of another program's faces
		g.unsaved = append(g.unsaved, t)
		if len(g.unsaved) > mostUnsaved {
			g.unsaved = slices.Delete(g.unsaved, 0, 1)
		}
	})
	return g
}

// Default returns the default path of the gallery: faceauth/faceauth.db below $XDG_DATA_HOME or ~/.local/share.
func Default() (string, error) {
	dir, err := xdg.Data()
	if err != nil {
		return "", fmt.Errorf("finding the default gallery: %w; name one", err)
	}
	return filepath.Join(dir, "faceauth", "faceauth.db"), nil
}

// Open opens the gallery at path, which must be of the given space. If the space has measured false match rates, they
// replace the rates stored in the gallery ([online.Learner.SetMeasured]). Close it after use.
//
// The error wraps [fs.ErrNotExist], [ErrSpace], or one of the errors above.
func Open(path string, space face.Space) (*Gallery, error) {
	g, err := Read(path)
	if err != nil {
		return nil, err
	}
	if g.Space().ID != space.ID {
		g.Close()
		return nil, explained("opening", path, fmt.Errorf("%w: %s", ErrSpace, space.Mismatch(g.Space().ID)))
	}
	if space.Stills.Measured() {
		g.learner.SetMeasured(space)
	}
	return g, nil
}

// Read opens the gallery at path, of any space. It has the errors of [Open], except [ErrSpace].
func Read(path string) (*Gallery, error) {
	db, err := store.Open(path, false)
	if err != nil {
		return nil, explained("opening", path, err)
	}
	g := made(db, online.Learner{})
	err = db.Read(g.load)
	if err != nil {
		return nil, explained("opening", path, errors.Join(err, g.Close()))
	}
	return g, nil
}

func explained(what, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s gallery %s: %w", what, path, err)
}

// SetKey gives the gallery at path a key of 32 bytes, drawn at random. It encrypts the database and its log whenever
// this process opens or makes it. Without a key, which is nil, they are not encrypted. A gallery that exists keeps its
// key: faceauth backup --new-key makes a copy with another one.
func SetKey(path string, key []byte) error { return store.SetKey(path, key) }

// Close closes the database. What was not saved is lost, and changes give [ErrClosed].
func (g *Gallery) Close() error {
	if g.db == nil {
		return nil
	}
	db := g.db
	g.db = nil
	return db.Close()
}

// Path returns the path of the database, or "" for a gallery in memory.
func (g *Gallery) Path() string { return g.path }

// Daily copies the gallery at path beside itself, once a day, and keeps the copies of a week: the file's name, a dash and
// the day in UTC, such as faceauth.db-2026-11-25. It has the key of the gallery. Forgetting somebody removes the copies
// before, and the next Daily makes one again. Other programs may use the gallery meanwhile. The error wraps
// [fs.ErrNotExist] or one of the errors above; without room for two copies it is [ErrFull].
func Daily(path string, now time.Time) error {
	db, err := store.Open(path, false)
	if err == nil {
		err = errors.Join(db.Daily(now), db.Close())
	}
	return explained("copying", path, err)
}

// Update brings g in line with the database if another program has changed it. It costs microseconds if not. Errors
// leave g as it was.
func (g *Gallery) Update() error {
	switch {
	case g.db == nil:
		return ErrClosed
	case g.tx != nil:
		return nil
	}
	now, err := g.db.Version()
	if err == nil && now != g.version {
		err = g.db.Read(g.align)
		if err == nil {
			g.version = now
		}
	}
	return explained("reading", g.path, err)
}

// Look calls do, which sees one state of the database of g, and must not change it.
func (g *Gallery) Look(do func(t *Tx) error) error {
	if g.db == nil {
		return ErrClosed
	}
	return explained("reading", g.path, g.db.Read(func() error { return do(&Tx{g: g}) }))
}

// Save writes what was learned since g was read or last saved. Other programs' changes stay: if one of them has changed
// what was learned, g takes that, and its own unsaved learned faces are learned again on top of it. On error nothing is
// written, and the next Save tries again.
func (g *Gallery) Save() error { return g.Change(func(*Tx) error { return nil }) }

// Learner returns the learner of g. What it learns is saved with g; only g labels faces.
func (g *Gallery) Learner() *online.Learner { return &g.learner }

// Space returns the feature space of g.
func (g *Gallery) Space() face.Space { return g.learner.Space() }

// People returns the enrolled people in the order in which they were enrolled.
func (g *Gallery) People() []Person { return slices.Clone(g.people) }

// Names returns the names of the enrolled people in the same order.
func (g *Gallery) Names() []string {
	names := make([]string, len(g.people))
	for i, p := range g.people {
		names[i] = p.Name
	}
	return names
}

// Number returns the number of the enrolled person with a name ([Person].ID), or 0.
func (g *Gallery) Number(name string) int64 { return g.numbers[name] }

// Find returns the number of the enrolled person with a name. The error wraps [online.ErrUnknown].
func (g *Gallery) Find(name string) (person int64, err error) {
	person = g.numbers[name]
	if person == 0 {
		err = fmt.Errorf("%w: %s", online.ErrUnknown, name)
	}
	return person, err
}

// Name returns the name of an enrolled person, or "".
func (g *Gallery) Name(person int64) string { return g.names[person] }

// Turn returns a number that changes with each change of people or labels, whoever made it.
func (g *Gallery) Turn() uint64 { return g.turn }
