// SPDX-License-Identifier: Apache-2.0

package office

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/online"
)

// pictures shows faces: of sightings, of strangers, and of what the learner keeps.
type pictures struct {
	*memory
	profiled map[int64]remembered // learned faces that Profile has returned
	guesses  map[uint64]guess     // by group
	guessed  uint64               // the turn of the gallery for which they hold
}

// Portrait is a picture that shows a face of the learner. The learner itself keeps no pictures.
type Portrait struct {
	Face uint64 `json:"face"` // number for [Office.Face]; 0 if no picture is similar
	// Distance between the learner's face and the face in the picture; 0: the same face.
	Apart  float64   `json:"apart"`
	Seen   time.Time `json:"seen,omitzero"`    // when the picture was made
	Camera string    `json:"camera,omitempty"` // the camera that made it
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
	// Instead is set if the requested face was merged or removed since it was shown. It is the number of the nearest
	// face of the same person; Steps are the path of that face.
	Instead int64 `json:"instead,omitempty"`
}

// mostRemembered is the greatest number of remembered faces of profiles.
const mostRemembered = 4096

// remembered is a face that [Office.Profile] has returned.
type remembered struct {
	person int64
	vector []float32
}

// instead returns the nearest face of the same person for a shown face that the learner no longer keeps, or 0.
func (w *pictures) instead(gone int64) (id int64) {
	was, least := w.profiled[gone], math.Inf(1)
	for _, s := range w.gallery.Learner().Stored() {
		if was.person == 0 || s.Person != was.person || s.Negative {
			continue
		}
		if d := graph.Distance(s.Vector, was.vector, w.gallery.Space().Scale); d < least {
			least, id = d, s.ID
		}
	}
	return id
}

// mostShown is the number of the latest faces of past sightings that are searched for pictures.
const mostShown = 3000

// pictured has the faces with pictures, without the pictures, in which those of a learner's faces are found.
type pictured struct {
	space face.Space
	all   []Face
}

// pictured collects the present pictures: of the sightings in view, of strangers, of labels, and of the latest past.
func (w *pictures) pictured() *pictured {
	p := &pictured{space: w.gallery.Space()}
	w.fresh(func(s *sighted) {
		p.all = append(p.all, slices.DeleteFunc(slices.Clone(s.album.Faces), func(f Face) bool { return f.JPEG == nil })...)
	})
	w.note(w.past.look(func(t *gallery.Tx) error {
		return t.Query(`select number, camera, at, sharp, vector, null from face where office = ? and jpeg is not null
			order by number desc limit ?`, func(r gallery.Row) error {
			if f := faceOf(r, 0); p.space.Check(f.Vector) == nil {
				p.all = append(p.all, f)
			}
			return nil
		}, w.past.id, int64(mostShown))
	}))
	return p
}

// find returns the picture of a face, or zero for nil: its own, or that of the nearest face within half the impostor
// radius. Two people are never so alike. An album keeps only a few of the faces that were learned with it.
func (p *pictured) find(x []float32) Portrait {
	at, apart := -1, p.space.ImpostorRadius/2
	for i, f := range p.all {
		if slices.Equal(x, f.Vector) {
			at, apart = i, 0
			break
		}
		if d, near := within(x, f.Vector, p.space.Scale, apart); near {
			at, apart = i, d
		}
	}
	if at < 0 {
		return Portrait{}
	}
	f := p.all[at]
	return Portrait{Face: f.ID, Apart: apart, Seen: f.At, Camera: f.Camera}
}

// within returns the distance of two vectors if it is less than a bound. Most vectors are far apart, which shows early.
func within(x, y []float32, scale, bound float64) (d float64, ok bool) {
	const stretch = 64
	sum, most := 0., bound/scale*(bound/scale)*(1+1e-9)
	for i := 0; i < len(x); i += stretch {
		end := min(i+stretch, len(x))
		if sum += graph.SquaredDistance(x[i:end], y[i:end]); sum >= most {
			return 0, false
		}
	}
	d = scale * math.Sqrt(sum)
	return d, d < bound
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
	if w.profiled == nil || len(w.profiled) > mostRemembered {
		w.profiled = make(map[int64]remembered)
	}
	pictures := w.pictured()
	kinds := make([][]Kept, 3) // enrolled, negative and learned ones
	for _, s := range learner.Stored() {
		if s.Person != person {
			continue
		}
		kind := 0
		switch {
		case !s.Labelled:
			kind = 2
			w.profiled[s.ID] = remembered{person, slices.Clone(s.Vector)} // the learner may move or merge it
		case s.Negative:
			kind = 1
		}
		kinds[kind] = append(kinds[kind], Kept{ID: s.ID, Negative: s.Negative, Learned: !s.Labelled, At: s.At,
			Points: int(s.Points), Hops: s.Hops, Portrait: pictures.find(s.Vector)})
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
	if errors.Is(err, online.ErrUnknown) {
		if way.Instead = w.instead(stored); way.Instead != 0 {
			path, whole, err = learner.Path(way.Instead)
		}
	}
	if err != nil {
		return Way{}, err
	}
	way.Link, way.Whole = learner.Radii().Link, whole
	pictures := w.pictured()
	for _, s := range path {
		way.Steps = append(way.Steps, Step{
			Stored: s.Stored, Name: w.gallery.Name(s.Label.Person), Negative: s.Label.Negative, Merged: s.Merged, At: s.At,
			Distance: s.Distance, Portrait: pictures.find(learner.Vector(s.Stored)),
		})
	}
	return way, nil
}
