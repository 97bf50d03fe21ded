// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Errors of corrections to an [Office]. Errors of packages gallery and online pass through.
var (
	ErrNoSighting = errors.New("sighting not found; it may be too long ago")
	ErrNobody     = errors.New("nobody was recognised in this sighting")
	ErrSame       = errors.New("the sighting has this name already")
	ErrMoved      = errors.New("the sighting has another name by now; look again")
	ErrOthers     = errors.New("other faces would be enrolled now than those that were shown; look again")
	ErrNoFaces    = errors.New("no picture of this person was good enough")
	ErrResembles  = errors.New("the faces look like somebody else")
)

// Name names the person in a group of unknown faces. The first four faces become labels. The learner sees the other
// faces at once and learns those that its guards allow. The person in view has this name from now on, and so have the
// group's past sightings and events. If the name is known, the faces are added to that person.
//
// Without force, faces are refused if they look like another person, like several people, or unlike the person of that
// name. The error wraps [ErrResembles] or [ErrNoGroup], or is that of [gallery.Gallery.Enroll]; nothing has
// changed then.
func (w *book) Name(group uint64, name string, force bool) error {
	return w.change(func(t *gallery.Tx) error {
		g, err := w.unknown.Get(group)
		if err != nil {
			return err
		}
		first, rest := g.Album.First()
		person, err := w.enrol(t, name, first, force)
		if err != nil {
			return err
		}
		said := w.state(t, statement{kind: Named, person: person, group: group})
		w.named(t, said, group, person)
		return w.study(t, said, rest)
	})
}

// enrol labels faces with a name, and returns the person.
func (w *book) enrol(t *gallery.Tx, name string, faces []Face, force bool) (person int64, err error) {
	x := vectors(faces)
	if !force {
		other, err := w.gallery.Resembles(name, x)
		if err != nil {
			return 0, err
		}
		if other != "" {
			return 0, fmt.Errorf("%w: %s; confirm it, or force it", ErrResembles, other)
		}
	}
	_, err = t.Enroll(name, x, w.o.Now(), gallery.Enrolment{
		Add: w.gallery.Number(name) != 0, Force: force, Numbers: numbersOf(faces),
	})
	return w.gallery.Number(name), err
}

// study lets the learner see faces from before they had a name.
func (w *book) study(t *gallery.Tx, said int64, faces []Face) error {
	if w.o.Freeze || len(faces) == 0 {
		return nil
	}
	learner := t.Learner()
	learner.SetTime(w.o.Now())
	var learned ranges
	for _, f := range faces {
		// How the head is turned was not kept.
		v, err := learner.ObserveFrame([]online.Observation{{Vector: f.Vector, Frontal: true, Picture: f.JPEG}})
		if err != nil {
			return err
		}
		if v[0].Learned {
			learned.add(learner.Counts().Observed)
		}
	}
	if len(learned) == 0 {
		return nil
	}
	return t.Exec("update statement set learned = ? where id = ?", learned.encoded(), said)
}

// named gives the sightings and events of a group of unknown faces to a person. The group has no faces any more.
func (w *book) named(t *gallery.Tx, said int64, group uint64, person int64) {
	w.is(t, said, "stranger = ?1", group, person)
	t.SayOf(said, gallery.FaceGroup, "stranger = ?1", int64(group), gallery.Value{Value: int64(0)})
	t.SayOf(said, gallery.EventWho, "stranger = ?1 and kind = 'unknown'", int64(group), gallery.Value{Person: person})
}

// is says that the sightings for which a condition holds are a person, who is in no group of unknown faces.
func (w *book) is(t *gallery.Tx, said int64, condition string, of uint64, person int64) {
	t.SayOf(said, gallery.WhoOf, condition, int64(of), gallery.Value{Person: person, Text: string(sighting.Confirmed),
		Value: int64(0)})
	t.SayOf(said, gallery.GroupOf, condition, int64(of), gallery.Value{Value: int64(0)})
}

// numbersOf returns the numbers of faces.
func numbersOf(faces []Face) (all []uint64) {
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
// other labels is nobody any more. Naming is that naming, or the one with the nearest faces, or nil if other labels of
// the person are nearer; [Office.Undo] takes back the rest of it.
//
// Was is the name that the user has seen, if it is known. The error wraps [ErrMoved] if the sighting has another name,
// [ErrNoSighting], [ErrNobody], [ErrSame] or [ErrNoFaces], or is that of [gallery.Gallery.Enroll] or of the database.
// Nothing has changed then.
func (w *book) Correct(id uint64, is string, was ...string) (naming *Correction, err error) {
	var mistaken int64
	var s *sighted
	err = w.change(func(t *gallery.Tx) (err error) {
		s = w.find(id)
		switch {
		case s == nil:
			return fmt.Errorf("%w: %d", ErrNoSighting, id)
		case len(was) > 0 && was[0] != w.gallery.Name(s.Person):
			return ErrMoved
		case is != "" && w.gallery.Number(is) == 0 && w.gallery.Alike(is) != "":
			return fmt.Errorf("%w: %s; use this spelling for the same person", gallery.ErrAlike, w.gallery.Alike(is))
		}
		switch known := w.gallery.Name(s.Person); {
		case known == is && is != "":
			return fmt.Errorf("%w: %s", ErrSame, is)
		case known == "" && is == "":
			return ErrNobody
		case known == "":
			return w.identify(t, s, is)
		}
		mistaken = s.Person
		naming, err = w.wrong(t, s, is)
		return err
	}, func() {
		if mistaken != 0 {
			w.retract(s, mistaken)
		}
	})
	return naming, err
}

// wrong makes the statement of [Office.Correct] about a sighting of somebody known.
func (w *book) wrong(t *gallery.Tx, s *sighted, is string) (naming *Correction, err error) {
	faces := s.album.Faces
	first, _ := s.album.First()
	if len(faces) == 0 && is != "" {
		return nil, ErrNoFaces
	}
	q := statement{kind: Denied, other: s.Person, sighting: s.ID}
	overruled, nearest, stranger := w.overruled(t, s)
	w.corrections(t, "statement.id = ? and kind <> 'renamed'", func(c Correction) { naming = &c }, nearest)
	t.Learner().Unlearn(s.learned)
	t.Exec("update sighting set learned = null where id = ?", int64(s.ID))
	if is != "" {
		if q.person, err = w.enrol(t, is, first, true); err != nil {
			return nil, err
		}
	}
	said := w.state(t, q)
	t.Say(said, gallery.ValidLabel, overruled, gallery.Value{Value: int64(0)})
	if q.person == 0 {
		err = w.reject(t, said, s)
	}
	err = cmp.Or(err, t.Err())
	if err != nil {
		return nil, err
	}
	s.learned = nil
	delete(w.learned, s.ID)
	if q.person != 0 {
		w.is(t, said, "id = ?1", s.ID, q.person)
		return naming, t.SayOf(said, gallery.FaceGroup, "sighting = ?1", int64(s.ID), gallery.Value{Value: int64(0)})
	}
	err = t.Say(said, gallery.WhoOf, []int64{int64(s.ID)}, gallery.Value{Text: string(sighting.Nobody), Value: int64(1)})
	if err == nil && len(faces) > 0 && !w.past.off {
		err = w.regroup(t, said, s, stranger)
	}
	return naming, err
}

// reject makes faces of a sighting labels that say that they are not the person.
func (w *book) reject(t *gallery.Tx, said int64, s *sighted) error {
	faces, wrong := s.album.Faces, s.Person
	var some []Face
	n := min(rejectedFaces, len(faces))
	for i := range n {
		some = append(some, faces[i*len(faces)/n])
	}
	not := func(some []Face) error {
		t.Label(wrong, true, vectors(some), numbersOf(some))
		t.Made(said)
		return t.Follow()
	}
	if err := not(some); err != nil {
		return err
	}
	// Some faces may still be recognised as the wrong person, through labels that are nearer than the negative ones.
	for _, f := range faces {
		v, err := w.gallery.Learner().Judge(f.Vector)
		if err == nil && v.Person == wrong {
			err = not([]Face{f})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// overruled returns the labels of a person that contradict the denial of a sighting: all labels of a naming that named
// this very sighting, or nearly the same pictures. Nearest is the statement of the nearest label, or 0, and stranger
// the group of unknown faces that was named, or 0.
func (w *book) overruled(t *gallery.Tx, s *sighted) (rows []int64, nearest int64, stranger uint64) {
	space, least := w.gallery.Space(), math.Inf(1)
	all, _ := w.namings(t, s.Person, s.ID)
	for _, n := range all {
		near := n.distance(w.memory, s)
		about := n.about && n.id != 0
		if about && least > 0 {
			nearest, least = n.id, 0
		} else if near < least {
			nearest, least = n.id, near
		}
		if n.id != 0 && (n.about && near <= samePerson*space.ImpostorRadius || near <= samePicture*space.ImpostorRadius) {
			rows = append(rows, n.rows...)
			group, _ := t.Int("select stranger from statement where id = ?", n.id)
			stranger = cmp.Or(stranger, uint64(group))
		}
	}
	slices.Sort(rows)
	return rows, nearest, stranger
}

// Distances in units of the space's impostor radius. Seven recordings were searched twice with different frames. The
// first faces of the second pass were within .07 to .26 of a face of the first pass, within .42 of faces of the same
// person in another recording, and within 1.01 of faces of other people (TestSamePicture).
const (
	samePicture = .4  // between pictures of one person in one recording
	samePerson  = .75 // between pictures of one person: the distance that puts them into one group
)

// regroup puts a sighting into the matching group of unknown faces, or into the one that was named by mistake. If there
// is none, it makes a group.
func (w *book) regroup(t *gallery.Tx, said int64, s *sighted, mistaken uint64) error {
	faces := s.album.Faces
	group := cmp.Or(w.unknown.Find(faces), mistaken)
	if group == 0 {
		group = uint64(w.newGroup(t, faces[len(faces)-1].At, false))
	}
	t.SayOf(said, gallery.GroupOf, "id = ?1", int64(s.ID), gallery.Value{Value: int64(group)})
	return t.SayOf(said, gallery.FaceGroup, "sighting = ?1", int64(s.ID), gallery.Value{Value: int64(group)})
}

// retract withdraws the arrival of a person whom a sighting was taken for, unless they came by another sighting.
func (w *book) retract(s *sighted, mistaken int64) {
	known := w.gallery.Name(mistaken) != ""
	w.live(func(other *sighted, _ *view) {
		if other.Person == mistaken && !known {
			other.Person, other.Trust = 0, sighting.Nobody
			w.room.Retract(mistaken, other.ID, true) // the event is told below
		}
	})
	p := w.room.people[mistaken]
	others := p != nil && known &&
		(s.Last.Before(p.Since) || len(w.visits(Wanted{Person: mistaken, From: p.Since})) > 0)
	w.tell(w.room.Retract(mistaken, s.ID, others))
}

// identify names the person in an unknown sighting: its first faces become labels. Its group of unknown faces gets the
// same name if most faces of the group are then recognised as this person.
func (w *book) identify(t *gallery.Tx, s *sighted, name string) error {
	if len(s.album.Faces) == 0 {
		return ErrNoFaces
	}
	first, rest := s.album.First()
	person, err := w.enrol(t, name, first, true)
	if err != nil {
		return err
	}
	q := statement{kind: Named, person: person, sighting: s.ID}
	g, none := w.unknown.Get(s.Group)
	if none == nil && w.seems(g.Faces) == person {
		q.group = g.ID
	}
	said := w.state(t, q)
	if err := w.study(t, said, rest); err != nil {
		return err
	}
	if q.group != 0 {
		w.named(t, said, q.group, person)
	}
	w.is(t, said, "id = ?1", s.ID, person)
	return t.SayOf(said, gallery.FaceGroup, "sighting = ?1", int64(s.ID), gallery.Value{Value: int64(0)})
}

// seems returns the person that most of the faces look like, or 0.
func (w *memory) seems(faces []Face) int64 {
	votes := make(map[int64]int)
	for _, f := range faces {
		if v, err := w.gallery.Learner().Judge(f.Vector); err == nil {
			votes[v.Person]++
		}
	}
	for person, n := range votes {
		if 2*n > len(faces) {
			return person
		}
	}
	return 0
}

// Confirmable is a face that [Office.Confirm] would enrol.
type Confirmable struct {
	Face  uint64  `json:"face"`  // number of its picture, for [Office.Face]
	Apart float64 `json:"apart"` // distance to the nearest enrolled face of the person
}

// Confirmable returns the faces that [Office.Confirm] would enrol, those far from the enrolled ones first: with a face
// of somebody else among them, the other person would be let in. The errors are those of Confirm.
func (w *pictures) Confirmable(id uint64) ([]Confirmable, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.confirmable(id)
	if err != nil {
		return nil, err
	}
	var all []Confirmable
	first, _ := s.album.First()
	for _, f := range first {
		apart, err := w.gallery.Learner().Nearest(f.Vector, s.Person)
		if err != nil {
			return nil, err
		}
		all = append(all, Confirmable{f.ID, apart})
	}
	slices.SortStableFunc(all, func(a, b Confirmable) int { return cmp.Compare(b.Apart, a.Apart) })
	return all, nil
}

// confirmable returns a sighting whose name can be confirmed.
func (w *pictures) confirmable(id uint64) (*sighted, error) {
	s := w.find(id)
	switch {
	case s == nil:
		return nil, fmt.Errorf("%w: %d", ErrNoSighting, id)
	case w.gallery.Name(s.Person) == "":
		return nil, ErrNobody
	case len(s.album.Faces) == 0:
		return nil, ErrNoFaces
	}
	return s, nil
}

// Confirm states that a sighting is the recognised person, if only learned faces supported the name: its first faces
// become labels. So the gallery follows a beard or the years. If a user has seen faces, they are given by number, and
// the error wraps [ErrOthers] if others would be enrolled. It wraps [ErrNoSighting], [ErrNobody], [ErrNoFaces] or
// [ErrResembles], or is that of [gallery.Gallery.Enroll]; nothing has changed then.
func (w *book) Confirm(id uint64, seen ...uint64) error {
	return w.change(func(t *gallery.Tx) error {
		s, err := w.confirmable(id)
		if err != nil {
			return err
		}
		first, _ := s.album.First()
		if len(seen) > 0 && slices.ContainsFunc(first, func(f Face) bool { return !slices.Contains(seen, f.ID) }) {
			return ErrOthers
		}
		person, err := w.enrol(t, w.gallery.Name(s.Person), first, false)
		if err != nil {
			return err
		}
		said := w.state(t, statement{kind: Confirmed, person: person, sighting: id})
		return t.Say(said, gallery.WhoOf, []int64{int64(id)}, gallery.Value{Person: person,
			Text: string(sighting.Confirmed), Value: int64(0)})
	})
}
