// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Errors of corrections to an [Office]. Errors of packages gallery, online and unknown pass through.
var (
	ErrNoSighting = errors.New("sighting not found; it may be too long ago")
	ErrNobody     = errors.New("nobody was recognised in this sighting")
	ErrSame       = errors.New("the sighting has this name already")
	ErrOthers     = errors.New("other faces would be enrolled now than those that were shown; look again")
	ErrNoFaces    = errors.New("no picture of this person was good enough; only this sighting is corrected")
	ErrResembles  = errors.New("the faces look like somebody else")
)

// Name names the person in a group of unknown faces. The first four faces become labels. The learner sees the other
// faces at once and learns those that its guards allow. The person in view has this name from now on, and so have the
// group's past sightings and events. If the name is known, the faces are added to that person.
//
// Without force, faces are refused if they look like another person, like several people, or unlike the person of that
// name. The error wraps [ErrResembles] or [ErrNoGroup], or is that of [gallery.Gallery.Enroll]; nothing has
// changed then. After an error of saving, the change holds in memory.
func (w *Office) Name(group uint64, name string, force bool) error {
	defer w.correcting()()
	g, err := w.unknown.Get(group)
	if err != nil {
		return err
	}
	q := w.newDraft(statement{Kind: Named, Name: name, Group: group, Face: g.Album.Faces[0].ID})
	first, rest := g.Album.First()
	if err := w.enroll(name, first, force); err != nil {
		return err
	}
	if err := w.study(q, rest); err != nil {
		return err
	}
	w.named(q, g)
	return w.commit(q)
}

// study lets the learner see faces from before they had a name.
func (w *Office) study(q *draft, faces []Face) error {
	if w.o.Freeze {
		return nil
	}
	learner := w.gallery.Learner()
	learner.SetTime(w.o.Now())
	for _, f := range faces {
		// How the head is turned was not kept.
		v, err := learner.ObserveFrame([]online.Observation{{Vector: f.Vector, Frontal: true, Picture: f.JPEG}})
		if err != nil {
			return err
		}
		if v[0].Learned {
			q.Learned.add(learner.Counts().Observed)
		}
	}
	return nil
}

// named gives a name to the sightings and events of a group of unknown faces, and removes the group.
func (w *Office) named(q *draft, g Group) {
	q.heads = w.all(func(s *visit, v *view) bool {
		if s.Group != g.ID {
			return false
		}
		q.recordOpinion(s)
		s.ungroup()
		s.Known, s.Trust, s.Wrong = q.Name, sighting.Confirmed, false
		w.rejudge(s, v)
		return true
	})
	groups := w.merged(g.ID)
	for _, e := range w.events() {
		if e.Kind == Unknown && e.Name == "" && slices.Contains(groups, e.Group) {
			q.renames(e)
		}
	}
	w.unknown.Forget(g.ID) // no error: the group exists
}

// renames records that an event gets the name of the statement.
func (q *draft) renames(e Event) {
	if q.Events == nil {
		q.Events = make(map[uint64]string)
	}
	q.Events[e.ID] = e.Name
}

// merged returns a group and all groups that were merged into it.
func (w *Office) merged(group uint64) []uint64 {
	groups := []uint64{group}
	for _, id := range w.o.Past.said.Before(0) { // the latest merge first
		r, _ := w.o.Past.said.Get(id)
		if s := r.Head; s.Kind == Merged && s.UndoneAt == 0 && slices.Contains(groups, s.Group) {
			groups = append(groups, s.Other)
		}
	}
	return groups
}

// changes records the change of a past sighting.
func (q *draft) changes(s *visit, in *view) {
	if in == nil {
		q.heads[s.id] = s.stay
	}
}

// rejudge lets the learner judge a sighting in view again.
func (w *Office) rejudge(s *visit, v *view) {
	if v != nil {
		v.people.Reset(s.track)
	}
}

// enroll labels faces with a name.
func (w *Office) enroll(name string, faces []Face, force bool) error {
	x := vectors(faces)
	if !force {
		other, err := w.gallery.Resembles(name, x)
		if err != nil {
			return err
		}
		if other != "" {
			return fmt.Errorf("%w: %s; confirm it, or force it", ErrResembles, other)
		}
	}
	known := w.gallery.Learner().Knows(name)
	_, err := w.gallery.Enroll(name, x, w.o.Now(), gallery.Enrolment{Add: known, Force: force, Numbers: numbers(faces)})
	return err
}

// numbers returns the numbers of faces.
func numbers(faces []Face) (all []uint64) {
	for _, f := range faces {
		all = append(all, f.ID)
	}
	return all
}

func vectors(faces []Face) (all [][]float32) {
	for _, f := range faces {
		all = append(all, f.Vector)
	}
	return all
}

// rejectedFaces is the number of faces of a sighting that become negative labels.
const rejectedFaces = 8

// Correct states that a sighting is not the recognised person. Everything that the learner learned from it is taken
// back, with all that followed. Its faces become negative labels of that person, so that similar faces are not
// recognised as that person again, and this sighting cannot become that person again. If "is" names the right person,
// its first faces are labelled with that name instead; otherwise it is a stranger. The arrival of the wrong person is
// withdrawn, unless this person is seen elsewhere. A sighting without a name can be given one in the same way.
//
// The name may have come from [Office.Name] for this sighting or for nearly the same pictures. Then these labels
// contradict the correction: they are taken back with everything that was learned through them, and a person without
// other labels is removed. [Office.Naming] returns that naming, and [Office.Undo] takes back the rest of it.
//
// The error wraps [ErrNoSighting], [ErrNobody], [ErrSame] or [ErrNoFaces], or is that of [gallery.Gallery.Enroll] or
// [online.Learner.Reject]. Nothing has changed then, except after ErrNoFaces or an error of saving.
func (w *Office) Correct(id uint64, is string) error {
	defer w.correcting()()
	s, v := w.find(id)
	switch {
	case s == nil:
		return fmt.Errorf("%w: %d", ErrNoSighting, id)
	case s.Known == is && is != "":
		return fmt.Errorf("%w: %s", ErrSame, is)
	case s.Known == "" && is == "":
		return ErrNobody
	case is != "" && !w.gallery.Learner().Knows(is) && w.gallery.Alike(is) != "":
		return fmt.Errorf("%w: %s; use this spelling for the same person", gallery.ErrAlike, w.gallery.Alike(is))
	case s.Known == "":
		return w.identify(s, v, is)
	}
	mistaken := s.Known
	q := w.newDraft(statement{Kind: Denied, Name: is, Was: mistaken, Sighting: id})
	if len(s.album.Faces) > 0 {
		q.Face = s.album.Faces[0].ID
		q.proof.Faces = slices.Clone(s.album.Faces)
	}
	before := s.Learned
	q.recordOpinion(s)
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
		q.recordOpinion(other) // its name may rest on removed labels
		if w.rejudge(other, in); !known {
			other.Known, other.Trust = "", sighting.Nobody
			w.room.Retract(mistaken, other.Camera, other.track, true) // of this track only: the event is reported below
		}
		return false
	})
	if s.track != 0 || !known { // a person without labels cannot be present
		w.tell(w.room.Retract(mistaken, s.Camera, s.track, elsewhere))
	}
	if is == "" {
		q.Made = w.regroup(s)
	}
	q.changes(s, v)
	err := w.commit(q)
	if len(s.album.Faces) == 0 {
		return errors.Join(ErrNoFaces, err)
	}
	return err
}

// identify names the person in an unknown sighting: its first faces become labels. Its group of unknown faces gets the
// same name if most faces of the group are then recognised as this person.
func (w *Office) identify(s *visit, v *view, name string) error {
	if len(s.album.Faces) == 0 {
		return ErrNoFaces
	}
	q := w.newDraft(statement{Kind: Named, Name: name, Sighting: s.id, Face: s.album.Faces[0].ID})
	q.proof.Faces = slices.Clone(s.album.Faces)
	first, rest := s.album.First()
	if err := w.enroll(name, first, true); err != nil {
		return err
	}
	if err := w.study(q, rest); err != nil {
		return err
	}
	q.recordOpinion(s)
	if g, err := w.unknown.Get(s.Group); err == nil && w.seems(g.Album.Faces) == name {
		q.Group = g.ID
		w.named(q, g)
	}
	s.ungroup()
	s.Known, s.Trust, s.Wrong = name, sighting.Confirmed, false
	w.rejudge(s, v)
	q.changes(s, v)
	return w.commit(q)
}

// seems returns the person that most of the faces look like, or "".
func (w *Office) seems(faces []Face) string {
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

// Confirmable is a face that [Office.Confirm] would enrol.
type Confirmable struct {
	Face  uint64  `json:"face"`  // number of its picture, for [Office.Face]
	Apart float64 `json:"apart"` // distance to the nearest enrolled face of the person
}

// Confirmable returns the faces that [Office.Confirm] would enrol, those far from the enrolled ones first: with a face
// of somebody else among them, the other person would be let in. The errors are those of Confirm.
func (w *Office) Confirmable(id uint64) ([]Confirmable, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, _, err := w.confirmable(id)
	if err != nil {
		return nil, err
	}
	var all []Confirmable
	first, _ := s.album.First()
	for _, f := range first {
		apart, err := w.gallery.Learner().Nearest(f.Vector, s.Known)
		if err != nil {
			return nil, err
		}
		all = append(all, Confirmable{f.ID, apart})
	}
	slices.SortStableFunc(all, func(a, b Confirmable) int { return cmp.Compare(b.Apart, a.Apart) })
	return all, nil
}

// confirmable returns a sighting whose name can be confirmed, and its view.
func (w *Office) confirmable(id uint64) (*visit, *view, error) {
	s, v := w.find(id)
	switch {
	case s == nil:
		return nil, nil, fmt.Errorf("%w: %d", ErrNoSighting, id)
	case s.Known == "" || !w.gallery.Learner().Knows(s.Known):
		return nil, nil, ErrNobody
	case len(s.album.Faces) == 0:
		return nil, nil, ErrNoFaces
	}
	return s, v, nil
}

// Confirm states that a sighting is the recognised person, if only learned faces supported the name: its first faces
// become labels. So the gallery follows a beard or the years. If a user has seen faces, they are given by number, and
// the error wraps [ErrOthers] if others would be enrolled. It wraps [ErrNoSighting], [ErrNobody], [ErrNoFaces] or
// [ErrResembles], or is that of [gallery.Gallery.Enroll]; nothing has changed then. After an error of saving, the
// change holds in memory.
func (w *Office) Confirm(id uint64, seen ...uint64) error {
	defer w.correcting()()
	s, v, err := w.confirmable(id)
	if err != nil {
		return err
	}
	if first, _ := s.album.First(); len(seen) > 0 && slices.ContainsFunc(first, func(f Face) bool {
		return !slices.Contains(seen, f.ID)
	}) {
		return ErrOthers
	}
	q := w.newDraft(statement{Kind: Confirmed, Name: s.Known, Sighting: id, Face: s.album.Faces[0].ID})
	q.proof.Faces = slices.Clone(s.album.Faces)
	first, _ := s.album.First()
	if err := w.enroll(s.Known, first, false); err != nil {
		return err
	}
	q.recordOpinion(s)
	s.Trust = sighting.Confirmed
	w.rejudge(s, v)
	q.changes(s, v)
	return w.commit(q)
}

// relabel lets the learner forget the faces that it learned from a sighting. They become labels of the right person, or
// negative labels of the wrong person if right is "". On error the learner is unchanged.
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
		n = 0 // a label of the right person is enough
	}
	for i := range n {
		if !learner.Knows(wrong) {
			return nil // the person lost all labels
		}
		f := faces[i*len(faces)/n]
		if err := w.gallery.Reject(f.Vector, wrong, f.ID); err != nil {
			return err
		}
	}
	// Some faces may still be recognised as the wrong person, through labels that are nearer than the negative ones.
	for _, f := range faces {
		v, err := learner.Judge(f.Vector)
		if err != nil {
			return err
		}
		if v.Label == wrong && right == "" {
			if err := w.gallery.Reject(f.Vector, wrong, f.ID); err != nil {
				return err
			}
		}
	}
	return nil
}
