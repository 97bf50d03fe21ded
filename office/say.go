// SPDX-License-Identifier: Apache-2.0

package office

import (
	"errors"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/office/unknown"
	"github.com/faceauth/faceauth/sighting"
)

// Errors of corrections to an [Office]. Errors of packages gallery, online and unknown pass through.
var (
	ErrNoSighting = errors.New("sighting not found; it may be too long ago")
	ErrNobody     = errors.New("nobody was recognised there")
	ErrSame       = errors.New("it was taken for nobody else")
	ErrNoFaces    = errors.New("no picture of this person was good enough; only this sighting is corrected")
	ErrResembles  = errors.New("the faces look like somebody else")
)

// Name says who a group of unknown faces is. Its first four faces become labelled, the others are learned at once if
// the learner's own guards let them, and who is in view is that person from now on. Its sightings and events of the
// past get the name, too. A name that is known gets the faces added.
//
// Faces that look like somebody else, like several people, or not like the person of that name are refused unless force
// is set. The error wraps [ErrResembles], [unknown.ErrNoGroup], or is that of [gallery.Gallery.Enroll]; nothing has
// changed then, but for an error of saving.
func (w *Office) Name(group uint64, name string, force bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	g, err := w.unknown.Get(group)
	if err != nil {
		return err
	}
	q := w.say(statement{Kind: Named, Name: name, Group: group, Face: g.Album.Faces[0].ID})
	first, rest := g.Album.First()
	if err := w.enroll(name, first, force); err != nil {
		return err
	}
	if err := w.study(q, rest); err != nil {
		return err
	}
	w.named(q, g)
	return w.done(q)
}

// study has the learner see faces that were seen before they had a name.
func (w *Office) study(q *saying, faces []unknown.Face) error {
	if w.o.Freeze {
		return nil
	}
	learner := w.gallery.Learner()
	learner.SetTime(w.o.Now())
	for _, f := range faces {
		v, err := learner.Observe(f.Vector)
		if err != nil {
			return err
		}
		if v.Learned {
			q.Learned.add(learner.Counts().Observed)
		}
	}
	return nil
}

// named gives a name to what was seen of a group of unknown faces, and ends the group.
func (w *Office) named(q *saying, g unknown.Group) {
	q.Groups = append(q.Groups, g)
	q.heads = w.all(func(s *visit, v *view) bool {
		if s.Group != g.ID {
			return false
		}
		q.holds(s)
		s.ungroup()
		s.Known, s.Trust, s.Wrong = q.Name, sighting.Confirmed, false
		w.rejudge(s, v)
		return true
	})
	groups := w.merged(g.ID)
	for _, e := range w.events() {
		if e.Kind == presence.Unknown && e.Name == "" && slices.Contains(groups, e.Group) {
			q.renames(e)
		}
	}
	w.unknown.Forget(g.ID) // it was there a moment ago
}

// renames notes that an event gets the name of the statement.
func (q *saying) renames(e presence.Event) {
	if q.Events == nil {
		q.Events = make(map[uint64]string)
	}
	q.Events[e.ID] = e.Name
}

// merged returns a group with those that were merged into it.
func (w *Office) merged(group uint64) []uint64 {
	groups := []uint64{group}
	for _, id := range w.o.Past.said.Before(0) { // the latest first: what was merged last is looked at first
		r, _ := w.o.Past.said.Get(id)
		if s := r.Head; s.Kind == Merged && s.UndoneAt == 0 && slices.Contains(groups, s.Group) {
			groups = append(groups, s.Other)
		}
	}
	return groups
}

// changes notes what a statement changes of a sighting.
func (q *saying) changes(s *visit, in *view) {
	if in == nil {
		q.heads[s.id] = s.stay
	}
}

// rejudge has a sighting judged anew.
func (w *Office) rejudge(s *visit, v *view) {
	if v != nil {
		v.people.Reset(s.track)
	}
}

// enroll labels faces with a name.
func (w *Office) enroll(name string, faces []unknown.Face, force bool) error {
	x := vectors(faces)
	if !force {
		other, err := w.gallery.Resembles(name, x)
		if err != nil {
			return err
		}
		if other != "" {
			return fmt.Errorf("%w: %s; say that it is so, or force it", ErrResembles, other)
		}
	}
	known := slices.Contains(w.gallery.Learner().Names(), name)
	_, err := w.gallery.Enroll(name, x, w.o.Now(), gallery.Enrolment{Add: known, Force: force})
	return err
}

func vectors(faces []unknown.Face) (all [][]float32) {
	for _, f := range faces {
		all = append(all, f.Vector)
	}
	return all
}

// rejectedFaces is how many faces of a sighting become negative labels.
const rejectedFaces = 8

// Correct says that a sighting was not who it was taken for. What was learned from it is taken back, with what followed
// from that; its faces become negative labels for that person, so that what looks like them is not given to that person
// again; and it is not that person for as long as it lasts. With the name of who it is, its first faces are labelled
// with that instead, and otherwise it is a stranger. That the person was there is withdrawn unless they are seen
// elsewhere. A sighting of nobody known can be given a name in the same way.
//
// Where the name itself was given to this sighting by [Office.Name], or to nearly the same pictures, the labels
// contradict the new correction: they are taken back, with what was learned through them, and a person of whom nothing else is
// labelled goes with them. [Office.Naming] says which correction gave the name, and [Office.Undo] takes back the rest
// of it.
//
// The error wraps [ErrNoSighting], [ErrNobody], [ErrSame], [ErrNoFaces], or is that of [gallery.Gallery.Enroll] or
// [online.Learner.Reject]; but for ErrNoFaces, and an error of saving, nothing has changed then.
func (w *Office) Correct(id uint64, is string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, v := w.find(id)
	switch {
	case s == nil:
		return fmt.Errorf("%w: %d", ErrNoSighting, id)
	case s.Known == is && is != "":
		return fmt.Errorf("%w: %s", ErrSame, is)
	case s.Known == "" && is == "":
		return ErrNobody
	case s.Known == "":
		return w.identify(s, v, is)
	}
	mistaken := s.Known
	q := w.say(statement{Kind: Denied, Name: is, Was: mistaken, Sighting: id})
	if len(s.album.Faces) > 0 {
		q.Face = s.album.Faces[0].ID
		q.proof.Faces = slices.Clone(s.album.Faces)
	}
	before := s.Learned
	q.holds(s)
	if err := w.relabel(s, mistaken, is); err != nil {
		s.Learned = before
		return err
	}
	s.Known, s.Trust, s.Wrong = "", sighting.Nobody, is == ""
	if s.Denied = append(slices.Clone(s.Denied), mistaken); v != nil {
		v.people.Deny(s.track, mistaken)
	}
	if is != "" {
		s.Known, s.Trust = is, sighting.Confirmed
	}
	s.ungroup()
	elsewhere := false
	known := w.gallery.Learner().Knows(mistaken)
	w.all(func(other *visit, in *view) bool {
		if other.id == s.id || other.Known != mistaken {
			return false
		}
		elsewhere = elsewhere || known && other.Last.Sub(s.Last).Abs() <= w.o.Presence.Away
		if in == nil {
			return false
		}
		q.holds(other) // its name may have rested on what has gone
		if w.rejudge(other, in); !known {
			other.Known, other.Trust = "", sighting.Nobody
			w.room.Retract(mistaken, other.Camera, other.track, true) // of the track alone: what it means is told below
		}
		return false
	})
	if s.track != 0 || !known { // of whom nothing is labelled any more, nobody is there
		w.tell(w.room.Retract(mistaken, s.Camera, s.track, elsewhere))
	}
	if is == "" {
		q.Made = w.regroup(s)
	}
	q.changes(s, v)
	err := w.done(q)
	if len(s.album.Faces) == 0 {
		return errors.Join(ErrNoFaces, err)
	}
	return err
}

// identify says who a sighting of nobody known is: its first faces are labelled. The group of unknown faces to which it
// belongs is that person, too, where most of its faces are recognised so now.
func (w *Office) identify(s *visit, v *view, name string) error {
	if len(s.album.Faces) == 0 {
		return ErrNoFaces
	}
	q := w.say(statement{Kind: Named, Name: name, Sighting: s.id, Face: s.album.Faces[0].ID})
	q.proof.Faces = slices.Clone(s.album.Faces)
	first, rest := s.album.First()
	if err := w.enroll(name, first, true); err != nil {
		return err
	}
	if err := w.study(q, rest); err != nil {
		return err
	}
	q.holds(s)
	if g, err := w.unknown.Get(s.Group); err == nil && w.seems(g.Album.Faces) == name {
		q.Group = g.ID
		w.named(q, g)
	}
	s.ungroup()
	s.Known, s.Trust, s.Wrong = name, sighting.Confirmed, false
	w.rejudge(s, v)
	q.changes(s, v)
	return w.done(q)
}

// seems returns whom most of the faces look like, or "".
func (w *Office) seems(faces []unknown.Face) string {
	votes := make(map[string]int)
	for _, f := range faces {
		if v, err := w.gallery.Learner().Judge(f.Vector); err == nil {
			votes[v.Label]++
		}
	}
	for name, n := range votes {
		if 2*n > len(faces) {
			return name
		}
	}
	return ""
}

// Confirm says that a sighting was who it was taken for, where nothing but what was learned spoke for that: its first
// faces become enrolled ones, so that a beard or the years are followed. The error wraps [ErrNoSighting], [ErrNobody],
// [ErrNoFaces], [ErrResembles], or is that of [gallery.Gallery.Enroll]; nothing has changed then, but for an error of
// saving.
func (w *Office) Confirm(id uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, v := w.find(id)
	switch {
	case s == nil:
		return fmt.Errorf("%w: %d", ErrNoSighting, id)
	case s.Known == "" || !w.gallery.Learner().Knows(s.Known):
		return ErrNobody
	case len(s.album.Faces) == 0:
		return ErrNoFaces
	}
	q := w.say(statement{Kind: Confirmed, Name: s.Known, Sighting: id, Face: s.album.Faces[0].ID})
	q.proof.Faces = slices.Clone(s.album.Faces)
	first, _ := s.album.First()
	if err := w.enroll(s.Known, first, false); err != nil {
		return err
	}
	q.holds(s)
	s.Trust = sighting.Confirmed
	w.rejudge(s, v)
	q.changes(s, v)
	return w.done(q)
}

// relabel has the learner forget the faces that it learned from a sighting, and learn that they are not the wrong
// person's. With a right name it learns them as that person's. On error the learner is as it was.
func (w *Office) relabel(s *visit, wrong, right string) error {
	return w.gallery.Attempt(func() error { return w.reject(s, wrong, right) })
}

func (w *Office) reject(s *visit, wrong, right string) error {
	learner := w.gallery.Learner()
	learner.Unlearn(s.Learned)
	s.Learned = nil
	if right != "" {
		first, _ := s.album.First()
		if err := w.enroll(right, first, true); err != nil {
			return err
		}
	}
	learner.Retract(w.overruled(s, wrong)...)
	faces := s.album.Faces
	n := min(rejectedFaces, len(faces))
	if right != "" {
		n = 0 // a face of somebody is nobody else's
	}
	for i := range n {
		if !learner.Knows(wrong) {
			return nil // forgotten meanwhile, or nobody any more
		}
		if err := learner.Reject(faces[i*len(faces)/n].Vector, wrong); err != nil {
			return err
		}
	}
	// Labels that are nearer to some face than the rejected ones would give it to the person again.
	for _, f := range faces {
		v, err := learner.Judge(f.Vector)
		if err != nil {
			return err
		}
		if v.Label == wrong && right == "" {
			if err := learner.Reject(f.Vector, wrong); err != nil {
				return err
			}
		}
	}
	return nil
}
