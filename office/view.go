// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"math"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Seen is a face in the latest frame of a camera.
type Seen struct {
	Sighting uint64         `json:"sighting"`
	Box      [4]int         `json:"box"`              // left, top, right and bottom, in pixels
	Name     string         `json:"name"`             // "": not known, or not yet recognised
	Person   int64          `json:"person,omitempty"` // number of that person
	Share    float64        `json:"share"`            // share of the evidence for the name, in [0,1]
	Trust    sighting.Trust `json:"trust,omitempty"`  // how the name is known
	Near                    // of this face, if it has the name
	Group    uint64         `json:"group,omitempty"`  // its group of unknown faces
	Ignored  bool           `json:"ignored"`          // a user ignores the group
	Reason   string         `json:"reason,omitempty"` // why this picture was not used
	Unknown  bool           `json:"-"`                // enough was seen to say that it is nobody known
}

// Near says how near a face is to the enrolled faces of its person.
type Near struct {
	Distance float64 `json:"distance,omitempty"` // to the nearest of them; 0 without a name
	// Rarity says how seldom a stranger comes as near, in words; "" in a space that was not measured.
	Rarity string `json:"rarity,omitempty"`
}

// near returns how near a face with a name is.
func near(space face.Space, v *online.Verdict) (n Near) {
	if v != nil && v.Person != 0 {
		n = nearAt(space, v.Distance)
	}
	return n
}

func nearAt(space face.Space, distance float64) Near {
	return Near{math.Round(distance*1e4) / 1e4, space.Stills.Rarity(distance)}
}

// view is the state of one camera. It continues after the camera fails, because the same people may still be in view.
type view struct {
	camera  Camera
	health  Health
	counted int // frames when the rate was measured last
	begun   time.Time
	people  *sighting.Watcher

	sightings map[int]*sighted // in view, by track
	seen      []Seen
	picture   []byte
	wanted    time.Time // last call of Picture
	far       int       // sightings of farDay whose faces were all too small
	farDay    string
}

// farOn returns the number of people who were too far away on the day of a time.
func (v *view) farOn(at time.Time) int {
	if v.farDay != at.Format(time.DateOnly) {
		return 0
	}
	return v.far
}

// frame processes a frame of a camera, which has dropped so many.
func (w *cameras) frame(v *view, f face.Frame, dropped int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.JPEG != nil || !v.camera.Stills { // the size of stills is that of a crop
		v.picture, v.health.Size = f.JPEG, [2]int{f.Size.X, f.Size.Y}
	}
	w.report(v, true, "")
	v.health.Frames++
	v.health.Dropped = dropped
	w.heed()
	at := w.o.Clock(f)
	if v.begun.IsZero() {
		v.begun = at
	}
	ids := v.people.Track(at.Sub(v.begun), f.Samples)
	sightings := make([]*sighted, len(ids))
	for i, id := range ids {
		sightings[i] = w.sighting(v, id, at)
	}
	w.roll(f, sightings)
	people, err := w.judge(v, f, at, ids, sightings)
	if err != nil {
		return err
	}
	if room := w.gallery.Learner().Room(); room.Changed(w.learnable) {
		w.learnable = room
		call(w.o.Room, room)
	}
	w.end(v, v.people.Live())
	var told []Seen
	v.seen = v.seen[:0:0] // a caller may still use the old slice
	for i, p := range people {
		b, s := p.Belief, sightings[i]
		for _, number := range p.Lessons {
			w.learned[s.ID] = w.learned[s.ID].plus(number)
		}
		if p.Verdict != nil {
			s.reason = cmp.Or(s.reason, string(p.Verdict.Reason))
		}
		person := b.Person
		s.believed = person
		if person != 0 && !s.said && (person != s.Person || b.Trust == sighting.Confirmed) {
			s.Person, s.Trust = person, b.Trust
		}
		s.double = b.Double != 0
		w.group(s, b)
		// A track without a clear picture is not reported: it may be a distant face, or no face.
		pictured := len(s.album.Faces) > 0
		s.judged = s.judged || b.Person != 0 || s.double || pictured && s.unknown()
		x := Seen{
			Sighting: s.ID, Box: corners(f.Samples[i].Box), Name: w.gallery.Name(person), Person: person, Share: b.Share,
			Trust: b.Trust, Near: near(w.gallery.Space(), p.Verdict), Group: s.Group, Ignored: w.unknown.Ignored(s.Group),
			Reason: s.reason, Unknown: s.unknown(),
		}
		v.seen = append(v.seen, x)
		// A mirror image of somebody in view is nobody else.
		if !x.Ignored && !s.double && (pictured || person != 0) {
			told = append(told, x)
		}
	}
	w.tell(w.room.See(v.camera.Name, at, told))
	if w.o.Frame != nil {
		w.o.Frame(v.camera.Name, at, v.seen)
	}
	return w.broken
}

// leastScore is the least detector score of faces that are kept of a sighting, and so of faces in groups of unknown
// faces. In clm_multi_face a hand has scores of .68 and .71; false detections in al_pacino have .68 to .82. Of the
// faces that pass the gate, all in att, lfw and vidtimit_rot have more, and those in clm_multi_face .83 or more; one in
// twenty of the profiles in umist has less. A score of 0 means that the detector gave no score.
const leastScore = .85

// judge lets the learner see the faces of a frame, and collects the results.
func (w *cameras) judge(v *view, f face.Frame, at time.Time, tracks []int, all []*sighted) ([]sighting.Seen, error) {
	for i, x := range f.Samples {
		s := all[i]
		s.reason = string(x.Reason)
		sure := x.Score == 0 || x.Score >= leastScore
		if !sure {
			s.reason = cmp.Or(s.reason, "perhaps not a face")
		}
		good := x.Vector != nil && x.Reason == "" && sure
		s.count(good, x.Reason)
		if good {
			s.look(w.gallery.Space(), x, at)
			s.album.Add(w.gallery.Space(), Face{
				ID: w.gallery.Next("face"), Vector: x.Vector, JPEG: x.JPEG, Sharp: x.Quality.Sharpness, Camera: v.camera.Name,
				At: at,
			}, mostFaces, w.gallery.Space().ImpostorRadius/4)
		}
	}
	w.gallery.Learner().SetTime(at)
	return v.people.Judge(at.Sub(v.begun), f.Samples, tracks, func(i int) bool {
		// After a wrong recognition the sighting teaches nothing until a user names the person.
		return f.Samples[i].Reason != "" || w.o.Freeze || all[i].wrong
	})
}

// group puts a sighting of an unknown person into a group of unknown faces, and removes it from there after
// recognition, or if it shows somebody in view a second time.
func (w *cameras) group(s *sighted, b sighting.Belief) {
	if s.said && s.Person != 0 {
		return
	}
	if b.Person != 0 && !s.said || s.double {
		if s.began { // the group has only this sighting
			w.unknown.remove(func(p *Stranger) bool { return p.ID == s.Group })
		}
		s.ungroup()
		return
	}
	faces := s.album.Faces
	if s.Group == 0 && s.unknown() && len(faces) > 0 && !w.past.off {
		if s.Group = w.unknown.Find(faces); s.Group == 0 {
			s.Group, s.began, s.grouped = w.gallery.Next("stranger"), true, 0
			w.unknown.Begin(s.Group, s.Last)
		}
	}
	p := w.unknown.Get(s.Group)
	if p == nil { // it was removed for newer ones, or forgotten
		s.ungroup()
		return
	}
	for _, f := range faces {
		if f.ID > s.grouped {
			s.grouped = f.ID
			w.unknown.Add(p, f)
		}
	}
}

// watched reports whether the picture of a camera is needed: a user looks at it, or it belongs to a clip.
func (w *cameras) watched(v *view) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.o.Now().Sub(v.wanted) < 5*time.Second || w.films(v)
}
