// SPDX-License-Identifier: Apache-2.0

package office

import (
	"bytes"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// pictures shows faces: of sightings, of strangers, and of what the learner keeps.
type pictures struct {
	*memory
	guesses map[uint64]guess // by group
	guessed uint64           // the turn of the gallery for which they hold
}

// Portrait is the picture of a face that the learner keeps. At most one of the numbers is not 0.
type Portrait struct {
	Face    uint64    `json:"face,omitempty"`    // of a labelled face, for [Office.Face]
	Learned int64     `json:"learned,omitempty"` // of a learned face, for [Office.Learned]
	Seen    time.Time `json:"seen,omitzero"`     // when the picture of a labelled face was made
	Camera  string    `json:"camera,omitempty"`  // the camera that made it
}

// Kept is a face of a person that the learner keeps.
type Kept struct {
	ID       int64     `json:"id"`          // for [Office.Way] and [Office.TakeBack]
	Negative bool      `json:"not"`         // a negative label: the face is not this person's
	Learned  bool      `json:"learned"`     // learned; otherwise labelled by a user
	At       time.Time `json:"at,omitzero"` // time of learning; zero if unknown
	Points   int       `json:"points"`      // number of faces that it stands for
	Hops     int       `json:"hops"`        // number of steps from an enrolled face
	Portrait Portrait  `json:"portrait"`
}

// Profile is an office's record of a person.
type Profile struct {
	Name     string    `json:"name"`
	Enrolled time.Time `json:"enrolled,omitzero"` // time of the last enrolled faces; zero if unknown
	// Enrolled faces, then negative ones, then learned ones; each the oldest first.
	Faces []Kept       `json:"faces"`
	Drift online.Drift `json:"drift"`
}

// Step is a face on the path from a learned face back to an enrolled one.
type Step struct {
	Stored   int64     `json:"stored"`         // number of the face that the learner keeps
	Name     string    `json:"name,omitempty"` // of an enrolled face
	Negative bool      `json:"not"`            // a negative label: the face is not the person's
	Merged   bool      `json:"merged"`         // merged into the stored face, whose position and picture it has now
	At       time.Time `json:"at,omitzero"`    // time of learning; zero if unknown
	Distance float64   `json:"distance"`       // to the face before it; 0 for the first
	Portrait Portrait  `json:"portrait"`
}

// Way is the path by which the learner accepted a learned face.
type Way struct {
	// Steps begin with the face itself. Each next step is the face through which the one before was accepted.
	Steps []Step `json:"steps"`
	Whole bool   `json:"whole"` // the path ends at an enrolled face; otherwise its beginning is not kept
	// Link is the greatest distance of a step.
	Link float64 `json:"link"`
}

// portrait returns the picture of a stored face.
func (w *pictures) portrait(stored int64) (p Portrait) {
	label, labelled := w.gallery.LabelOf(stored)
	if !labelled {
		if w.gallery.Learner().Picture(stored) != nil {
			p.Learned = stored
		}
		return p
	}
	w.note(w.past.look(func(t *gallery.Tx) error {
		return t.Query("select camera, at from face where number = ? and jpeg is not null", func(r gallery.Row) error {
			p = Portrait{Face: label.Face, Camera: r.ColumnText(0), Seen: moment(r.ColumnInt64(1))}
			return nil
		}, int64(label.Face))
	}))
	return p
}

// Learned returns the picture of a learned face, or nil.
func (w *pictures) Learned(stored int64) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.gallery.Learner().Picture(stored))
}

// Profile returns the record of a person. The error wraps [online.ErrUnknown].
func (w *pictures) Profile(name string) (p Profile, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	learner := w.gallery.Learner()
	person, err := w.gallery.Find(name)
	if err != nil {
		return p, err
	}
	p = Profile{Name: name, Faces: []Kept{}}
	if p.Drift, err = learner.Drift(person); err != nil {
		return Profile{}, err
	}
	for _, known := range w.gallery.People() {
		if known.ID == person {
			p.Enrolled = known.Enrolled
		}
	}
	kinds := make([][]Kept, 3) // enrolled, negative and learned ones
	for _, s := range learner.Stored() {
		if s.Person != person {
			continue
		}
		kind := 0
		switch {
		case !s.Labelled:
			kind = 2
		case s.Negative:
			kind = 1
		}
		kinds[kind] = append(kinds[kind], Kept{ID: s.ID, Negative: s.Negative, Learned: !s.Labelled, At: s.At,
			Points: int(s.Points), Hops: s.Hops, Portrait: w.portrait(s.ID)})
	}
	p.Faces = append(p.Faces, slices.Concat(kinds...)...)
	return p, nil
}

// Way returns the path by which the learner accepted a face. The error wraps [online.ErrUnknown].
func (w *pictures) Way(stored int64) (way Way, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	learner := w.gallery.Learner()
	path, whole, err := learner.Path(stored)
	if err != nil {
		return Way{}, err
	}
	way.Link, way.Whole = learner.Radii().Link, whole
	for _, s := range path {
		way.Steps = append(way.Steps, Step{
			Stored: s.Stored, Name: w.gallery.Name(s.Label.Person), Negative: s.Label.Negative, Merged: s.Merged, At: s.At,
			Distance: s.Distance, Portrait: w.portrait(s.Stored),
		})
	}
	return way, nil
}
