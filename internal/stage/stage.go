// SPDX-License-Identifier: Apache-2.0

// Package stage simulates people in front of a camera, for tests of logins.
package stage

import (
	"context"
	"image"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/tablet"
)

// Space is an artificial feature space with the radii of the built-in network.
var Space = face.Space{
	ID:             "made up",
	Dim:            4,
	Scale:          1,
	Sigma:          .2,
	Gamma:          1e-3,
	Reach:          .86,
	ImpostorRadius: .93,
	GenuineRadius:  1.3,
}

// People are at distances of at least two: nobody is similar to another person.
var (
	Alice = []float32{0, 0, 0, 0}
	Bob   = []float32{2, 0, 0, 0}
	Carol = []float32{0, 2, 0, 0}
)

// At returns a face of a person, with an offset.
func At(who []float32, d float32) []float32 {
	x := slices.Clone(who)
	x[3] = d
	return x
}

// place is the position of faces in the frame.
var place = image.Rect(100, 100, 200, 220)

// Sample returns a straight face.
func Sample(x []float32) face.Sample {
	return face.Sample{Track: 1, Box: place, Vector: x, Landmarks: fixture.Landmarks(0, .5, .3)}
}

// Enrolling returns the frames of an enrolment.
func Enrolling(who []float32) []face.Frame {
	var all []face.Frame
	for i, pose := range [][2]float64{{0, .5}, {.4, .5}, {-.4, .5}, {0, .4}} {
		s := face.Sample{
			Track:     1,
			Box:       place,
			Vector:    At(who, float32(i)/100),
			Landmarks: fixture.Landmarks(pose[0], pose[1], .3),
		}
		all = append(all, face.Frame{Samples: []face.Sample{s}},
			face.Frame{Samples: []face.Sample{s}})
	}
	return all
}

// Seen returns n frames with one face.
func Seen(x []float32, n int) []face.Frame {
	return slices.Repeat([]face.Frame{{Samples: []face.Sample{Sample(x)}}}, n)
}

// Camera plays frames, and then shows no faces. It is safe for concurrent use.
type Camera struct {
	mu   sync.Mutex
	show Show
	open int
	most int
	told int
	all  int
}

// Show describes the camera's picture.
type Show struct {
	Frames []face.Frame
	End    error         // error after the frames; nil: none
	Fail   error         // error of opening
	Pace   time.Duration // time between frames
}

// Play sets the camera's picture after the next opening.
func (c *Camera) Play(s Show) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.show = s
}

// Uses returns the number of open streams, and the greatest number that were open at once.
func (c *Camera) Uses() (now, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open, c.most
}

// Told returns the number of frames that all streams have given.
func (c *Camera) Told() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told
}

// Opened returns how often the camera was opened.
func (c *Camera) Opened() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// Open implements [tablet.Camera].
func (c *Camera) Open(context.Context, eye.Gate) (tablet.Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.show.Fail != nil {
		return nil, c.show.Fail
	}
	c.open, c.all = c.open+1, c.all+1
	c.most = max(c.most, c.open)
	return &reel{camera: c, Show: c.show}, nil
}

// reel is one stream of the camera.
type reel struct {
	camera *Camera
	Show
}

func (r *reel) Next(ctx context.Context) (face.Frame, error) {
	select {
	case <-ctx.Done():
		return face.Frame{}, ctx.Err()
	case <-time.After(r.Pace):
	}
	if len(r.Frames) > 0 {
		f := r.Frames[0]
		r.Frames = r.Frames[1:]
		r.camera.mu.Lock()
		r.camera.told++
		r.camera.mu.Unlock()
		return f, nil
	}
	if r.End == nil && r.Pace == 0 {
		time.Sleep(time.Millisecond)
	}
	return face.Frame{}, r.End
}

func (r *reel) Close() error {
	r.camera.mu.Lock()
	defer r.camera.mu.Unlock()
	r.camera.open--
	return nil
}
