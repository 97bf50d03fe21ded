// SPDX-License-Identifier: Apache-2.0

package office

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Portrait is the picture of a face that the learner keeps. At most one of the numbers is not 0.
type Portrait struct {
	Face    uint64    `json:"face,omitempty"`    // of a labelled face, for [Office.Face]
	Learned int64     `json:"learned,omitempty"` // of a learned face, for [Office.Learned]
	Seen    time.Time `json:"seen,omitzero"`     // when the picture of a labelled face was made
	Camera  string    `json:"camera,omitempty"`  // the camera that made it
}

// Kept is a face that the learner keeps.
type Kept struct {
	ID       int64     `json:"id"`             // for [Office.Way] and [Office.TakeBack]
	Name     string    `json:"name,omitempty"` // of a labelled face, except in a [Profile]
	Negative bool      `json:"not"`            // a negative label: the face is not this person's
	Learned  bool      `json:"learned"`        // learned; otherwise labelled by a user
	At       time.Time `json:"at,omitzero"`    // time of learning; zero if unknown
	Points   int       `json:"points"`         // number of faces that it stands for; 0 except in a [Profile]
	Hops     int       `json:"hops"`           // number of steps from an enrolled face; 0 except in a [Profile]
	// Merged says of a step of a [Way] that the face was merged into the one with this number, whose position and picture it
	// has now. Distance is that to the step before; 0 for the first.
	Merged   bool     `json:"merged,omitempty"`
	Distance float64  `json:"distance"`
	Portrait Portrait `json:"portrait"`
}

// Profile is an office's record of a person.
type Profile struct {
	Name     string    `json:"name"`
	Enrolled time.Time `json:"enrolled,omitzero"` // time of the last enrolled faces; zero if unknown
	// Enrolled faces, then negative ones, then learned ones; each the oldest first.
	Faces []Kept       `json:"faces"`
	Drift online.Drift `json:"drift"`
}

// Way is the path by which the learner accepted a learned face.
type Way struct {
	// Steps begin with the face itself. Each next step is the face through which the one before was accepted.
	Steps []Kept `json:"steps"`
	Whole bool   `json:"whole"` // the path ends at an enrolled face; otherwise its beginning is not kept
	// Link is the greatest distance of a step.
	Link float64 `json:"link"`
}

// portray gives faces the pictures that there are of them.
func (w *book) portray(all []Kept) []Kept {
	at := make(map[uint64][]int)
	for i, k := range all {
		if label, labelled := w.gallery.LabelOf(k.ID); labelled {
			at[label.Face] = append(at[label.Face], i)
		} else if w.gallery.Learner().Picture(k.ID) != nil {
			all[i].Portrait.Learned = k.ID
		}
	}
	w.look(func(t *gallery.Tx) error {
		return t.Query(`select number, camera, at from face where jpeg is not null and
			number in (select value from json_each(?))`, func(r gallery.Row) error {
			number := uint64(r.ColumnInt64(0))
			for _, i := range at[number] {
				all[i].Portrait = Portrait{Face: number, Camera: r.ColumnText(1), Seen: moment(r.ColumnInt64(2))}
			}
			return nil
		}, ids(slices.Collect(maps.Keys(at))))
	})
	return all
}

// Learned returns the picture of a learned face, or nil.
func (w *book) Learned(stored int64) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.gallery.Learner().Picture(stored))
}

// Profile returns the record of a person. The error wraps [online.ErrUnknown].
func (w *book) Profile(name string) (p Profile, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	learner := w.gallery.Learner()
	person, err := w.gallery.Find(name)
	if err != nil {
		return p, err
	}
	p = Profile{Name: name, Faces: []Kept{}}
	p.Drift, err = learner.Drift(person)
	if err != nil {
		return Profile{}, err
	}
	for _, known := range w.gallery.People() {
		if known.ID == person {
			p.Enrolled = known.Enrolled
		}
	}
	for _, s := range learner.Stored() {
		if s.Person == person {
			p.Faces = append(p.Faces, Kept{ID: s.ID, Negative: s.Negative, Learned: !s.Labelled, At: s.At,
				Points: int(s.Points), Hops: s.Hops})
		}
	}
	w.portray(p.Faces)
	rank := map[[2]bool]int{{false, false}: 0, {true, false}: 1, {false, true}: 2} // negative, learned
	slices.SortStableFunc(p.Faces, func(a, b Kept) int {
		return rank[[2]bool{a.Negative, a.Learned}] - rank[[2]bool{b.Negative, b.Learned}]
	})
	return p, nil
}

// Way returns the path by which the learner accepted a face. The error wraps [online.ErrUnknown].
func (w *book) Way(stored int64) (way Way, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	learner := w.gallery.Learner()
	path, whole, err := learner.Path(stored)
	if err != nil {
		return Way{}, err
	}
	way.Link, way.Whole = learner.Radii().Link, whole
	for _, s := range path {
		way.Steps = append(way.Steps, Kept{ID: s.Stored, Name: w.gallery.Name(s.Label.Person), Negative: s.Label.Negative,
			Learned: s.Label.Person == 0, Merged: s.Merged, At: s.At, Distance: s.Distance})
	}
	w.portray(way.Steps)
	return way, nil
}

// Choose sets the picture of a person: the number of one of the enrolled faces, or 0 for none. The error wraps
// [online.ErrUnknown], is [ErrNoFaces] for a face without a picture, or comes from the database.
func (w *book) Choose(name string, face uint64) error {
	return w.change(func(t *gallery.Tx) error {
		person, err := w.gallery.Find(name)
		if err != nil {
			return err
		}
		n, _ := t.Int(`select count(*) from label join face on face.number = label.number where label.number = ? and
			person = ? and not rejected and valid and jpeg is not null`, int64(face), person)
		if n == 0 && face != 0 {
			return cmp.Or(t.Err(), ErrNoFaces)
		}
		w.state(t, Correction{Kind: Pictured, Person: person, Face: face})
		return nil
	})
}

// Probably is the known person who comes nearest to a stranger, beyond the limit of a name.
type Probably struct {
	Name   string `json:"name"`
	Person int64  `json:"person"`
	sighting.Near
}

// mostAsked is the number of faces of a stranger that are compared, and farthest the distance up to which somebody is
// named, in units of the impostor radius.
const (
	mostAsked = 2
	farthest  = 1.25
)

// suppose finds the known person who comes nearest to a stranger, as long as nobody changes.
func (w *book) suppose(g *Stranger) {
	asked := g.Faces[:min(mostAsked, len(g.Faces))]
	if g.asked == len(asked) {
		return
	}
	person, distance := int64(0), farthest*w.gallery.Space().ImpostorRadius
	for _, f := range asked {
		if p, d := w.gallery.Learner().Closest(f.Vector, distance); p != 0 {
			person, distance = p, d
		}
	}
	g.asked, g.Probably = len(asked), nil
	if name := w.gallery.Name(person); name != "" {
		g.Probably = &Probably{name, person, sighting.NearAt(w.gallery.Space(), distance)}
	}
}

// Shot is the best picture of an unknown person in one sighting.
type Shot struct {
	Sighting uint64  // its number; 0 if it is not kept
	Face     uint64  // number of the picture for [Office.Face]; 0 if there is none
	JPEG     []byte  // the picture, or nil
	Clear    float64 // how clear the picture is: the logarithm of its contrast
}

// Shot returns the best picture that there is now of the person of an [Unknown] event. There is none if strangers are
// not kept, or if a user has named, ignored or forgotten this person since.
func (w *book) Shot(e presence.Event) (s Shot) {
	if e.Kind != presence.Unknown {
		return s
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look(func(t *gallery.Tx) (err error) {
		err = w.sightings(t, "camera = ?2 and first = ?3 order by id desc limit 1", func(x Sighting) error {
			s.Sighting = x.ID
			if w.unknown.Get(x.Group) == nil || w.unknown.Ignored(x.Group) {
				return nil
			}
			faces, err := facesOf(t, x.ID)
			for _, f := range sighting.Best(w.gallery.Space(), faces, 1) {
				if f.JPEG != nil {
					s.Face, s.JPEG, s.Clear = f.ID, f.JPEG, f.Clear()
				}
			}
			return err
		}, e.Camera, nanoseconds(e.At))
		return err
	})
	return s
}
