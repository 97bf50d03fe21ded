// SPDX-License-Identifier: Apache-2.0

// Package office watches rooms: several cameras, the people in view of each, what happens, and what somebody says of
// it.
//
// [New] makes an [Office] of the people whom a gallery knows, and [Office.Run] reads all cameras at once until its
// context ends, and tells of events and of the cameras' health. While it runs, [Office.Now] says who is where, and
// [Office.Name], [Office.Correct] and the methods beside them take in what a person knows better. The packages below
// hold the parts: track ties faces over time and says who they are, presence says who has come and gone, unknown keeps
// strangers, logbook what has happened; sink tells others of it, and page shows it.
//
// # Caveats
//
// An Office keeps pictures of faces, in memory and where it is told to, in a file.
package office

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office/logbook"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/office/unknown"
	"github.com/faceauth/faceauth/sighting"
)

// Options of an [Office]. The zero value of each field stands for its default.
type Options struct {
	Presence presence.Settings
	Rules    sighting.Rules
	Track    sighting.Settings
	Freeze   bool // judge, but learn nothing of what is seen

	Unknown *unknown.Groups // strangers. Default: those of this run
	Book    *logbook.Book   // of events. Default: none, and nothing is known of what was before
	// Save, if it is not nil, writes the gallery, SaveUnknown the strangers. They are called where something was said, and
	// SaveUnknown also while the office runs; Save, too, where Keep is set.
	Save, SaveUnknown func() error
	Keep              bool // what was learned, in the gallery, once a minute where there is something new

	Past       *Past         // sightings and corrections on disk. Default: those of this run, in memory
	Sightings  int           // of the past that can be corrected without a Past, and that [Office.Sightings] lists. Default 64
	Faces      int           // that are kept of each. Default 24
	Backoff    time.Duration // before a camera that has failed is opened again; each failure doubles it. Default 1 s
	MaxBackoff time.Duration // that it grows to. Default 1 min
	Rate       float64       // frames a second of a camera that are looked at, at most. Default: as many as the machine can

	// Clock returns the time of a frame. Default: when it was read.
	Clock func(f face.Frame) time.Time
	Now   func() time.Time // default time.Now

	// These hold up all cameras while they run, and must not call the Office.
	Event  func(presence.Event)                           // told of what happens, in order
	Health func(Health)                                   // told when a camera fails, or is back
	Frame  func(camera string, at time.Time, seen []Seen) // told who is in view, with each frame
	Room   func(Room)                                     // told when there is no room to learn any more, or there is again
	Disk   func(Disk)                                     // told when the disk cannot be written, or can again
	// Said is told what somebody changed of the people, when that is in the journal. Of two people who are one it
	// returns a name by which [Office.Exchange] and a later Said speak of it, or "".
	Said func(Said) (merge string)
}

func (o Options) defaults(space face.Space) Options {
	o.Presence = o.Presence.Defaults()
	o.Sightings = cmp.Or(o.Sightings, 64)
	o.Faces = cmp.Or(o.Faces, 24)
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, time.Minute)
	if o.Past == nil {
		o.Past = pastInMemory(o.Sightings)
	}
	if o.Unknown == nil {
		o.Unknown = unknown.New(space, unknown.Settings{})
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = func(face.Frame) time.Time { return o.Now() }
	}
	if o.Event == nil {
		o.Event = func(presence.Event) {}
	}
	if o.Health == nil {
		o.Health = func(Health) {}
	}
	if o.Frame == nil {
		o.Frame = func(string, time.Time, []Seen) {}
	}
	if o.Room == nil {
		o.Room = func(Room) {}
	}
	if o.Disk == nil {
		o.Disk = func(Disk) {}
	}
	if o.Said == nil {
		o.Said = func(Said) string { return "" }
	}
	if o.Save == nil {
		o.Save = func() error { return nil }
	}
	if o.SaveUnknown == nil {
		o.SaveUnknown = func() error { return nil }
	}
	return o
}

// Office is a room, or several, with people. It is safe for concurrent use. Make one with [New].
type Office struct {
	o     Options
	clear clarities
	faces pastFaces

	mu       sync.Mutex           // guards what follows, and what is told
	profiled map[int64]remembered // learned faces that profiles have shown

	gallery *gallery.Gallery
	unknown *unknown.Groups
	room    *presence.Room
	views   []*view
	tracks  map[uint64]int // of the latest sightings of the past
	last    uint64         // number of the last sighting
	turn    uint64         // number of the last correction, or of the last time that one was undone
	unkept  error          // why something of the past could not be written
	learned int64          // faces that were learned when the gallery was saved last
	latest  latestFaces

	pictures   map[string]uint64 // numbers of pictures by their vectors
	picturesOf uint64            // the turn of the journal in which that was so

	sites  []Site           // that were told of
	doomed []uint64         // groups of unknown faces that look like people who were forgotten elsewhere
	poor   int              // sightings that were too short or too poor to say who it was
	recent []presence.Event // where there is no logbook, the newest last
	broken error            // why it cannot go on
	full   bool             // that there is no room to learn has been told
	faults faults
	disk   Disk
}

// New returns an office of the people in g, which nobody else uses meanwhile.
func New(g *gallery.Gallery, o Options) *Office {
	o = o.defaults(g.Space())
	var from presence.State
	if o.Book != nil {
		from = o.Book.State()
	}
	w := &Office{o: o, gallery: g, unknown: o.Unknown, room: presence.New(o.Presence, from), tracks: make(map[uint64]int)}
	w.learned = g.Learner().Counts().Learned
	if o.Book != nil {
		for _, e := range o.Book.Events(0, math.MaxInt) {
			if e.Kind == presence.Left {
				w.room.Remember(e.Name, e.At)
			}
		}
	}
	w.o.Save, w.o.SaveUnknown = guard(o.Save, &w.faults.gallery), guard(o.SaveUnknown, &w.faults.unknown)
	w.begin()
	return w
}

// tell records events and says them. Those whose numbers do not ascend end the run, and are not said.
func (w *Office) tell(events []presence.Event) {
	if len(events) == 0 || !w.record(events) {
		return
	}
	if w.o.Book == nil {
		w.recent = append(w.recent, events...)
		w.recent = w.recent[max(0, len(w.recent)-mostRecent):]
	}
	for _, e := range events {
		w.o.Event(e)
	}
}

// mostRecent is how many events are known without a logbook.
const mostRecent = 500

// record writes events and who is there, and reports whether that made sense.
func (w *Office) record(events []presence.Event) bool {
	if w.o.Book == nil || w.broken != nil {
		return w.broken == nil
	}
	w.broken = w.o.Book.Record(w.room.State(), events)
	if len(events) > 0 {
		w.tellDisk()
	}
	return w.broken == nil
}

// Events returns the last n events before the one of a number, or of all where it is 0, the newest first. Without a
// logbook it knows some of this run.
func (w *Office) Events(before uint64, n int) []presence.Event {
	if w.o.Book != nil {
		return w.o.Book.Events(before, n)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []presence.Event{}
	for _, e := range slices.Backward(w.recent) {
		if (before == 0 || e.ID < before) && len(all) < n {
			all = append(all, e)
		}
	}
	return all
}
