// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// find returns a sighting with its faces. The error wraps [ErrNoSighting], or comes from the
// database.
func (w *Office) find(t *gallery.Tx, id uint64) (s Sighting, a album.Album, err error) {
	for _, live := range w.fresh() {
		if live.ID == id && w.decided(live) && w.keeps(live) { // better known than its row says
			a.Faces = slices.Clone(live.album.Faces)
			return w.show(live.Sighting), a, nil
		}
	}
	all := w.sightings(t, sightingByNumber, int64(id))
	a.Faces = facesOf(t, id)
	switch {
	case t.Err() != nil:
		return s, a, t.Err()
	case len(all) == 0:
		return s, a, fmt.Errorf("%w: %d", ErrNoSighting, id)
	}
	return all[0], a, nil
}

// Name names the person in a group of unknown faces. The first four faces become labels. The
// learner sees the other faces at once and learns those that its guards allow. The person in view
// has this name from now on, and so have the group's past sightings and events. If the name is
// known, the faces are added to that person.
//
// Without force, faces are refused if they look like another person, like several people, or unlike
// the person of that name. The error wraps [gallery.ErrResembles] or [ErrNoGroup], or comes from
// [gallery.Gallery.Enroll]; nothing has changed then.
func (w *Office) Name(group uint64, name string, force bool) (Correction, error) {
	return w.changeGroup(group, func(t *gallery.Tx, g *Stranger) error {
		return w.name(t, name, g.Album, force, Correction{Group: group})
	})
}

// name labels the first faces of somebody unknown, and lets the learner see the others. It is about
// a group of unknown faces, or about a sighting: its group then gets the same name if most faces of
// the group are recognised as this person.
func (w *Office) name(t *gallery.Tx, name string, all album.Album, force bool,
	q Correction) error {
	first, rest := all.First()
	person, err := w.enrol(t, name, first, force)
	if err != nil {
		return err
	}
	if g := w.unknown.Get(q.Group); q.Sighting != 0 && (g == nil || w.seems(g.Faces) != person) {
		q.Group = 0
	}
	q.Kind, q.Person = Named, person
	said := w.state(t, q)
	if err := w.study(t, said, rest); err != nil {
		return err
	}
	if q.Group != 0 { // it has no faces any more
		group := int64(q.Group)
		t.Say(said, gallery.EventWho, numbers(t, unknownOfGroup, group),
			gallery.Value{Person: person})
		w.are(t, said, numbers(t, sightingsOfGroup, group), numbers(t, facesOfGroup, group), person)
	}
	if q.Sighting != 0 {
		w.is(t, said, q.Sighting, person)
	}
	return t.Err()
}

// enrol labels faces with a name, and returns the person.
func (w *Office) enrol(t *gallery.Tx, name string, faces []album.Face,
	force bool) (person int64, err error) {
	_, err = w.gallery.Enroll(name, vectors(faces), w.o.Now(), gallery.Enrolment{
		Add: w.gallery.Number(name) != 0, Force: force, Alone: true, Numbers: numbersOf(faces),
	})
	return w.gallery.Number(name), err
}

// study lets the learner see faces from before they had a name. Statements are its negative
// sources, and sightings the positive ones.
func (w *Office) study(t *gallery.Tx, said int64, faces []album.Face) error {
	if w.o.Freeze || len(faces) == 0 {
		return nil
	}
	learner := t.Learner()
	learner.SetTime(w.o.Now())
	for _, f := range faces {
		// How the head is turned was not kept.
		_, err := learner.ObserveFrame([]online.Observation{{Vector: f.Vector, Frontal: true,
			Picture: f.JPEG, Source: -said}})
		if err != nil {
			return err
		}
	}
	return nil
}

// are says that sightings, with the events that tell of them, and faces are a person, who is in no
// group of unknown faces.
func (w *Office) are(t *gallery.Tx, said int64, sightings, faces []int64, person int64) error {
	t.Say(said, gallery.EventWho, eventsOf(t, sightings), gallery.Value{Person: person})
	t.Say(said, gallery.WhoOf, sightings,
		gallery.Value{Person: person, Text: string(sighting.Confirmed)})
	t.Say(said, gallery.GroupOf, sightings, gallery.Value{Value: int64(0)})
	return t.Say(said, gallery.FaceGroup, faces, gallery.Value{Value: int64(0)})
}

// is says that a sighting is a person.
func (w *Office) is(t *gallery.Tx, said int64, id uint64, person int64) error {
	return w.are(t, said, []int64{int64(id)}, numbers(t, facesOfSighting, int64(id)), person)
}

// rejectedFaces is the number of faces of a sighting that become negative labels.
const rejectedFaces = 8

// Correct states that a sighting is not the recognised person. Everything that the learner learned
// from it is taken back, with all that followed. Its faces become negative labels of that person,
// so that similar faces are not recognised as that person again, and this sighting cannot become
// that person again. If "is" names the right person, its first faces are labelled with that name
// instead; otherwise it is a stranger. The arrival of the wrong person is withdrawn, unless this
// person is seen elsewhere. A sighting without a name can be given one in the same way.
//
// The name may have come from [Office.Name] for this sighting or for nearly the same pictures. Then
// these labels contradict the correction: they are taken back with everything that was learned
// through them, and a person without other labels is nobody any more.
//
// Was is the name that the user has seen, if it is known. The error wraps [ErrMoved] if the
// sighting has another name, [ErrNoSighting], [ErrNobody], [ErrSame] or [ErrNoFaces], or comes from
// [gallery.Gallery.Enroll] or the database. Nothing has changed then.
func (w *Office) Correct(id uint64, is string, was ...string) (Correction, error) {
	var s Sighting
	var person int64
	var other Sighting
	return w.change(func(t *gallery.Tx) error {
		x, pictures, err := w.find(t, id)
		switch {
		case err != nil:
			return err
		case len(was) > 0 && was[0] != x.Name:
			return ErrMoved
		case is != "" && w.gallery.Number(is) == 0 && w.gallery.Alike(is) != "":
			return fmt.Errorf("%w: %s; use this spelling for the same person", gallery.ErrAlike,
				w.gallery.Alike(is))
		case is == "" && x.Person == 0:
			return ErrNobody
		case is == x.Name:
			return fmt.Errorf("%w: %s", ErrSame, is)
		case is != "" && len(pictures.Faces) == 0:
			return ErrNoFaces
		case x.Person == 0:
			return w.name(t, is, pictures, true, Correction{Sighting: x.ID, Group: x.Group})
		}
		s, other = x, w.stays(t, x)
		person, err = w.wrong(t, x, other, pictures, is)
		return err
	}, func() {
		if s.Person != 0 {
			w.room.Retract(s.Person, person, s.ID, other.ID)
		}
	})
}

// wrong makes the statement of [Office.Correct] about a sighting of somebody known, who was there
// all the same if there is another sighting of the same stay. It returns the right person, or 0.
func (w *Office) wrong(t *gallery.Tx, s, other Sighting, pictures album.Album,
	is string) (int64, error) {
	q := Correction{Kind: Denied, Other: s.Person, Sighting: s.ID}
	overruled, stranger := w.overruled(t, s, pictures)
	t.Learner().Unlearn(int64(s.ID))
	if is != "" {
		var err error
		first, _ := pictures.First()
		q.Person, err = w.enrol(t, is, first, true)
		if err != nil {
			return 0, err
		}
	}
	said := w.state(t, q)
	t.Say(said, gallery.ValidLabel, overruled, gallery.Value{Value: int64(0)})
	if other.ID != 0 {
		w.move(t, s, other)
	}
	if q.Person != 0 {
		return q.Person, w.is(t, said, s.ID, q.Person)
	}
	err := w.reject(t, said, s.Person, pictures.Faces)
	if err != nil {
		return 0, err
	}
	t.Say(said, gallery.WhoOf, []uint64{s.ID}, gallery.Value{Text: string(sighting.Nobody)})
	t.Say(said, gallery.EventWho, eventsOf(t, []int64{int64(s.ID)}), gallery.Value{})
	if len(pictures.Faces) == 0 || w.past.off {
		return 0, t.Err()
	}
	// It goes into the matching group of unknown faces, or into the one that was named by mistake,
	// or into a new one.
	group := cmp.Or(int64(w.unknown.Find(pictures.Faces)), stranger)
	if group == 0 {
		group = w.newGroup(t, pictures.Faces[len(pictures.Faces)-1].At, false)
	}
	t.Say(said, gallery.GroupOf, []uint64{s.ID}, gallery.Value{Value: group})
	return 0, t.Say(said, gallery.FaceGroup, numbers(t, facesOfSighting, int64(s.ID)),
		gallery.Value{Value: group})
}

// reject makes faces labels that say that they are not a person.
func (w *Office) reject(t *gallery.Tx, said, wrong int64, faces []album.Face) error {
	var some []album.Face
	n := min(rejectedFaces, len(faces))
	for i := range n {
		some = append(some, faces[i*len(faces)/n])
	}
	not := func(some []album.Face) error {
		t.Label(wrong, true, vectors(some), numbersOf(some))
		t.Made(said)
		return t.Follow()
	}
	if err := not(some); err != nil {
		return err
	}
	// Some faces may still be recognised as the wrong person, through labels that are nearer than
	// the negative ones.
	for _, f := range faces {
		v, err := w.gallery.Learner().Judge(f.Vector)
		if err == nil && v.Person == wrong {
			err = not([]album.Face{f})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// naming is a statement that gave faces the name of a person, with its valid labels.
type naming struct {
	id       int64
	about    bool    // it is about the sighting that was asked about
	near     float64 // distance of its nearest face to the sighting
	stranger int64   // the group of unknown faces that was named, or 0
	rows     []int64
}

// overruled returns the labels of a person that contradict the denial of a sighting: all labels of
// a naming that named this very sighting, or nearly the same pictures. Stranger is the group of
// unknown faces that was named, or 0.
func (w *Office) overruled(t *gallery.Tx, s Sighting,
	pictures album.Album) (rows []int64, stranger int64) {
	space, all := w.gallery.Space(), []naming{{}}
	for r := range t.Rows(`select label.id, vector, made.id, made.stranger,
		exists (select 1 from said where what = 'sighting' and of = ?2 and statement = made.id)
		from label join statement made on made.id = (select max(statement) from said
		where what = 'label' and of = label.id and value = 1)
		where label.person = ?1 and not rejected and valid
		order by made.id`, s.Person, int64(s.ID)) {
		if id := r.ColumnInt64(2); id != all[len(all)-1].id {
			all = append(all, naming{id: id, about: r.ColumnInt64(4) == 1, near: math.Inf(1),
				stranger: r.ColumnInt64(3)})
		}
		n := &all[len(all)-1]
		n.rows = append(n.rows, r.ColumnInt64(0))
		n.near = min(n.near, pictures.Distance(space, vector.Floats(r.ColumnRawBlob(1))))
	}
	for _, n := range all[1:] {
		if n.about && n.near <= samePerson*space.ImpostorRadius ||
			n.near <= samePicture*space.ImpostorRadius {
			rows, stranger = append(rows, n.rows...), cmp.Or(stranger, n.stranger)
		}
	}
	return rows, stranger
}

// Distances in units of the space's impostor radius. Seven recordings were searched twice with
// different frames. The first faces of the second pass were within .07 to .26 of a face of the
// first pass, within .42 of faces of the same person in another recording, and within 1.01 of faces
// of other people.
const (
	samePicture = .4  // between pictures of one person in one recording
	samePerson  = .75 // between pictures of one person: the distance that puts them into one group
)

// Confirmable is a face that [Office.Confirm] would enrol.
type Confirmable struct {
	Face  uint64  `json:"face"`  // number of its picture, for [Office.Face]
	Apart float64 `json:"apart"` // distance to the nearest enrolled face of the person
}

// Confirmable returns the faces that [Office.Confirm] would enrol, those far from the enrolled ones
// first: with a face of somebody else among them, the other person would be let in. The errors are
// those of Confirm.
func (w *Office) Confirmable(id uint64) (all []Confirmable, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err = w.gallery.Rows().Look(func(t *gallery.Tx) error {
		person, faces, err := w.confirmable(t, id)
		for _, f := range faces {
			apart, none := w.gallery.Learner().Nearest(f.Vector, person)
			all, err = append(all, Confirmable{f.ID, apart}), cmp.Or(err, none)
		}
		return err
	})
	slices.SortStableFunc(all, func(a, b Confirmable) int { return cmp.Compare(b.Apart, a.Apart) })
	return all, err
}

// confirmable returns the person of a sighting whose name can be confirmed, and the faces that
// would be enrolled.
func (w *Office) confirmable(t *gallery.Tx,
	id uint64) (person int64, first []album.Face, err error) {
	s, pictures, err := w.find(t, id)
	switch {
	case err != nil:
		return 0, nil, err
	case s.Person == 0:
		return 0, nil, ErrNobody
	case len(pictures.Faces) == 0:
		return 0, nil, ErrNoFaces
	}
	first, _ = pictures.First()
	return s.Person, first, nil
}

// Confirm states that a sighting is the recognised person, if only learned faces supported the
// name: its first faces become labels. So the gallery follows a beard or the years. If a user has
// seen faces, they are given by number, and the error wraps [ErrOthers] if others would be
// enrolled. It wraps [ErrNoSighting], [ErrNobody], [ErrNoFaces] or [gallery.ErrResembles], or comes
// from [gallery.Gallery.Enroll]; nothing has changed then.
func (w *Office) Confirm(id uint64, seen ...uint64) (Correction, error) {
	return w.change(func(t *gallery.Tx) error {
		person, first, err := w.confirmable(t, id)
		if err != nil {
			return err
		}
		if len(seen) > 0 && slices.ContainsFunc(first, func(f album.Face) bool {
			return !slices.Contains(seen, f.ID)
		}) {
			return ErrOthers
		}
		if _, err := w.enrol(t, w.gallery.Name(person), first, false); err != nil {
			return err
		}
		said := w.state(t, Correction{Kind: Confirmed, Person: person, Sighting: id})
		return w.is(t, said, id, person)
	})
}

// Rename gives a person a new name. If another person has it, the two become one person: the
// labels, sightings and events of the first are the other's, and the learner learns the first
// person's faces again. The error wraps [online.ErrUnknown] or [face.ErrName], is [ErrSame] or
// [gallery.ErrAlike], or comes from the database; nothing has changed then.
func (w *Office) Rename(from, to string) (Correction, error) {
	return w.change(func(t *gallery.Tx) error {
		person, err := w.gallery.Find(from)
		other, alike := w.gallery.Number(to), w.gallery.Alike(to)
		switch {
		case err != nil:
			return err
		case from == to:
			return fmt.Errorf("%w: %s", ErrSame, to)
		case other == 0 && alike != "" && alike != from:
			return fmt.Errorf("%w: %s; use this spelling to make them one person", gallery.ErrAlike,
				alike)
		}
		if err := face.CheckName(to); err != nil {
			return err
		}
		if other == 0 {
			said := w.state(t, Correction{Kind: Renamed, Person: person, Name: to, Was: from})
			return t.Say(said, gallery.NameOf, []int64{person}, gallery.Value{Text: to})
		}
		gone := t.Join(person, other)
		said := w.state(t, Correction{Kind: Renamed, Person: other, Other: person, Name: to,
			Was: from})
		t.Say(said, gallery.ValidLabel, gone, gallery.Value{Value: int64(0)})
		t.Say(said, gallery.WhoOf, numbers(t, sightingsOfPerson, person),
			gallery.Value{Person: other})
		return t.Say(said, gallery.EventWho, numbers(t, eventsOfPerson, person),
			gallery.Value{Person: other})
	})
}
