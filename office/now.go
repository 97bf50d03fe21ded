// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// Now is the state of an office at one moment.
type Now struct {
	At      time.Time     `json:"at"`
	Cameras []View        `json:"cameras"`
	People  []Presence    `json:"people"`  // the people who are present
	Unknown int           `json:"unknown"` // number of further people without a name
	Known   []KnownPerson `json:"known"`
	Keeps   bool          `json:"keeps"`  // keeps faces of strangers
	Learns  bool          `json:"learns"` // learns from the faces that it sees
	Room    online.Room   `json:"room"`
	Disk    Disk          `json:"disk"`
}

// View is the present view of one camera.
type View struct {
	Health
	Door Door   `json:"door,omitempty"`
	Seen []Seen `json:"seen"`
	// Far is the number of sightings of the day whose faces were all too small to judge.
	Far int `json:"far"`
}

// Now returns the present state.
func (w *Office) Now() Now {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := Now{
		At: w.o.Now(), Cameras: []View{}, People: w.room.People(), Unknown: w.room.Strangers(),
		Known: w.everybody(), Keeps: !w.past.off, Learns: !w.o.Freeze, Room: w.gallery.Learner().Room(),
		Disk: w.disk,
	}
	for i, p := range n.People {
		n.People[i].Name = w.gallery.Name(p.ID)
	}
	slices.SortFunc(n.People, func(a, b Presence) int { return cmp.Compare(a.Name, b.Name) })
	for _, v := range w.views {
		n.Cameras = append(n.Cameras, View{Health: v.health, Door: v.camera.Door, Seen: append([]Seen{}, v.seen...),
			Far: v.farOn(n.At)})
	}
	return n
}

// listed is the number of sightings that [Office.Sightings] returns.
const listed = 64

// Sightings returns the latest sightings that can be corrected, the latest first.
func (w *Office) Sightings() []Sighting { return w.SightingsBefore(0, listed) }

// SightingsBefore returns the last n sightings that can be corrected, before the sighting with the given number (0:
// before none), the latest first.
func (w *Office) SightingsBefore(id uint64, n int) []Sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Sighting{}
	w.look(func(t *gallery.Tx) error {
		return w.sightings(t, `id < ?2 and exists (select 1 from face where sighting = sighting.id) order by id desc
			limit ?3`, func(x Sighting) error { all = append(all, x); return nil }, before(id), int64(n))
	})
	return all
}

// Strangers returns the groups of unknown faces, the last seen group first. Do not change the vectors and pictures.
func (w *Office) Strangers() []Stranger {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.unknown.groups {
		w.suppose(g)
		g.Visits = max(1, len(w.visits(Wanted{Group: g.ID})))
		g.Best = numbersOf(best(w.gallery.Space(), g.Faces, bestFaces))
	}
	return w.unknown.All()
}

// Face returns the picture of a face of a stranger, a sighting or a label, or nil.
func (w *pictures) Face(id uint64) (jpeg []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(w.gallery.Look(func(t *gallery.Tx) (err error) {
		jpeg, err = t.Blob("select jpeg from face where number = ?", int64(id))
		return err
	}))
	return jpeg
}

// Picture returns the latest picture of a camera, or nil while there is none, and whether there is such a camera.
// Pictures are made only for some seconds after a call.
func (w *pictures) Picture(camera string) (jpeg []byte, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.views {
		if v.camera.Name == camera {
			v.wanted = w.o.Now()
			return v.picture, true
		}
	}
	return nil, false
}
