// SPDX-License-Identifier: Apache-2.0

// Package office watches rooms with several cameras: it recognises the people in view, reports events, and takes
// corrections from users.
//
// [New] makes an [Office] for the people of a gallery. [Office.Run] reads all cameras at once until its context ends,
// and reports events and the health of the cameras. Meanwhile [Office.Now] tells who is where, [Office.Visits] who was
// there when, and [Office.Name], [Office.Correct] and similar methods take corrections. A [Past] keeps what happened,
// also over restarts. Package sink sends events to other programs, and page shows everything in a browser.
//
// # Rows
//
// What cameras have seen and what users have said are rows in the database of the gallery, and a person is a number
// there. A correction is a transaction on these rows: memory follows what is committed. Who somebody is, to which group
// a face belongs and which labels are valid is what the statements of users say that are not undone
// ([gallery.Tx.Say]).
//
// # How it decides
//
// A face is followed from frame to frame, by its place and its looks. A person in view has a name when three frames
// were judged and three fifths of them agree; of stills, which come seconds apart, two. Two people in one view never
// have the same name: a face that would get the name of somebody in view, as in a mirror or a video call, is nobody
// else, and no unknown person is made of it.
//
// A name is confirmed when two different looks of the sighting lie near enrolled faces. A still before the camera, or
// a camera that is stuck, is one look, also when the light falls by half, or the picture is turned, zoomed or panned:
// the points of its face do not move against each other. In less light, in small or noisy pictures, and if a picture
// is bent, this does not hold; what opens doors needs a login's liveness. Only a confirmed person arrives. Who is here
// already stays with a confirmed or a learned name. If only learned faces support a name, a user is asked; a yes
// enrols these faces ([Office.Confirm]). If a face suddenly looks different, as when somebody else has sat down in the
// same place, the sighting is not confirmed until a face looks as before, or is near an enrolled one.
//
// The office learns only good pictures, near known faces, from confirmed sightings that nobody has corrected. A face
// whose eyes or mouth seem covered is not learned: two people with sunglasses, or with masks, are mistaken for each
// other more often than the promised rate says. Faces that are too small or too poor in all pictures of a sighting are
// counted, and neither announced nor kept.
//
// Somebody unknown is announced after three clear, different looks over a second and a half, at any rate of frames,
// and kept as a group of at most 24 faces: the first four, and others that differ from each other. A name makes labels
// of the first four, and the others are learned ([Office.Name]).
//
// A correction takes back what was learned from its sighting, with everything that was learned through it; the newest
// faces of the sighting, 16 at most, become negative labels; the arrival is withdrawn unless the person is seen
// elsewhere; and the rest of the sighting does not get the name ([Office.Correct]). If the user had given this name to
// nearly the same pictures, the new answer counts, and [Office.Naming] tells of the old one. The corrections that are
// left after an undo count as if the others had never been made, but faces that were taken back are not learned again;
// and if two people have one name then, the second has a number beside it.
//
// Forgetting a person removes labels, learned faces, sightings, clips, events, corrections, groups of unknown faces
// that look like the person, and all names, and overwrites their bytes ([Office.Forget]). An event that a sink is just
// sending may still arrive.
//
// Nobody leaves because a camera is down: who was seen there last stays for [PresenceSettings].Hold, and the camera
// must be back and look for Away before they can leave. After a restart all cameras must look first.
//
// # Caveats
//
// An Office keeps pictures of faces in memory, and in the database of the gallery.
package office

import (
	"cmp"
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
	// Faceless reports people whose face could not be used: turned away, hooded, or spoilt by their movement.
	Faceless bool

	Keep bool  // save newly learned faces once a minute; they are also saved with each correction
	Past *Past // keeps events, sightings, corrections and strangers. Default: one for this run
	// Number of past sightings that [Office.Sightings] lists. Default 64.
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

func (o Options) defaults() Options {
	o.Presence = o.Presence.Defaults()
	o.Sightings = cmp.Or(o.Sightings, 64)
	o.Faces = cmp.Or(o.Faces, 24)
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, time.Minute)
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

	mu       *sync.Mutex          // guards the fields below and the order of events; it is that of the Past
	profiled map[int64]remembered // learned faces that Profile has returned
	guesses  guesses

	gallery *gallery.Gallery
	past    *Past
	turn    uint64 // of the gallery, as far as the office has taken it in
	unknown *groups
	room    *room
	views   []*view
	ended   []*sighted        // sightings that are not written yet
	learned map[uint64]ranges // observations of written sightings that are not saved yet
	tracks  map[uint64]int    // tracks of the latest past sightings
	names   map[int64]string  // the last names of the people who are present

	poor      int         // number of sightings that were too short or too poor to recognise anybody
	told      []Event     // events that are not reported yet
	broken    error       // the error that ends the run
	learnable online.Room // as Options.Room was told
	fault     error       // the last error of writing; nil: all is written
	tried     time.Time   // when it was last tried
	disk      Disk
	kept      int64 // number of learned faces at the last save of the gallery
}

// New returns an office for the people in g. Nobody else may use g meanwhile. An error of the database ends [Office.Run].
func New(g *gallery.Gallery, o Options) *Office {
	o = o.defaults()
	w := &Office{
		o: o, gallery: g, past: o.Past, learned: make(map[uint64]ranges), tracks: make(map[uint64]int),
		names: make(map[int64]string), mu: new(sync.Mutex),
	}
	if w.past == nil {
		w.past, w.broken = TemporaryPast(g, PastSettings{Sightings: Limits{Records: o.Sightings}})
	}
	if w.broken != nil {
		w.past = &Past{g: g, events: newEvents(EventLimits{})}
	}
	w.mu = &w.past.mu
	w.unknown = newGroups(g.Space(), w.past.s.Strangers)
	w.room = newRoom(o.Presence, w.past.events.state)
	w.kept = g.Learner().Counts().Learned
	w.note(g.Update())
	w.note(w.reload())
	w.leave()
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
	for _, p := range w.room.State().People {
		if name := w.gallery.Name(p.ID); name != "" {
			w.names[p.ID] = name
		}
	}
	for i, e := range events {
		events[i].Name = cmp.Or(w.gallery.Name(e.Person), w.names[e.Person])
		if e.Kind == Left || e.Kind == Mistake {
			delete(w.names, e.Person)
		}
	}
	if w.broken == nil {
		w.broken = w.past.events.Record(w.room.State(), events)
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
