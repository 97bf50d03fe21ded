// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"math"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// Options of an [Office]. A zero field means the default.
type Options struct {
	Presence PresenceSettings
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
	Event  func(Event)                                    // called with each event, in order
	Health func(Health)                                   // called when a camera fails or works again
	Frame  func(camera string, at time.Time, seen []Seen) // called with each frame
	Room   func(online.Room)                              // called when room becomes short, or is no longer
	Disk   func(Disk)                                     // called when writing to disk fails or works again
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

// call calls a function of Options, if it is set.
func call[T any](told func(T), x T) {
	if told != nil {
		told(x)
	}
}

// memory is what an office knows: who is in view, what is not written yet, and the rows of the past.
type memory struct {
	o       Options
	mu      *sync.Mutex // guards the fields below, those of the other parts, and the order of events; that of the Past
	gallery *gallery.Gallery
	past    *Past
	unknown *groups
	room    *room
	views   []*view
	ended   []*sighted        // sightings that are not written yet
	learned map[uint64]ranges // observations of written sightings that are not saved yet
	rows    *rows             // nil if they may have changed
	fault   error             // the last error of writing; nil: all is written
	broken  error             // the error that ends the run
}

// Number returns the number of the person with a name, or 0.
func (w *memory) Number(name string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gallery.Number(name)
}

// before returns the number before which a list ends, for SQL: 0 is before none.
func before(id uint64) int64 {
	if id == 0 {
		return math.MaxInt64
	}
	return int64(id)
}

// note records an error of the database.
func (w *memory) note(err error) {
	if err != nil {
		w.fault = err
	}
}
