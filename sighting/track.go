// SPDX-License-Identifier: Apache-2.0

// Package sighting follows the faces of one camera over frames: it decides which faces are one person who stays in
// view, and who that person is.
//
// [NewTracker] uses the position of a face and its vector, so that it separates people who cross, or who take each
// other's seat. [NewBoxTracker] uses only the overlap of boxes. [Identities] collects the verdicts of each track: all
// verdicts together decide the name and how it is known ([Trust]), and no two people in view get one name. A
// [Watcher] does all of this for a camera, and lets the learner learn from confirmed sightings.
package sighting

import (
	"cmp"
	"image"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
)

// Settings of a [Tracker]. A zero field means the default.
type Settings struct {
	Overlap float64 // least intersection over union of a person's boxes in two frames. Default 0.25
	// Near is the greatest distance, in units of the space, at which a face continues a track elsewhere in the picture.
	// Default: 0.75 times the space's impostor radius. A frame has at most 10,000 such comparisons of a person with a
	// face. Where there are more, people without a fitting face in their place come first, then those seen last.
	Near float64
	// Far is the distance beyond which a face is another person's, wherever it is. Default: the distance at a false
	// match rate of 1e-3 between stills, or 1.2 times the impostor radius if that was not measured.
	Far float64
	// Lost replaces Far for a person who was missing in the last frame: another person may have taken the place.
	// Default: the distance at a rate of 1e-4, or Far if that was not measured.
	Lost float64
	// Sure is the distance beyond which the next face of a track may be another person's: the track goes on, in doubt
	// ([Tracker.InDoubt]). Default: the distance at a rate of 1e-5, or no limit if that was not measured.
	Sure float64
	// Same replaces Sure for a person who was missing in the last frame. It is also the distance to a face before the
	// doubt at which the doubt ends: as each later face is compared, another person has many chances. If it was
	// measured, a face within Same continues a track whose box it touches, whatever Overlap says: before a slow camera
	// people walk on between two frames. Default: the distance at a rate of 1e-7, or Sure if that was not measured.
	Same float64
	// Gap is the time without a face after which a track ends. A frame at which the clock stands, or goes back, counts
	// as a fiftieth of it. Default 2 s.
	Gap time.Duration
	// Given says that the source knows which faces are one person, by the Track of its samples, and that its pictures
	// lie far apart in time. Places then mean nothing, and Same decides about doubt, as after a gap.
	Given bool
	Looks int // number of remembered faces of a track, the newest. Default 5
	First int // the number of the first track. Default 1
}

func (s Settings) defaults(space face.Space) Settings {
	s.Overlap = cmp.Or(s.Overlap, .25)
	s.Near = cmp.Or(s.Near, .75*space.ImpostorRadius)
	measured := space.Stills.Measured()
	if s.Far == 0 && measured {
		s.Far = space.Stills.Within(1e-3)
	}
	// Without such a radius, two faces of the space do not tell people apart.
	s.Far = cmp.Or(s.Far, 1.2*space.ImpostorRadius, math.Inf(1))
	if s.Lost == 0 && measured {
		s.Lost = min(s.Far, space.Stills.Within(1e-4))
	}
	s.Lost = cmp.Or(s.Lost, s.Far)
	if s.Sure == 0 && measured {
		s.Sure = space.Stills.Within(1e-5)
	}
	s.Sure = cmp.Or(s.Sure, math.Inf(1))
	if s.Same == 0 && measured {
		s.Same = min(s.Sure, space.Stills.Within(1e-7))
	}
	s.Same = cmp.Or(s.Same, s.Sure)
	s.Gap = cmp.Or(s.Gap, 2*time.Second)
	s.Looks = cmp.Or(s.Looks, 5)
	s.First = cmp.Or(s.First, 1)
	return s
}

// Tracker gives numbers to the people in view of one camera. One goroutine may use it at a time. Memory is limited by
// the number of people in view within the gap. [NewTracker] makes one.
type Tracker struct {
	s     Settings
	scale float64
	next  int
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
func NewTracker(space face.Space, s Settings) *Tracker {
	s = s.defaults(space)
	return &Tracker{s: s, scale: space.Scale, next: s.First}
}

// Limits of [NewBoxTracker].
const (
	boxOverlap = .3 // least overlap of the boxes of one face in two frames
	boxGap     = 10 // frames without the face after which a track ends
)

// BoxTracker gives numbers to the faces in frames by the overlap of boxes only. One goroutine may use it at a time.
type BoxTracker struct{ t *Tracker }

// NewBoxTracker returns a tracker for faces without vectors. First is the number of the first track, at least 1. A face
// may be missing in up to ten frames.
func NewBoxTracker(first int) *BoxTracker {
	// One frame is one unit of time.
	return &BoxTracker{NewTracker(face.Space{}, Settings{Overlap: boxOverlap, Gap: boxGap, First: first})}
}

// Update returns the track number of each box in a frame. Frame numbers must rise. Track numbers start at 1 and are
// never reused.
func (b *BoxTracker) Update(frame int, boxes []image.Rectangle) []int {
	faces := make([]face.Sample, len(boxes))
	for i, box := range boxes {
		faces[i].Box = box
	}
	return b.t.Update(time.Duration(frame), faces)
}

// Next returns the track number of the next new face.
func (b *BoxTracker) Next() int { return b.t.Next() }

// beats is the number of frames after which a track without a face ends while the clock stands.
const beats = 50

// advance moves the time of the tracker to that of a frame.
func (t *Tracker) advance(at time.Duration) {
	step := at - t.clock
	t.clock = at
	if step <= 0 {
		beat := max(1, t.s.Gap/beats)
		t.now, t.ahead = t.now+beat, t.ahead+beat
		return
	}
	t.now, t.ahead = t.now+max(0, step-t.ahead), 0
}

// pair is a person and a face that may be the person's.
type pair struct {
	p        *person
	face     int
	score    float64
	distance float64
}

// Update returns the track number of each face in a frame of that time. Track numbers start at 1 and are never reused.
// The vectors of the faces may be nil; the tracker keeps them for some time, so they must not change.
//
// Of all pairs of a person and a face that fit, the best are chosen one after another. Its time grows with the number
// of boxes that touch, and with the faces that are looked for elsewhere ([Settings].Near).
func (t *Tracker) Update(at time.Duration, faces []face.Sample) []int {
	t.advance(at)
	t.live = slices.DeleteFunc(t.live, func(p *person) bool { return t.now-p.at > t.s.Gap })
	ids := make([]int, len(faces))
	taken := make(map[*person]bool)
	for j, f := range faces {
		if p := t.given(f); p != nil && !taken[p] {
			ids[j], taken[p] = p.id, true
			if f.Vector != nil {
				t.doubt(p, f, t.nearest(f, p.looks))
			}
			t.see(p, f)
		}
	}
	// give chooses the best of the pairs with more than a score.
	give := func(pairs []pair, more float64) {
		slices.SortFunc(pairs, func(a, b pair) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.p.id, b.p.id), cmp.Compare(a.face, b.face))
		})
		for _, c := range pairs {
			if c.score > more && ids[c.face] == 0 && !taken[c.p] {
				ids[c.face], taken[c.p] = c.p.id, true
				t.doubt(c.p, faces[c.face], c.distance)
				t.see(c.p, faces[c.face])
			}
		}
	}
	rest := func() []*person {
		return slices.DeleteFunc(slices.Clone(t.live), func(p *person) bool { return taken[p] })
	}
	if !t.s.Given {
		pairs := t.touching(rest(), faces, ids)
		give(pairs, 1) // a pair elsewhere has no overlap, and so a score of at most 1
		pairs = slices.DeleteFunc(pairs, func(c pair) bool { return taken[c.p] || ids[c.face] != 0 })
		give(append(pairs, t.elsewhere(rest(), faces, ids, pairs)...), math.Inf(-1))
	}
	for _, p := range t.live {
		p.missed = !taken[p]
	}
	for j, f := range faces {
		if ids[j] == 0 {
			p := &person{id: t.next}
			t.next++
			t.live = append(t.live, p)
			t.see(p, f)
			ids[j] = p.id
		}
	}
	return ids
}

// touching returns the pairs that fit and whose boxes touch, of the faces without a number. It sorts the people.
func (t *Tracker) touching(people []*person, faces []face.Sample, ids []int) (pairs []pair) {
	slices.SortFunc(people, func(a, b *person) int { return cmp.Compare(a.box.Min.X, b.box.Min.X) })
	widest := 0
	for _, p := range people {
		widest = max(widest, p.box.Dx())
	}
	for j, f := range faces {
		if ids[j] != 0 {
			continue
		}
		first, _ := slices.BinarySearchFunc(people, f.Box.Min.X-widest, func(p *person, x int) int {
			return cmp.Compare(p.box.Min.X, x)
		})
		for _, p := range people[first:] {
			if p.box.Min.X >= f.Box.Max.X {
				break
			}
			if !p.box.Overlaps(f.Box) {
				continue
			}
			if score, distance, ok := t.score(p, f); ok {
				pairs = append(pairs, pair{p, j, score, distance})
			}
		}
	}
	return pairs
}

// mostElsewhere is the greatest number of comparisons of a person with a face elsewhere in a frame. With it, 800 people
// who all changed their places cost no more than 100.
const mostElsewhere = 10000

// elsewhere returns the pairs that fit and whose boxes do not touch, of the faces without a number. Placed are pairs
// that touch. It sorts the people.
func (t *Tracker) elsewhere(people []*person, faces []face.Sample, ids []int, placed []pair) (pairs []pair) {
	var lost []int
	for j, f := range faces {
		if ids[j] == 0 && f.Vector != nil {
			lost = append(lost, j)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	if most := mostElsewhere / len(lost); len(people) > most {
		inPlace := make(map[*person]int)
		for _, c := range placed {
			inPlace[c.p] = 1
		}
		slices.SortFunc(people, func(a, b *person) int {
			return cmp.Or(cmp.Compare(inPlace[a], inPlace[b]), cmp.Compare(b.at, a.at), cmp.Compare(a.id, b.id))
		})
		people = people[:most]
	}
	for _, p := range people {
		for _, j := range lost {
			if f := faces[j]; t.maybeNear(f.Vector, p.looks) && !p.box.Overlaps(f.Box) {
				if score, distance, ok := t.score(p, f); ok {
					pairs = append(pairs, pair{p, j, score, distance})
				}
			}
		}
	}
	return pairs
}

// maybeNear reports whether a vector may be within Near of one of the looks. Parts of a vector show that most are not.
func (t *Tracker) maybeNear(x []float32, looks [][]float32) bool {
	const part = 64
	limit := t.s.Near / t.scale
	limit *= limit * (1 + 1e-9) // more than the rounding of the sum
	for _, y := range looks {
		sum := 0.
		for i := 0; i < len(x) && !(sum > limit); i += part {
			end := min(i+part, len(x))
			sum += graph.SquaredDistance(x[i:end], y[i:end])
		}
		if !(sum > limit) {
			return true
		}
	}
	return false
}

// Live returns the track numbers of the people in view at present or within the gap.
func (t *Tracker) Live() []int {
	ids := make([]int, len(t.live))
	for i, p := range t.live {
		ids[i] = p.id
	}
	return ids
}

// InDoubt reports whether another person may have taken the place of the person of a track: a face was further than
// [Settings.Sure] from the newest faces before it. A later face within [Settings.Same] of these ends the doubt, for
// example after a single bad picture.
func (t *Tracker) InDoubt(track int) bool {
	p := t.person(track)
	return p != nil && p.before != nil
}

// believe ends the doubt about a track, because something else shows that it is the same person.
func (t *Tracker) believe(track int) {
	if p := t.person(track); p != nil {
		p.before = nil
	}
}

// follows reports whether the next face of a track should be taken for the person of the faces before it: the track is
// not in doubt, or the head may have turned far between two slow frames.
func (t *Tracker) follows(track int) bool {
	p := t.person(track)
	return p == nil || p.before == nil || p.turned > 0
}

func (t *Tracker) person(track int) *person {
	i, ok := slices.BinarySearchFunc(t.live, track, func(p *person, id int) int { return cmp.Compare(p.id, id) })
	if !ok {
		return nil
	}
	return t.live[i]
}

const (
	// turning is the time within which a head does not turn so far that its faces are further apart than Settings.Sure.
	turning = 200 * time.Millisecond
	// turnedFaces is the number of faces after such a slow turn that still get their name from the faces before it.
	turnedFaces = 4
)

// doubt begins or ends the doubt about a person whose next face is at a distance from the newest ones.
func (t *Tracker) doubt(p *person, f face.Sample, distance float64) {
	if f.Vector == nil || len(p.looks) == 0 {
		return
	}
	sure, missed := t.s.Sure, p.missed || t.s.Given
	if missed {
		sure = t.s.Same
	}
	p.turned = max(0, p.turned-1)
	switch {
	case p.before == nil && distance > sure:
		p.before, p.turned = slices.Clone(p.looks), 0
		if !missed && t.now-p.at > turning {
			p.turned = turnedFaces
		}
	case p.before != nil && t.nearest(f, p.before) <= t.s.Same:
		p.before = nil
	}
}

// nearest returns the distance of a face to the nearest of some vectors.
func (t *Tracker) nearest(f face.Sample, looks [][]float32) float64 {
	d := math.Inf(1)
	for _, x := range looks {
		d = min(d, graph.Distance(f.Vector, x, t.scale))
	}
	return d
}

// Next returns the track number of the next new person.
func (t *Tracker) Next() int { return t.next }

// given returns the last person of a face's track in the source, if that counts: for a held face, or with
// [Settings].Given. It is nil otherwise.
func (t *Tracker) given(f face.Sample) (last *person) {
	for _, p := range t.live {
		if (f.Held || t.s.Given) && p.track == f.Track && (last == nil || p.at >= last.at) {
			last = p
		}
	}
	return last
}

// see records the present position and look of a person.
func (t *Tracker) see(p *person, f face.Sample) {
	p.box, p.at, p.track = f.Box, t.now, f.Track
	if f.Vector == nil || f.Reason != "" && len(p.looks) > 0 { // the vector of a poor picture is of little use
		return
	}
	if p.looks = append(p.looks, f.Vector); len(p.looks) > t.s.Looks {
		p.looks = slices.Delete(p.looks, 0, 1)
	}
}

// score returns how well a face fits a person in view, its distance to the nearest of the person's newest faces, and
// whether it fits at all. The distance is 0 if there is nothing to compare.
func (t *Tracker) score(p *person, f face.Sample) (score, distance float64, ok bool) {
	overlap := face.Overlap(p.box, f.Box)
	if f.Vector == nil || len(p.looks) == 0 {
		return overlap, 0, overlap >= t.s.Overlap
	}
	d := t.nearest(f, p.looks)
	far := t.s.Far
	if p.missed {
		far = t.s.Lost
	}
	near := t.s.Near
	if overlap > 0 && !math.IsInf(t.s.Same, 1) {
		near = max(near, t.s.Same)
	}
	switch {
	case d > far, overlap < t.s.Overlap && !(near > 0 && d <= near):
		return 0, d, false
	case math.IsInf(far, 1):
		return overlap, d, true
	}
	return overlap + 1 - d/far, d, true
}
