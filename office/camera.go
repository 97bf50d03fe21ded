// SPDX-License-Identifier: Apache-2.0

package office

import (
	"context"
	"fmt"
	"image"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/sighting"
)

// Stream reads the frames of a camera. Next returns when its context ends.
type Stream interface {
	face.Stream
	Dropped() int // number of skipped frames, because newer ones had come
	Close() error
}

// Camera is one of several cameras. Their names must differ.
type Camera struct {
	Name string
	// Open opens the camera. Picture reports whether the whole next frame is needed as a picture, and not only its
	// faces.
	Open func(ctx context.Context, picture func() bool) (Stream, error)
	Ends bool // a recording: its end is not a failure, and a failure ends the run
	// Hide returns an error without secrets, such as the password in a URL, before it is shown. Default: the error.
	Hide func(error) error
	// Stills says that the frames are single pictures, some seconds apart, and that the Track of their samples says
	// which faces are one person. Two of them, and not three, then give a name, if they agree. What confirms a name
	// stays: two different looks near enrolled faces.
	Stills bool
	Door   presence.Door // whose faces it sees: "" for people in a room
}

// Health describes the state of a camera.
type Health struct {
	Camera  string    `json:"camera"`
	Up      bool      `json:"up"`
	Since   time.Time `json:"since"`
	Size    [2]int    `json:"size"`            // width and height of the frame, in pixels
	Error   string    `json:"error,omitempty"` // why it does not work
	Frames  int       `json:"frames"`          // frames processed since the start
	Dropped int       `json:"dropped"`         // frames skipped since then: the machine was too slow
	Rate    float64   `json:"rate"`            // frames processed per second at present
}

// Sentence describes the state for a person.
func (h Health) Sentence() string {
	if h.Up {
		text := h.Camera + ": camera connected"
		if least := face.LeastSeen(image.Pt(h.Size[0], h.Size[1])); least > 0 {
			text += fmt.Sprintf(", %dx%d: faces from %d pixels", h.Size[0], h.Size[1], least)
		}
		return text
	}
	return fmt.Sprintf("%s: %s; it is tried again", h.Camera, h.Error)
}

// view is the state of one camera. It continues after the camera fails, because the same people may still be in view.
type view struct {
	camera  Camera
	health  Health
	counted int // frames when the rate was measured last
	begun   time.Time
	people  *sighting.Watcher

	sightings map[int]*sighted // in view, by track
	seen      []presence.Seen
	picture   []byte
	wanted    time.Time // last call of Picture
	far       int       // sightings of farDay whose faces were all too small
	farDay    string
}

// farOn returns the number of people who were too far away on the day of a time.
func (v *view) farOn(at time.Time) int {
	if v.farDay != at.Format(time.DateOnly) {
		return 0
	}
	return v.far
}
