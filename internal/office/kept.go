// SPDX-License-Identifier: Apache-2.0

package office

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/online"
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
	// number of faces that it stands for; 0 except in a [Profile]
	Points int `json:"points"`
	Hops   int `json:"hops"` // number of steps from an enrolled face; 0 except in a [Profile]
	// Merged says of a step of a [Way] that the face was merged into the one with this number,
	// whose position and picture it has now. Distance is that to the step before; 0 for the first.
	Merged   bool     `json:"merged,omitempty"`
	Distance float64  `json:"distance"`
	Portrait Portrait `json:"portrait"`
}

// Profile is an office's record of a person.
type Profile struct {
	Name  string       `json:"name"`
	Faces []Kept       `json:"faces"` // the oldest first
	Drift online.Drift `json:"drift"`
}

// Way is the path by which the learner accepted a learned face.
type Way struct {
	// Steps begin with the face itself. Each next step is the face through which the one before was
	// accepted.
	Steps []Kept `json:"steps"`
	// the path ends at an enrolled face; otherwise its beginning is not kept
	Whole bool `json:"whole"`
	// Link is the greatest distance of a step.
	Link float64 `json:"link"`
}

// portray gives faces the pictures that there are of them.
func (w *Office) portray(all []Kept) []Kept {
	at := make(map[int64]int) // by label
	for i, k := range all {
		if row := w.gallery.Rows().LabelOf(k.ID); row != 0 {
			at[row] = i
		} else if w.gallery.Learner().Picture(k.ID) != nil {
			all[i].Portrait.Learned = k.ID
		}
	}
	w.look(func(t *gallery.Tx) {
		for r := range t.Rows(
			`select label.id, label.number, coalesce(camera, ''), coalesce(at, 0) from label
			left join face on face.number = label.number
			left join portrait on portrait.number = label.number
			where coalesce(face.jpeg, portrait.jpeg) is not null and
			label.id in (select value from json_each(?))`,
			ids(slices.Collect(maps.Keys(at)))) {
			all[at[r.ColumnInt64(0)]].Portrait = Portrait{Face: uint64(r.ColumnInt64(1)),
				Camera: r.ColumnText(2), Seen: moment(r.ColumnInt64(3))}
		}
	})
	return all
}

// Learned returns the picture of a learned face, or nil.
func (w *Office) Learned(stored int64) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.gallery.Learner().Picture(stored))
}

// Profile returns the record of a person. The error wraps [online.ErrUnknown].
func (w *Office) Profile(name string) (p Profile, err error) {
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
	for _, s := range learner.Stored() {
		if s.Person == person {
			p.Faces = append(p.Faces, Kept{ID: s.ID, Negative: s.Negative, Learned: !s.Labelled,
				At: s.At, Points: int(s.Points), Hops: s.Hops})
		}
	}
	w.portray(p.Faces)
	return p, nil
}

// Way returns the path by which the learner accepted a face. The error wraps [online.ErrUnknown].
func (w *Office) Way(stored int64) (way Way, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	learner := w.gallery.Learner()
	path, whole, err := learner.Path(stored)
	if err != nil {
		return Way{}, err
	}
	way.Link, way.Whole = learner.Radii().Link, whole
	for _, s := range path {
		way.Steps = append(way.Steps, Kept{ID: s.Stored, Name: w.gallery.Name(s.Label.Person),
			Negative: s.Label.Negative,
			Learned:  s.Label.Person == 0, Merged: s.Merged, At: s.At, Distance: s.Distance})
	}
	w.portray(way.Steps)
	return way, nil
}

// Choose sets the picture of a person: the number of one of the enrolled faces, or 0 for none. The
// error wraps [online.ErrUnknown], is [ErrNoFaces] for a face without a picture, or comes from the
// database.
func (w *Office) Choose(name string, face uint64) (Correction, error) {
	return w.change(func(t *gallery.Tx) error {
		person, err := w.gallery.Find(name)
		if err != nil {
			return err
		}
		n, _ := t.Int("select count(*) from ("+pictured+") where person = ?2 and number = ?1",
			int64(face), person)
		if n == 0 && face != 0 {
			return cmp.Or(t.Err(), ErrNoFaces)
		}
		w.state(t, Correction{Kind: Pictured, Person: person, Face: face})
		return nil
	})
}

// Conflict is a contradiction between the labels of two people, or between labels and negative
// labels of one person: the faces look alike, so one label must be wrong.
type Conflict struct {
	A        Kept    `json:"a"` // the nearest pair of faces
	B        Kept    `json:"b"`
	Distance float64 `json:"distance"` // between them, in units of the space's distance
	Pairs    int     `json:"pairs"`    // number of contradicting pairs of faces
}

// sides returns the sides of a contradiction: each the labels of a person, or the negative ones.
func sides(c online.Conflict) [2]online.Label {
	c.A.ID, c.B.ID = 0, 0
	return [2]online.Label{c.A, c.B}
}

// Conflicts returns the contradictions between labelled faces: the nearest pair of each two people,
// the nearest pair first.
func (w *Office) Conflicts() []Conflict {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Conflict{}
	alike := make(map[[2]int64]bool)
	w.look(func(t *gallery.Tx) {
		for r := range t.Rows(`select min(person, other), max(person, other) from statement
			where kind = 'alike' and not undone`) {
			alike[[2]int64{r.ColumnInt64(0), r.ColumnInt64(1)}] = true
		}
	})
	at := make(map[[2]online.Label]int)
	of := func(l online.Label) Kept {
		return Kept{ID: l.ID, Name: w.gallery.Name(l.Person), Negative: l.Negative}
	}
	for _, c := range w.contradictions() {
		if alike[[2]int64{c.A.Person, c.B.Person}] {
			continue
		}
		i, there := at[sides(c)]
		if !there {
			i = len(all)
			at[sides(c)] = i
			pair := w.portray([]Kept{of(c.A), of(c.B)})
			all = append(all, Conflict{A: pair[0], B: pair[1], Distance: c.Distance})
		}
		all[i].Pairs++
	}
	return all
}

// contradictions returns the contradicting pairs of labels, the nearest first. Of two sides one is
// always A.
func (w *Office) contradictions() []online.Conflict {
	all := w.gallery.Learner().Conflicts(.75 * w.gallery.Space().ImpostorRadius)
	for i, c := range all {
		if c.B.Person < c.A.Person || c.B.Person == c.A.Person && c.A.Negative {
			all[i].A, all[i].B = c.B, c.A
		}
	}
	return all
}

// Alike says that two people look alike and are two: that their faces contradict each other is no
// question any more. The error wraps [online.ErrUnknown], is [ErrSame], or comes from the database.
func (w *Office) Alike(name, other string) (Correction, error) {
	return w.change(func(t *gallery.Tx) error {
		a, err := w.gallery.Find(name)
		b, none := w.gallery.Find(other)
		switch {
		case err != nil || none != nil:
			return cmp.Or(err, none)
		case a == b:
			return fmt.Errorf("%w: %s", ErrSame, name)
		}
		w.state(t, Correction{Kind: Alike, Person: a, Other: b})
		return nil
	})
}

// TakeBack removes a face of a [Profile] or a [Conflict] by its number: a label, or a learned face
// with all faces that were accepted through it, of which it returns the number. Against is the
// other face of a conflict, or 0: then all labels of this side that contradict the other side are
// removed. An undo gives labels back, and no learned faces. The error wraps [online.ErrUnknown], or
// comes from the database.
func (w *Office) TakeBack(stored, against int64) (c Correction, learned int, err error) {
	c, err = w.change(func(t *gallery.Tx) error {
		row := w.gallery.Rows().LabelOf(stored)
		if row == 0 {
			learned, err = t.Learner().Remove(stored)
			return err
		}
		rows, all := []int64{row}, w.contradictions()
		pair := func(a, b int64) int {
			return slices.IndexFunc(all, func(c online.Conflict) bool {
				return c.A.ID == a && c.B.ID == b
			})
		}
		first, second := pair(stored, against), pair(against, stored)
		for _, c := range all {
			switch {
			case first >= 0 && sides(c) == sides(all[first]):
				rows = append(rows, w.gallery.Rows().LabelOf(c.A.ID))
			case second >= 0 && sides(c) == sides(all[second]):
				rows = append(rows, w.gallery.Rows().LabelOf(c.B.ID))
			}
		}
		s := Correction{Kind: Unlabelled}
		s.Other, _ = t.Int("select person from label where id = ? and not rejected", row)
		return t.Say(w.state(t, s), gallery.ValidLabel, rows, gallery.Value{Value: int64(0)})
	})
	return c, learned, err
}
