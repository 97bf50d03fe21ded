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
// nearly the same pictures, the new answer counts, and [Office.Correct] tells of the old one. The corrections that are
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
	"math"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// Office is a set of rooms with people. It is safe for concurrent use. [New] makes one. Each of its parts uses the ones
// below only: cameras, the book of what users say and see, and the keeper of rows.
type Office struct{ *cameras }

// New returns an office for the people in g. Nobody else may use g meanwhile. An error of the database ends [Office.Run].
func New(g *gallery.Gallery, o Options) *Office {
	o = o.defaults()
	k := &keeper{o: o, gallery: g, past: o.Past, learned: make(map[uint64]ranges)}
	w := &Office{&cameras{book: &book{k}}}
	if w.past == nil {
		w.past, w.broken = TemporaryPast(g, PastSettings{})
	}
	if w.broken != nil {
		w.past = &Past{g: g, s: PastSettings{}.defaults()}
	}
	w.mu = &w.past.mu
	w.unknown = newGroups(g.Space(), w.past.s.Retention)
	w.room = newRoom(o.Presence, w.past.state)
	w.kept = g.Learner().Counts().Learned
	w.note(g.Update())
	w.note(w.reload())
	w.leave()
	return w
}

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

// Number returns the number of the person with a name, or 0.
func (w *keeper) Number(name string) int64 {
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
func (w *keeper) note(err error) {
	if err != nil {
		w.fault = err
	}
}
