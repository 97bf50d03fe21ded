// SPDX-License-Identifier: Apache-2.0

// Package gallery keeps the people that a device knows, their labelled faces and the faces learned
// from them, in the database of the device (package internal/store), which several programs use at
// once.
//
// [Open] reads a gallery, [Create] and [New] make an empty one, [Gallery.Enroll] adds a person, and
// [Gallery.Save] writes what was learned. [Gallery.Learner] returns its learner, which judges
// faces.
//
// # Several programs
//
// Labels belong to all programs: [Gallery.Save] and [Gallery.Update] take in what others have
// committed. A change that depends on what is enrolled belongs into [Gallery.Change]: meanwhile no
// other program writes.
//
// What was learned has a generation. A program that finds a newer one takes it, and learns its own
// unsaved faces again on top of it. Labels are rows; numbers of rows rise and are never used again,
// so a program finds others' new labels by their numbers. Everything else, removed labels, new
// names and what was learned, has a new generation. Nothing lists past changes: a list would keep
// the names of forgotten people.
//
// # Forgetting
//
// A removed face, name or person is overwritten in the database, and the log is emptied. If that
// fails, because another program reads at this moment or the disk is full, [Gallery.Unerased] says
// so, and the next start of a program does it.
//
// # Caveats
//
// Without a key ([SetKey]) the database is not encrypted: a reader can compare faces with it, and a
// vector of pixels is a picture. For logins, use the tablet's encrypted store.
package gallery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/online"
	"golang.org/x/text/unicode/norm"
)

// Errors of [Open], [Gallery.Save] and [Gallery.Change]. Each says what to do.
var (
	ErrNotGallery = store.ErrNotStore
	ErrDamaged    = store.ErrDamaged
	ErrFull       = store.ErrFull
	ErrKey        = store.ErrKey
	ErrSpace      = errors.New("gallery of another feature space")
	ErrClosed     = store.ErrClosed
	ErrBusy       = store.ErrBusy
)

// Person is one enrolled person.
type Person struct {
	// ID is the number of the person in the database, which no other person ever has. It stays when
	// the name changes.
	ID       int64     `json:"id"`
	Name     string    `json:"name"`
	Faces    int       `json:"faces"`    // labelled faces
	Enrolled time.Time `json:"enrolled"` // when faces were last added, in UTC
}

// Gallery is a set of people and the learner that recognises them. It is not safe for concurrent
// use.
type Gallery struct {
	db      *store.DB
	path    string // of the file itself, if it was opened through a link; "": in memory
	learner online.Learner
	bare    bool // it has no learner: a program that has one erases what is gone
	tx      *Tx  // the open transaction, or nil

	people  []Person         // those with faces, by number
	numbers map[string]int64 // by name
	// by the normal form NFC of names that have another one
	composed map[string]int64
	names    map[int64]string
	labels   map[int64]int64 // rows of the labels, by the learner's number
	last     int64           // the newest label when g was brought in line
	turn     uint64          // changes with each change of people or labels
	saved    saved
	beside   int64 // how often a program without a learner has removed labels or given names

	unerased error  // why what was removed is still in the file
	removed  func() // see Prompt

	unsaved []online.Taught    // faces learned since the last save
	given   map[string]numbers // by kind
}

// Tx is a transaction on the rows of a gallery. The learner follows the rows at [Tx.Follow], and
// before the commit. After an error of one of its methods they do nothing and return that error,
// and it is not committed: a caller may do several steps and look at the last error only.
type Tx struct {
	g         *Gallery
	changed   bool    // labels have changed otherwise than by new ones, or names
	gone      bool    // something was deleted of which no trace may stay
	ahead     bool    // the learner is ahead of the database
	anew      bool    // what was learned must be written, even if it has not changed
	made      []int64 // new labels
	withdrawn []int64 // rejected faces that they have made wrong
	failed    error   // the first error
}

// saved is what the database has of the learner.
type saved struct {
	generation int64 // 0: nothing
	loose      int   // labels beyond it
	size       int   // bytes
	state      state
}

// state tells snapshots apart, apart from labels: what is learned counts as observed, and what is
// taken back leaves less mass: points beside the labels themselves.
type state struct {
	space    face.Space
	settings online.Settings
	counts   online.Counts
	time     time.Time
	mass     float64
}

// Path returns the path of the database, or "" for a gallery in memory.
func (g *Gallery) Path() string { return g.path }

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

// Number returns the number of the enrolled person with a name ([Person].ID), or 0. Names of the
// same characters in another normal form of Unicode are the same: a folder of a Mac has NFD, a
// keyboard gives NFC.
func (g *Gallery) Number(name string) int64 {
	same := norm.NFC.String(name)
	return cmp.Or(g.numbers[name], g.numbers[same], g.composed[same])
}

// Find returns the number of the enrolled person with a name. The error wraps [online.ErrUnknown].
func (g *Gallery) Find(name string) (person int64, err error) {
	person = g.Number(name)
	if person == 0 {
		err = fmt.Errorf("%w: %s", online.ErrUnknown, name)
	}
	return person, err
}

// SnapshotSize returns how many bytes [Gallery.Save] writes, if anything was learned.
func (g *Gallery) SnapshotSize() int { return g.saved.size }

// Name returns the name of an enrolled person, or "".
func (g *Gallery) Name(person int64) string { return g.names[person] }
