// SPDX-License-Identifier: Apache-2.0

// Package search finds people in recordings of the past.
//
// [Scan] makes a [Recording] of a film, or of photographs: when each person was in view, with some
// of their faces. It takes as long as detecting the faces, and is done once: an [Index] stores the
// result. A [Query] then finds a person in it at once.
package search

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// faces is the greatest number of faces that are kept of a sighting.
const faces = 16

// Sighting is a time in which one person was in view.
type Sighting struct {
	From   time.Duration // since the beginning of the recording
	To     time.Duration
	Frames int // number of frames with the person
	Album  album.Album
	// Box is where the face is in a photograph of this size, in pixels, that was turned by these
	// degrees clockwise.
	Box    image.Rectangle
	Size   image.Point
	Turned int
}

// Photograph returns the result for a photograph: each face with a vector is a sighting.
func Photograph(space face.Space, path string, f face.Frame) Recording {
	r := Recording{Path: path, Stills: 1, Film: f.Film, Count: face.Count{Declared: 1, Read: 1}}
	if f.Partial {
		r.Count.Partial = 1
	}
	for i, x := range f.Samples {
		if x.Vector == nil {
			continue
		}
		s := Sighting{Frames: 1, Box: x.Box, Size: f.Size, Turned: f.Turned}
		s.Album.Add(space, album.Face{ID: uint64(i + 1), Vector: x.Vector, JPEG: x.JPEG}, 1, 0)
		r.Sightings = append(r.Sightings, s)
	}
	return r
}

// Collector gathers the sightings of a film, frame by frame. A person who leaves and comes back is
// another sighting. Tracks without a usable picture are left out. Memory is limited by the number
// of sightings.
type Collector struct {
	space  face.Space
	t      *sighting.Tracker
	live   map[int]*Sighting
	all    []Sighting
	number uint64
}

// NewCollector returns a collector that has no frame yet.
func NewCollector(space face.Space) *Collector {
	return &Collector{space: space, t: sighting.NewTracker(space), live: make(map[int]*Sighting)}
}

// Add takes a frame.
func (c *Collector) Add(f face.Frame) {
	for i, id := range c.t.Update(f.Time, f.Samples) {
		s := c.live[id]
		if s == nil {
			s = &Sighting{From: f.Time}
			c.live[id] = s
		}
		s.To, s.Frames = f.Time, s.Frames+1
		if x := f.Samples[i]; x.Vector != nil && x.Reason == "" {
			c.number++
			s.Album.Add(c.space, album.Face{ID: c.number, Vector: x.Vector, JPEG: x.JPEG}, faces,
				c.space.ImpostorRadius/4)
		}
	}
	c.end(c.t.Live())
}

// end ends the sightings of tracks that are not among those that still live.
func (c *Collector) end(still []int) {
	for id, s := range c.live {
		if !slices.Contains(still, id) {
			if len(s.Album.Faces) > 0 {
				c.all = append(c.all, *s)
			}
			delete(c.live, id)
		}
	}
}

// End returns the result of a recording that was read to its end.
func (c *Collector) End(n face.Count) Recording {
	c.end(nil)
	slices.SortFunc(c.all, func(a, b Sighting) int {
		return cmp.Or(cmp.Compare(a.From, b.From),
			cmp.Compare(a.Album.Faces[0].ID, b.Album.Faces[0].ID))
	})
	return Recording{Sightings: c.all, Count: n}
}

// Stream is a recording.
type Stream interface {
	face.Stream
	Count() face.Count
}

// Scan finds the people in a recording. The error comes from the stream.
func Scan(ctx context.Context, s Stream, space face.Space) (Recording, error) {
	c := NewCollector(space)
	for f, err := range face.Frames(ctx, s) {
		if err != nil {
			return Recording{}, err
		}
		c.Add(f)
	}
	return c.End(s.Count()), nil
}

// Hit is a sighting of the searched person.
type Hit struct {
	Recording string        `json:"recording"`
	From      time.Duration `json:"from"` // in nanoseconds since the beginning of the recording
	To        time.Duration `json:"to"`
	Frames    int           `json:"frames"` // number of frames with the person
	Share     float64       `json:"share"`  // share of the judged faces that are the person's
	// From the nearest of these faces to a labelled one, in units of the space.
	Distance float64 `json:"distance"`
	JPEG     []byte  `json:"-"` // the nearest face
	// File is the photograph, if it is one; Recording is its folder then. Box is the face in it, in
	// pixels, when it has this size and was turned by these degrees clockwise.
	File   string          `json:"-"`
	Box    image.Rectangle `json:"-"`
	Size   image.Point     `json:"-"`
	Turned int             `json:"-"`
	// up to three faces over the time of the sighting, with the nearest
	Pictures [][]byte `json:"-"`
	Perhaps  bool     `json:"perhaps"` // it is none by [Query.Sure]
}

// Query searches for one person.
type Query struct {
	Name    string // of the person, for messages
	person  online.Person
	learner []byte          // a snapshot
	stills  *online.Learner // judges photographs
	// Sure searches for the same person with a lower rate of strangers, or is nil. What it does not
	// find is marked as perhaps the person.
	Sure *Query
}

// NewQuery returns a query for a person that a learner knows. The error wraps [online.ErrUnknown].
func NewQuery(l *online.Learner, p online.Person, name string) (*Query, error) {
	if !l.Knows(p) {
		return nil, fmt.Errorf("%w: %s", online.ErrUnknown, name)
	}
	b, err := l.MarshalBinary()
	if err != nil {
		return nil, err
	}
	stills := new(online.Learner)
	return &Query{Name: name, person: p, learner: b, stills: stills}, stills.UnmarshalBinary(b)
}

// Find returns the sightings of the person in a recording, in the order of time, and the sighting
// with the face nearest to a labelled one, or nil if there is no sighting: it shows how far a
// search without a result was from one. A copy of the learner judges each sighting and learns from
// its faces in order, as it would have done live, and is then discarded. So a result does not
// depend on other sightings. A person cannot be in two places: of two sightings at the same time,
// the better one is returned. The faces of a photograph are judged together: one look names.
func (q *Query) Find(r Recording) (hits []Hit, nearest *Hit, err error) {
	hits, nearest, err = q.find(r)
	if err != nil || q.Sure == nil || len(hits) == 0 {
		return hits, nearest, err
	}
	sure, _, err := q.Sure.find(r)
	for i, h := range hits {
		hits[i].Perhaps = !slices.ContainsFunc(sure, func(s Hit) bool {
			return s.From == h.From && s.Box == h.Box && s.Distance == h.Distance
		})
	}
	return hits, nearest, err
}

// find is Find without what is perhaps the person.
func (q *Query) find(r Recording) (hits []Hit, nearest *Hit, err error) {
	if r.Stills > 0 {
		return q.photograph(r)
	}
	var all []Hit
	for _, s := range r.Sightings {
		hit, ok, err := q.judge(s)
		if err != nil {
			return nil, nil, fmt.Errorf("searching %s: %w", r.Path, err)
		}
		hit.Recording = r.Path
		if ok {
			all = append(all, hit)
		}
		if nearest == nil || hit.Distance < nearest.Distance {
			nearest = &hit
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(h Hit) bool {
		return slices.ContainsFunc(all, func(o Hit) bool {
			return min(o.To, h.To)-max(o.From, h.From) > together && o.better(h)
		})
	}), nearest, nil
}

// photograph is Find for a photograph.
func (q *Query) photograph(r Recording) (hits []Hit, nearest *Hit, err error) {
	faces := make([][]float32, len(r.Sightings))
	for i, s := range r.Sightings {
		faces[i] = s.Album.Faces[0].Vector
	}
	verdicts, err := online.JudgePhotograph(q.stills, faces)
	if err != nil {
		return nil, nil, fmt.Errorf("searching %s: %w", r.Path, err)
	}
	for i, s := range r.Sightings {
		d, err := q.stills.Nearest(faces[i], q.person)
		if err != nil {
			return nil, nil, fmt.Errorf("searching %s: %w", r.Path, err)
		}
		jpeg := s.Album.Faces[0].JPEG
		h := Hit{Recording: filepath.Dir(r.Path), File: r.Path, Box: s.Box,
			Size: s.Size, Turned: s.Turned, Frames: 1, Share: 1,
			Distance: d, JPEG: jpeg, Pictures: [][]byte{jpeg}}
		if verdicts[i].Person == q.person {
			hits = append(hits, h)
		}
		if nearest == nil || d < nearest.Distance {
			nearest = &h
		}
	}
	return hits, nearest, nil
}

// together is the longest overlap of two sightings that can be one person: a lost track continues
// for a moment.
const together = 500 * time.Millisecond

func (h Hit) better(o Hit) bool {
	return h.Distance < o.Distance || h.Distance == o.Distance && h.From < o.From
}

// Least shares of the faces of a sighting, which a tracker holds for one person, that make it the
// searched person's: of all that were judged, and of those that have a name. A face that turned
// away is unknown, and speaks against nobody.
const (
	leastOfAll   = 1. / 3
	leastOfNamed = .6
)

// judge reports whether a sighting is the person. As in a photograph, one look can name: somebody
// may pass by quickly.
func (q *Query) judge(s Sighting) (Hit, bool, error) {
	var l online.Learner
	if err := l.UnmarshalBinary(q.learner); err != nil {
		return Hit{}, false, err
	}
	h := Hit{From: s.From, To: s.To, Frames: s.Frames, Distance: math.Inf(1)}
	own, named, nearest := 0, 0, 0
	for i, f := range s.Album.Faces {
		d, err := l.Nearest(f.Vector, q.person)
		if err != nil {
			return h, false, err
		}
		if d < h.Distance {
			h.Distance, h.JPEG, nearest = d, f.JPEG, i
		}
		v, err := l.Observe(f.Vector)
		if err != nil {
			return h, false, err
		}
		if v.Person != 0 {
			named++
		}
		if v.Person == q.person {
			own++
		}
	}
	last := len(s.Album.Faces) - 1
	if nearest == 0 || nearest == last {
		nearest = last / 2
	}
	for i, f := range s.Album.Faces {
		if i == 0 || i == nearest || i == last {
			h.Pictures = append(h.Pictures, f.JPEG)
		}
	}
	all := float64(len(s.Album.Faces))
	h.Share = float64(own) / all
	return h, own > 0 && h.Share >= leastOfAll && float64(own) >= leastOfNamed*float64(named), nil
}
