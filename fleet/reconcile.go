// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// Reconciling holds the settings of [Device.Reconcile]. A zero field means the default.
type Reconciling struct {
	Gallery string // name of this gallery on this device. Default "gallery"
	// Publish adds to the fleet the people, faces, denied faces and names that only the gallery has. Without it they
	// stay in this gallery alone, except names: the fleet decides those.
	Publish bool
	// Forgetting is called before the gallery removes a person whom the fleet has forgotten. The gallery still has the
	// name and its faces then. It must not call the device. May be nil.
	Forgetting func(name string)
	// Most is the time after which this call takes no further person: to label ten thousand takes a minute. One is
	// always taken. Default: no limit.
	Most time.Duration
}

// Reconciled is the result of [Device.Reconcile].
type Reconciled struct {
	Changed   bool     // the gallery has changed and must be saved
	More      bool     // people are left for the next call: [Reconciling].Most
	Took      int      // number of changes that the fleet made in the gallery
	Published int      // number of changes that the gallery made in the fleet
	Refused   []string // a sentence for each person or face that was not taken
	// Renamed lists the people of the gallery who have a new name from the fleet, or who were merged with another
	// person.
	Renamed []Renaming
	// Forgotten lists the people whom the fleet has forgotten, by their names in the gallery, until Done is called.
	// Another person may have such a name now.
	Forgotten []string
	People    map[string]ID // the people of the gallery whom the fleet knows, by name
	// Lessons holds the lessons of other devices about people of the gallery, by source ([Device.Source]).
	Lessons map[string][]online.Lesson

	d        *Device
	met      *meeting
	next     common
	loaded   map[ID]bool   // people whose faces were read
	seen     map[ID]glance // nil: the next time must look at everybody
	outdated []string      // sources that helped the gallery's learner, and whose lessons were withdrawn
}

// Done records that the reconciled gallery was saved. Without this record nothing is lost: the next Reconcile finds the
// same changes.
func (r *Reconciled) Done() error {
	if r.d == nil {
		return nil
	}
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	return r.done()
}

func (r *Reconciled) done() error {
	err := r.d.keepCommon(r.next)
	if err == nil {
		r.met.seen = r.seen
	}
	return err
}

// Keep reconciles the gallery at path and saves it, while no other program writes it. It makes a missing gallery. The
// errors are those of [OpenGallery] and [Device.KeepOpen].
func (d *Device) Keep(path string, space face.Space, s online.Settings, how Reconciling) (r Reconciled, err error) {
	g, err := OpenGallery(path, space, s)
	if err != nil {
		return r, err
	}
	r, err = d.KeepOpen(g, how)
	return r, errors.Join(err, g.Close())
}

// OpenGallery opens the gallery at path, or returns a new gallery that is written there. The errors are those of
// [gallery.Open].
func OpenGallery(path string, space face.Space, s online.Settings) (*gallery.Gallery, error) {
	g, err := gallery.Open(path, space)
	if errors.Is(err, fs.ErrNotExist) {
		if g, err = gallery.New(space, s); err == nil {
			g.At(path)
		}
	}
	return g, err
}

// KeepOpen reconciles an open gallery and saves it, while no other program writes it. The errors are those of
// [gallery.Gallery.Begin], [gallery.Gallery.Save] and [Device.Reconcile].
func (d *Device) KeepOpen(g *gallery.Gallery, how Reconciling) (Reconciled, error) {
	return saving(g, func() (Reconciled, error) { return d.Reconcile(g, how) })
}

// saving calls exchange and saves the gallery if it has changed, while no other program writes it.
func saving(g *gallery.Gallery, exchange func() (Reconciled, error)) (r Reconciled, err error) {
	if err := g.Begin(); err != nil {
		return r, err
	}
	defer g.End()
	if r, err = exchange(); err != nil || !r.Changed {
		return r, err
	}
	if err := g.Save(g.Path()); err != nil {
		return r, err
	}
	return r, r.Done()
}

// reconciling is one run of Reconcile.
type reconciling struct {
	*Reconciled
	*galleryIndex
	d      *Device
	how    Reconciling
	had    common
	all    []Person
	at     map[ID]string // the present names in the gallery, by the fleet's numbers
	begun  map[ID]string // the names before any change, of the shared people
	owners map[string]ID // the numbers by name: the inverse of at
	// The people with whom the gallery and the fleet shared a face, labelled and denied.
	labelled, denies holders
	was              map[ID]glance   // [meeting].seen
	since            time.Time       // when it began to take people
	told             map[string]bool // devices whose further faces are not taken
}

// holders lists the people who have a face.
type holders map[FaceID][]ID

func (h holders) add(id ID, faces []FaceID) {
	for _, f := range faces {
		h[f] = append(h[f], id)
	}
}

// others reports whether a face is shared, but with none of the numbers of a person. The gallery's program has moved it
// to this person, as it does when it merges two people. Only the methods of Device move a face in the fleet.
func (h holders) others(face FaceID, ids []ID) bool {
	return len(h[face]) > 0 && !slices.ContainsFunc(h[face], func(id ID) bool {
		return slices.Contains(ids, id)
	})
}

// Reconcile brings a gallery in line with the fleet. With Publish it also adds the changes of the gallery's own program
// to the fleet. Save the gallery if Changed is true, and call [Reconciled.Done]; [Device.Keep] does all of this.
//
// A person of the gallery is taken for a person of the fleet in three cases: they matched in the last reconciliation,
// they have a face with the same vector, or they have the same name and look alike. Faces, denied faces and names that
// only the gallery has are new. Those that the gallery and the fleet shared, and that the fleet no longer has, were
// taken back: they are removed from the gallery. Nothing is taken back in the fleet because a gallery lacks it, as the
// gallery may be an old copy: use [Device.Forget] and [Device.Retract].
//
// After an error the gallery may be partly changed: do not save it. The error wraps [ErrDamaged], or comes from the
// disk or the learner.
func (d *Device) Reconcile(g *gallery.Gallery, how Reconciling) (Reconciled, error) {
	r := Reconciled{
		d: d, next: common{gallery: how.Gallery, people: make(map[ID]sharedPerson)},
		seen: make(map[ID]glance), loaded: make(map[ID]bool),
		People: make(map[string]ID), Lessons: make(map[string][]online.Lesson),
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	had, err := d.common(how.Gallery)
	if err != nil {
		return r, err
	}
	r.met = d.meetings[how.Gallery]
	for id, h := range had.people {
		if h.Offered && !d.known(id) && !d.forgotten(id) {
			delete(had.people, id)
		}
	}
	x := &reconciling{
		Reconciled: &r, galleryIndex: newGalleryIndex(g), d: d, how: how, had: had,
		at: make(map[ID]string), owners: make(map[string]ID), begun: make(map[ID]string),
		labelled: make(holders), denies: make(holders), was: r.met.seen, told: make(map[string]bool),
	}
	r.met.seen = nil // until the gallery is saved
	for id, h := range had.people {
		x.labelled.add(id, h.Faces)
		x.denies.add(id, h.Denied)
	}
	if err := x.run(); err != nil {
		return r, fmt.Errorf("reconciling a gallery with the fleet: %w", err)
	}
	if x.removed { // faces that were refused because of it may be welcome now
		r.seen = nil
	}
	r.Changed = r.Took > 0 || len(r.Forgotten) > 0
	if !r.Changed {
		return r, r.done()
	}
	// If the program ends after the gallery is saved and before Done, the next Reconcile finds people by their next
	// names and faces.
	for id, p := range r.next.people {
		old, shared := had.people[id]
		if !shared {
			old.Name = p.Name
		} else if old.Name != p.Name {
			old.Next = p.Name
		}
		for _, f := range p.Faces {
			if !slices.Contains(old.Faces, f) {
				old.Faces = append(slices.Clip(old.Faces), f)
			}
		}
		had.people[id] = old
	}
	had.forgotten = r.next.forgotten
	return r, d.keepCommon(had)
}

func (x *reconciling) run() error {
	x.all = x.d.briefs()
	for _, p := range x.all {
		x.seen[p.ID] = x.d.glance(p)
	}
	if err := x.match(); err != nil {
		return err
	}
	if err := x.names(); err != nil {
		return err
	}
	if x.was == nil {
		x.gather()
	}
	x.since = time.Now()
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
	taught := x.d.taught()
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
		if !slices.ContainsFunc(p.IDs, func(id ID) bool { return taught[id] }) {
			continue
		}
		for _, lesson := range x.d.lessons(p.IDs) {
			if lesson.Device != x.d.id && lesson.Space == x.space.ID && len(lesson.Centroids) > 0 {
				source := x.d.source(lesson.Device)
				lesson.Name = name
				x.Lessons[source] = append(x.Lessons[source], lesson.Lesson)
			}
		}
	}
	for _, source := range x.g.Learner().Through() {
		if x.d.outdated(source) {
			x.outdated = append(x.outdated, source)
		}
	}
	return nil
}

// renamed records the new name of a person of the gallery, once. The person may stand for several numbers: the
// gallery's program may have merged them as well, in the other direction.
func (x *reconciling) renamed(from, to string, id ID, group []ID) {
	by, merged := x.d.mergedBy(id)
	for _, other := range group {
		if !merged && x.had.people[other].Name == from {
			by, merged = x.d.mergedBy(other)
		}
	}
	i := slices.IndexFunc(x.Renamed, func(r Renaming) bool { return r.From == from && r.To == to })
	if i < 0 {
		x.Renamed = append(x.Renamed, Renaming{from, to, by})
	} else if x.Renamed[i].Merge == (Merge{}) {
		x.Renamed[i].Merge = by
	}
}

// load reads the faces of a person.
func (x *reconciling) load(p *Person) {
	if !x.loaded[p.ID] {
		x.loaded[p.ID] = true
		shown := p.Shown
		*p = x.d.person(p.IDs, x.d.heard)
		p.Shown = shown
	}
}

func (x *reconciling) loadAll() {
	for i := range x.all {
		x.load(&x.all[i])
	}
}

// same reports whether a person is in the gallery and in the fleet as after the last time.
func (x *reconciling) same(p *Person, name string, have *galleryPerson) bool {
	h, shared := x.had.people[p.ID]
	if !shared || h.Name != name || !x.was[p.ID].equal(x.seen[p.ID]) {
		return false
	}
	for _, id := range p.IDs[1:] {
		if _, also := x.had.people[id]; also {
			return false
		}
	}
	return have.has(h.Faces, h.Denied)
}

func (x *reconciling) refuse(format string, args ...any) {
	x.Refused = append(x.Refused, fmt.Sprintf(format, args...))
}

// usable returns those faces of a person that this gallery has, or can take. Kind is a word for the messages.
func (x *reconciling) usable(p *Person, faces []PersonFace, kind string, have map[FaceID]int64) (all []PersonFace) {
	other, bad := 0, error(nil)
	space := ""
	for _, f := range faces {
		if f.Space != x.space.ID {
			other++
			space = f.Space
		} else if err := x.space.Check(f.Vector); err != nil {
			bad = err
		} else if _, there := have[f.ID]; there || x.takes(f.device) {
			all = append(all, f)
		}
	}
	if other > 0 {
		x.refuse("%s: %d of %d %s faces are not used: %s", p.Shown, other, len(faces), kind, x.space.Mismatch(space))
	}
	if bad != nil {
		x.refuse("%s: a %s face is not used: %v", p.Shown, kind, bad)
	}
	return all
}

// before returns the faces that the gallery and the fleet shared of a person, under all numbers of the person: the
// gallery's program may have moved them from one number to another. Denied faces are those of the first number.
func (x *reconciling) before(p *Person) sharedPerson {
	h := sharedPerson{Denied: x.had.people[p.ID].Denied}
	for _, id := range p.IDs {
		h.Faces = append(h.Faces, x.had.people[id].Faces...)
	}
	return h
}

// person brings one person of the gallery in line with the fleet.
func (x *reconciling) person(p *Person) error {
	name, known := x.at[p.ID]
	if !known && x.how.Most > 0 && x.Took > 0 && time.Since(x.since) > x.how.Most {
		x.More = true
		return nil
	}
	if have := x.people[name]; known && have != nil && x.same(p, name, have) {
		x.next.people[p.ID] = x.had.people[p.ID]
		return nil
	}
	x.load(p)
	if p.Shown == "" && len(p.Faces) == 0 && p.Sealed > 0 {
		if known { // a key is missing: the person stays as in the gallery
			x.next.people[p.ID] = x.had.people[p.ID]
		}
		return nil
	}
	var have *galleryPerson
	if known {
		have = x.people[name]
	}
	var h sharedPerson
	if have != nil {
		h = x.before(p)
	}
	if x.how.Publish && have != nil {
		if err := x.publishFaces(p.ID, p, have, h); err != nil {
			return err
		}
	}
	var there map[FaceID]int64
	if have != nil {
		there = have.faces
	}
	want := x.usable(p, p.Faces, "labelled", there)
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
			return nil // the key of the name has not come yet
		}
		if err := online.CheckName(shown); err != nil {
			x.refuse("a person of the fleet is not taken: %v", err)
			return nil
		}
		name = x.free(shown, nil)
		x.people[name] = newGalleryPerson()
		have = x.people[name]
		x.own(p.ID, name)
	}
	if err := x.faces(p, name, want, have, h); err != nil {
		return err
	}
	return x.denied(p, name, have, h)
}

// deniedOthers reports whether somebody in the gallery has a denied face.
func (x *reconciling) deniedOthers(face FaceID) bool {
	for _, p := range x.people {
		if _, there := p.denied[face]; there {
			return true
		}
	}
	return false
}

// keeps reports whether the gallery has faces of a person that the fleet never had.
func (x *reconciling) keeps(p *Person, have *galleryPerson, h sharedPerson) bool {
	for id := range have.faces {
		if !slices.Contains(h.Faces, id) && !slices.Contains(p.Gone, id) && !x.labelled.others(id, p.IDs) {
			return true
		}
	}
	return false
}

// faces labels the missing faces in the gallery, and removes the faces that the fleet has taken back.
func (x *reconciling) faces(
	p *Person, name string, want []PersonFace, have *galleryPerson, h sharedPerson,
) error {
	wanted := make(map[FaceID]bool, len(want))
	var missing [][]float32
	var from []string // the devices of the missing faces
	shared := sharedPerson{Name: name}
	for _, f := range want {
		wanted[f.ID] = true
		shared.Faces = append(shared.Faces, f.ID)
		if _, ok := have.faces[f.ID]; !ok {
			missing, from = append(missing, slices.Clone(f.Vector)), append(from, f.device)
		}
	}
	if len(missing) > 0 {
		when := p.Enrolled
		if when.IsZero() {
			when = time.Unix(0, 0)
		}
		if err := x.g.Label(name, missing, when); err != nil {
			return err
		}
		x.Took += len(missing)
		for i, id := range x.g.Learner().Newest(len(missing)) {
			x.crowd(from[i], id)
		}
	}
	var drop []int64
	for id, label := range have.faces {
		if !wanted[id] && (slices.Contains(h.Faces, id) || slices.Contains(p.Gone, id) ||
			x.labelled.others(id, p.IDs)) {
			drop = append(drop, have.labels(label)...)
		}
	}
	if len(drop) > 0 {
		slices.Sort(drop)
		x.g.Learner().Retract(drop...)
		x.Took += len(drop)
		x.removed = true
	}
	x.next.people[p.ID] = shared
	return nil
}

// denied adds the fleet's denied faces to the gallery, and removes those that are no longer denied.
func (x *reconciling) denied(p *Person, name string, have *galleryPerson, h sharedPerson) error {
	l := x.g.Learner()
	shared := x.next.people[p.ID]
	wanted := make(map[FaceID]bool)
	var refused []PersonFace
	for _, f := range x.usable(p, p.Denied, "denied", have.denied) {
		wanted[f.ID] = true
		shared.Denied = append(shared.Denied, f.ID)
		_, there := have.denied[f.ID]
		// The learner keeps only the newest denied faces: a shared face that is missing was dropped for newer ones, or
		// the gallery's program has moved it.
		if !there && (!slices.Contains(h.Denied, f.ID) || x.deniedOthers(f.ID)) {
			refused = append(refused, f)
		}
	}
	for id, label := range have.denied {
		if !wanted[id] && (slices.Contains(h.Denied, id) || x.denies.others(id, p.IDs)) {
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
		x.crowd(f.device, l.Newest(1)[0])
	}
	x.next.people[p.ID] = shared
	return nil
}
