// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// near returns how near a face with a name is.
func near(space face.Space, v *online.Verdict) (n sighting.Near) {
	if v != nil && v.Person != 0 {
		n = sighting.NearAt(space, v.Distance)
	}
	return n
}

// view is the state of one camera. It continues after the camera fails, because the same people may still be in view.
type view struct {
	camera  Camera
	health  Health
	counted int // frames when the rate was measured last
	begun   time.Time
	people  *sighting.Watcher

	sightings map[int]*sighted // in view, by track
	seen      []presence.Seen
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
	var told []presence.Seen
	v.seen = v.seen[:0:0] // a caller may still use the old slice
	for i, p := range people {
		b, s := p.Belief, sightings[i]
		for _, number := range p.Lessons {
			w.learned[s.ID] = w.learned[s.ID].Plus(number)
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
		x := presence.Seen{
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
			s.album.Add(w.gallery.Space(), sighting.Face{
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
		s.Group = w.unknown.Find(faces)
		if s.Group == 0 {
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

// Sighting is a person in view of a camera, at present or in the past.
type Sighting struct {
	ID     uint64 `json:"id"`
	Camera string `json:"camera"`
	Name   string `json:"name"`             // the present name of the person, or ""
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

// sighted is a sighting that can be corrected.
type sighted struct {
	Sighting
	wrong    bool    // a user said that it is nobody known
	said     bool    // a user said who it is
	placed   bool    // a user said in which group of unknown faces it is
	denied   []int64 // people whom a user denied, as the camera was told
	written  bool    // it has a row
	saved    uint64  // number of the last face that is written
	done     bool    // it has ended
	track    int     // of the camera
	album    sighting.Album
	began    bool   // the group was made for this sighting
	grouped  uint64 // number of its last face in the group
	reason   string // why the last picture was not used
	film     film   // its clip
	good     int    // number of clear faces
	small    int    // number of faces that are too small
	others   int    // number of faces that are not
	spoilt   int    // number of faces that a movement, an edge or a cover has spoilt
	double   bool   // it shows somebody in view a second time: a mirror image
	judged   bool   // enough faces were seen to decide whether the person is known
	believed int64  // the last belief of the camera

	looks           []sighting.Look // clear ones that differ, at most leastClear
	looked, glanced time.Time       // first and last clear face
}

// sighting returns the sighting of a track in view.
func (w *cameras) sighting(v *view, track int, at time.Time) *sighted {
	s := v.sightings[track]
	if s == nil {
		s = &sighted{track: track, Sighting: Sighting{ID: w.gallery.Next("sighting"), Camera: v.camera.Name, First: at}}
		v.sightings[track] = s
	}
	s.First, s.Last, w.seen = presence.Earlier(s.First, at), at, true
	return s
}

// leastClear is the number of clear faces that differ ([sighting.Look.Differs]) from which somebody unknown is told,
// and leastTime the time from the first to the last clear face, however many there are in a second. Of the faces of
// somebody who runs past, or who is half behind a bar, some pass the checks of a picture; so the spoilt ones may be
// mostSpoilt times as many. leastClear and mostSpoilt were chosen on p3 and p5 of vidtimit_rot.
const (
	leastClear = 3
	leastTime  = 1500 * time.Millisecond
	mostSpoilt = 2
)

// look takes in a clear face.
func (s *sighted) look(space face.Space, x face.Sample, at time.Time) {
	if len(s.looks) == 0 {
		s.looked = at
	}
	s.glanced = at
	if len(s.looks) >= leastClear {
		return
	}
	// Who comes nearer is another size in each picture: looks of other light or size count on.
	l := sighting.LookOf(x)
	if isNew, _ := l.Differs(space, s.looks); isNew {
		s.looks = append(s.looks, l)
	}
}

// unknown reports whether enough was seen to say that it is nobody known, if it has no name.
func (s *sighted) unknown() bool {
	return len(s.looks) >= leastClear && s.glanced.Sub(s.looked) >= leastTime && s.spoilt <= mostSpoilt*s.good
}

// count counts a face of the sighting.
func (s *sighted) count(clear bool, why face.Reason) {
	if why == face.TooSmall {
		s.small++
	} else {
		s.others++
	}
	switch {
	case clear:
		s.good++
	case why == face.Blurred, why == face.Moved, why == face.CutOff, why == face.Covered:
		s.spoilt++
	}
}

// ungroup removes a sighting from its group.
func (s *sighted) ungroup() { s.Group, s.began = 0, false }

// end ends the sightings of a camera whose tracks are not live.
func (w *cameras) end(v *view, live []int) {
	for _, track := range slices.Sorted(maps.Keys(v.sightings)) {
		s := v.sightings[track]
		if slices.Contains(live, track) {
			continue
		}
		delete(v.sightings, track)
		s.done = true
		if !s.judged {
			w.unjudged(v, s)
		}
		if w.keeps(s) || s.written {
			w.ended = append(w.ended, s)
		}
	}
}

// unjudged counts and tells of people who were too far away, and of those who did not show their faces.
func (w *cameras) unjudged(v *view, s *sighted) {
	switch far := s.others == 0; {
	case far && s.small >= leastClear:
		v.far, v.farDay = v.farOn(s.Last)+1, s.Last.Format(time.DateOnly)
	case !far && s.others >= leastClear && s.Last.Sub(s.First) >= leastTime:
		w.faceless(v, s.First)
	}
}

// faceless tells that somebody was there whose face could not be used.
func (w *cameras) faceless(v *view, since time.Time) {
	if w.o.Faceless {
		w.tell([]presence.Event{w.room.Faceless(v.camera.Name, since)})
	}
}

// keeps reports whether a sighting is kept.
func (w *keeper) keeps(s *sighted) bool {
	if w.gallery.Name(s.Person) != "" || s.written && (s.said || s.placed) {
		return true
	}
	return len(s.album.Faces) > 0 && !s.double && !w.past.off && !w.unknown.Ignored(s.Group)
}

// live calls do with each sighting that has not ended.
func (w *keeper) live(do func(*sighted, *view)) {
	for _, v := range w.views {
		for _, s := range v.sightings {
			do(s, v)
		}
	}
}

// fresh returns the sightings in view, and those that are not written since they ended.
func (w *keeper) fresh() []*sighted {
	all := slices.Clone(w.ended)
	w.live(func(s *sighted, _ *view) { all = append(all, s) })
	return all
}

// errEnough ends a search of sightings.
var errEnough = errors.New("enough was found")

// find returns a sighting with its faces. The error wraps [ErrNoSighting], or comes from the database.
func (w *keeper) find(t *gallery.Tx, id uint64) (s Sighting, a sighting.Album, err error) {
	err = w.sightings(t, "id = ?2", func(x Sighting) error { s = x; return nil }, int64(id))
	if err == nil && s.ID == 0 {
		err = fmt.Errorf("%w: %d", ErrNoSighting, id)
	}
	if err == nil {
		a.Faces, err = facesOf(t, id)
	}
	return s, a, err
}

// show returns a sighting with the present name of its person. Who is nobody any more is unknown.
func (w *keeper) show(x Sighting) Sighting {
	x.Name = w.gallery.Name(x.Person)
	if x.Name == "" {
		x.Person, x.Trust = 0, sighting.Nobody
	} else {
		x.Group = 0
	}
	if x.Group != 0 && !x.Live && w.unknown.Get(x.Group) == nil {
		x.Group = 0
	}
	return x
}
