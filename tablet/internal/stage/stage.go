// SPDX-License-Identifier: Apache-2.0

// Package stage puts made-up people before a made-up camera, for tests of logins.
package stage

import (
	"context"
	"image"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/tablet"
)

// Space is a made-up feature space with the radii of the built-in network.
var Space = face.Space{ID: "made up", Dim: 4, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .86, ImpostorRadius: .93, GenuineRadius: 1.3}

// People stand two apart: nobody is near anybody else.
var (
	Alice = []float32{0, 0, 0, 0}
	Bob   = []float32{2, 0, 0, 0}
	Carol = []float32{0, 2, 0, 0}
)

// At returns a face of somebody, with a difference.
func At(who []float32, d float32) []float32 {
	x := slices.Clone(who)
	x[3] = d
	return x
}

// place is where faces are in the frame.
var place = image.Rect(100, 100, 200, 220)

// Sample returns a face that looks straight on.
func Sample(x []float32) face.Sample {
	return face.Sample{Track: 1, Box: place, Vector: x, Landmarks: fixture.Landmarks(0, .5, .3)}
}

// Enrolling returns the frames of an enrolment.
func Enrolling(who []float32) []face.Frame {
	var all []face.Frame
	for i, pose := range [][2]float64{{0, .5}, {.4, .5}, {-.4, .5}, {0, .4}} {
		s := face.Sample{Track: 1, Box: place, Vector: At(who, float32(i)/100), Landmarks: fixture.Landmarks(pose[0], pose[1], .3)}
		all = append(all, face.Frame{Samples: []face.Sample{s}}, face.Frame{Samples: []face.Sample{s}})
	}
	return all
}

// Seen returns n frames with one face.
func Seen(x []float32, n int) []face.Frame {
	return slices.Repeat([]face.Frame{{Samples: []face.Sample{Sample(x)}}}, n)
}

// Camera plays frames, and then goes on without faces. It is safe for concurrent use.
type Camera struct {
	mu   sync.Mutex
	show Show
	open int
	most int
}

// Show is what a camera shows.
type Show struct {
	Frames []face.Frame
	End    error           // after them, if it is not nil
	Fail   error           // of being opened
	Hang   <-chan struct{} // until it is closed no frame comes, whatever the context says
	Pace   time.Duration   // between frames
}

// Play says what the camera shows when it is opened next.
func (c *Camera) Play(s Show) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.show = s
}

// Uses returns how many streams are open now, and how many have been open at once.
func (c *Camera) Uses() (now, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open, c.most
}

// Open is a [tablet.Camera].
func (c *Camera) Open(context.Context, tablet.Purpose) (tablet.Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.show.Fail != nil {
		return nil, c.show.Fail
	}
	c.open++
	c.most = max(c.most, c.open)
	return &reel{camera: c, Show: c.show}, nil
}

// reel is one showing.
type reel struct {
	camera *Camera
	Show
}

func (r *reel) Next(ctx context.Context) (face.Frame, error) {
	if r.Hang != nil {
		<-r.Hang
	}
	select {
	case <-ctx.Done():
		return face.Frame{}, ctx.Err()
	case <-time.After(r.Pace):
	}
	if len(r.Frames) > 0 {
		f := r.Frames[0]
		r.Frames = r.Frames[1:]
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
