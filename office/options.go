// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/online"
)

// Options of an [Office]. A zero field means the default.
type Options struct {
	Presence presence.Settings
	Freeze   bool // recognise people and learn nothing
	// Faceless reports people whose face could not be used: turned away, hooded, or spoilt by their movement.
	Faceless bool

	Keep    bool          // save newly learned faces once a minute; they are also saved with each correction
	Past    *Past         // keeps events, sightings, corrections and strangers. Default: one for this run
	Backoff time.Duration // pause before a failed camera is opened again; doubles up to a minute. Default 1 s

	// Clock returns the time of a frame. Default: the time when it was read.
	Clock func(f face.Frame) time.Time
	Now   func() time.Time // default time.Now

	// All cameras wait while one of these functions runs. They must not call the Office.
	Event  func(presence.Event)                                    // called with each event, in order
	Health func(Health)                                            // called when a camera fails or works again
	Frame  func(camera string, at time.Time, seen []presence.Seen) // called with each frame
	Room   func(online.Room)                                       // called when room becomes short, or is no longer
	Disk   func(Disk)                                              // called when writing to disk fails or works again
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

// Disk tells whether the database can be written. A failure does not end an office: what cameras see stays in memory,
// within limits, and is written as soon as possible. Corrections are refused meanwhile.
type Disk struct {
	Error string `json:"error,omitempty"` // why writing fails; "" if it works
	Held  int    `json:"held"`            // number of events in memory only; they are lost if the program ends
	Lost  int    `json:"lost"`            // number of events that were dropped for lack of memory
}

// Sentence describes the state for a person.
func (d Disk) Sentence() string {
	switch {
	case d.Error != "":
		return d.Error + "; what cameras see stays in memory, and is written when there is room; corrections wait"
	case d.Lost > 0:
		return fmt.Sprintf("the state is written again; events that are lost: %d", d.Lost)
	}
	return "the state is written again, and nothing is lost"
}

// call calls a function of Options, if it is set.
func call[T any](told func(T), x T) {
	if told != nil {
		told(x)
	}
}
