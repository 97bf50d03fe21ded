// SPDX-License-Identifier: Apache-2.0

package days

import (
	"context"
	"image"
	"io"
	"math/rand/v2"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
)

// Crossings counts what an office tells of pairs of strangers who walk past each other.
type Crossings struct {
	Pairs     int `json:"pairs"`
	Visitors  int `json:"visitors"`  // of them, those of whom an event tells
	Announced int `json:"announced"` // events of unknown people
	Mixed     int `json:"mixed"`     // groups with faces of both
}

const (
	crossingRate = 5                // frames a second
	crossingTime = 12 * time.Second // from one side of the view to the other
)

// Cross lets n pairs of strangers cross before a camera: at different speeds, and one hides the
// other for a moment. The error wraps [ErrTooFew], or is that of [office.Office.Run].
func Cross(ctx context.Context, space face.Space, all []Recording, n int,
	o Options) (c Crossings, err error) {
	byName := make(map[string][]Recording)
	var names []string
	for _, r := range all {
		if byName[r.Person] == nil {
			names = append(names, r.Person)
		}
		byName[r.Person] = append(byName[r.Person], r)
	}
	if len(names) < 2 {
		return c, ErrTooFew
	}
	rnd := rand.New(rand.NewPCG(o.Seed, 7))
	for ; c.Pairs < n; c.Pairs++ {
		pair := rnd.Perm(len(names))[:2]
		var two [2]Recording
		for i, k := range pair {
			own := byName[names[k]]
			two[i] = own[rnd.IntN(len(own))]
		}
		if err := c.cross(ctx, space, rnd, two, o); err != nil {
			return c, err
		}
	}
	return c, nil
}

// cross lets an office watch one pair.
func (c *Crossings) cross(ctx context.Context, space face.Space, rnd *rand.Rand, two [2]Recording,
	o Options) error {
	frames := make([]face.Frame, int(crossingTime.Seconds()*crossingRate)+2*crossingRate)
	of := make(map[*float32]int) // whose a vector is
	front := rnd.IntN(2)
	for _, i := range []int{front, 1 - front} {
		samples := steps(two[i], rnd)
		late, width := rnd.IntN(2*crossingRate), faceWidth*(8+rnd.IntN(5))/10
		long := len(frames) - late
		for k, s := range samples[:min(len(samples), long)] {
			x := (sceneWidth - width) * k / long
			if i == 1 {
				x = sceneWidth - width - x
			}
			s.Track, s.Box = 0, image.Rect(x, 0, x+width, width*5/4)
			f := &frames[late+k]
			if s.Vector != nil && !hidden(s.Box, f.Samples) {
				of[&s.Vector[0]] = i
				f.Samples = append(f.Samples, s)
			}
		}
	}
	for i := range frames {
		frames[i].Index, frames[i].Time = i, time.Duration(i)*time.Second/crossingRate
	}
	g, err := gallery.New(space, online.Settings{})
	if err != nil {
		return err
	}
	defer g.Close()
	past, err := office.OpenPast(g, "", office.PastSettings{})
	if err != nil {
		return err
	}
	defer past.Close()
	now := noon
	told := make(map[int]bool)
	seen := make(map[uint64]map[int]bool) // who was in a group
	w := office.New(past, office.Options{
		Presence: presence.Settings{Away: o.defaults().Away},
		Now:      func() time.Time { return now },
		Clock:    func(f face.Frame) time.Time { now = noon.Add(f.Time); return now },
		Frame: func(_ string, at time.Time, all []presence.Seen) {
			f := frames[int(at.Sub(noon)*crossingRate/time.Second)]
			for i, s := range all {
				if s.Group == 0 || f.Samples[i].Reason != "" {
					continue
				}
				if seen[s.Group] == nil {
					seen[s.Group] = make(map[int]bool)
				}
				seen[s.Group][of[&f.Samples[i].Vector[0]]] = true
			}
		},
		Event: func(e presence.Event) {
			if e.Kind == presence.Unknown {
				c.Announced++
			}
		},
	})
	err = w.Run(ctx, []office.Camera{{Name: cameraName(0), Ends: true,
		Open: func(context.Context, func() bool) (office.Stream, error) {
			return &reel{frames: frames}, nil
		}}})
	for _, people := range seen {
		if len(people) > 1 {
			c.Mixed++
		}
		for i := range people {
			told[i] = true
		}
	}
	c.Visitors += len(told)
	return err
}

// steps returns a face of a recording for each frame of a crossing, from a random place on.
func steps(r Recording, rnd *rand.Rand) (all []face.Sample) {
	n := int(crossingTime.Seconds()+2) * crossingRate
	long := r.Frames[len(r.Frames)-1].Time - r.Frames[0].Time
	begin := r.Frames[0].Time
	if spare := long - crossingTime; spare > 0 {
		begin += time.Duration(rnd.Int64N(int64(spare)))
	}
	due := begin
	for _, f := range r.Frames {
		if f.Time < due || len(all) == n {
			continue
		}
		due += time.Second / crossingRate
		all = append(all, largest(f))
	}
	return all
}

// reel plays frames.
type reel struct {
	frames []face.Frame
	at     int
}

func (r *reel) Next(context.Context) (face.Frame, error) {
	if r.at == len(r.frames) {
		return face.Frame{}, io.EOF
	}
	r.at++
	return r.frames[r.at-1], nil
}

func (r *reel) Dropped() int { return 0 }
func (r *reel) Close() error { return nil }

// Taken returns the recordings of faces that were read before.
func Taken(ids []evaluate.Identity) (all []Recording) {
	for _, id := range ids {
		var r *Recording
		for i, f := range id.Faces {
			if i == 0 || f.Take != id.Faces[i-1].Take {
				all = append(all, Recording{Person: id.Name})
				r = &all[len(all)-1]
			}
			s := f.Sample()
			s.Space = "taken"
			if f.Hold {
				s.Reason = face.Unclear
			}
			r.Frames = append(r.Frames, face.Frame{Time: f.At, Samples: []face.Sample{s}})
		}
	}
	return all
}
