// SPDX-License-Identifier: Apache-2.0

// Package gallery keeps the people that a device knows, their labelled faces and the faces learned
// from them, in the database of the device (package internal/store), which several programs use at once.
//
// [Open] reads a gallery, [New] makes an empty gallery, [Gallery.Enroll] adds a person, and [Gallery.Save] writes what
// has changed. [Gallery.Learner] returns its learner, which judges faces.
//
// # Several programs
//
// Labels belong to all programs: [Gallery.Save] and [Gallery.Update] take in what others have committed, and
// [Gallery.News] lists it. A change that depends on what is enrolled belongs between [Gallery.Begin] and Save, or into
// [Gallery.Change]: meanwhile no other program writes.
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
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/xdg"
	"github.com/faceauth/faceauth/online"
)

// Errors of [Gallery.Enroll] and [Gallery.Rename]. Errors of labels from package online pass through.
var (
	ErrExists   = errors.New("somebody of that name is enrolled already")
	ErrNoFaces  = errors.New("no faces to enrol")
	ErrMixed    = errors.New("faces that do not look like one person")
	ErrMismatch = errors.New("faces that do not look like the person of that name")
	ErrTaken    = errors.New("somebody has that name")
)

// Errors of [Open], [Gallery.Save] and [Gallery.Change]. Each says what to do.
var (
	ErrNotGallery = store.ErrNotStore
	ErrVersion    = store.ErrVersion
	ErrOld        = store.ErrOld
	ErrDamaged    = store.ErrDamaged
	ErrFull       = store.ErrFull
	ErrSpace      = errors.New("gallery of another feature space")
	ErrClosed     = errors.New("the gallery is closed")
)

// ErrNotOffered is wrapped by the error of [Gallery.Confirm] for a face that [Gallery.Unconfirmed] does not return.
var ErrNotOffered = errors.New("no such face waits to be confirmed; the gallery may have changed")

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
	path    string    // "": in memory
	learner online.Learner
	tx      *Tx // the open transaction, or nil

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
func New(space face.Space, s online.Settings) (*Gallery, error) {
	db, err := store.Memory()
	if err != nil {
		return nil, err
	}
	return begin(db, "", space, s)
}

// Create makes an empty gallery at path, with its folder. The error wraps [fs.ErrExist] if there is one, or comes from
// [online.New] or the database.
func Create(path string, space face.Space, s online.Settings) (*Gallery, error) {
	db, err := store.Open(path, true)
	if err != nil {
		return nil, fmt.Errorf("making gallery %s: %w", path, err)
	}
	return begin(db, path, space, s)
}

func begin(db *store.DB, path string, space face.Space, s online.Settings) (*Gallery, error) {
	l, err := online.New(space, s)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	g := made(db, path, *l)
	err = g.Change(func(t *Tx) error {
		n, err := t.Int("select count(*) from learned")
		if err == nil && n > 0 {
			err = fmt.Errorf("making gallery %s: %w", path, fs.ErrExist)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func made(db *store.DB, path string, l online.Learner) *Gallery {
	g := &Gallery{
		db: db, path: path, learner: l, numbers: make(map[string]int64), names: make(map[int64]string),
		labels: make(map[int64]Label), renumbered: make(map[int64]int64),
	}
	g.learner.OnLearned(func(t online.Taught) { // so that it can be learned again on top of another program's faces
		t.Vector, t.Follows = slices.Clone(t.Vector), slices.Clone(t.Follows)
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
		return nil, fmt.Errorf("opening gallery %s: %w: %s", path, ErrSpace, space.Mismatch(g.Space().ID))
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
		return nil, fmt.Errorf("opening gallery %s: %w", path, err)
	}
	g := made(db, path, online.Learner{})
	if err := db.Read(g.load); err != nil {
		g.Close()
		return nil, fmt.Errorf("opening gallery %s: %w", path, err)
	}
	return g, nil
}

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
	if err != nil {
		return fmt.Errorf("copying gallery %s: %w", path, err)
	}
	if err := errors.Join(db.Daily(now), db.Close()); err != nil {
		return fmt.Errorf("copying gallery %s: %w", path, err)
	}
	return nil
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
	if err != nil {
		return g.explained("reading", err)
	}
	return nil
}

// Look calls do, which sees one state of the database of g, and must not change it.
func (g *Gallery) Look(do func(t *Tx) error) error {
	if g.db == nil {
		return ErrClosed
	}
	if err := g.db.Read(func() error { return do(&Tx{g: g}) }); err != nil {
		return g.explained("reading", err)
	}
	return nil
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

// Enrolment says how to treat faces that contradict known faces.
type Enrolment struct {
	Add   bool // add faces to an enrolled person
	Force bool // enrol even if the faces do not look like one person, or not like the enrolled person of this name
	// Numbers are the numbers of the faces, if they have numbers already ([Gallery.Next]).
	Numbers []uint64
}

// Enroll labels faces with a name, all or none. Resembles is the name of another enrolled person whom most of the faces
// look like, or "". Check it: if one person has two names, the learned faces are split between them.
//
// The error wraps [ErrNoFaces], [ErrExists], [ErrMixed], [ErrMismatch] or [ErrAlike], or comes from
// [online.Learner.Label] or the database. On error g is unchanged.
func (g *Gallery) Enroll(name string, faces [][]float32, now time.Time, how Enrolment) (resembles string, err error) {
	err = g.Change(func(t *Tx) error {
		resembles, err = t.Enroll(name, faces, now, how)
		return err
	})
	return resembles, err
}

// Enroll does the work of [Gallery.Enroll].
func (t *Tx) Enroll(name string, faces [][]float32, now time.Time, how Enrolment) (resembles string, err error) {
	if err := face.CheckName(name); err != nil {
		return "", err
	}
	likeness, err := t.g.admit(name, faces, how)
	if err != nil {
		return "", fmt.Errorf("enrolling %s: %w", name, err)
	}
	person, err := t.Person(name)
	if err != nil {
		return "", fmt.Errorf("enrolling %s: %w", name, err)
	}
	t.Label(person, false, faces, how.Numbers)
	t.Exec("update person set enrolled = ? where id = ?", now.Unix(), person)
	return most(likeness, name, len(faces)), t.Follow()
}

// admit returns whom faces look like, or an error if they cannot be enrolled under a name.
func (g *Gallery) admit(name string, faces [][]float32, how Enrolment) (likeness map[string]int, err error) {
	for i, x := range faces {
		if err := g.Space().Check(x); err != nil {
			return nil, fmt.Errorf("face %d of %d: %w", i+1, len(faces), err)
		}
	}
	known, other, room := g.Number(name) != 0, g.Alike(name), g.learner.Graph().LabelRoom()
	switch {
	case len(faces) == 0:
		return nil, ErrNoFaces
	case len(faces) > room:
		return nil, fmt.Errorf("%w: %d more, and there is room for %d", online.ErrFull, len(faces), room)
	case known && !how.Add:
		return nil, fmt.Errorf("%w; add faces to them, or choose another name", ErrExists)
	case other != "" && !known && !how.Force:
		return nil, fmt.Errorf("%w: %s; use this spelling for the same person", ErrAlike, other)
	case !how.Force && !g.onePerson(faces):
		return nil, fmt.Errorf("%w; use a recording of one person", ErrMixed)
	}
	likeness, err = g.likeness(faces)
	if err == nil && known && !how.Force && g.Space().GenuineRadius > 0 && likeness[name] == 0 {
		err = fmt.Errorf("%w; use another name", ErrMismatch)
	}
	return likeness, err
}

// Remove takes back a face that the learner keeps, by its number, with everything that was learned through it. It returns
// the number of learned faces that were removed. The error wraps [online.ErrUnknown], or comes from the database.
func (g *Gallery) Remove(stored int64) (faces int, err error) {
	err = g.Change(func(t *Tx) error {
		if _, labelled := g.labels[stored]; labelled {
			before := g.learner.Graph().Len()
			if err := t.Retract(stored); err != nil {
				return err
			}
			faces = before - 1 - g.learner.Graph().Len()
			return nil
		}
		faces, err = t.Learner().Remove(stored)
		return err
	})
	return faces, err
}

// numbers are numbers of a kind that the database has reserved: the last that was given, and the last of them.
type numbers struct{ given, last uint64 }

// reserved is how many numbers of a kind a program reserves at once. It can give them while it cannot write the database.
var reserved = map[string]int{"face": 50000, "sighting": 1000, "stranger": 1}

// Next returns a number of a kind, "face", "sighting" or "stranger", that no other thing of this kind has or gets, also
// after a crash. If the database cannot be written to reserve more, numbers go on from a random one above 2^52.
func (g *Gallery) Next(kind string) uint64 {
	if g.given == nil {
		g.given = make(map[string]numbers)
	}
	n := g.given[kind]
	if n.given == n.last {
		n.given = 1<<52 + rand.Uint64N(1<<51)
		n.last = n.given + 1<<51
		if g.tx == nil { // what a transaction reserves could be taken back
			g.Records(false, func(t *Tx) error {
				last, err := t.Next(kind, reserved[kind])
				if err == nil {
					n.given, n.last = uint64(last)-uint64(reserved[kind]), uint64(last)
				}
				return err
			})
		}
	}
	n.given++
	g.given[kind] = n
	return n.given
}

// Label is a labelled or rejected face. A face may have several.
type Label struct {
	Row, Person int64
	Face        uint64 // the number of the face
	Negative    bool   // the face is not this person's
}

// labelIn returns the label in the columns id, person, number and rejected of a row.
func labelIn(r store.Row) Label {
	return Label{r.ColumnInt64(0), r.ColumnInt64(1), uint64(r.ColumnInt64(2)), r.ColumnInt64(3) == 1}
}

// LabelOf returns the label of a stored face, by the learner's number.
func (g *Gallery) LabelOf(stored int64) (Label, bool) {
	h, there := g.labels[stored]
	return h, there
}

// Resembles returns the name of another enrolled person whom most of the faces look like, or "". The error comes from
// [online.Learner.Judge].
func (g *Gallery) Resembles(name string, faces [][]float32) (string, error) {
	likeness, err := g.likeness(faces)
	return most(likeness, name, len(faces)), err
}

// most returns whom more than half of all n faces look like, if they look like people other than name, or "": of several,
// the one whom most look like.
func most(likeness map[string]int, name string, n int) (best string) {
	total := 0
	for other, k := range likeness {
		if other == name {
			continue
		}
		total += k
		if k > likeness[best] || k == likeness[best] && other < best {
			best = other
		}
	}
	if 2*total <= n {
		return ""
	}
	return best
}

// onePerson reports whether each face is near another of the faces.
func (g *Gallery) onePerson(faces [][]float32) bool {
	space := g.Space()
	if space.GenuineRadius == 0 {
		return true
	}
	for i, x := range faces {
		alone := len(faces) > 1
		for j, y := range faces {
			alone = alone && (i == j || graph.Distance(x, y, space.Scale) > space.GenuineRadius)
		}
		if alone {
			return false
		}
	}
	return true
}

// likeness counts the names as which the faces are recognised, or would be if there were no other name for the face.
func (g *Gallery) likeness(faces [][]float32) (map[string]int, error) {
	n := make(map[string]int)
	for _, x := range faces {
		v, err := g.learner.Judge(x)
		if err != nil {
			return nil, err
		}
		is := v.Person
		if is == 0 {
			is, err = g.double(x, v)
			if err != nil {
				return nil, err
			}
		}
		if is != 0 {
			n[g.Name(is)]++
		}
	}
	return n, nil
}

// double returns the nearest person of those who share a face that is recognised as none of them, or 0: one face under
// two names has no verdict.
func (g *Gallery) double(x []float32, v online.Verdict) (is online.Person, err error) {
	all := []online.Person{v.Best}
	if v.Reason == online.Tie {
		all = g.learner.People()
	}
	least := g.Space().ImpostorRadius
	for _, p := range all {
		d, err := g.learner.Nearest(x, p)
		if err != nil {
			return 0, err
		}
		if d < least {
			is, least = p, d
		}
	}
	return is, nil
}

// Forget forgets a person, the faces that were learned through this person, and everything else about this person. The
// error wraps [online.ErrUnknown], or comes from the database.
func (g *Gallery) Forget(name string) error {
	return g.Change(func(t *Tx) error {
		person, err := g.Find(name)
		if err != nil {
			return err
		}
		t.Forget(person)
		return t.Follow()
	})
}

// Rename gives a person a new name. The error wraps [online.ErrUnknown], [face.ErrName] or [ErrTaken], or comes
// from the database.
func (g *Gallery) Rename(from, to string) error {
	return g.Change(func(t *Tx) error {
		person, err := g.Find(from)
		switch {
		case err != nil:
			return err
		case g.Number(to) != 0:
			return fmt.Errorf("%w: %s", ErrTaken, to)
		}
		if err := face.CheckName(to); err != nil {
			return err
		}
		t.Call(person, to)
		return t.Follow()
	})
}

// mostConfirmed is the largest number of learned faces that [Gallery.Confirm] enrols.
const mostConfirmed = 8

// Offered is a learned face that [Gallery.Confirm] may enrol.
type Offered struct {
	online.Stored
	Distance float64 // to the nearest enrolled face of the person
}

// Unconfirmed returns the learned faces that [Gallery.Confirm] may enrol: at most eight faces of the person, each
// beyond the anchor distance of all enrolled faces and of the other returned faces. They are chosen in the order of the
// faces that they stand for, and the farthest from the enrolled faces comes first.
//
// In a space with measured false match rates, only faces of turned heads are offered. A frontal face beyond the anchor
// distance may be a blend of two people: it looks right to a user, and enrolled it confirms the other person
// (lab/NOTES.md, "Morphs"). Enrol such a face before a camera. The error wraps [online.ErrUnknown].
func (g *Gallery) Unconfirmed(name string) ([]Offered, error) {
	l := &g.learner
	person, err := g.Find(name)
	if err != nil {
		return nil, err
	}
	measured := g.Space().Stills.Measured()
	stored := slices.DeleteFunc(l.Stored(), func(s online.Stored) bool {
		return s.Labelled || s.Person != person || s.Frontal && measured
	})
	slices.SortStableFunc(stored, func(a, b online.Stored) int { return cmp.Compare(b.Points, a.Points) })
	var far []Offered
	for _, s := range stored {
		nearest, err := l.Nearest(s.Vector, person)
		if err != nil {
			return nil, err
		}
		d := nearest
		for _, f := range far {
			d = min(d, graph.Distance(s.Vector, f.Vector, g.Space().Scale))
		}
		if d > l.Radii().Anchor && len(far) < mostConfirmed {
			far = append(far, Offered{s, nearest})
		}
	}
	slices.SortStableFunc(far, func(a, b Offered) int { return cmp.Compare(b.Distance, a.Distance) })
	return far, nil
}

// Confirm enrols faces that [Gallery.Unconfirmed] returns, all or none, because the user says that they show this
// person. The error wraps [online.ErrUnknown], or [ErrNotOffered] if a face is not returned (now), or comes from
// [Gallery.Enroll]. On error g is unchanged.
func (g *Gallery) Confirm(name string, ids []int64, now time.Time) error {
	far, err := g.Unconfirmed(name)
	if err != nil || len(ids) == 0 {
		return err
	}
	faces := make([][]float32, len(ids))
	for i, id := range ids {
		at := slices.IndexFunc(far, func(s Offered) bool { return s.ID == id })
		if at < 0 {
			return fmt.Errorf("confirming %s, face %d: %w", name, id, ErrNotOffered)
		}
		faces[i] = slices.Clone(far[at].Vector)
	}
	// A head that turns far is unlike the enrolled faces, and the user was asked about exactly this.
	_, err = g.Enroll(name, faces, now, Enrolment{Add: true, Force: true})
	return err
}
