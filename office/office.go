// SPDX-License-Identifier: Apache-2.0

// Package office watches rooms with several cameras: it recognises the people in view, reports events, and takes
// corrections from users.
//
// [New] makes an [Office] for the people of a gallery. [Office.Run] reads all cameras at once until its context ends,
// and reports events and the health of the cameras. Meanwhile [Office.Now] tells who is where, and [Office.Name],
// [Office.Correct] and similar methods take corrections. A [Past] keeps what happened, also over restarts. Package sink
// sends events to other programs, and page shows everything in a browser.
//
// # Caveats
//
// An Office keeps pictures of faces in memory, and with [OpenPast] in the database of the gallery.
package office

import (
	"cmp"
	"math"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Options of an [Office]. A zero field means the default.
type Options struct {
	Presence PresenceSettings
	Rules    sighting.Rules
	Track    sighting.Settings
	Freeze   bool // recognise people and learn nothing

	Keep bool  // save newly learned faces once a minute; they are also saved with each correction
	Past *Past // keeps events, sightings, corrections and strangers. Default: in memory
	// Number of past sightings that [Office.Sightings] lists, and that a Past in memory keeps. Default 64.
	Sightings  int
	Faces      int           // number of faces that are kept of each sighting. Default 24
	Backoff    time.Duration // pause before a failed camera is opened again; each failure doubles it. Default 1 s
	MaxBackoff time.Duration // longest pause. Default 1 min
	Rate       float64       // greatest number of frames per second and camera. Default: no limit

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

func (o Options) defaults(space face.Space) Options {
	o.Presence = o.Presence.Defaults()
	o.Sightings = cmp.Or(o.Sightings, 64)
	o.Faces = cmp.Or(o.Faces, 24)
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, time.Minute)
	if o.Past == nil {
		o.Past = NewPast(space, PastSettings{Sightings: Limits{Records: o.Sightings}})
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = func(face.Frame) time.Time { return o.Now() }
	}
	if o.Event == nil {
		o.Event = func(Event) {}
	}
	if o.Health == nil {
		o.Health = func(Health) {}
	}
	if o.Frame == nil {
		o.Frame = func(string, time.Time, []Seen) {}
	}
	if o.Room == nil {
		o.Room = func(online.Room) {}
	}
	if o.Disk == nil {
		o.Disk = func(Disk) {}
	}
	return o
}

// Office is a set of rooms with people. It is safe for concurrent use. [New] makes one.
type Office struct {
	o     Options
	clear clarities
	faces pastFaces

	mu       sync.Mutex           // guards the fields below and the order of events
	profiled map[int64]remembered // learned faces that Profile has returned

	gallery *gallery.Gallery
	unknown *groups
	room    *room
	views   []*view
	tracks  map[uint64]int // tracks of the latest past sightings
	last    uint64         // number of the last sighting
	turn    uint64         // number of the last correction or undo
	learned int64          // number of learned faces at the last save of the gallery
	latest  latestFaces

	poor      int         // number of sightings that were too short or too poor to recognise anybody
	told      []Event     // events that are not reported yet
	broken    error       // the error that ends the run
	learnable online.Room // as Options.Room was told
	saving    saving
	disk      Disk
}

// New returns an office for the people in g. Nobody else may use g meanwhile.
func New(g *gallery.Gallery, o Options) *Office {
	o = o.defaults(g.Space())
	w := &Office{
		o:       o,
		gallery: g,
		unknown: o.Past.strangers,
		room:    newRoom(o.Presence, o.Past.State()),
		tracks:  make(map[uint64]int),
	}
	w.learned = g.Learner().Counts().Learned
	for _, e := range w.events() {
		if e.Kind == Left {
			w.room.Remember(e.Name, e.At)
		}
	}
	g.Labels() // all get numbers, and some more are reserved, while no transaction is open
	g.NextFace()
	o.Past.before = w.before
	w.begin()
	return w
}

// tell records events, writes them with the state of the room, and then reports them. Events whose numbers do not rise
// end the run, and are not reported.
func (w *Office) tell(events []Event) {
	if len(events) == 0 || !w.record(events) {
		return
	}
	w.told = append(w.told, events...)
	w.keep(false)
}

// record records events and the state of the room, and reports whether their numbers rise.
func (w *Office) record(events []Event) bool {
	for i := range events {
		events[i].Person = w.gallery.Number(events[i].Name)
	}
	if w.broken == nil {
		w.broken = w.o.Past.Record(w.room.State(), events)
	}
	return w.broken == nil
}

// reportEvents reports the events that are written, or held because they cannot be written.
func (w *Office) reportEvents() {
	told := w.told
	w.told = nil
	for _, e := range told {
		w.o.Event(e)
	}
}

// Events returns the last n events before the event with the given number (0: before none), the newest first.
func (w *Office) Events(before uint64, n int) []Event { return w.o.Past.Events(before, n) }

// events returns all events under their present names.
func (w *Office) events() []Event { return w.o.Past.Events(0, math.MaxInt) }
