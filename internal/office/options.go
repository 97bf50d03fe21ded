// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"context"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Options of an [Office]. A zero field means the default.
type Options struct {
	Presence presence.Settings
	Freeze   bool // recognise people and learn nothing
	// Faceless reports people whose face could not be used: turned away, hooded, or spoilt by their
	// movement.
	Faceless bool

	// save newly learned faces once a minute; they are also saved with each correction
	Keep bool
	// pause before a failed camera is opened again; doubles up to a minute. Default 1 s
	Backoff time.Duration

	// Clock returns the time of a frame. Default: the time when it was read.
	Clock func(f face.Frame) time.Time
	Now   func() time.Time // default time.Now

	// All cameras wait while one of these functions runs. They must not call the Office.
	// called with each event, in order
	Event func(presence.Event)
	// called when a camera fails, is too slow, or works again
	Health func(Health)
	Frame  func(camera string, at time.Time, seen []presence.Seen) // called with each frame
	// called when room becomes short, or is no longer
	Room func(online.Room)
	Disk func(Disk) // called when writing to disk fails or works again
}

func (o Options) defaults() Options {
	o.Presence = o.Presence.Defaults()
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = func(face.Frame) time.Time { return o.Now() }
	}
	return o
}

// Disk tells whether the database can be written. A failure does not end an office, and no camera
// waits for another program that writes: what cameras see stays in memory, and is written as soon
// as possible, with its times. Memory has room for [PastSettings].Events events and for 64
// sightings that have ended; the oldest are dropped for more. Corrections wait, and are refused
// after ten seconds.
type Disk struct {
	Error string `json:"error,omitempty"` // why writing fails; "" if it works
	// number of events in memory only; they are lost if the program ends
	Held int `json:"held"`
	Lost int `json:"lost"` // number of events and sightings that were dropped for lack of memory
	// Left is why bytes of somebody who was forgotten are still in the file, its log or a copy. It
	// is tried again each minute.
	Left string `json:"left,omitempty"`
}

// call calls a function of Options, if it is set.
func call[T any](told func(T), x T) {
	if told != nil {
		told(x)
	}
}

// Stream reads the frames of a camera. Next returns when its context ends.
type Stream interface {
	face.Stream
	Dropped() int // number of skipped frames, because newer ones had come
	Close() error
}

// Camera is one of several cameras. Their names must differ.
type Camera struct {
	Name string
	// Open opens the camera. Picture reports whether the whole next frame is needed as a picture,
	// and not only its faces.
	Open func(ctx context.Context, picture func() bool) (Stream, error)
	Ends bool // a recording: its end is not a failure, and a failure ends the run
	// Hide returns an error without secrets, such as the password in a URL, before it is shown.
	// Default: the error.
	Hide func(error) error
	// Stills says that the frames are single pictures, some seconds apart, and that the Track of
	// their samples says which faces are one person. Two of them, and not three, then give a name,
	// if they agree. What confirms a name stays: two different looks near enrolled faces.
	Stills bool
	Rate   float64       // frames per second that are asked for; 0 for all that the camera gives
	Door   presence.Door // whose faces it sees: "" for people in a room
	Zones  []face.Zone   // parts of its picture; of those that overlap, the first counts
}

// Health describes the state of a camera.
type Health struct {
	Camera string    `json:"camera"`
	Up     bool      `json:"up"`
	Since  time.Time `json:"since"`
	Size   [2]int    `json:"size"`            // width and height of the frame, in pixels
	Error  string    `json:"error,omitempty"` // why it does not work
	Frames int       `json:"frames"`          // frames processed since the start
	// frames skipped since then: the machine was too slow
	Dropped int     `json:"dropped"`
	Rate    float64 `json:"rate"` // frames processed per second at present
	// Asked is the number of frames per second that should be processed; 0 for all that come.
	Asked float64 `json:"asked"`
	// Slow says that for ten seconds, or the time of four frames, fewer than half of them were
	// processed, and fewer than two a second if none are Asked for, or none came: people are
	// recognised later, and who passes quickly is missed.
	Slow bool `json:"slow"`
}

// LastFace is the person whom a camera has seen last, by name and number alone.
type LastFace struct {
	sighting.Who
	Group uint64    `json:"group,omitempty"`
	At    time.Time `json:"at"` // to the minute
}

// View is the present view of one camera.
type View struct {
	Health
	Door presence.Door `json:"door,omitempty"`
	// Zones are the parts of its picture that have a name.
	Zones []face.Zone     `json:"zones,omitempty"`
	Seen  []presence.Seen `json:"seen"`
	// Last is who was seen last in this run; nil for nobody yet.
	Last *LastFace `json:"last,omitempty"`
	// Far is the number of sightings of the day whose faces were all too small to judge.
	Far int `json:"far"`
}
