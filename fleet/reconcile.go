// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/online"
)

// Reconciling says how [Device.Reconcile] works. The zero value of each field stands for its default.
type Reconciling struct {
	Gallery string // a name for the gallery, where a device has several. Default "gallery"
	// Publish makes what only the gallery has the fleet's: people, faces, denied faces and names that its program gave.
	// Without it they stay in this gallery alone, but for names, which the fleet decides.
	Publish bool
}

// Reconciled says what [Device.Reconcile] did.
type Reconciled struct {
	Changed   bool                 // the gallery has changed, and is to be saved
	Took      int                  // changes of the gallery that came from the fleet
	Published int                  // changes of the gallery that were said to the fleet
	Refused   []string             // sentences about what could not be taken
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
	People    map[ledger.ID]sharedPerson `json:"people"`
	Forgotten []ledger.FaceID            `json:"forgotten,omitempty"` // of people who are forgotten: an old gallery has them
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
		return c, fmt.Errorf("%w: %s: %w; move it away, and the gallery's people are matched by their faces", ErrDamaged, path, err)
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

// shelf is a gallery as Reconcile sees it.
type shelf struct {
	g      *gallery.Gallery
	space  face.Space
	people map[string]*shelved
}

// shelved is a person of a gallery: the numbers of labels by those of faces.
type shelved struct {
	faces, denied map[ledger.FaceID]int64
}

func newShelf(g *gallery.Gallery) *shelf {
	s := &shelf{g: g, space: g.Space(), people: make(map[string]*shelved)}
	l := g.Learner()
	for _, name := range l.Names() {
		s.people[name] = &shelved{make(map[ledger.FaceID]int64), make(map[ledger.FaceID]int64)}
	}
	for _, label := range l.Labels() {
		p := s.people[label.Name]
		if p == nil {
			continue
		}
		id := ledger.NewFaceID(s.space.ID, l.Vector(label.ID))
		if label.Negative {
			p.denied[id] = label.ID
		} else {
			p.faces[id] = label.ID
		}
	}
	return s
}

// free returns the name, or the same with a number after it that nobody in the gallery has, and that nobody is to get.
func (s *shelf) free(name string, taken map[string]bool) string {
	free := name
	for i := 2; s.people[free] != nil || taken[free]; i++ {
		short := []rune(name)
		free = fmt.Sprintf("%s (%d)", string(short[:min(len(short), 90)]), i)
	}
	return free
}

func (s *shelf) rename(from, to string) error {
	if err := s.g.Rename(from, to); err != nil {
		return err
	}
	s.people[to] = s.people[from]
	delete(s.people, from)
	return nil
}

func (s *shelf) remove(name string) error {
	delete(s.people, name)
	return s.g.Remove(name)
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
// The gallery is as it was, or partly changed and not to be saved, where there is an error. It wraps [ErrDamaged], or is
// that of the disk or the learner.
func (d *Device) Reconcile(g *gallery.Gallery, how Reconciling) (Reconciled, error) {
	if how.Gallery == "" {
		how.Gallery = "gallery"
	}
	r := Reconciled{d: d, next: common{People: make(map[ledger.ID]sharedPerson)}, People: make(map[string]ledger.ID), Lessons: make(map[string][]Taught)}
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
		at: make(map[ledger.ID]string), owners: make(map[string]ledger.ID),
	}
	if err := x.run(); err != nil {
		return r, fmt.Errorf("reconciling a gallery with the fleet: %w", err)
	}
	r.Changed = r.Took > 0
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
		for _, lesson := range p.Lessons {
			if lesson.Device != x.d.id && lesson.Space == x.space.ID {
				x.Lessons[lesson.Device] = append(x.Lessons[lesson.Device], Taught{name, lesson.Lesson})
			}
		}
	}
	return nil
}

func (x *reconciling) own(id ledger.ID, name string) {
	x.at[id], x.owners[name] = name, id
}

// match finds out who in the gallery is who in the fleet, and removes whom the fleet has no more.
func (x *reconciling) match() error {
	var gone []string
	x.next.Forgotten = slices.Clone(x.had.Forgotten)
	for _, id := range slices.SortedFunc(maps.Keys(x.had.People), func(a, b ledger.ID) int { return slices.Compare(a[:], b[:]) }) {
		h := x.had.People[id]
		if x.d.now().Forgotten(id) {
			x.next.Forgotten = append(x.next.Forgotten, h.Faces...)
		}
		name, renamed := x.find(h)
		if name == "" {
			continue
		}
		i := slices.IndexFunc(x.all, func(p ledger.Person) bool { return slices.Contains(p.IDs, id) })
		switch {
		case i < 0:
			gone = append(gone, name) // forgotten, or all was undone
		case x.all[i].ID != id && x.alone(x.all[i].ID):
			x.own(x.all[i].ID, name) // it was merged into somebody who is not in the gallery
		case x.all[i].ID != id:
			// It was merged: the faces are the other's now.
			if err := x.publishFaces(x.all[i].ID, &x.all[i], x.people[name], h); err != nil {
				return err
			}
			gone = append(gone, name)
		default:
			if p := &x.all[i]; renamed && x.how.Publish && name != p.Shown && !x.given(p, name) {
				if _, err := x.say(p.ID, ledger.Name, ledger.Naming{Name: name}); err != nil {
					x.refuse("%s is called so in this gallery alone: %v", name, err)
				} else {
					p.Name, p.Shown = name, name
				}
			}
			x.own(id, name)
		}
	}
	// Faces of the forgotten are only in an old gallery.
	forgotten := make(map[ledger.FaceID]bool, len(x.next.Forgotten))
	for _, id := range x.next.Forgotten {
		forgotten[id] = true
	}
	for name, p := range x.people {
		if _, owned := x.owners[name]; owned || len(p.faces) == 0 || slices.Contains(gone, name) {
			continue
		}
		old := 0
		for id := range p.faces {
			if forgotten[id] {
				old++
			}
		}
		if old == len(p.faces) {
			gone = append(gone, name)
		}
	}
	for _, name := range gone {
		if _, other := x.owners[name]; other || x.people[name] == nil {
			continue
		}
		if err := x.remove(name); err != nil {
			return err
		}
		x.Took++
	}
	// Others by their faces, and at last by name and likeness.
	with := make(map[ledger.FaceID]string)
	for name, p := range x.people {
		if _, owned := x.owners[name]; !owned {
			for id := range p.faces {
				with[id] = name
			}
		}
	}
	for _, alike := range []bool{false, true} {
		for i := range x.all {
			p := &x.all[i]
			if _, known := x.at[p.ID]; known {
				continue
			}
			for _, f := range p.Faces {
				name := with[f.ID]
				if alike && x.alike(p.Name, f) {
					name = p.Name
				}
				if _, owned := x.owners[name]; name != "" && x.people[name] != nil && !owned {
					x.own(p.ID, name)
					break
				}
			}
		}
	}
	return nil
}

// given reports whether a person had a name in the fleet once: a gallery with it is an old one.
func (x *reconciling) given(p *ledger.Person, name string) bool {
	return slices.ContainsFunc(p.Names, func(n string) bool { return n == name || x.derived(name, n) })
}

// alone reports whether the gallery has nobody yet who was reconciled with a person of the fleet.
func (x *reconciling) alone(id ledger.ID) bool {
	if _, known := x.at[id]; known {
		return false
	}
	h, shared := x.had.People[id]
	if !shared {
		return true
	}
	name, _ := x.find(h)
	return name == ""
}

// find returns the name that the gallery has now for somebody, or "", and whether its program gave another one.
func (x *reconciling) find(h sharedPerson) (name string, renamed bool) {
	for _, name := range []string{h.Name, h.Next} {
		if p := x.people[name]; name != "" && p != nil {
			if _, owned := x.owners[name]; !owned && x.shares(p, h) > 0 {
				return name, false
			}
		}
	}
	most := 0
	for _, other := range slices.Sorted(maps.Keys(x.people)) {
		if _, owned := x.owners[other]; owned {
			continue
		}
		if n := x.shares(x.people[other], h); n > most && 2*n > len(h.Faces) {
			name, most = other, n
		}
	}
	return name, name != ""
}

// shares returns how many of the faces that were shared a person of the gallery has. A person without one is another.
func (x *reconciling) shares(p *shelved, h sharedPerson) (n int) {
	for _, id := range h.Faces {
		if _, ok := p.faces[id]; ok {
			n++
		}
	}
	return n
}

// alike reports whether somebody in the gallery has that name and looks like a face.
func (x *reconciling) alike(name string, f ledger.PersonFace) bool {
	if x.people[name] == nil || x.space.GenuineRadius == 0 || f.Space != x.space.ID || x.space.Check(f.Vector) != nil {
		return false
	}
	for _, id := range x.people[name].faces {
		if graph.Distance(x.g.Learner().Vector(id), f.Vector, x.space.Scale) <= x.space.GenuineRadius {
			return true
		}
	}
	return false
}

// names gives people in the gallery the names that the fleet shows, where nobody else there has them.
func (x *reconciling) names() error {
	want := make(map[string]string) // by the name now
	taken := make(map[string]bool)
	for _, p := range x.all {
		now, ok := x.at[p.ID]
		if !ok || p.Shown == "" || online.CheckName(p.Shown) != nil {
			continue
		}
		name := p.Shown
		if _, owned := x.owners[name]; x.people[name] != nil && !owned || taken[name] {
			// Somebody has it whom the fleet does not know.
			if name = now; taken[now] || !x.derived(now, p.Shown) {
				name = x.free(p.Shown, taken)
			}
		}
		taken[name] = true
		if name != now {
			want[now] = name
		}
	}
	for len(want) > 0 {
		moved := false
		for _, from := range slices.Sorted(maps.Keys(want)) {
			to := want[from]
			if x.people[to] != nil {
				continue
			}
			if err := x.move(from, to); err != nil {
				return err
			}
			delete(want, from)
			moved = true
		}
		if moved {
			continue
		}
		// They go round in a circle: one of them makes room.
		from := slices.Min(slices.Collect(maps.Keys(want)))
		temp := x.free("renamed", taken)
		if err := x.move(from, temp); err != nil {
			return err
		}
		want[temp] = want[from]
		delete(want, from)
	}
	return nil
}

// derived reports whether a name is another one with a number after it.
func (x *reconciling) derived(name, from string) bool {
	var n int
	short := []rune(from)
	_, err := fmt.Sscanf(name, string(short[:min(len(short), 90)])+" (%d)", &n)
	return err == nil
}

func (x *reconciling) move(from, to string) error {
	if err := x.rename(from, to); err != nil {
		return err
	}
	id := x.owners[from]
	delete(x.owners, from)
	x.own(id, to)
	x.Took++
	return nil
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
		x.people[name] = &shelved{make(map[ledger.FaceID]int64), make(map[ledger.FaceID]int64)}
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
func (x *reconciling) faces(p *ledger.Person, name string, want []ledger.PersonFace, have *shelved, h sharedPerson) error {
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
			drop = append(drop, label)
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
			if _, err := l.Unlabel(label); err != nil && !errors.Is(err, online.ErrUnknown) {
				return err
			}
			x.Took++
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

// say says something of a person of the fleet.
func (x *reconciling) say(id ledger.ID, kind ledger.Kind, contents ...any) (n int, err error) {
	if id, err = x.d.may(id); err != nil {
		return 0, err
	}
	var all []statement
	for _, c := range contents {
		all = append(all, statement{ledger.Entry{Kind: kind, Person: id}, c})
	}
	if _, err := x.d.say(all...); err != nil {
		return 0, err
	}
	x.Published += len(all)
	return len(all), nil
}

// vectors returns labelled faces of the gallery that are none of some.
func (x *reconciling) vectors(labels map[ledger.FaceID]int64, but ...[]ledger.FaceID) (all []ledger.Face, ids []ledger.FaceID) {
	for id := range labels {
		if !slices.ContainsFunc(but, func(some []ledger.FaceID) bool { return slices.Contains(some, id) }) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b ledger.FaceID) int { return int(labels[a] - labels[b]) }) // as they were labelled
	for _, id := range ids {
		all = append(all, ledger.Face{Vector: slices.Clone(x.g.Learner().Vector(labels[id]))})
	}
	return all, ids
}

func faceIDs(faces []ledger.PersonFace) (ids []ledger.FaceID) {
	for _, f := range faces {
		ids = append(ids, f.ID)
	}
	return ids
}

// publishFaces says what the gallery's program labelled and denied of somebody whom the fleet knows.
func (x *reconciling) publishFaces(id ledger.ID, p *ledger.Person, have *shelved, h sharedPerson) error {
	if !x.how.Publish || have == nil {
		return nil
	}
	for _, kind := range []ledger.Kind{ledger.Label, ledger.Deny} {
		// What the fleet has taken back may come from an old gallery: it is said again by the methods of Device only.
		labels, known, shared, against := have.faces, &p.Faces, h.Faces, p.Gone
		if kind == ledger.Deny {
			labels, known, shared, against = have.denied, &p.Denied, h.Denied, slices.Clone(p.Allowed)
			for _, f := range p.Faces {
				if !slices.Contains(h.Faces, f.ID) { // labelled in the fleet since
					against = append(against, f.ID)
				}
			}
		}
		faces, ids := x.vectors(labels, faceIDs(*known), shared, against)
		if len(faces) == 0 {
			continue
		}
		all, err := x.d.faces(kind, id, x.space.ID, faces)
		if err != nil {
			return err
		}
		var contents []any
		for _, s := range all {
			contents = append(contents, s.content)
		}
		if _, err := x.say(id, kind, contents...); err != nil {
			if errors.Is(err, ledger.ErrScope) || errors.Is(err, ledger.ErrRevoked) {
				x.refuse("%d new faces of %s stay in this gallery: %v", len(faces), p.Shown, err)
				continue
			}
			return err
		}
		said := func(f ledger.PersonFace) bool { return slices.Contains(ids, f.ID) }
		if kind == ledger.Deny {
			p.Faces = slices.DeleteFunc(p.Faces, said)
		} else {
			p.Denied = slices.DeleteFunc(p.Denied, said)
		}
		for i, f := range faces {
			*known = append(*known, ledger.PersonFace{ID: ids[i], Space: x.space.ID, Face: f})
		}
	}
	return nil
}

// publish has the fleet know whom only the gallery knows.
func (x *reconciling) publish() error {
	gone := make(map[ledger.FaceID]bool)
	for _, p := range x.all {
		for _, id := range p.Gone {
			gone[id] = true
		}
	}
	for _, name := range x.g.Learner().Names() {
		if _, owned := x.owners[name]; owned || x.people[name] == nil {
			continue
		}
		have := x.people[name]
		faces, ids := x.vectors(have.faces)
		if len(faces) == 0 {
			continue
		}
		if !slices.ContainsFunc(ids, func(id ledger.FaceID) bool { return !gone[id] }) {
			x.refuse("%s stays in this gallery: all of these faces were taken back in the fleet; enrol %s again with others", name, name)
			continue
		}
		id := ledger.NewID()
		all := []statement{{ledger.Entry{Kind: ledger.Name, Person: id}, ledger.Naming{Name: name}}}
		more, err := x.d.faces(ledger.Label, id, x.space.ID, faces)
		if err != nil {
			return err
		}
		all = append(all, more...)
		shared := sharedPerson{Name: name, Faces: ids}
		if denied, not := x.vectors(have.denied); len(denied) > 0 {
			more, err := x.d.faces(ledger.Deny, id, x.space.ID, denied)
			if err != nil {
				return err
			}
			all, shared.Denied = append(all, more...), not
		}
		if _, err := x.d.say(all...); err != nil {
			if errors.Is(err, ledger.ErrRevoked) {
				x.refuse("%s stays in this gallery: %v", name, err)
				continue
			}
			return err
		}
		x.Published += len(all)
		x.own(id, name)
		x.People[name], x.next.People[id] = id, shared
	}
	return nil
}
