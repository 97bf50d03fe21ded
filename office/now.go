// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"image"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/office/unknown"
	"github.com/faceauth/faceauth/sighting"
)

// Now is what is true of an office at a moment.
type Now struct {
	At      time.Time         `json:"at"`
	Cameras []View            `json:"cameras"`
	People  []presence.Person `json:"people"` // who are there
	Known   []gallery.Person  `json:"known"`
	Keeps   bool              `json:"keeps"`  // faces of strangers
	Learns  bool              `json:"learns"` // from what is seen
	Room    Room              `json:"room"`
}

// Room says whether the learner can still take in more.
type Room struct {
	Full       bool  `json:"full"`        // it recognises faces, and learns no longer
	K          int   `json:"k"`           // centroids that it may hold
	PassedOver int64 `json:"passed_over"` // faces that would have been learned if there had been room
}

// roomNow returns what holds for the learner. The lock must be held.
func (w *Office) roomNow() Room {
	l := w.gallery.Learner()
	return Room{Full: l.Full(), K: l.Settings().K, PassedOver: l.Counts().PassedOver}
}

// View is what one camera shows.
type View struct {
	Health
	Size image.Point `json:"size"` // of the frame, where there is a picture of it
	Seen []Seen      `json:"seen"`
}

// Sighting is somebody who was in view of a camera, or is.
type Sighting struct {
	ID     uint64 `json:"id"`
	Camera string `json:"camera"`
	Name   string `json:"name"` // who it was taken for last, or ""
	// Trust is the best on which that rested. Where that is sighting.Learned, [Office.Confirm] takes in that it was so.
	Trust sighting.Trust `json:"trust,omitempty"`
	First time.Time      `json:"first"`
	Last  time.Time      `json:"last"`
	Live  bool           `json:"live"` // in view, or a moment ago
	Face  uint64         `json:"face"` // a picture of it, for [Office.Face]; 0 for none
}

// Now returns what is true.
func (w *Office) Now() Now {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := Now{At: w.o.Now(), Cameras: []View{}, People: w.room.People(), Known: append([]gallery.Person{}, w.gallery.People()...), Keeps: w.unknown.Keeps(), Learns: !w.o.Freeze, Room: w.roomNow()}
	for _, v := range w.views {
		n.Cameras = append(n.Cameras, View{Health: v.health, Size: v.size, Seen: append([]Seen{}, v.seen...)})
	}
	return n
}

// Sightings returns those that can be corrected, the latest first.
func (w *Office) Sightings() []Sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Sighting{}
	w.all(func(s *visit, v *view) {
		if len(s.album.Faces) > 0 {
			all = append(all, Sighting{ID: s.id, Camera: s.camera, Name: s.known, Trust: s.trust, First: s.first, Last: s.last, Live: v != nil, Face: s.album.Faces[0].ID})
		}
	})
	slices.SortFunc(all, func(a, b Sighting) int { return cmp.Compare(b.ID, a.ID) })
	return all
}

// Strangers returns the groups of unknown faces, those first that were seen last. Vectors and pictures must not be
// changed.
func (w *Office) Strangers() []unknown.Group {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unknown.All()
}

// Face returns the picture of a face of a stranger or a sighting, or nil.
func (w *Office) Face(id uint64) (jpeg []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all(func(s *visit, _ *view) {
		if f, there := s.album.Find(id); there {
			jpeg = f.JPEG
		}
	})
	if jpeg == nil {
		jpeg = w.unknown.JPEG(id)
	}
	return jpeg
}

// Picture returns the latest picture of a camera, or nil: pictures are made while they are asked for.
func (w *Office) Picture(camera string) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.views {
		if v.camera.Name == camera {
			v.wanted = w.o.Now()
			return v.picture
		}
	}
	return nil
}
