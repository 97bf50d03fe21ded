// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"slices"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Now is the state of an office at one moment.
type Now struct {
	At      time.Time  `json:"at"`
	Cameras []View     `json:"cameras"`
	People  []Presence `json:"people"`  // the people who are present
	Unknown int        `json:"unknown"` // number of further people without a name
	// LastSeen holds the last sighting of each absent person, by name, as far back as the events go.
	LastSeen map[string]time.Time `json:"last_seen"`
	Known    []gallery.Person     `json:"known"`
	Keeps    bool                 `json:"keeps"`  // keeps faces of strangers
	Learns   bool                 `json:"learns"` // learns from the faces that it sees
	Room     online.Room          `json:"room"`
	Disk     Disk                 `json:"disk"`
	// Poor is the number of sightings of this run that were too short or too poor to recognise anybody.
	Poor int `json:"poor"`
}

// View is the present view of one camera.
type View struct {
	Health
	Seen []Seen `json:"seen"`
	// Far is the number of sightings of the day whose faces were all too small to judge.
	Far int `json:"far"`
}

// Sighting is a person in view of a camera, at present or in the past.
type Sighting struct {
	ID     uint64 `json:"id"`
	Camera string `json:"camera"`
	Name   string `json:"name"`             // the last recognised name, or ""
	Person int64  `json:"person,omitempty"` // number of that person
	// Trust tells how the name is known, at best. If it is sighting.Likely, a user can call [Office.Confirm].
	Trust sighting.Trust `json:"trust,omitempty"`
	First time.Time      `json:"first"`
	Last  time.Time      `json:"last"`
	Live  bool           `json:"live"`            // in view at present, or a moment ago
	Face  uint64         `json:"face"`            // number of a picture for [Office.Face]; 0 for none
	Group uint64         `json:"group,omitempty"` // its last group of unknown faces
	Clip  int            `json:"clip,omitempty"`  // number of pictures in the film of its beginning, for [Office.Clip]
}

// Now returns the present state.
func (w *Office) Now() Now {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := Now{
		At: w.o.Now(), Cameras: []View{}, People: w.room.People(), Unknown: w.room.Strangers(),
		LastSeen: w.room.LastSeen(),
		Known:    append([]gallery.Person{}, w.gallery.People()...), Keeps: w.unknown.Keeps(), Learns: !w.o.Freeze,
		Room: w.gallery.Learner().Room(), Disk: w.disk, Poor: w.poor,
	}
	for i := range n.People {
		n.People[i].ID = w.gallery.Number(n.People[i].Name)
	}
	for _, v := range w.views {
		n.Cameras = append(n.Cameras, View{Health: v.health, Seen: append([]Seen{}, v.seen...), Far: v.farOn(n.At)})
	}
	return n
}

// Sightings returns the latest sightings that can be corrected, the latest first.
func (w *Office) Sightings() []Sighting { return w.SightingsBefore(0, w.o.Sightings) }

// SightingsBefore returns the last n sightings that can be corrected, before the sighting with the given number (0:
// before none), the latest first.
func (w *Office) SightingsBefore(id uint64, n int) []Sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []Sighting{}
	w.live(func(s *visit, _ *view) {
		if len(s.album.Faces) > 0 && (id == 0 || s.id < id) {
			x := w.show(s, s.album.Faces[0].ID, true)
			x.Clip = len(s.film.pictures)
			all = append(all, x)
		}
	})
	for i, old := range w.o.Past.seen.Before(id) {
		if i >= n {
			break
		}
		if s := w.past(old); len(s.Faces) > 0 {
			x := w.show(s, s.Faces[0], false)
			if clips := w.o.Past.clips; clips != nil {
				r, _ := clips.Get(old)
				x.Clip = r.Head.Pictures
			}
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b Sighting) int { return cmp.Compare(b.ID, a.ID) })
	return all[:min(n, len(all))]
}

func (w *Office) show(s *visit, face uint64, live bool) Sighting {
	return Sighting{
		ID: s.id, Camera: s.Camera, Name: s.Known, Person: w.gallery.Number(s.Known), Trust: s.Trust, First: s.First,
		Last: s.Last, Live: live, Face: face, Group: s.Group,
	}
}

// Strangers returns the groups of unknown faces, the last seen group first. Do not change the vectors and pictures.
func (w *Office) Strangers() []Group {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unknown.All()
}

// Face returns the picture of a face of a stranger, a sighting or a correction, or nil.
func (w *Office) Face(id uint64) (jpeg []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.picture(id)
}

func (w *Office) picture(id uint64) (jpeg []byte) {
	w.live(func(s *visit, _ *view) {
		if f, there := s.album.Find(id); there {
			jpeg = f.JPEG
		}
	})
	if jpeg == nil {
		jpeg = w.unknown.JPEG(id)
	}
	if jpeg == nil {
		jpeg = w.pastFace(id)
	}
	return jpeg
}

// pastFace returns the picture of a face of the past, or nil.
func (w *Office) pastFace(id uint64) []byte {
	for _, old := range w.o.Past.seen.Before(0) {
		if s := w.past(old); slices.Contains(s.Faces, id) {
			w.recall(s)
			f, _ := s.album.Find(id)
			return f.JPEG
		}
	}
	for _, old := range w.o.Past.said.Before(0) {
		r, _ := w.o.Past.said.Get(old)
		if !slices.Contains(r.Head.Faces, id) {
			continue
		}
		_, p, err := w.statement(old)
		if err != nil {
			return nil
		}
		for _, g := range append(p.Groups, Group{Album: Album{Faces: p.Faces}}) {
			if f, there := g.Album.Find(id); there {
				return f.JPEG
			}
		}
	}
	return nil
}

// LastFace returns the latest picture of a person's face, of a sighting that was confirmed, or nil.
func (w *Office) LastFace(name string) (jpeg []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var latest time.Time
	w.live(func(s *visit, _ *view) {
		if f := s.latest(); s.sure() && s.Known == name && f.At.After(latest) {
			latest, jpeg = f.At, f.JPEG
		}
	})
	if jpeg != nil {
		return jpeg
	}
	return w.latest.face(w, name)
}

// sure reports whether the name of a sighting is certain.
func (s *visit) sure() bool { return !s.Wrong && s.Trust == sighting.Confirmed }

// latest returns the last seen face of a sighting.
func (s *visit) latest() (last Face) {
	for _, f := range s.album.Faces {
		if f.At.After(last.At) {
			last = f
		}
	}
	return last
}

// latestFaces caches the latest pictures of people, because pages ask for them each second. The journal has thousands
// of sightings, and their pictures are on disk. The zero value is empty.
type latestFaces struct {
	turn     uint64            // the journal's turn when it was read
	sighting map[string]uint64 // the latest sighting of each person
	picture  map[uint64][]byte // by sighting
}

// face returns the latest picture of a person, or nil.
func (l *latestFaces) face(w *Office, name string) []byte {
	past := w.o.Past.seen
	if l.sighting == nil || l.turn != past.Turns() {
		known := l.picture
		*l = latestFaces{past.Turns(), make(map[string]uint64), make(map[uint64][]byte)}
		for _, id := range past.Before(0) { // the newest first
			s := w.past(id)
			if _, newer := l.sighting[s.Known]; newer || s.Known == "" || !s.sure() {
				continue
			}
			l.sighting[s.Known] = id
			if jpeg, ok := known[id]; ok {
				l.picture[id] = jpeg
			}
		}
	}
	id, ok := l.sighting[name]
	if !ok {
		return nil
	}
	jpeg, ok := l.picture[id]
	if !ok {
		s := w.past(id)
		w.recall(s)
		jpeg = s.latest().JPEG
		l.picture[id] = jpeg
	}
	return jpeg
}

// Picture returns the latest picture of a camera, or nil while there is none, and whether there is such a camera.
// Pictures are made only for some seconds after a call.
func (w *Office) Picture(camera string) (jpeg []byte, known bool) {
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
