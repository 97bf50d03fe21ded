// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"image"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/office/unknown"
	"github.com/faceauth/faceauth/sighting"
)

// Seen is a face in the latest frame of a camera.
type Seen struct {
	Sighting uint64          `json:"sighting"`
	Box      image.Rectangle `json:"box"`
	Name     string          `json:"name"`             // "" for nobody known, or not yet
	Share    float64         `json:"share"`            // of what was seen that speaks for that
	Trust    sighting.Trust  `json:"trust,omitempty"`  // on what the name rests
	Group    uint64          `json:"group,omitempty"`  // of unknown faces to which it belongs
	Ignored  bool            `json:"ignored"`          // nobody wants to hear of that group
	Reason   string          `json:"reason,omitempty"` // why this picture of it is not learned, or was not recognised
}

// view is what one camera sees. It outlives a camera that fails: who was in view before may be so afterwards.
type view struct {
	camera Camera
	pace   pace
	health Health // written by the goroutine that reads the camera alone
	begun  time.Time
	size   image.Point
	people *sighting.Watcher

	sightings map[int]*visit // in view, by track
	seen      []Seen
	picture   []byte
	wanted    time.Time // when somebody looked at the picture last
}

// frame takes in a frame of a camera.
func (w *Office) frame(v *view, f face.Frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.o.Clock(f)
	if v.begun.IsZero() {
		v.begun = at
	}
	v.picture, v.size = f.JPEG, f.Size
	ids := v.people.Track(at.Sub(v.begun), f.Samples)
	sightings := make([]*visit, len(ids))
	for i, id := range ids {
		sightings[i] = w.sighting(v, id, at)
	}
	w.roll(f, sightings)
	people, err := w.judge(v, f, at, ids, sightings)
	if err != nil {
		return err
	}
	if room := w.roomNow(); room.Full != w.full {
		w.full = room.Full
		w.o.Room(room)
	}
	w.end(v, v.people.Live())
	var told []presence.Seen
	v.seen = v.seen[:0:0] // the old one may be in use
	for i, p := range people {
		b, s := p.Belief, sightings[i]
		if b.Name != "" && (b.Name != s.Known || b.Trust == sighting.Confirmed) {
			s.Known, s.Trust = b.Name, b.Trust
		}
		w.group(s, b)
		ignored := w.unknown.Ignored(s.Group)
		// Of whom there is no picture that can be judged, nothing is said: it may be a face far away, or none.
		clear := len(s.album.Faces) > 0
		s.judged = s.judged || b.Name != "" || clear && b.Frames >= w.o.Presence.Judged
		if !ignored && (clear || b.Name != "") {
			told = append(told, presence.Seen{Track: ids[i], Belief: b, Group: s.Group})
		}
		v.seen = append(v.seen, Seen{
			Sighting: s.id, Box: f.Samples[i].Box, Name: b.Name, Share: b.Share, Trust: b.Trust, Group: s.Group, Ignored: ignored, Reason: s.reason,
		})
	}
	w.reserve()
	w.tell(w.room.See(v.camera.Name, at, told))
	w.o.Frame(v.camera.Name, at, v.seen)
	return w.broken
}

// leastScore is how sure a detector is of the faces that are kept of a sighting, and so of those that make a group of
// unknown faces. In clm_multi_face a hand has .68 and .71, and what is no face in al_pacino .68 to .82. Of the faces
// that pass the gate, all of att, lfw and vidtimit_rot have more, and .83 or more in clm_multi_face; of the profiles of
// umist one in twenty has less. A score of 0 means that there is no score.
const leastScore = .85

// judge has the learner see the faces of a frame, and gathers what it says.
func (w *Office) judge(v *view, f face.Frame, at time.Time, tracks []int, visits []*visit) ([]sighting.Seen, error) {
	learner := w.gallery.Learner()
	for i, x := range f.Samples {
		s := visits[i]
		s.reason = string(x.Reason)
		sure := x.Score == 0 || x.Score >= leastScore
		if !sure {
			s.reason = cmp.Or(s.reason, "perhaps no face")
		}
		if x.Vector != nil && x.Reason == "" && sure {
			s.album.Add(w.gallery.Space(), unknown.Face{
				ID: w.unknown.Number(), Vector: x.Vector, JPEG: x.JPEG, Camera: v.camera.Name, At: at,
			}, w.o.Faces, w.gallery.Space().ImpostorRadius/4)
		}
	}
	learner.SetTime(at)
	seen, err := v.people.Judge(at.Sub(v.begun), f.Samples, tracks, func(i int) bool {
		// Somebody who was taken for another person by mistake teaches nothing until a user says who it is.
		return f.Samples[i].Reason != "" || w.o.Freeze || visits[i].Wrong
	})
	if err != nil {
		return nil, err
	}
	for i, p := range seen {
		verdict := p.Verdict
		if verdict == nil {
			continue
		}
		s := visits[i]
		for _, number := range p.Lessons {
			s.Learned.add(number)
		}
		if s.reason == "" {
			s.reason = string(verdict.Reason)
		}
	}
	return seen, nil
}

// group puts a sighting of nobody known into a group of unknown faces, and takes it out again where it is somebody.
func (w *Office) group(s *visit, b sighting.Belief) {
	if b.Name != "" {
		if s.began { // it is of this sighting alone
			w.unknown.Forget(s.Group) // which may have gone already
		}
		s.ungroup()
		return
	}
	faces := s.album.Faces
	if s.Group == 0 && b.Frames >= w.o.Presence.Judged && len(faces) > 0 {
		if s.Group = w.unknown.Find(faces); s.Group != 0 {
			w.unknown.Visit(s.Group) // it was found a moment ago
		} else {
			w.beginGroup(s)
		}
	}
	for _, f := range faces {
		if s.Group == 0 {
			return
		}
		if f.ID <= s.grouped {
			continue
		}
		s.grouped = f.ID
		if err := w.unknown.Add(s.Group, f); err != nil { // it has made room for others, or was forgotten
			s.ungroup()
		}
	}
}

// beginGroup makes a group of unknown faces of a sighting.
func (w *Office) beginGroup(s *visit) {
	if s.Group = w.unknown.Begin(s.album.Faces); s.Group != 0 {
		s.began, s.grouped = true, s.album.Faces[len(s.album.Faces)-1].ID
	}
}

// regroup puts a sighting into the group of unknown faces to which it belongs, or into one of its own, whose number it
// returns.
func (w *Office) regroup(s *visit) (made uint64) {
	if s.Group = w.unknown.Find(s.album.Faces); s.Group == 0 {
		w.beginGroup(s)
		return s.Group
	}
	w.unknown.Visit(s.Group) // it was found a moment ago
	for _, f := range s.album.Faces {
		if w.unknown.Add(s.Group, f) == nil {
			s.grouped = f.ID
		}
	}
	w.unknown.Own(s.Group)
	return 0
}

// watched reports whether the picture of a camera is wanted: somebody looks at it, or it belongs to a clip.
func (w *Office) watched(v *view) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.o.Now().Sub(v.wanted) < 5*time.Second || w.films(v)
}
