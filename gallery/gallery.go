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
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/online"
)

// Errors of [Gallery.Enroll] and [Gallery.Remove]. Errors of labels from package online pass through.
var (
	ErrExists   = errors.New("somebody of that name is enrolled already")
	ErrNoFaces  = errors.New("no faces to enrol")
	ErrMixed    = errors.New("faces that do not look like one person")
	ErrMismatch = errors.New("faces that do not look like the person of that name")
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
	// Upright is the number of labelled faces that were seen to be the right way up when they were enrolled. Nothing is
	// known of the others: an older version or a user's correction labelled them, or their features have no
	// norm.
	Upright int `json:"upright,omitempty"`
}

// Gallery is a set of people and the learner that recognises them. It is not safe for concurrent use.
type Gallery struct {
	people  []Person // as of the last call of settle
	learner *online.Learner
	numbers map[string]int64 // the numbers of people in the database, by their present names
	labels  map[int64]uint64 // the numbers of labelled faces, by the learner's number; 0 until they are in the database
	counted int64            // the last number of a person, in memory
	path    string           // "": only in memory
	begun   bool             // a transaction is open
	erased  map[int64]bool   // numbers of people who are to be forgotten with everything about them
	records Records          // may be nil
	unsaved []online.Taught  // faces learned since the last save
	news    News

	database
}

// New returns an empty gallery for a feature space. The error comes from [online.New].
func New(space face.Space, s online.Settings) (*Gallery, error) {
	l, err := online.New(space, s)
	if err != nil {
		return nil, err
	}
	return &Gallery{learner: l, numbers: make(map[string]int64), labels: make(map[int64]uint64)}, nil
}

// Learner returns the learner of g. What it learns is saved with g. If a person is labelled or forgotten directly in
// the learner, the people of g follow; such a person has no date.
func (g *Gallery) Learner() *online.Learner { return g.learner }

// Space returns the feature space of g.
func (g *Gallery) Space() face.Space { return g.learner.Space() }

// People returns the enrolled people in the order in which they were enrolled.
func (g *Gallery) People() []Person {
	g.settle()
	all := slices.Clone(g.people)
	for i := range all {
		all[i].ID = g.numbers[all[i].Name]
	}
	return all
}

// Number returns the number of the person with a name ([Person].ID), or 0.
func (g *Gallery) Number(name string) int64 { return g.numbers[name] }

// settle brings the people in line with the learner, which callers may change directly.
func (g *Gallery) settle() {
	faces, before := make(map[string]int), make(map[string]Person)
	for _, l := range g.learner.Labels() {
		if !l.Negative {
			faces[l.Name]++
		}
	}
	for _, p := range g.people {
		before[p.Name] = p
	}
	g.people = nil
	for _, name := range g.learner.Names() {
		p := before[name]
		g.people = append(g.people, Person{Name: name, Faces: faces[name], Enrolled: p.Enrolled,
			Upright: min(p.Upright, faces[name])})
	}
	maps.DeleteFunc(g.numbers, func(name string, _ int64) bool { return faces[name] == 0 })
	if g.path == "" { // nobody else gives numbers
		for _, p := range g.people {
			if g.numbers[p.Name] == 0 {
				g.counted++
				g.numbers[p.Name] = g.counted
			}
		}
	}
}

func (g *Gallery) person(name string) *Person {
	for i := range g.people {
		if g.people[i].Name == name {
			return &g.people[i]
		}
	}
	return nil
}

// Enrolment says how to treat faces that contradict known faces.
type Enrolment struct {
	Add   bool // add faces to an enrolled person
	Force bool // enrol even if the faces do not look like one person, or not like the enrolled person of this name
	// Upright says that the faces are the right way up: see [face.Turns].
	Upright bool
	// Numbers are the numbers of the faces, if they have numbers already ([Gallery.NextFace]).
	Numbers []uint64
}

// Enroll labels faces with a name, all or none. Resembles is the name of another enrolled person whom most of the faces
// look like, or "". Check it: if one person has two names, the learned faces are split between them.
//
// The error wraps [ErrNoFaces], [ErrExists], [ErrMixed], [ErrMismatch] or [ErrAlike], or comes from
// [online.Learner.Label]. On error g is unchanged.
func (g *Gallery) Enroll(name string, faces [][]float32, now time.Time, how Enrolment) (resembles string, err error) {
	if err := g.check(name, faces); err != nil {
		return "", err
	}
	known := g.learner.Knows(name)
	if known && !how.Add {
		return "", fmt.Errorf("enrolling %s: %w; add faces to them, or choose another name", name, ErrExists)
	}
	if other := g.Alike(name); other != "" && !known && !how.Force {
		return "", fmt.Errorf("enrolling %s: %w: %s; use this spelling for the same person", name, ErrAlike, other)
	}
	if !how.Force && !g.onePerson(faces) {
		return "", fmt.Errorf("enrolling %s: %w; use a recording of one person", name, ErrMixed)
	}
	likeness, err := g.likeness(faces)
	if err != nil {
		return "", fmt.Errorf("enrolling %s: %w", name, err)
	}
	if known && !how.Force && g.Space().GenuineRadius > 0 && likeness[name] == 0 {
		return "", fmt.Errorf("enrolling %s: %w; use another name", name, ErrMismatch)
	}
	resembles = most(likeness, name, len(faces))
	if err := g.label(name, faces, now, how.Numbers); err != nil {
		return "", err
	}
	if how.Upright {
		g.person(name).Upright += len(faces)
	}
	return resembles, nil
}

// Label labels faces with the name of a new or an enrolled person, all or none. Unlike [Gallery.Enroll] it compares
// them with nobody. The error wraps [ErrNoFaces], or comes from [online.Learner.Label]. On error g is unchanged.
//
// Numbers are the numbers of the faces, if they have numbers already.
func (g *Gallery) Label(name string, faces [][]float32, now time.Time, numbers ...uint64) error {
	if err := g.check(name, faces); err != nil {
		return err
	}
	return g.label(name, faces, now, numbers)
}

// Reject adds a face that is not the named person's ([online.Learner.Reject]). Number is its number, or 0.
func (g *Gallery) Reject(x []float32, name string, number uint64) error {
	if err := g.learner.Reject(x, name); err != nil {
		return err
	}
	g.number([]uint64{number})
	return nil
}

// reservedFaces is the number of faces that a program can number before it writes the database again.
const reservedFaces = 50000

// NextFace returns a number that no other face has or gets. The database reserves numbers. Before there is one, or
// while it cannot be written, they go on from a random number above 2^52.
func (g *Gallery) NextFace() uint64 {
	if g.given == g.reserved && g.path != "" {
		if g.db == nil || g.begun || // what a transaction reserves could be taken back
			g.db.Write(func() error { return g.reserve(reservedFaces) }) != nil {
			g.given = 1<<52 + rand.Uint64N(1<<51)
			g.reserved = g.given + 1<<51
		}
	}
	g.given++
	g.reserved = max(g.reserved, g.given)
	return g.given
}

// number gives the newest labels their numbers.
func (g *Gallery) number(numbers []uint64) {
	for i, id := range g.learner.Newest(len(numbers)) {
		g.labels[id] = numbers[i]
	}
}

// Label is a labelled or rejected face. A face may have several.
type Label struct {
	Face     uint64 // the number of the face
	Name     string
	Negative bool // the face is not this person's
	Vector   []float32
}

// Labels returns the labels, by the learner's numbers, which may change with a save. Their vectors are copies.
func (g *Gallery) Labels() map[int64]Label {
	all := make(map[int64]Label)
	for _, l := range g.learner.Labels() {
		if g.labels[l.ID] == 0 { // otherwise the next save would number it
			g.labels[l.ID] = g.NextFace()
		}
		all[l.ID] = Label{g.labels[l.ID], l.Name, l.Negative, slices.Clone(g.learner.Vector(l.ID))}
	}
	return all
}

// check returns an error if no gallery of this space can hold the name and the faces.
func (g *Gallery) check(name string, faces [][]float32) error {
	if err := online.CheckName(name); err != nil {
		return err
	}
	if len(faces) == 0 {
		return fmt.Errorf("enrolling %s: %w", name, ErrNoFaces)
	}
	for i, x := range faces {
		if err := g.Space().Check(x); err != nil {
			return fmt.Errorf("enrolling %s, face %d of %d: %w", name, i+1, len(faces), err)
		}
	}
	return nil
}

// label labels faces that were checked. Numbers may be empty.
func (g *Gallery) label(name string, faces [][]float32, now time.Time, numbers []uint64) error {
	if err := g.learner.LabelAll(faces, name); err != nil {
		return fmt.Errorf("enrolling %s: %w", name, err)
	}
	g.number(append(slices.Clone(numbers), make([]uint64, len(faces))...)[:len(faces)])
	p := g.person(name)
	if p == nil {
		g.people = append(g.people, Person{Name: name})
		p = &g.people[len(g.people)-1]
	}
	p.Enrolled = now.UTC().Truncate(time.Second)
	return nil
}

// Resembles returns the name of another enrolled person whom most of the faces look like, or "". The error comes from
// [online.Learner.Judge].
func (g *Gallery) Resembles(name string, faces [][]float32) (string, error) {
	likeness, err := g.likeness(faces)
	return most(likeness, name, len(faces)), err
}

// most returns the person other than name who has more than half of all n, or "".
func most(likeness map[string]int, name string, n int) string {
	for other, k := range likeness {
		if other != name && 2*k > n {
			return other
		}
	}
	return ""
}

// onePerson reports whether each face is near another of the faces.
func (g *Gallery) onePerson(faces [][]float32) bool {
	space := g.Space()
	if space.GenuineRadius == 0 {
		return true
	}
	d := graph.Distances(faces, space.Scale)
	for i := range faces {
		alone := len(faces) > 1
		for j := range faces {
			alone = alone && (i == j || d.At(i, j) > space.GenuineRadius)
		}
		if alone {
			return false
		}
	}
	return true
}

// likeness counts the names as which the faces are recognised.
func (g *Gallery) likeness(faces [][]float32) (map[string]int, error) {
	n := make(map[string]int)
	for _, x := range faces {
		v, err := g.learner.Judge(x)
		if err != nil {
			return nil, err
		}
		if v.Label != "" {
			n[v.Label]++
		}
	}
	return n, nil
}

// Difference compares labels before and after a change. Added has the labels that are new, and removed the labels that
// are gone, each in the order of their numbers.
func Difference[L any](before, after map[int64]L) (added, removed []L) {
	without := func(some, others map[int64]L) (all []L) {
		for _, id := range slices.Sorted(maps.Keys(some)) {
			if _, there := others[id]; !there {
				all = append(all, some[id])
			}
		}
		return all
	}
	return without(after, before), without(before, after)
}

// Attempt calls do. If do fails, Attempt restores the gallery and returns the error of do.
func (g *Gallery) Attempt(do func() error) error {
	before, err := g.learner.MarshalBinary()
	if err != nil {
		return err
	}
	people, numbers, erased, labels := g.People(), maps.Clone(g.numbers), maps.Clone(g.erased), maps.Clone(g.labels)
	if err := do(); err != nil {
		g.people, g.numbers, g.erased, g.labels = people, numbers, erased, labels
		// the snapshot was made a moment ago by the same code
		return errors.Join(err, g.learner.UnmarshalBinary(before))
	}
	return nil
}

// Forget forgets a person and the faces that were learned through this person, and with the next save the records
// about this person. The error wraps [online.ErrUnknown].
func (g *Gallery) Forget(name string) error {
	if err := g.learner.Forget(name); err != nil {
		return err
	}
	g.people = slices.DeleteFunc(g.people, func(p Person) bool { return p.Name == name })
	g.Erase(name)
	return nil
}

// Erase removes, with the next save, the records about a person who has no labelled faces any more: for example because
// the learner has forgotten them.
func (g *Gallery) Erase(name string) {
	if g.learner.Knows(name) {
		return
	}
	id := g.numbers[name]
	for other, e := range g.database.people {
		if id == 0 && e.name == name {
			id = other
		}
	}
	delete(g.numbers, name)
	if id != 0 {
		if g.erased == nil {
			g.erased = make(map[int64]bool)
		}
		g.erased[id] = true
	}
}

// Rename gives a person a new name. The error comes from [online.Learner.Rename].
func (g *Gallery) Rename(from, to string) error {
	g.settle()
	if err := g.learner.Rename(from, to); err != nil {
		return err
	}
	g.person(from).Name = to
	if id, there := g.numbers[from]; there {
		delete(g.numbers, from)
		g.numbers[to] = id
	}
	return nil
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
// (docs/results.md, "Morphs"). Enrol such a face before a camera. The error wraps [online.ErrUnknown].
func (g *Gallery) Unconfirmed(name string) ([]Offered, error) {
	l := g.learner
	if !l.Knows(name) {
		return nil, fmt.Errorf("%w: %s", online.ErrUnknown, name)
	}
	stored, err := l.Stored("") // without margins, which take two solutions on the whole graph
	if err != nil {
		return nil, err
	}
	measured := g.Space().Stills.Measured()
	stored = slices.DeleteFunc(stored, func(s online.Stored) bool {
		return s.Labelled || s.Name != name || s.Frontal && measured
	})
	slices.SortStableFunc(stored, func(a, b online.Stored) int { return cmp.Compare(b.Points, a.Points) })
	var far []Offered
	for _, s := range stored {
		nearest, err := l.Nearest(s.Vector, name)
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
// [Gallery.Label]. On error g is unchanged.
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
	return g.Label(name, faces, now)
}
