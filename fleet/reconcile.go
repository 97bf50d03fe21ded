// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/online"
)

// Reconciling says how [Device.Reconcile] works. The zero value of each field stands for its default.
type Reconciling struct {
	Gallery string // a name for the gallery, where a device has several. Default "gallery"
	// Publish makes what only the gallery has the fleet's: people, faces, denied faces and names that its program gave.
	// Without it they stay in this gallery alone, but for names, which the fleet decides.
	Publish bool
	// Forgetting is told of somebody who was forgotten in the fleet, before the gallery is: by the name and with the
	// faces that it still has. It must not call the device. May be nil.
	Forgetting func(name string)
}

// Reconciled says what [Device.Reconcile] did.
type Reconciled struct {
	Changed   bool     // the gallery has changed, and is to be saved
	Took      int      // changes of the gallery that came from the fleet
	Published int      // changes of the gallery that were said to the fleet
	Refused   []string // sentences about what could not be taken
	// Renamed are the people of the gallery who have another name now, as the fleet has it, or are one with another.
	Renamed []Renaming
	// Forgotten are the people who were forgotten in the fleet, by the names that they had in the gallery, until Done is
	// called. Somebody else may have such a name now.
	Forgotten []string
	People    map[string]ledger.ID // people of the gallery that the fleet knows
	// Lessons are what other devices learned of people of the gallery, by device.
	Lessons map[string][]Taught

	d    *Device
	path string
	next common
}

// Taught is what another device learned of a person of a gallery.
type Taught struct {
	Name   string
	Lesson ledger.Lesson
}

// common is what a gallery and the fleet had in common when they were last reconciled.
type common struct {
	People map[ledger.ID]sharedPerson `json:"people"`
	// Forgotten are faces of people who are forgotten: an old gallery has them.
	Forgotten []ledger.FaceID `json:"forgotten,omitempty"`
}

type sharedPerson struct {
	Name   string          `json:"name"`           // in the gallery
	Next   string          `json:"next,omitempty"` // a name that the gallery has if it was saved since
	Faces  []ledger.FaceID `json:"faces,omitempty"`
	Denied []ledger.FaceID `json:"denied,omitempty"`
}

var commonKind = safefile.Kind{Magic: "faceauth fleet gallery", Version: 1}

func readCommon(path string) (common, error) {
	body, err := safefile.ReadSealed(path, commonKind)
	if errors.Is(err, fs.ErrNotExist) {
		return common{People: make(map[ledger.ID]sharedPerson)}, nil
	}
	var c common
	if err == nil {
		err = json.Unmarshal(body, &c)
	}
	if err == nil && c.People == nil {
		err = errors.New("it lists no people")
	}
	if err != nil {
		return c, fmt.Errorf("%w: %s: %w; move it away, and the gallery's people are matched by their faces",
			ErrDamaged, path, err)
	}
	return c, nil
}

func (c common) write(path string) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := safefile.WriteSealed(path, commonKind, body); err != nil {
		return fmt.Errorf("keeping what a gallery and the fleet have in common: %w", err)
	}
	return nil
}

// Done notes that the gallery was saved as it was reconciled. Without it nothing is lost: the next Reconcile finds the
// same.
func (r *Reconciled) Done() error {
	if r.d == nil {
		return nil
	}
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	return r.next.write(r.path)
}

// Keep reconciles the gallery at path, which is made where there is none, and saves it. Where another program saves it
// at the same time, it begins anew. The error is that of [gallery.Open], [gallery.Gallery.Save] or [Device.Reconcile].
func (d *Device) Keep(path string, space face.Space, s online.Settings, how Reconciling) (r Reconciled, err error) {
	for range mostTries {
		if r, err = d.keep(path, space, s, how); !errors.Is(err, gallery.ErrChanged) {
			return r, err
		}
	}
	return r, err
}

// mostTries is how often [Device.Keep] tries to save a gallery that other programs save all the time.
const mostTries = 10

func (d *Device) keep(path string, space face.Space, s online.Settings, how Reconciling) (r Reconciled, err error) {
	g, err := gallery.Open(path, space)
	if errors.Is(err, fs.ErrNotExist) {
		g, err = gallery.New(space, s)
	}
	if err != nil {
		return r, err
	}
	if r, err = d.Reconcile(g, how); err != nil {
		return r, err
	}
	if r.Changed {
		if err := g.Save(path); err != nil {
			return r, err
		}
	}
	return r, r.Done()
}

// reconciling is one run of Reconcile.
type reconciling struct {
	*Reconciled
	*shelf
	d      *Device
	how    Reconciling
	had    common
	all    []ledger.Person
	at     map[ledger.ID]string // names in the gallery now of people of the fleet
	begun  map[ledger.ID]string // the same, of those who were shared, before anything was changed
	owners map[string]ledger.ID // the same the other way
}

// Reconcile brings a gallery in line with what the fleet knows, and with Publish the fleet with what the gallery's own
// program did. Save the gallery where it has changed, and call [Reconciled.Done]; [Device.Keep] does all of it.
//
// A person of the gallery is one of the fleet who was that when they were last reconciled, who has a face of the same
// vector, or who has the same name and looks alike. Faces, denied faces and names that the gallery has alone are new in
// it; those that it had in common with the fleet, and the fleet has no more, were taken back there and go. Nothing that
// is missing in a gallery is taken back in the fleet, as the gallery may be an old copy: use [Device.Forget] and
// [Device.Retract].
//
// The gallery is as it was, or partly changed and not to be saved, where there is an error. It wraps [ErrDamaged], or
// is that of the disk or the learner.
func (d *Device) Reconcile(g *gallery.Gallery, how Reconciling) (Reconciled, error) {
	if how.Gallery == "" {
		how.Gallery = "gallery"
	}
	r := Reconciled{
		d: d, next: common{People: make(map[ledger.ID]sharedPerson)},
		People: make(map[string]ledger.ID), Lessons: make(map[string][]Taught),
	}
	path, err := d.galleryPath(how.Gallery)
	if err != nil {
		return r, err
	}
	r.path = path
	d.mu.Lock()
	defer d.mu.Unlock()
	had, err := readCommon(path)
	if err != nil {
		return r, err
	}
	x := &reconciling{
		Reconciled: &r, shelf: newShelf(g), d: d, how: how, had: had,
		at: make(map[ledger.ID]string), owners: make(map[string]ledger.ID), begun: make(map[ledger.ID]string),
	}
	if err := x.run(); err != nil {
		return r, fmt.Errorf("reconciling a gallery with the fleet: %w", err)
	}
	r.Changed = r.Took > 0 || len(r.Forgotten) > 0
	if !r.Changed {
		return r, r.next.write(path)
	}
	// Names that the gallery is about to have, in case that it is saved and this program ends before Done.
	for id, p := range r.next.People {
		if old, ok := had.People[id]; ok && old.Name != p.Name {
			old.Next = p.Name
			had.People[id] = old
		}
	}
	had.Forgotten = r.next.Forgotten
	return r, had.write(path)
}

func (x *reconciling) run() error {
	x.all = x.d.now().People(x.d.ring)
	if err := x.d.damage(); err != nil {
		return err
	}
	if err := x.match(); err != nil {
		return err
	}
	if err := x.names(); err != nil {
		return err
	}
	for i := range x.all {
		if err := x.person(&x.all[i]); err != nil {
			return err
		}
	}
	if x.how.Publish {
		if err := x.publish(); err != nil {
			return err
		}
	}
	for _, p := range x.all {
		name, ok := x.at[p.ID]
		if !ok {
			continue
		}
		x.People[name] = p.ID
		for _, id := range p.IDs {
			if was := x.begun[id]; was != "" && was != name {
				x.renamed(was, name, id, p.IDs)
			}
		}
		for _, lesson := range p.Lessons {
			if lesson.Device != x.d.id && lesson.Space == x.space.ID {
				x.Lessons[lesson.Device] = append(x.Lessons[lesson.Device], Taught{name, lesson.Lesson})
			}
		}
	}
	return nil
}

// renamed notes another name of a person of the gallery, who is one with others, once: the gallery's program may have
// merged them, too, the other way round.
func (x *reconciling) renamed(from, to string, id ledger.ID, group []ledger.ID) {
	by, merged := x.d.now().MergedBy(id)
	for _, other := range group {
		if !merged && x.had.People[other].Name == from {
			by, merged = x.d.now().MergedBy(other)
		}
	}
	i := slices.IndexFunc(x.Renamed, func(r Renaming) bool { return r.From == from && r.To == to })
	if i < 0 {
		x.Renamed = append(x.Renamed, Renaming{from, to, by})
	} else if x.Renamed[i].Merge == (ledger.Ref{}) {
		x.Renamed[i].Merge = by
	}
}

func (x *reconciling) refuse(format string, args ...any) {
	x.Refused = append(x.Refused, fmt.Sprintf(format, args...))
}

// usable returns the faces of a person that this gallery can have.
func (x *reconciling) usable(p *ledger.Person, faces []ledger.PersonFace, what string) (all []ledger.PersonFace) {
	other, bad := 0, error(nil)
	space := ""
	for _, f := range faces {
		if f.Space != x.space.ID {
			other++
			space = f.Space
		} else if err := x.space.Check(f.Vector); err != nil {
			bad = err
		} else {
			all = append(all, f)
		}
	}
	if other > 0 {
		x.refuse("%s: %d of %d %s faces are not taken: %s", p.Shown, other, len(faces), what, x.space.Mismatch(space))
	}
	if bad != nil {
		x.refuse("%s: a %s face is not taken: %v", p.Shown, what, bad)
	}
	return all
}

// person brings one person of the fleet in line.
func (x *reconciling) person(p *ledger.Person) error {
	name, known := x.at[p.ID]
	if p.Shown == "" && len(p.Faces) == 0 && p.Sealed > 0 {
		if known { // its keys are not there any more, or not yet: it stays as it is
			x.next.People[p.ID] = x.had.People[p.ID]
		}
		return nil
	}
	var have *shelved
	if known {
		have = x.people[name]
	}
	h := x.had.People[p.ID]
	if have == nil {
		h = sharedPerson{}
	}
	if x.how.Publish && have != nil {
		if err := x.publishFaces(p.ID, p, have, h); err != nil {
			return err
		}
	}
	want := x.usable(p, p.Faces, "labelled")
	if len(want) == 0 && (have == nil || !x.keeps(p, have, h)) {
		if have != nil {
			x.Took++
			delete(x.at, p.ID)
			delete(x.owners, name)
			return x.remove(name)
		}
		return nil
	}
	if have == nil {
		shown := p.Shown
		if shown == "" {
			return nil // its name has not come yet
		}
		if err := online.CheckName(shown); err != nil {
			x.refuse("a person of the fleet is not taken: %v", err)
			return nil
		}
		name = x.free(shown, nil)
		x.people[name] = newShelved()
		have = x.people[name]
		x.own(p.ID, name)
	}
	if err := x.faces(p, name, want, have, h); err != nil {
		return err
	}
	return x.denied(p, name, have, h)
}

// keeps reports whether the gallery has faces of a person that the fleet never had.
func (x *reconciling) keeps(p *ledger.Person, have *shelved, h sharedPerson) bool {
	for id := range have.faces {
		if !slices.Contains(h.Faces, id) && !slices.Contains(p.Gone, id) {
			return true
		}
	}
	return false
}

// faces labels the faces that are missing, and takes back those that were taken back.
func (x *reconciling) faces(
	p *ledger.Person, name string, want []ledger.PersonFace, have *shelved, h sharedPerson,
) error {
	wanted := make(map[ledger.FaceID]bool, len(want))
	var missing [][]float32
	shared := sharedPerson{Name: name}
	for _, f := range want {
		wanted[f.ID] = true
		shared.Faces = append(shared.Faces, f.ID)
		if _, ok := have.faces[f.ID]; !ok {
			missing = append(missing, slices.Clone(f.Vector))
		}
	}
	if len(missing) > 0 {
		when := p.Enrolled
		if when.IsZero() {
			when = time.Unix(0, 0)
		}
		// They were taken for one person where they were enrolled.
		how := gallery.Enrolment{Add: x.g.Learner().Knows(name), Force: true}
		if _, err := x.g.Enroll(name, missing, when, how); err != nil {
			return err
		}
		x.Took += len(missing)
	}
	var drop []int64
	for id, label := range have.faces {
		if !wanted[id] && (slices.Contains(h.Faces, id) || slices.Contains(p.Gone, id)) {
			drop = append(drop, have.labels(label)...)
		}
	}
	if len(drop) > 0 {
		slices.Sort(drop)
		x.g.Learner().Retract(drop...)
		x.Took += len(drop)
	}
	x.next.People[p.ID] = shared
	return nil
}

// denied rejects the faces that were denied, and does no longer reject those that are not any more.
func (x *reconciling) denied(p *ledger.Person, name string, have *shelved, h sharedPerson) error {
	l := x.g.Learner()
	shared := x.next.People[p.ID]
	wanted := make(map[ledger.FaceID]bool)
	var refused []ledger.PersonFace
	for _, f := range x.usable(p, p.Denied, "denied") {
		wanted[f.ID] = true
		shared.Denied = append(shared.Denied, f.ID)
		_, there := have.denied[f.ID]
		// The learner keeps the newest: one that it had and has not any more had to give way.
		if !there && !slices.Contains(h.Denied, f.ID) {
			refused = append(refused, f)
		}
	}
	for id, label := range have.denied {
		if !wanted[id] && slices.Contains(h.Denied, id) {
			for _, label := range have.labels(label) {
				if _, err := l.Unlabel(label); err != nil && !errors.Is(err, online.ErrUnknown) {
					return err
				}
				x.Took++
			}
		}
	}
	for _, f := range refused {
		if err := l.Reject(slices.Clone(f.Vector), name); err != nil {
			return err
		}
		x.Took++
	}
	x.next.People[p.ID] = shared
	return nil
}
