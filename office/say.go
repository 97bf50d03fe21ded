// SPDX-License-Identifier: Apache-2.0

package office

import (
	"errors"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office/unknown"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Errors of what is said to an [Office]. Those of packages gallery, online and unknown pass through.
var (
	ErrNoSighting = errors.New("sighting not found; it may be too long ago")
	ErrNobody     = errors.New("nobody was recognised there")
	ErrSame       = errors.New("it was taken for nobody else")
	ErrNoFaces    = errors.New("no picture of this person was good enough; only this sighting is corrected")
	ErrResembles  = errors.New("the faces look like somebody else")
)

// Name says who a group of unknown faces is. Its first four faces become labelled, the others are learned at once if
// the learner's own guards let them, and who is in view is that person from now on. A name that is known gets the faces
// added.
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
	first, rest := g.Album.First()
	if err := w.enroll(name, first, force); err != nil {
		return err
	}
	if !w.o.Freeze {
		learner := w.gallery.Learner()
		learner.SetTime(w.o.Now())
		for _, f := range rest {
			if _, err := learner.Observe(f.Vector); err != nil {
				return err
			}
		}
	}
	w.all(func(s *visit, v *view) {
		if s.group == group {
			s.ungroup()
			s.wrong = false
			w.rejudge(s, v)
		}
	})
	w.unknown.Forget(group) // it was there a moment ago
	return w.save()
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
// elsewhere.
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
	case s.known == "":
		return ErrNobody
	case s.known == is:
		return fmt.Errorf("%w: %s", ErrSame, is)
	}
	mistaken := s.known
	if err := w.relabel(s, mistaken, is); err != nil {
		return err
	}
	s.known, s.trust, s.wrong = "", sighting.Nobody, is == ""
	if v != nil {
		v.people.Deny(s.track, mistaken)
	}
	elsewhere := false
	w.all(func(other *visit, _ *view) {
		elsewhere = elsewhere || other.known == mistaken && other.last.Sub(s.last).Abs() <= w.o.Presence.Away
	})
	w.tell(w.room.Retract(mistaken, s.camera, s.track, elsewhere))
	if is == "" {
		w.beginGroup(s)
	}
	if len(s.album.Faces) == 0 {
		return errors.Join(ErrNoFaces, w.save())
	}
	return w.save()
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
	case s.known == "" || !w.gallery.Learner().Knows(s.known):
		return ErrNobody
	case len(s.album.Faces) == 0:
		return ErrNoFaces
	}
	first, _ := s.album.First()
	if err := w.enroll(s.known, first, false); err != nil {
		return err
	}
	s.trust = sighting.Confirmed
	w.rejudge(s, v)
	return w.save()
}

// relabel has the learner forget the faces that it learned from a sighting, and learn that they are not the wrong
// person's. With a right name it learns them as that person's. On error the learner is as it was.
func (w *Office) relabel(s *visit, wrong, right string) (err error) {
	learner := w.gallery.Learner()
	before, err := learner.MarshalBinary()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // the snapshot was made a moment ago by the same code
			err = errors.Join(err, learner.UnmarshalBinary(before))
		}
	}()
	learner.Unlearn(s.learned)
	s.learned = nil
	if right != "" {
		first, _ := s.album.First()
		if err := w.enroll(right, first, true); err != nil {
			return err
		}
	}
	if !slices.Contains(learner.Names(), wrong) {
		return nil // forgotten meanwhile
	}
	faces := s.album.Faces
	n := min(rejectedFaces, len(faces))
	if right != "" {
		n = 0 // a face of somebody is nobody else's
	}
	for i := range n {
		if err := learner.Reject(faces[i*len(faces)/n].Vector, wrong); err != nil {
			return err
		}
	}
	return nil
}

// save writes what was said.
func (w *Office) save() error {
	if err := errors.Join(w.o.Save(), w.o.SaveUnknown()); err != nil {
		return fmt.Errorf("this holds until the program ends, and could not be saved: %w", err)
	}
	return nil
}

// strangers changes the groups of unknown faces, and has the sightings in them judged anew.
func (w *Office) strangers(change func(*unknown.Groups) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := change(w.unknown); err != nil {
		return err
	}
	w.all(func(s *visit, _ *view) {
		if !w.unknown.Has(s.group) {
			s.ungroup()
		}
	})
	return w.save()
}

// Ignore says whether anybody wants to hear of a group of unknown faces again. The error wraps [unknown.ErrNoGroup].
func (w *Office) Ignore(group uint64, ignored bool) error {
	return w.strangers(func(g *unknown.Groups) error { return g.Ignore(group, ignored) })
}

// Merge says that two groups of unknown faces are one person. The error wraps [unknown.ErrNoGroup].
func (w *Office) Merge(into, from uint64) error {
	return w.strangers(func(g *unknown.Groups) error { return g.Merge(into, from) })
}

// Split says that some faces of a group are somebody else's. The error is that of [unknown.Groups.Split].
func (w *Office) Split(group uint64, faces []uint64) error {
	return w.strangers(func(g *unknown.Groups) error {
		_, err := g.Split(group, faces)
		return err
	})
}

// ForgetGroup removes a group of unknown faces. The error wraps [unknown.ErrNoGroup].
func (w *Office) ForgetGroup(group uint64) error {
	return w.strangers(func(g *unknown.Groups) error { return g.Forget(group) })
}

// KeepUnknown says whether faces of strangers are kept at all.
func (w *Office) KeepUnknown(on bool) error {
	return w.strangers(func(g *unknown.Groups) error {
		g.Keep(on)
		return nil
	})
}

// Forget removes a person, and what was learned from them. The error wraps [online.ErrUnknown].
func (w *Office) Forget(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.gallery.Remove(name); err != nil {
		return err
	}
	w.tell(w.room.Leave(name))
	w.all(func(s *visit, v *view) {
		if s.known == name {
			s.known, s.trust = "", sighting.Nobody
			w.rejudge(s, v)
		}
	})
	return w.save()
}

// Conflicts returns the labelled faces that look like one person and cannot both be right.
func (w *Office) Conflicts() []online.Conflict {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gallery.Learner().Conflicts(.75 * w.gallery.Space().ImpostorRadius)
}

// Unlabel removes one of the faces of a conflict. The error wraps [online.ErrUnknown].
func (w *Office) Unlabel(face int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.gallery.Unlabel(face); err != nil {
		return err
	}
	return w.save()
}
