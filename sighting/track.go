// SPDX-License-Identifier: Apache-2.0

// Package sighting follows the faces of one camera over frames: it decides which faces are one
// person who stays in view, and who that person is.
//
// [NewTracker] uses the position of a face and its vector, so that it separates people who cross,
// or who take each other's seat. [NewBoxTracker] uses only the overlap of boxes. A [Watcher] does
// all of this for a camera, and collects the verdicts of each track: all of them together decide
// the name and how it is known ([Trust]), and no two people in view get one name. It lets the
// learner learn from confirmed sightings.
package sighting

import (
	"cmp"
	"image"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/quantized"
)

// limits of a [Tracker]. Distances are in units of the space.
type limits struct {
	overlap float64 // least intersection over union of a person's boxes in two frames
	// near is the greatest distance at which a face continues a track elsewhere in the picture.
	near float64
	far  float64 // beyond it a face is another person's, wherever it is
	// in place of far for a person who was missing in the last frame: another may have taken the
	// place
	lost float64
	// sure is the distance beyond which the next face of a track may be another person's: the track
	// goes on, in doubt.
	sure float64
	// same replaces sure for a person who was missing in the last frame. It is also the distance to
	// a face before the doubt at which the doubt ends: as each later face is compared, another
	// person has many chances. If the space was measured, a face within same continues a track
	// whose box it touches, whatever overlap says: before a slow camera people walk on between two
	// frames.
	same float64
	// gap is the time without a face after which a track ends. A frame at which the clock stands,
	// or goes back, counts as a fiftieth of it.
	gap time.Duration
}

// limitsOf returns the limits in a space. Where it was not measured, two faces do not tell people
// apart for certain.
func limitsOf(space face.Space) limits {
	l := limits{overlap: .25, near: .75 * space.ImpostorRadius, gap: 2 * time.Second}
	l.far = cmp.Or(1.2*space.ImpostorRadius, math.Inf(1))
	l.lost, l.sure, l.same = l.far, math.Inf(1), math.Inf(1)
	if s := space.Stills; s.Measured() {
		l.far = s.Within(1e-3)
		l.lost = cmp.Or(s.Within(1e-4), l.far)
		l.sure = cmp.Or(s.Within(1e-5), l.sure)
		l.same = cmp.Or(s.Within(1e-7), l.sure)
	}
	return l
}

// newestFaces is the number of remembered faces of a track.
const newestFaces = 5

// Tracker gives numbers to the people in view of one camera. One goroutine may use it at a time.
// Memory is limited by the number of people in view within the gap. [NewTracker] makes one.
type Tracker struct {
	limits
	scale float64
	given bool      // see [NewStillsWatcher]
	last  int       // the number of the newest track
	live  []*person // by number

	now   time.Duration // time by which tracks end
	clock time.Duration // time of the last frame by the clock of the source
	ahead time.Duration // how far now went on since that clock stands
}

// person is a person in view.
type person struct {
	id     int
	track  int // track of the face in its source
	box    image.Rectangle
	at     time.Duration // by Tracker.now
	missed bool          // the person was missing in the last frame
	looks  [][]float32   // the newest last
	before [][]float32   // looks of the time before the track was in doubt; nil if it is not
	turned int           // number of next faces in doubt that may be of a head that turned
}

// NewTracker returns a tracker of faces in a space.
func NewTracker(space face.Space) *Tracker {
	return &Tracker{limits: limitsOf(space), scale: space.Scale}
}

// Restart ends all tracks: the next frame continues none before it.
func (t *Tracker) Restart() { t.live = nil }

// NewBoxTracker returns a tracker of faces without vectors, by the overlap of boxes alone: at least
// .3 in two frames. Its time is the number of a frame, and a face may be missing in up to ten
// frames.
func NewBoxTracker() *Tracker {
	t := NewTracker(face.Space{})
	t.overlap, t.gap = .3, 10
	return t
}

// beats is the number of frames after which a track without a face ends while the clock stands.
const beats = 50

// advance moves the time of the tracker to that of a frame.
func (t *Tracker) advance(at time.Duration) {
	step := at - t.clock
	t.clock = at
	if step <= 0 {
		beat := max(1, t.gap/beats)
		t.now, t.ahead = t.now+beat, t.ahead+beat
		return
	}
	t.now, t.ahead = t.now+max(0, step-t.ahead), 0
}

// Update returns the track number of each face in a frame of that time. Track numbers start at 1
// and are never reused. The vectors of the faces may be nil; the tracker keeps them for some time,
// so they must not change.
//
// Of all pairs of a person and a face that fit, the best are chosen one after another.
func (t *Tracker) Update(at time.Duration, faces []face.Sample) []int {
	t.advance(at)
	t.live = slices.DeleteFunc(t.live, func(p *person) bool { return t.now-p.at > t.gap })
	ids := make([]int, len(faces))
	taken := make(map[*person]bool)
	give := func(p *person, j int, distance float64) {
		if ids[j] == 0 && !taken[p] {
			ids[j], taken[p] = p.id, true
			t.doubt(p, faces[j], distance)
			t.see(p, faces[j])
		}
	}
	for j, f := range faces {
		if p := t.source(f); p != nil {
			give(p, j, t.nearest(f, p.looks))
		}
	}
	type pair struct {
		p               *person
		face            int
		score, distance float64
	}
	var pairs []pair
	for _, p := range t.live {
		if t.given || taken[p] {
			continue
		}
		for j, f := range faces {
			if score, distance, ok := t.score(p, f); ok && ids[j] == 0 {
				pairs = append(pairs, pair{p, j, score, distance})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(b.score, a.score) })
	for _, c := range pairs {
		give(c.p, c.face, c.distance)
	}
	for _, p := range t.live {
		p.missed = !taken[p]
	}
	for j, f := range faces {
		if ids[j] == 0 {
			t.last++
			p := &person{id: t.last}
			t.live = append(t.live, p)
			t.see(p, f)
			ids[j] = p.id
		}
	}
	return ids
}

// Live returns the track numbers of the people in view at present or within the gap.
func (t *Tracker) Live() []int {
	ids := make([]int, len(t.live))
	for i, p := range t.live {
		ids[i] = p.id
	}
	return ids
}

// inDoubt reports whether another person may have taken the place of the person of a track: a face
// was so far from the newest faces before it that one in 100,000 strangers would be as near. A
// later face that is nearer to these than one in ten million ends the doubt, for example after a
// single bad picture.
func (t *Tracker) inDoubt(track int) bool {
	p := t.person(track)
	return p != nil && p.before != nil
}

// believe ends the doubt about a track, because something else shows that it is the same person.
func (t *Tracker) believe(track int) {
	if p := t.person(track); p != nil {
		p.before = nil
	}
}

// follows reports whether the next face of a track should be taken for the person of the faces
// before it: the track is not in doubt, or the head may have turned far between two slow frames.
func (t *Tracker) follows(track int) bool {
	p := t.person(track)
	return p == nil || p.before == nil || p.turned > 0
}

func (t *Tracker) person(track int) *person {
	i, ok := slices.BinarySearchFunc(t.live, track, func(p *person, id int) int {
		return cmp.Compare(p.id, id)
	})
	if !ok {
		return nil
	}
	return t.live[i]
}

const (
	// turning is the time within which a head does not turn so far that its faces are further apart
	// than sure.
	turning = 200 * time.Millisecond
	// turnedFaces is the number of faces after such a slow turn that still get their name from the
	// faces before it.
	turnedFaces = 4
)

// doubt begins or ends the doubt about a person whose next face is at a distance from the newest
// ones.
func (t *Tracker) doubt(p *person, f face.Sample, distance float64) {
	if f.Vector == nil || len(p.looks) == 0 {
		return
	}
	sure, missed := t.sure, p.missed || t.given
	if missed {
		sure = t.same
	}
	p.turned = max(0, p.turned-1)
	switch {
	case p.before == nil && distance > sure:
		p.before, p.turned = slices.Clone(p.looks), 0
		if !missed && t.now-p.at > turning {
			p.turned = turnedFaces
		}
	case p.before != nil && t.nearest(f, p.before) <= t.same:
		p.before = nil
	}
}

// nearest returns the distance of a face to the nearest of some vectors; it is infinite without a
// vector.
func (t *Tracker) nearest(f face.Sample, looks [][]float32) float64 {
	d := math.Inf(1)
	for _, x := range looks {
		if f.Vector != nil {
			d = min(d, quantized.Distance(f.Vector, x, t.scale))
		}
	}
	return d
}

// source returns the last person of a face's track in the source, if that counts: for a held face,
// or with [NewStillsWatcher]. It is nil otherwise.
func (t *Tracker) source(f face.Sample) (last *person) {
	for _, p := range t.live {
		if (f.Held || t.given) && p.track == f.Track && (last == nil || p.at >= last.at) {
			last = p
		}
	}
	return last
}

// see records the present position and look of a person.
func (t *Tracker) see(p *person, f face.Sample) {
	p.box, p.at, p.track = f.Box, t.now, f.Track
	// the vector of a poor picture is of little use
	if f.Vector == nil || f.Reason != "" && len(p.looks) > 0 {
		return
	}
	p.looks = appended(p.looks, f.Vector, newestFaces)
}

// score returns how well a face fits a person in view, its distance to the nearest of the person's
// newest faces, and whether it fits at all. The distance is 0 if there is nothing to compare.
func (t *Tracker) score(p *person, f face.Sample) (score, distance float64, ok bool) {
	overlap := face.Overlap(p.box, f.Box)
	if f.Vector == nil || len(p.looks) == 0 {
		return overlap, 0, overlap >= t.overlap
	}
	d := t.nearest(f, p.looks)
	far := t.far
	if p.missed {
		far = t.lost
	}
	near := t.near
	if overlap > 0 && !math.IsInf(t.same, 1) {
		near = max(near, t.same)
	}
	switch {
	case d > far, overlap < t.overlap && !(near > 0 && d <= near):
		return 0, d, false
	case math.IsInf(far, 1):
		return overlap, d, true
	}
	return overlap + 1 - d/far, d, true
}
