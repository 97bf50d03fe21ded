// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/sighting"
)

// KnownPerson is a person whom an office knows, with the last sighting as far back as sightings are kept.
type KnownPerson struct {
	gallery.Person
	Here  bool      `json:"here"`
	Since time.Time `json:"since,omitzero"`  // when they arrived here, or at Place
	Place string    `json:"place,omitempty"` // the device of the fleet that sees an absent person
	// Last is the time of the last sighting: of who is here, to the minute; zero if unknown.
	Last   time.Time      `json:"last,omitzero"`
	Camera string         `json:"camera,omitempty"`  // camera of the last sighting
	Trust  sighting.Trust `json:"trust,omitempty"`   // how the last sighting is known to be theirs
	Face   uint64         `json:"face,omitempty"`    // number of a picture, the chosen one if there is one; 0 for none
	Chosen uint64         `json:"picture,omitempty"` // number of the picture that a user chose; 0 for none
}

// rows are the people whom the rows know, and the place of each by number.
type rows struct {
	people []KnownPerson
	at     map[int64]int
}

// saw takes in a sighting. One that is not written has no picture yet: then the picture before stays.
func (r *rows) saw(x Sighting) {
	i, there := r.at[x.Person]
	if !there || x.Last.Before(r.people[i].Last) {
		return
	}
	p := &r.people[i]
	p.Last, p.Camera, p.Trust, p.Face = x.Last.Round(0), x.Camera, x.Trust, cmp.Or(p.Chosen, x.Face, p.Face)
}
