// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/office/unknown"
	"github.com/faceauth/faceauth/sighting"
	"github.com/fxamacker/cbor/v2"
)

// Errors of [Office.Undo].
var (
	ErrNoCorrection = errors.New("this was not said, or too long ago")
	ErrUndone       = errors.New("this was undone before")
	ErrFinal        = errors.New("what was forgotten cannot be brought back")
	ErrLater        = errors.New("somebody else has that name now; rename them first")
)

// CorrectionKind says what a person said.
type CorrectionKind string

// Kinds of corrections.
const (
	Named       CorrectionKind = "named"      // a group of unknown faces, or an unknown sighting, is a person
	Renamed     CorrectionKind = "renamed"    // a person has another name, or is another person
	Merged      CorrectionKind = "merged"     // two groups of unknown faces are one person
	Denied      CorrectionKind = "denied"     // a sighting was not who it was taken for
	Confirmed   CorrectionKind = "confirmed"  // a sighting was who it was taken for
	Ignored     CorrectionKind = "ignored"    // nobody wants to hear of a group
	Noticed     CorrectionKind = "noticed"    // somebody wants to hear of it again
	Split       CorrectionKind = "split"      // some faces of a group are somebody else's
	Unlabelled  CorrectionKind = "unlabelled" // one of two labelled faces that contradict each other is not that person's
	ForgotGroup CorrectionKind = "forgot-group"
	Forgot      CorrectionKind = "forgot"
)

// Correction is an entry of the journal of what a person said.
type Correction struct {
	ID       uint64         `json:"id"`
	At       time.Time      `json:"at"`
	Kind     CorrectionKind `json:"kind"`
	Name     string         `json:"name"`               // whom it says somebody is
	Was      string         `json:"was,omitempty"`      // the name before
	Group    uint64         `json:"group,omitempty"`    // of unknown faces that it is about
	Sighting uint64         `json:"sighting,omitempty"` // that it is about
	Face     uint64         `json:"face,omitempty"`     // a picture, for [Office.Face]
	Undone   bool           `json:"undone"`
	CanUndo  bool           `json:"can_undo"`
}

// statement is what is kept of a correction, but for faces.
type statement struct {
	Kind     CorrectionKind `json:"kind"`
	Name     string         `json:"name,omitempty"`
	Was      string         `json:"was,omitempty"`
	Group    uint64         `json:"group,omitempty"`
	Other    uint64         `json:"other,omitempty"` // group that was merged into it
	Sighting uint64         `json:"sighting,omitempty"`
	Face     uint64         `json:"face,omitempty"`
	Faces    []uint64       `json:"faces,omitempty"` // numbers of the pictures in the proof

	Learned ranges            `json:"learned,omitempty"` // observations that it had the learner make
	Made    uint64            `json:"made,omitempty"`    // group that it made
	Events  map[uint64]string `json:"events,omitempty"`  // names that events had before
	Stays   map[uint64]turned `json:"stays,omitempty"`   // what is held of sightings
	Pure    bool              `json:"pure,omitempty"`    // of a rename: nobody had the new name

	UndoneAt uint64 `json:"undone_at,omitempty"` // turn in which it was undone
	// Settled says that the gallery and the strangers were written after it. A program that is killed leaves at most one
	// statement that is not.
	Settled bool `json:"settled,omitempty"`
}

// opinion is what is held of a sighting.
type opinion struct {
	Known  string         `json:"known,omitempty"`
	Trust  sighting.Trust `json:"trust,omitempty"`
	Denied []string       `json:"denied,omitempty"`
	Wrong  bool           `json:"wrong,omitempty"`
	Group  uint64         `json:"group,omitempty"`
}

// turned is what was held of a sighting before a statement, and what was afterwards.
type turned struct {
	Was opinion `json:"was"`
	Is  opinion `json:"is"` // of one of the past
}

func (s *stay) opinion() opinion { return opinion{s.Known, s.Trust, s.Denied, s.Wrong, s.Group} }

// proof is what a statement did to faces.
type proof struct {
	Added   []label         `cbor:"added"`
	Removed []label         `cbor:"removed"`
	Groups  []unknown.Group `cbor:"groups"` // as they were before
	Faces   []unknown.Face  `cbor:"faces"`  // of the sighting that it is about
}

// label is a labelled face.
type label struct {
	ID       int64     `cbor:"id"` // that it had in the learner
	Name     string    `cbor:"name"`
	Negative bool      `cbor:"negative"`
	Vector   []float32 `cbor:"vector"`
}

// saying is a statement that is being made.
type saying struct {
	statement
	proof
	before map[int64]label
	heads  map[uint64]stay // of sightings of the past that it changes
}

// say begins a statement.
func (w *Office) say(s statement) *saying {
	return &saying{statement: s, before: w.labels(), heads: make(map[uint64]stay)}
}

// labels returns the labelled faces, by their numbers.
func (w *Office) labels() map[int64]label {
	l := w.gallery.Learner()
	all := make(map[int64]label)
	for _, x := range l.Labels() {
		all[x.ID] = label{x.ID, x.Name, x.Negative, slices.Clone(l.Vector(x.ID))}
	}
	return all
}

// holds notes what is held of a sighting before that is changed.
func (q *saying) holds(s *visit) {
	if q.Stays == nil {
		q.Stays = make(map[uint64]turned)
	}
	if _, there := q.Stays[s.id]; !there {
		q.Stays[s.id] = turned{Was: s.opinion()}
	}
}

// done ends a statement: it is written, then what it changed, and then that this is written, too. What cannot be written
// holds until the program ends.
func (w *Office) done(q *saying) error {
	after := w.labels()
	for _, id := range slices.Sorted(maps.Keys(after)) {
		if _, there := q.before[id]; !there {
			q.Added = append(q.Added, after[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(q.before)) {
		if _, there := after[id]; !there {
			q.Removed = append(q.Removed, q.before[id])
		}
	}
	for _, g := range q.Groups {
		for _, f := range g.Album.Faces {
			q.statement.Faces = append(q.statement.Faces, f.ID)
		}
	}
	for _, f := range q.proof.Faces {
		q.statement.Faces = append(q.statement.Faces, f.ID)
	}
	for id, h := range q.heads {
		if x, there := q.Stays[id]; there {
			x.Is = h.opinion()
			q.Stays[id] = x
		}
	}
	w.reserve()
	body, err := encoding.Marshal(q.proof)
	if err != nil {
		return err
	}
	w.turn++
	id := w.turn
	err = w.o.Past.said.Put(id, w.o.Now(), q.statement, body)
	if err != nil {
		err = unsaved(err)
	}
	return errors.Join(err, w.complete(id, q.statement, q.heads))
}

// complete writes what a statement changed, and that this is written.
func (w *Office) complete(id uint64, s statement, heads map[uint64]stay) error {
	err := errors.Join(w.save(), w.rewrite(heads))
	names := make(map[uint64]string)
	for event := range s.Events {
		names[event] = s.Name
	}
	err = errors.Join(err, w.retitle(names))
	if err != nil {
		return err
	}
	return w.settled(id, s)
}

// rewrite changes sightings of the past.
func (w *Office) rewrite(heads map[uint64]stay) error {
	if err := w.o.Past.seen.Change(heads); err != nil {
		return unsaved(err)
	}
	return nil
}

func unsaved(err error) error {
	return fmt.Errorf("this holds until the program ends, and could not be saved: %w", err)
}

// retitle gives events other names.
func (w *Office) retitle(names map[uint64]string) error {
	if w.o.Book == nil {
		for i, e := range w.recent {
			if name, there := names[e.ID]; there {
				w.recent[i].Name = name
			}
		}
		return nil
	}
	if err := w.o.Book.Rename(names); err != nil {
		return unsaved(err)
	}
	return nil
}

// events returns what has happened, as it is shown.
func (w *Office) events() []presence.Event {
	if w.o.Book != nil {
		return w.o.Book.Events(0, math.MaxInt)
	}
	return w.recent
}

// statement returns a correction with its faces.
func (w *Office) statement(id uint64) (s statement, p proof, err error) {
	r, ok := w.o.Past.said.Get(id)
	if !ok {
		return s, p, fmt.Errorf("%w: %d", ErrNoCorrection, id)
	}
	body, err := w.o.Past.said.Body(id)
	if err == nil && body != nil {
		err = cbor.Unmarshal(body, &p)
	}
	if err != nil {
		return r.Head, proof{}, err
	}
	p.Faces = w.sound(p.Faces)
	bad := func(l label) bool { return w.gallery.Space().Check(l.Vector) != nil }
	p.Added, p.Removed = slices.DeleteFunc(p.Added, bad), slices.DeleteFunc(p.Removed, bad)
	for i := range p.Groups {
		p.Groups[i].Album.Faces = w.sound(p.Groups[i].Album.Faces)
	}
	return r.Head, p, nil
}

func (s statement) correction(id uint64, at time.Time) Correction {
	return Correction{
		ID: id, At: at, Kind: s.Kind, Name: s.Name, Was: s.Was, Group: s.Group, Sighting: s.Sighting, Face: s.Face,
		Undone: s.UndoneAt > 0, CanUndo: s.UndoneAt == 0 && s.Kind != Forgot && s.Kind != ForgotGroup,
	}
}

// Corrections returns the last n entries of the journal before the one of a number, or of all where it is 0, the newest
// first.
func (w *Office) Corrections(before uint64, n int) []Correction {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Correction{}
	for _, id := range w.o.Past.said.Before(before) {
		if len(all) >= n {
			break
		}
		r, _ := w.o.Past.said.Get(id)
		all = append(all, r.Head.correction(id, r.At))
	}
	return all
}

// nameNow returns the name that somebody has now who had one after the statement of a number: people are renamed.
func (w *Office) nameNow(name string, id uint64) string {
	ids := w.o.Past.said.Before(0)
	slices.Reverse(ids)
	for _, later := range ids {
		r, _ := w.o.Past.said.Get(later)
		s := r.Head
		switch {
		case s.Kind != Renamed:
		case later > id && s.UndoneAt == 0 && s.Was == name:
			name = s.Name
		case later < id && s.UndoneAt > id && s.Pure && s.Name == name:
			name = s.Was
		}
	}
	return name
}

// Naming returns the correction by which the person got their name for whom a sighting is taken, or was taken until it
// was corrected: the one whose faces are nearest, where none of the person's other labelled faces is nearer.
func (w *Office) Naming(id uint64) (Correction, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, _ := w.find(id)
	if s == nil {
		return Correction{}, false
	}
	name := s.Known
	if n := len(s.Denied); name == "" && n > 0 {
		name = s.Denied[n-1]
	}
	found, nearest := uint64(0), math.Inf(1)
	given := make(map[string]bool) // faces that got the name by a correction
	for _, g := range w.namings(name) {
		d := math.Inf(1)
		for _, x := range g.Added {
			given[key(x.Vector)] = true
			d = min(d, s.album.Distance(w.gallery.Space(), x.Vector))
		}
		if _, in := g.Stays[id]; in {
			d = 0
		}
		if d < nearest {
			found, nearest = g.id, d
		}
	}
	for _, x := range w.labels() {
		if x.Name == name && !x.Negative && !given[key(x.Vector)] && s.album.Distance(w.gallery.Space(), x.Vector) < nearest {
			return Correction{}, false
		}
	}
	r, ok := w.o.Past.said.Get(found)
	return r.Head.correction(found, r.At), ok && name != ""
}

// key is equal for equal vectors.
func key(x []float32) string {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		n := math.Float32bits(v)
		b = append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	return string(b)
}

// naming is a statement that gave faces a name.
type naming struct {
	statement
	proof
	id uint64
}

// namings returns those that gave faces the name that somebody has now, and were not undone. The others of their labels
// are left out.
func (w *Office) namings(name string) (all []naming) {
	for _, id := range w.o.Past.said.Before(0) {
		r, _ := w.o.Past.said.Get(id)
		s := r.Head
		if s.UndoneAt > 0 || s.Kind == Renamed || s.Name == "" || w.nameNow(s.Name, id) != name {
			continue
		}
		s, p, err := w.statement(id)
		if err != nil {
			continue
		}
		p.Added = slices.DeleteFunc(p.Added, func(l label) bool { return l.Negative || l.Name != s.Name })
		if len(p.Added) > 0 {
			all = append(all, naming{s, p, id})
		}
	}
	return all
}

// overruled returns the labelled faces of a person that contradict the denial of a sighting, as numbers of the learner:
// what a naming labelled goes as a whole where it named this very sighting, or nearly the same pictures.
func (w *Office) overruled(s *visit, name string) (ids []int64) {
	space := w.gallery.Space()
	gone := make(map[string]bool)
	for _, g := range w.namings(name) {
		near := math.Inf(1)
		for _, x := range g.Added {
			near = min(near, s.album.Distance(space, x.Vector))
		}
		_, in := g.Stays[s.id]
		if in && near <= samePerson*space.ImpostorRadius || near <= samePicture*space.ImpostorRadius {
			for _, x := range g.Added {
				gone[key(x.Vector)] = true
			}
		}
	}
	for id, x := range w.labels() {
		if x.Name == name && !x.Negative && gone[key(x.Vector)] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Distances in units of the space's impostor radius. Of seven recordings that were looked at twice, at other frames, the
// first faces come within .07 to .26 of some face of the second look, those of one person in another recording within
// .42, and those of other people within 1.01 (TestSamePicture).
const (
	samePicture = .4  // between pictures of one person in one recording
	samePerson  = .75 // between pictures of one person: the distance that puts them into one group
)

// Undo takes back what the correction of a number said: labelled faces with what was learned through them, names of past
// sightings and events, groups of unknown faces. What was learned before a correction took it away does not come back.
//
// The error wraps [ErrNoCorrection], [ErrUndone], [ErrFinal] or [ErrLater]; nothing has changed then, but for an error
// of saving.
func (w *Office) Undo(id uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, p, err := w.statement(id)
	switch {
	case err != nil:
		return err
	case s.UndoneAt > 0:
		return fmt.Errorf("%w: %d", ErrUndone, id)
	case s.Kind == Forgot || s.Kind == ForgotGroup:
		return ErrFinal
	case s.Kind == Renamed && s.Pure && w.gallery.Learner().Knows(s.Was):
		return fmt.Errorf("%w: %s", ErrLater, s.Was)
	}
	w.turn++
	s.UndoneAt, s.Settled = w.turn, false
	err = w.o.Past.said.Change(map[uint64]statement{id: s}) // a program that is killed now undoes it at its next start
	if err != nil {
		err = unsaved(err)
	}
	return errors.Join(err, w.takeBack(id, s, p))
}

// takeBack does what [Office.Undo] says. What has been taken back already is left as it is.
func (w *Office) takeBack(id uint64, s statement, p proof) error {
	name := w.nameNow(s.Name, id)
	if s.Kind == Renamed {
		name = s.Name
	}
	if s.Kind == Renamed && s.Pure {
		return w.renameBack(id, s)
	}
	err := w.relabelBack(id, s, p)
	switch s.Kind {
	case Merged:
		for _, g := range p.Groups {
			if g.ID != s.Other {
				continue
			}
			w.unknown.Take(s.Group, func(f unknown.Face) bool { // an error says that it has gone since
				_, of := g.Album.Find(f.ID)
				return of
			})
		}
	case Split:
		w.unknown.Merge(s.Group, s.Made)
	case Ignored, Noticed:
		w.unknown.Ignore(s.Group, s.Kind == Noticed)
	case Denied:
		w.unknown.Forget(s.Made) // it may have gone
	}
	for _, g := range p.Groups {
		w.unknown.Restore(g)
	}
	if s.Kind == Named {
		w.gather(s)
	}
	for _, g := range p.Groups {
		w.unknown.Own(g.ID)
	}
	err = errors.Join(err, w.opinionsBack(id, s, name))
	names := make(map[uint64]string)
	for _, e := range w.events() {
		if was, changed := s.Events[e.ID]; changed && e.Name == name {
			names[e.ID] = was
		}
	}
	err = errors.Join(err, w.retitle(names))
	w.reserve()
	if err = errors.Join(err, w.save()); err != nil {
		return err
	}
	return w.settled(id, s)
}

// renameBack gives somebody their old name back, also in what got the new name since.
func (w *Office) renameBack(id uint64, s statement) error {
	if w.gallery.Learner().Knows(s.Name) && !w.gallery.Learner().Knows(s.Was) {
		if err := w.gallery.Rename(s.Name, s.Was); err != nil {
			return err
		}
	}
	w.room.Rename(s.Name, s.Was)
	heads := w.all(func(v *visit, in *view) bool { return w.called(v, in, s.Name, s.Was) })
	names := make(map[uint64]string)
	for _, e := range w.events() {
		if e.Name == s.Name {
			names[e.ID] = s.Was
		}
	}
	if err := errors.Join(w.save(), w.rewrite(heads), w.retitle(names)); err != nil {
		return err
	}
	return w.settled(id, s)
}

// called gives a person another name in what is held of a sighting, and reports whether the name was there.
func (w *Office) called(s *visit, in *view, from, to string) (changed bool) {
	if at := slices.Index(s.Denied, from); at >= 0 {
		s.Denied = slices.Clone(s.Denied)
		s.Denied[at] = to
		changed = true
	}
	if s.Known == from {
		s.Known = to
		w.rejudge(s, in)
		changed = true
	}
	return changed
}

// settled notes that all is written of a statement.
func (w *Office) settled(id uint64, s statement) error {
	s.Settled = true
	if err := w.o.Past.said.Change(map[uint64]statement{id: s}); err != nil {
		return unsaved(err)
	}
	return nil
}

// relabelBack takes back the labels of a statement.
func (w *Office) relabelBack(id uint64, s statement, p proof) (err error) {
	learner := w.gallery.Learner()
	now := func(name string) string {
		if s.Kind == Renamed {
			return name // of that moment: renaming is what is undone
		}
		return w.nameNow(name, id)
	}
	labels := w.labels()
	// find returns the number of a label that is there, each once: by the number that it had, or by its face where it
	// was taken away and put back.
	find := func(x label) (int64, bool) {
		same := func(y label) bool {
			return y.Negative == x.Negative && y.Name == now(x.Name) && slices.Equal(y.Vector, x.Vector)
		}
		if y, there := labels[x.ID]; there && same(y) {
			delete(labels, x.ID)
			return x.ID, true
		}
		for number, y := range labels {
			if same(y) {
				delete(labels, number)
				return number, true
			}
		}
		return 0, false
	}
	var gone []int64
	for _, x := range p.Added {
		if number, there := find(x); there {
			gone = append(gone, number)
		}
	}
	withdrawn := w.withdrawn(id)
	learner.Unlearn(s.Learned)
	learner.Retract(gone...)
	for _, negative := range []bool{false, true} { // a face is rejected of somebody who is known
		for _, x := range p.Removed {
			name := now(x.Name)
			if x.Negative != negative || withdrawn[key(x.Vector)] && !negative {
				continue
			}
			if _, there := find(x); there {
				continue
			}
			if negative {
				if learner.Knows(name) {
					err = errors.Join(err, learner.Reject(x.Vector, name))
				}
				continue
			}
			how := gallery.Enrolment{Add: learner.Knows(name), Force: true}
			_, e := w.gallery.Enroll(name, [][]float32{x.Vector}, w.o.Now(), how)
			err = errors.Join(err, e)
		}
	}
	return err
}

// withdrawn returns the faces that had a name before the statement of a number by what was undone since.
func (w *Office) withdrawn(before uint64) map[string]bool {
	all := make(map[string]bool)
	ids := w.o.Past.said.Before(before)
	slices.Reverse(ids) // what was said last of a face holds
	for _, id := range ids {
		s, p, err := w.statement(id)
		if err != nil || s.Kind == Renamed {
			continue
		}
		for _, x := range p.Added {
			if !x.Negative {
				all[key(x.Vector)] = s.UndoneAt > 0
			}
		}
	}
	return all
}

// gather puts those into the restored group of a naming who were taken for somebody else when their naming was denied:
// they are the same stranger.
func (w *Office) gather(s statement) {
	for _, id := range w.o.Past.said.Before(0) {
		r, _ := w.o.Past.said.Get(id)
		d := r.Head
		if d.Kind == Denied && d.UndoneAt == 0 && d.Made != 0 && d.Was == s.Name && w.unknown.Alike(s.Group, d.Made) && w.unknown.Merge(s.Group, d.Made) == nil {
			w.fail(w.rewrite(w.all(func(v *visit, _ *view) bool {
				if v.Group != d.Made {
					return false
				}
				v.Group, v.began = s.Group, false
				return true
			})))
		}
	}
}

// opinionsBack has sightings taken again for whom they were taken before a statement, where nothing was said of them
// since.
func (w *Office) opinionsBack(id uint64, s statement, name string) error {
	known := w.gallery.Learner()
	return w.rewrite(w.all(func(v *visit, in *view) bool {
		x, changed := s.Stays[v.id]
		was := x.Was
		if !changed {
			if in != nil && v.Known != "" && !known.Knows(v.Known) {
				v.Known, v.Trust = "", sighting.Nobody
				w.rejudge(v, in)
			} else if in != nil && v.Known == name {
				w.rejudge(v, in)
			}
			return false
		}
		if s.Kind == Renamed {
			if v.Known == name {
				v.Known = was.Known
			}
			if slices.Equal(v.Denied, x.Is.Denied) {
				v.Denied = was.Denied
			}
			return true
		}
		if s.Kind == Denied {
			v.Denied = slices.DeleteFunc(slices.Clone(v.Denied), func(n string) bool { return n == s.Was })
		}
		before := w.nameNow(was.Known, id)
		if v.Known == name && (before == "" || known.Knows(before)) || s.Kind == Merged {
			if s.Kind != Merged {
				v.Known, v.Trust, v.Wrong = before, was.Trust, was.Wrong
			}
			v.ungroup()
			if w.unknown.Has(was.Group) {
				v.Group = was.Group
				if n := len(v.album.Faces); n > 0 {
					v.grouped = v.album.Faces[n-1].ID
				}
			}
		}
		if in != nil {
			if s.Kind == Denied {
				in.people.Allow(v.track, s.Was)
			}
			w.rejudge(v, in)
		}
		return true
	}))
}

// settle ends what a program that was killed left half done: a statement that was written, and not yet all that it
// changed, is completed where it had begun to change the gallery or the strangers, and is dropped otherwise, as nobody
// was told that it holds. One whose undoing had begun is undone.
func (w *Office) settle() {
	for _, id := range w.o.Past.said.Before(0) {
		r, _ := w.o.Past.said.Get(id)
		if r.Head.Settled {
			continue
		}
		s, p, err := w.statement(id)
		switch {
		case err != nil:
			w.fail(err)
		case s.UndoneAt > 0:
			w.fail(w.takeBack(id, s, p))
		case s.Kind == Forgot || s.Kind == ForgotGroup:
			w.fail(w.forgotten(id, s))
		case !w.began(s, p):
			w.fail(w.o.Past.said.Delete(id))
		default:
			w.fail(w.resume(id, s, p))
		}
	}
}

// began reports whether the gallery or the strangers have what a statement says.
func (w *Office) began(s statement, p proof) bool {
	switch s.Kind {
	case Renamed:
		if s.Pure {
			return w.gallery.Learner().Knows(s.Name) && !w.gallery.Learner().Knows(s.Was)
		}
	case Merged:
		return !w.unknown.Has(s.Other)
	case Split:
		return w.unknown.Has(s.Made)
	case Ignored, Noticed:
		return w.unknown.Ignored(s.Group) == (s.Kind == Ignored)
	}
	labels := w.labels()
	has := func(x label) bool {
		y, there := labels[x.ID]
		return there && y.Name == x.Name && slices.Equal(y.Vector, x.Vector)
	}
	for _, x := range p.Added {
		if !has(x) {
			return false
		}
	}
	return !slices.ContainsFunc(p.Removed, has)
}

// resume completes a statement that is in the gallery.
func (w *Office) resume(id uint64, s statement, p proof) error {
	switch {
	case s.Kind == Named && w.unknown.Has(s.Group):
		w.unknown.Forget(s.Group) // it is there
	case s.Kind == Denied && s.Made != 0 && len(p.Faces) > 0:
		first, last := p.Faces[0].At, p.Faces[len(p.Faces)-1].At
		w.unknown.Restore(unknown.Group{ID: s.Made, Album: unknown.Album{Faces: p.Faces}, First: first, Last: last, Visits: 1})
	}
	heads := make(map[uint64]stay)
	for sighting, x := range s.Stays {
		v := w.past(sighting)
		if v == nil {
			continue
		}
		v.Known, v.Trust, v.Denied, v.Wrong, v.Group = x.Is.Known, x.Is.Trust, x.Is.Denied, x.Is.Wrong, x.Is.Group
		if s.Kind == Denied && sighting == s.Sighting {
			v.Learned = nil
		}
		heads[sighting] = v.stay
	}
	return w.complete(id, s, heads)
}

// pictures returns the numbers of pictures by the vectors of their faces, of the corrections and the strangers.
func (w *Office) pictured() map[string]uint64 {
	all := make(map[string]uint64)
	take := func(faces []unknown.Face) {
		for _, f := range faces {
			if f.JPEG != nil {
				all[key(f.Vector)] = cmp.Or(all[key(f.Vector)], f.ID)
			}
		}
	}
	for _, id := range w.o.Past.said.Before(0) {
		_, p, err := w.statement(id)
		if err != nil {
			continue
		}
		for _, g := range p.Groups {
			take(g.Album.Faces)
		}
		take(p.Faces)
	}
	return all
}
