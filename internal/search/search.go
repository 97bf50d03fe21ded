// SPDX-License-Identifier: Apache-2.0

// Package search finds people in recordings of the past.
//
// [Scan] makes a [Recording] of a video: the times when each person was in view, with some of their faces. It takes as
// long as detecting the faces in the video, and is done once: [Recording.Save] and [Load] store the result. A [Query]
// then finds a person in it at once.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// faces is the greatest number of faces that are kept of a sighting.
const faces = 16

// Sighting is a time in which one person was in view.
type Sighting struct {
	From   time.Duration `cbor:"from"` // since the beginning of the recording
	To     time.Duration `cbor:"to"`
	Frames int           `cbor:"frames"` // number of frames with the person
	Album  office.Album  `cbor:"album"`
}

// Part is the result for the beginning of a recording, up to a frame after which nobody was in view.
type Part struct {
	Frame     int           `cbor:"frame"` // index of that frame
	Time      time.Duration `cbor:"time"`
	Tracks    int           `cbor:"tracks"` // number of the next track
	Number    uint64        `cbor:"number"` // number of the last face
	Sightings []Sighting    `cbor:"sightings"`
}

// partEvery is the least time between two parts, by the clock of the recording.
const partEvery = 2 * time.Minute

// Scan finds the people in a recording. A person who leaves and comes back is another sighting. Tracks without a usable
// picture are left out. Memory is limited by the number of sightings. The error comes from the stream or from keep.
//
// Scan continues after a part, over a stream that begins after its frame; the zero Part is the beginning. If the stream
// is a [face.Renewer], Scan calls keep from time to time, when nobody is in view, with the result so far. Continuing
// from such a part gives the same result as an uninterrupted scan. Keep may be nil.
func Scan(
	ctx context.Context,
	s face.Stream,
	space face.Space,
	from Part,
	keep func(Part) error,
) ([]Sighting, error) {
	t := sighting.NewTracker(space, sighting.Settings{First: from.Tracks})
	live := make(map[int]*Sighting)
	all := append([]Sighting{}, from.Sightings...)
	parted := from.Time
	end := func(still []int) {
		for id, s := range live {
			if !slices.Contains(still, id) {
				if len(s.Album.Faces) > 0 {
					all = append(all, *s)
				}
				delete(live, id)
			}
		}
	}
	number := from.Number
	for {
		f, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			end(nil)
			slices.SortFunc(all, func(a, b Sighting) int {
				return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Album.Faces[0].ID, b.Album.Faces[0].ID))
			})
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		for i, id := range t.Update(f.Time, f.Samples) {
			s := live[id]
			if s == nil {
				s = &Sighting{From: f.Time}
				live[id] = s
			}
			s.To, s.Frames = f.Time, s.Frames+1
			if x := f.Samples[i]; x.Vector != nil && x.Reason == "" {
				number++
				s.Album.Add(space, office.Face{ID: number, Vector: x.Vector, JPEG: x.JPEG}, faces,
					space.ImpostorRadius/4)
			}
		}
		end(t.Live())
		if l, ok := s.(face.Looker); ok {
			l.Sure() // a scan never needs a closer look
		}
		if keep == nil || f.Time-parted < partEvery || len(f.Samples)+len(t.Live()) > 0 {
			continue
		}
		if r, ok := s.(face.Renewer); ok && r.Renew() {
			parted = f.Time
			if err := keep(Part{f.Index, f.Time, t.Next(), number, slices.Clone(all)}); err != nil {
				return nil, err
			}
		}
	}
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
}

// Query searches for one person.
type Query struct {
	Name    string
	learner []byte // a snapshot
}

// NewQuery returns a query for a person that a learner knows. The error wraps [online.ErrUnknown].
func NewQuery(l *online.Learner, name string) (*Query, error) {
	if !slices.Contains(l.Names(), name) {
		return nil, fmt.Errorf("%w: %s; known are %q", online.ErrUnknown, name, l.Names())
	}
	b, err := l.MarshalBinary()
	return &Query{Name: name, learner: b}, err
}

// Find returns the sightings of the person in a recording, in the order of time. A copy of the learner judges each
// sighting and learns from its faces in order, as it would have done live, and is then discarded. So a result does not
// depend on other sightings. A person cannot be in two places: of two sightings at the same time, the better one is
// returned.
func (q *Query) Find(r Recording) ([]Hit, error) {
	var hits []Hit
	for _, s := range r.Sightings {
		hit, ok, err := q.judge(s)
		if err != nil {
			return nil, fmt.Errorf("searching %s: %w", r.Path, err)
		}
		if ok {
			hit.Recording = r.Path
			hits = append(hits, hit)
		}
	}
	return slices.DeleteFunc(slices.Clone(hits), func(h Hit) bool {
		return slices.ContainsFunc(hits,
			func(o Hit) bool { return o.better(h) && min(o.To, h.To)-max(o.From, h.From) > together })
	}), nil
}

// Closest returns the sighting with the face nearest to a labelled one of the person, if there is a sighting. It shows
// how far a search without a result was from one.
func (q *Query) Closest(r Recording) (closest Hit, ok bool, err error) {
	for _, s := range r.Sightings {
		h, _, err := q.judge(s)
		if err != nil {
			return h, false, fmt.Errorf("searching %s: %w", r.Path, err)
		}
		if !ok || h.Distance < closest.Distance {
			closest, ok = h, true
		}
	}
	closest.Recording = r.Path
	return closest, ok, nil
}

// together is the longest overlap of two sightings that can be one person: a lost track continues for a moment.
const together = 500 * time.Millisecond

func (h Hit) better(o Hit) bool {
	return h.Share > o.Share ||
		h.Share == o.Share && (h.Distance < o.Distance || h.Distance == o.Distance && h.From < o.From)
}

// judge reports whether a sighting is the person.
func (q *Query) judge(s Sighting) (Hit, bool, error) {
	var l online.Learner
	if err := l.UnmarshalBinary(q.learner); err != nil {
		return Hit{}, false, err
	}
	h := Hit{From: s.From, To: s.To, Frames: s.Frames, Distance: math.Inf(1)}
	who := sighting.NewIdentities(l.Space(), sighting.Rules{})
	for _, f := range s.Album.Faces {
		d, err := l.Nearest(f.Vector, q.Name)
		if err != nil {
			return h, false, err
		}
		if d < h.Distance {
			h.Distance, h.JPEG = d, f.JPEG
		}
		v, err := l.Observe(f.Vector)
		if err != nil {
			return h, false, err
		}
		who.Add(0, 0, f.Vector, v)
	}
	b := who.Who(0, []int{0})[0]
	if b.Name != q.Name {
		return h, false, nil
	}
	h.Share = b.Share
	return h, true, nil
}
