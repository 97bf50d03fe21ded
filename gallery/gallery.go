// SPDX-License-Identifier: Apache-2.0

// Package gallery keeps the people that a device knows, their labelled faces and the faces learned
// from them, in a database that several programs use at once.
//
// [Open] reads a gallery, [Create] makes an empty one, [Gallery.Enroll] adds a person, and
// [Gallery.Save] writes what was learned. [Gallery.Learner] returns its learner, which judges
// faces. Its rows, which the programs of this module use besides, are in package
// internal/gallery.
//
// # Several programs
//
// Labels belong to all programs: [Gallery.Save] and [Gallery.Update] take in what others have
// committed. What two programs learn at the same time is learned by both.
//
// # Forgetting
//
// What is removed is overwritten in the database, and the log is emptied.
//
// # Caveats
//
// Without a key ([SetKey]) the database is not encrypted: a reader can compare faces with it, and a
// vector of pixels is a picture. For logins, use the tablet's encrypted store.
package gallery

import (
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/online"
)

// Errors of [Open] and of the changes of a gallery. Each says what to do.
var (
	ErrNotGallery = gallery.ErrNotGallery
	ErrDamaged    = gallery.ErrDamaged
	ErrFull       = gallery.ErrFull // the disk is full
	ErrKey        = gallery.ErrKey
	ErrSpace      = gallery.ErrSpace
	ErrClosed     = gallery.ErrClosed
)

// Errors of [Gallery.Enroll] and [Gallery.Rename].
var (
	ErrExists    = gallery.ErrExists
	ErrNoFaces   = gallery.ErrNoFaces
	ErrMixed     = gallery.ErrMixed
	ErrMismatch  = gallery.ErrMismatch
	ErrAlike     = gallery.ErrAlike
	ErrResembles = gallery.ErrResembles
)

// Gallery is a set of people and the learner that recognises them. It is not safe for concurrent
// use.
type Gallery struct{ rows *gallery.Gallery }

// Create makes an empty gallery at path, with its folder, for a feature space; without a path it
// is in memory. Close it after use. The error wraps [io/fs.ErrExist] if there is one, or comes from
// [online.New] or the database.
func Create(path string, space face.Space, s online.Settings) (*Gallery, error) {
	return opened(gallery.Create(path, space, s))
}

// Open opens the gallery at path, which must be of the given space. If the space has measured false
// match rates, they replace the rates stored in the gallery ([online.Learner.SetMeasured]). Close
// it after use. The error wraps [io/fs.ErrNotExist], [ErrSpace], or one of the errors above.
func Open(path string, space face.Space) (*Gallery, error) {
	return opened(gallery.Open(path, space))
}

func opened(g *gallery.Gallery, err error) (*Gallery, error) {
	if err != nil {
		return nil, err
	}
	return &Gallery{g}, nil
}

// SetKey gives the gallery at path a key of 32 bytes, drawn at random. It encrypts the database and
// its log whenever this process opens or makes it. A gallery that exists keeps its key, or has
// none.
func SetKey(path string, key []byte) error { return gallery.SetKey(path, key) }

// Close closes the database. What was not saved is lost, and changes give [ErrClosed].
func (g *Gallery) Close() error { return g.rows.Close() }

// Learner returns the learner of g. What it learns is saved with g; only g labels faces.
func (g *Gallery) Learner() *online.Learner { return g.rows.Learner() }

// Person is one enrolled person.
type Person struct {
	// ID is the number of the person in the database, which no other person ever has. It stays when
	// the name changes.
	ID       int64
	Name     string
	Faces    int       // labelled faces
	Enrolled time.Time // when faces were last added, in UTC
}

// People returns the enrolled people in the order in which they were enrolled.
func (g *Gallery) People() (all []Person) {
	for _, p := range g.rows.People() {
		all = append(all, Person(p))
	}
	return all
}

// Name returns the name of an enrolled person, or "".
func (g *Gallery) Name(person int64) string { return g.rows.Name(person) }

// Number returns the number of the enrolled person with a name ([Person].ID), or 0.
func (g *Gallery) Number(name string) int64 { return g.rows.Number(name) }

// Enrolment says how to treat faces that contradict known faces.
type Enrolment struct {
	Add bool // add faces to an enrolled person
	// enrol even if the faces do not look like one person, or not like the enrolled person of this
	// name
	Force bool
	Alone bool // unless forced, refuse faces most of which look like another enrolled person
	// Pictures are small JPEGs of the faces, or nil for a face without one. They are kept beside
	// the labels, unless the settings say [online.Settings].NoPictures.
	Pictures [][]byte
}

// Enroll labels faces with a name, all or none. Resembles is the name of another enrolled person
// whom most of the faces look like, or "". Check it: if one person has two names, the learned faces
// are split between them. The error wraps one of the errors above, or comes from
// [online.Learner.Label] or the database. On error g is unchanged.
func (g *Gallery) Enroll(name string, faces [][]float32, now time.Time,
	how Enrolment) (resembles string, err error) {
	return g.rows.Enroll(name, faces, now, gallery.Enrolment{Add: how.Add, Force: how.Force,
		Alone: how.Alone, Pictures: how.Pictures})
}

// Rename gives a person a new name. The error wraps [online.ErrUnknown], [face.ErrName],
// [ErrExists] or [ErrAlike], or comes from the database. On error g is unchanged.
func (g *Gallery) Rename(from, to string) error { return g.rows.Rename(from, to) }

// Forget forgets a person, the faces that were learned through this person, and everything else
// about this person. The error wraps [online.ErrUnknown], or comes from the database. On error g is
// unchanged.
func (g *Gallery) Forget(name string) error { return g.rows.Forget(name) }

// Remove takes back a face that the learner keeps, by its number ([online.Stored].ID), with
// everything that was learned through it, and returns the number of learned faces that were
// removed. The error wraps [online.ErrUnknown], or comes from the database. On error g is
// unchanged.
func (g *Gallery) Remove(stored int64) (faces int, err error) { return g.rows.Remove(stored) }

// Update brings g in line with the database. It costs microseconds if no other program has changed
// people or labels. After an error g may have taken in some of it, and the next call reads
// everything.
func (g *Gallery) Update() error { return g.rows.Update() }

// Save writes what was learned since g was opened or last saved. Other programs' changes stay: if
// one of them has changed what was learned, g takes that, and its own unsaved learned faces are
// learned again on top of it. On error nothing is written, and the next Save tries again.
func (g *Gallery) Save() error { return g.rows.Save() }

// Unusual is a face of the gallery with the evidence against its name.
type Unusual struct {
	ID      int64 // for [Gallery.Remove]
	Name    string
	Learned bool    // the face was learned, and not labelled
	Faces   float64 // number of faces that it stands for
	Likes   string  // the person of the nearest face with another name; "" if none is near
	// Score is from 0 to 2, plus the margin in units of the learner's longest edge, from -1 to 1; 0
	// if Isolated.
	Score float64
	// Margin is the distance to the nearest face with the same name, minus the distance to the
	// nearest face with another name.
	Margin float64
	// Suspect says that the nearest face, and the faces around, are another person's.
	Suspect  bool
	Isolated bool      // no face is near enough to support or contradict its name
	Distance float64   // to the nearest face of Likes; 0 if there is none
	Picture  []byte    // of a learned face: a small JPEG, or nil
	Vector   []float32 // the face; the caller must not change it
}

// Audit ranks labelled faces, and with learned also learned faces, by how unusual their names are
// among the faces around them: a face that was enrolled under another person's name comes first.
// It fails with faces of fewer than two people.
func (g *Gallery) Audit(learned bool) (all []Unusual, err error) {
	found, err := g.rows.Audit(learned)
	for _, u := range found {
		all = append(all, Unusual(u))
	}
	return all, err
}
