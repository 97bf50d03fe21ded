// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"cmp"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/sighting"
)

// EventKind is the kind of an event.
type EventKind string

// Kinds of events.
const (
	Arrived  EventKind = "arrived"
	Saw      EventKind = "seen" // somebody who is here came into view again
	Left     EventKind = "left"
	Unknown  EventKind = "unknown"  // a person without a name is in view
	Faceless EventKind = "faceless" // somebody was there, and no face could be used
	// What users say later, about the event [Event].Of.
	Mistake EventKind = "mistake" // it was not about this person
	Was     EventKind = "was"     // it was about this person, or about this group of unknown faces
)

// Event is an event in a room.
type Event struct {
	ID           uint64    `json:"id"` // counts from 1 and rises, also after a restart
	Kind         EventKind `json:"kind"`
	sighting.Who           // with the trust of an arrival alone, and without how near a face was
	Group        uint64    `json:"group,omitempty"` // group of unknown faces; 0 for none
	// the camera that saw it; for a departure, the last one
	Camera string `json:"camera"`
	Zone   string `json:"zone,omitempty"` // the zone of its picture in which the face was
	// At is when it happened, before Known; of a correction, the time of the event that it
	// corrects.
	At time.Time `json:"at"`
	// Known is when the event was recognised. The faces of an arrived person count from At on.
	Known time.Time `json:"known,omitzero"`
	// Sighting is the number of the sighting that it is about; of a departure, that of the arrival.
	Sighting uint64 `json:"sighting,omitempty"`
	// Of is the number of the event that is corrected. Without it the person of a [Was] was in view
	// and no event has told of it.
	Of uint64 `json:"of,omitempty"`
	// Void says that it did not happen: a later [Mistake] is of it, and of the arrival before.
	Void bool `json:"void,omitempty"`
}

// Words says what has happened, as a part of a sentence.
func (e Event) Words() string {
	switch e.Kind {
	case Unknown:
		return "somebody unknown is there"
	case Saw:
		return e.Name + " is in view again"
	case Faceless:
		return "somebody was there, and no face could be used"
	case Mistake:
		return "that was not " + e.Name
	case Was:
		return "that was " + cmp.Or(e.Name, fmt.Sprintf("stranger %d", e.Group))
	}
	return e.Name + " has " + string(e.Kind)
}

// event returns an event with a number, which is known now.
func (r *Room) event(e Event) Event {
	e.ID, e.At, e.Known = r.Number(), Earlier(e.At, r.now), r.now
	return e
}

// Number returns the number of an event that somebody else makes.
func (r *Room) Number() uint64 {
	r.last++
	return r.last
}

// Faceless returns the event that somebody was there since a time, and no face could be used.
func (r *Room) Faceless(camera string, since time.Time) Event {
	return r.event(Event{Kind: Faceless, Camera: camera, At: since})
}
