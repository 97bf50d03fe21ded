// SPDX-License-Identifier: Apache-2.0

package office

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/sighting"
	"github.com/fxamacker/cbor/v2"
)

// Errors of [Office.Undo].
var (
	ErrNoCorrection = errors.New("correction not found; it may be too old")
	ErrUndone       = errors.New("this correction is undone already")
	ErrFinal        = errors.New("a forgotten person cannot be brought back")
	ErrElsewhere    = errors.New("this correction was made by another program; undo it there")
	ErrLater        = errors.New("another person has got that name since; rename that person first")
	ErrSettled      = errors.New("another person has got the old name since; correct the faces one by one")
)

// CorrectionKind is the kind of a correction.
type CorrectionKind string

// Kinds of corrections.
const (
	Named       CorrectionKind = "named"      // a group of unknown faces, or an unknown sighting, got a name
	Renamed     CorrectionKind = "renamed"    // a person got a new name, or was merged with another person
	Merged      CorrectionKind = "merged"     // two groups of unknown faces were merged
	Denied      CorrectionKind = "denied"     // a sighting was not the recognised person
	Confirmed   CorrectionKind = "confirmed"  // a sighting was the recognised person
	Ignored     CorrectionKind = "ignored"    // a group is ignored
	Noticed     CorrectionKind = "noticed"    // a group is no longer ignored
	Split       CorrectionKind = "split"      // some faces of a group show another person
	Unlabelled  CorrectionKind = "unlabelled" // one of two contradicting labels was removed
	ForgotGroup CorrectionKind = "forgot-group"
	Forgot      CorrectionKind = "forgot"
)

// Correction is an entry in the journal of corrections.
type Correction struct {
	ID       uint64         `json:"id"`
	At       time.Time      `json:"at"`
	Kind     CorrectionKind `json:"kind"`
	Name     string         `json:"name"`               // the name that it gave
	Was      string         `json:"was,omitempty"`      // the name before
	Group    uint64         `json:"group,omitempty"`    // its group of unknown faces
	Sighting uint64         `json:"sighting,omitempty"` // its sighting
	Face     uint64         `json:"face,omitempty"`     // a picture, for [Office.Face]
	Undone   bool           `json:"undone"`
	CanUndo  bool           `json:"can_undo"`
	// Elsewhere is true for a change that another program made.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// statement is a correction in the journal, without faces.
type statement struct {
	Kind     CorrectionKind `json:"kind"`
	Name     string         `json:"name,omitempty"`
	Was      string         `json:"was,omitempty"`
	Group    uint64         `json:"group,omitempty"`
	Other    uint64         `json:"other,omitempty"` // group that was merged into Group
	Alike    []uint64       `json:"alike,omitempty"` // groups that look like a forgotten person and are forgotten, too
	Sighting uint64         `json:"sighting,omitempty"`
	Face     uint64         `json:"face,omitempty"`
	Faces    []uint64       `json:"faces,omitempty"` // numbers of the pictures in the proof

	Learned ranges                   `json:"learned,omitempty"` // observations of the learner that it caused
	Made    uint64                   `json:"made,omitempty"`    // group that it made
	Events  map[uint64]string        `json:"events,omitempty"`  // names that events had before
	Stays   map[uint64]opinionChange `json:"stays,omitempty"`   // changes of sightings
	Pure    bool                     `json:"pure,omitempty"`    // for a rename: nobody had the new name
	Settled bool                     `json:"settled,omitempty"` // for a merge of people: another one got the old name
	Joined  []joined                 `json:"joined,omitempty"`  // faces that it put into groups
	Foreign bool                     `json:"foreign,omitempty"` // another program made it

	UndoneAt uint64 `json:"undone_at,omitempty"` // turn of its undoing; 0: not undone

	Person string   `json:"person,omitempty"` // for a pure or settled rename: the present name of the person
	Labels []string `json:"labels,omitempty"` // the people of the labels in the proof
}

// Mapped implements head. The names of a pure or settled rename stay: they are those of that time.
func (s statement) Mapped(f func(string, bool) string, observed int64) (_ statement, cut bool) {
	if s.Pure || s.Settled {
		s.Person = f(s.Person, true)
	} else {
		s.Name, s.Was = f(s.Name, true), f(s.Was, true)
	}
	s.Labels = slices.Clone(s.Labels)
	for i, name := range s.Labels { // the proof has their indices
		s.Labels[i] = f(name, true)
	}
	events, stays := s.Events, s.Stays
	s.Events, s.Stays = make(map[uint64]string, len(events)), make(map[uint64]opinionChange, len(stays))
	for id, name := range events {
		s.Events[id] = f(name, false)
	}
	for id, x := range stays {
		for _, o := range []*opinion{&x.Was, &x.Is} {
			o.Known, o.Denied = f(o.Known, false), mapped(o.Denied, f)
		}
		s.Stays[id] = x
	}
	s.Learned, cut = s.Learned.upTo(observed)
	return s, cut
}

// opinion is the name of a sighting with everything that belongs to it.
type opinion struct {
	Known  string         `json:"known,omitempty"`
	Trust  sighting.Trust `json:"trust,omitempty"`
	Denied []string       `json:"denied,omitempty"`
	Wrong  bool           `json:"wrong,omitempty"`
	Group  uint64         `json:"group,omitempty"`
}

// opinionChange is the opinion about a sighting before and after a statement.
type opinionChange struct {
	Was opinion `json:"was"`
	Is  opinion `json:"is"` // only for past sightings
}

func (s *stay) opinion() opinion { return opinion{s.Known, s.Trust, s.Denied, s.Wrong, s.Group} }

// proof holds the labels and faces that a statement changed.
type proof struct {
	// The database has indices in the statement's Labels for their names: a body does not change with a name.
	Added   []gallery.Label `cbor:"added"`
	Removed []gallery.Label `cbor:"removed"`
	Groups  []Group         `cbor:"groups"` // groups before the statement
	Faces   []Face          `cbor:"faces"`  // faces of its sighting
}

// draft is a statement in progress.
type draft struct {
	statement
	proof
	before map[int64]gallery.Label
	groups []Group         // all groups before
	heads  map[uint64]stay // changed past sightings
}

// newDraft begins a statement.
func (w *Office) newDraft(s statement) *draft {
	return &draft{statement: s, before: w.gallery.Labels(), groups: w.unknown.All(), heads: make(map[uint64]stay)}
}

// joined are faces that a statement put into a group.
type joined struct {
	Group uint64   `json:"group"`
	Faces []uint64 `json:"faces"`
}

// regrouped records the groups whose faces have changed, as they were, and the faces that came into a group.
func (q *draft) regrouped(now []Group) {
	faces := make(map[uint64][]uint64)
	for _, g := range now {
		faces[g.ID] = numbers(g.Album.Faces)
	}
	for _, g := range q.groups {
		if !slices.Equal(numbers(g.Album.Faces), faces[g.ID]) {
			q.Groups = append(q.Groups, g)
		}
	}
	for _, g := range now {
		var came []uint64
		i := slices.IndexFunc(q.groups, func(was Group) bool { return was.ID == g.ID })
		for _, f := range faces[g.ID] {
			there := false
			if i >= 0 {
				_, there = q.groups[i].Album.Find(f)
			}
			if !there {
				came = append(came, f)
			}
		}
		if came != nil {
			q.Joined = append(q.Joined, joined{g.ID, came})
		}
	}
}

// recordOpinion records the opinion about a sighting before it changes.
func (q *draft) recordOpinion(s *visit) {
	if q.Stays == nil {
		q.Stays = make(map[uint64]opinionChange)
	}
	if _, there := q.Stays[s.id]; !there {
		q.Stays[s.id] = opinionChange{Was: s.opinion()}
	}
}

// commit completes a statement, and writes it with all its changes in one transaction.
func (w *Office) commit(q *draft) error {
	if err := w.put(q); err != nil {
		return err
	}
	return w.save()
}

// put puts a statement into the journal, with its changes of sightings and events.
func (w *Office) put(q *draft) error {
	q.Added, q.Removed = gallery.Difference(q.before, w.gallery.Labels())
	q.regrouped(w.unknown.All())
	for _, g := range q.Groups {
		q.statement.Faces = append(q.statement.Faces, numbers(g.Album.Faces)...)
	}
	q.statement.Faces = append(q.statement.Faces, numbers(q.proof.Faces)...)
	for id, h := range q.heads {
		if x, there := q.Stays[id]; there {
			x.Is = h.opinion()
			q.Stays[id] = x
		}
	}
	stored := q.proof
	q.Labels = nil
	stored.Added, stored.Removed = q.indexed(q.Added), q.indexed(q.Removed)
	body, err := encoding.Marshal(stored)
	if err != nil {
		return err
	}
	w.turn++
	w.reserve()
	w.o.Past.said.Put(w.turn, w.o.Now(), q.statement, body)
	w.o.Past.seen.Change(q.heads)
	names := make(map[uint64]string)
	for event := range q.Events {
		names[event] = q.Name
	}
	w.o.Past.Rename(names, w.gallery.Number)
	return nil
}

// indexed returns labels with the indices of their names.
func (s *statement) indexed(all []gallery.Label) []gallery.Label {
	all = slices.Clone(all)
	for i := range all {
		at := slices.Index(s.Labels, all[i].Name)
		if at < 0 {
			at, s.Labels = len(s.Labels), append(s.Labels, all[i].Name)
		}
		all[i].Name = strconv.Itoa(at)
	}
	return all
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
	for _, all := range []*[]gallery.Label{&p.Added, &p.Removed} {
		*all = slices.DeleteFunc(*all, func(l gallery.Label) bool {
			at, err := strconv.Atoi(l.Name)
			return err != nil || at < 0 || at >= len(r.Head.Labels) || w.gallery.Space().Check(l.Vector) != nil
		})
		for i := range *all {
			at, _ := strconv.Atoi((*all)[i].Name)
			(*all)[i].Name = r.Head.Labels[at]
		}
	}
	for i := range p.Groups {
		p.Groups[i].Album.Faces = w.sound(p.Groups[i].Album.Faces)
	}
	return r.Head, p, nil
}

// final reports whether a statement cannot be undone.
func (s statement) final() bool { return s.Kind == Forgot || s.Kind == ForgotGroup }

// elsewhere reports whether a statement can be undone only by the program that made it.
func (s statement) elsewhere() bool { return s.Foreign && !s.Pure }

func (s statement) correction(id uint64, at time.Time) Correction {
	return Correction{
		ID: id, At: at, Kind: s.Kind, Name: s.Name, Was: s.Was, Group: s.Group, Sighting: s.Sighting, Face: s.Face,
		Elsewhere: s.Foreign, Undone: s.UndoneAt > 0,
		CanUndo: s.UndoneAt == 0 && !s.final() && !s.elsewhere() && !s.Settled,
	}
}

// Corrections returns the last n entries of the journal before the entry with the given number (0: before none), the
// newest first.
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

// nameNow returns the present name of the person who had a name at the time of a statement: people may be merged.
func (w *Office) nameNow(name string, id uint64) string {
	ids := w.o.Past.said.Before(0)
	slices.Reverse(ids)
	for _, later := range ids {
		r, _ := w.o.Past.said.Get(later)
		if s := r.Head; s.joins() && later > id && s.Was == name {
			name = s.Name
		}
	}
	return name
}

// Naming returns the correction that gave a sighting's person the name. For a corrected sighting it is the person
// before the correction. It is the naming with the nearest faces; it reports false if other labels of the person are
// nearer.
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
	given := make(map[uint64]bool) // faces that got the name by a correction
	for _, g := range w.namings(name) {
		d := math.Inf(1)
		for _, x := range g.Added {
			given[x.Face] = true
			d = min(d, s.album.Distance(w.gallery.Space(), x.Vector))
		}
		if _, in := g.Stays[id]; in {
			d = 0
		}
		if d < nearest {
			found, nearest = g.id, d
		}
	}
	for _, x := range w.gallery.Labels() {
		if x.Name == name && !x.Negative && !given[x.Face] &&
			s.album.Distance(w.gallery.Space(), x.Vector) < nearest {
			return Correction{}, false
		}
	}
	r, ok := w.o.Past.said.Get(found)
	return r.Head.correction(found, r.At), ok && name != ""
}

// naming is a statement that gave faces a name.
type naming struct {
	statement
	proof
	id uint64
}

// namings returns the statements that gave faces the present name and were not undone. Labels with other names are left
// out.
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
		p.Added = slices.DeleteFunc(p.Added, func(l gallery.Label) bool { return l.Negative || l.Name != s.Name })
		if len(p.Added) > 0 {
			all = append(all, naming{s, p, id})
		}
	}
	return all
}

// overruled returns the learner's label numbers of a person that contradict the denial of a sighting: all labels of a
// naming that named this very sighting, or nearly the same pictures.
func (w *Office) overruled(s *visit, name string) (ids []int64) {
	space := w.gallery.Space()
	gone := make(map[uint64]bool)
	for _, g := range w.namings(name) {
		near := math.Inf(1)
		for _, x := range g.Added {
			near = min(near, s.album.Distance(space, x.Vector))
		}
		_, in := g.Stays[s.id]
		if in && near <= samePerson*space.ImpostorRadius || near <= samePicture*space.ImpostorRadius {
			for _, x := range g.Added {
				gone[x.Face] = true
			}
		}
	}
	for id, x := range w.gallery.Labels() {
		if x.Name == name && !x.Negative && gone[x.Face] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Distances in units of the space's impostor radius. Seven recordings were searched twice with different frames. The
// first faces of the second pass were within .07 to .26 of a face of the first pass, within .42 of faces of the same
// person in another recording, and within 1.01 of faces of other people (TestSamePicture).
const (
	samePicture = .4  // between pictures of one person in one recording
	samePerson  = .75 // between pictures of one person: the distance that puts them into one group
)
