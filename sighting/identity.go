// SPDX-License-Identifier: Apache-2.0

package sighting

import (
	"cmp"
	"math"
	"math/cmplx"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
)

// Belief is the present answer to the question who a person in view is.
type Belief struct {
	Person online.Person // 0 for an unknown person
	Share  float64       // share of the judged frames that support the person, in [0,1]
	Frames float64       // number of judged frames; older ones count less
	Trust  Trust         // how the person is known
	// Double is the person whom this track would show if that person were not in view, too: a
	// mirror image, a video call, or a photograph. It is 0 for a track with a person, and for
	// somebody unknown.
	Double online.Person
}

// A person in view gets a name after a least number of judged frames, of which a least share
// support it. A frame counts half after so many more. That many looks near an enrolled face confirm
// a person ([NewLook]), who stays confirmed for a while without another such face.
const (
	leastFrames = 3
	leastStills = 2 // of pictures that lie far apart
	leastShare  = .6
	halfLife    = 50
	leastLooks  = 2
	lapse       = 10 * time.Second
)

// identities collects the verdicts on the people in view of one camera. One goroutine may use it at
// a time. [newIdentities] makes one.
type identities struct {
	space  face.Space
	least  float64 // number of judged frames
	people map[int]*evidence
}

// evidence is the sum of the verdicts on one track.
type evidence struct {
	frames float64
	people map[online.Person]*support
	denied []online.Person // who were denied

	judged   time.Duration // time of the last judged face
	anchored online.Person // the person to whom that face was anchored, or 0

	since   time.Duration
	dimmed  dimmed
	waiting []waiting       // faces that are learned once the track is confirmed
	stored  []int64         // numbers of stored faces, the newest last
	known   online.Person   // as whom the track is known
	verdict *online.Verdict // the last one
}

// support is what speaks for a person on a track.
type support struct {
	named float64       // faces with the name
	like  float64       // faces that a better one of the same frame has kept from the person
	looks []Look        // near an enrolled face, at most leastLooks
	last  time.Duration // time of the last face near an enrolled one
}

// Look is a face by which a still is told from a person.
type Look struct {
	Vector    []float32
	Landmarks []face.Point // see [face.Sample]; nil if they are unknown
	Aligned   []byte       // see [face.Sample]; nil if it is unknown
	Quality   face.Quality
	// Noise is how far apart two vectors of the face come in the present light while it does not
	// move, as far as the frames before tell: 0 where the light is not known to have gone down.
	Noise float64
}

// LookOf returns the look of a face.
func LookOf(s face.Sample) Look {
	return Look{Vector: s.Vector, Landmarks: s.Landmarks, Aligned: s.Aligned, Quality: s.Quality}
}

// By how much the level of light, its contrast and the size of a face, as factors, and the colour
// of the light ([face.Quality]) differ at most between looks of one light, and how far landmarks of
// a live face move against each other, as a share of their spread ([stirOf]), in one light and
// in two. Chosen with the space's Look, as lab/NOTES.md says (Stills).
const (
	sameLight    = 1.1
	sameContrast = 1.2
	sameColour   = .05
	sameSize     = 1.05
	stirred      = .01
	moved        = .055
	movedApart   = .82 // least [movement] between two looks
	closer       = .75 // of the space's Look is far enough where the movement is known
	aboveNoise   = 1.5 // times the noise of a dim light: a vector further away shows another look
)

// dimmed measures the noise of a face in view once its light has gone down so far that frames are
// brightened.
type dimmed struct {
	first  face.Quality // of the track
	at     time.Duration
	before [2][]float32 // vectors of the last two faces
	sum    float64      // of squares of the noise; older ones count less
	weight float64
}

// longestStep is the longest time between two frames in which a head moves evenly, and fade the
// weight of older frames.
const (
	longestStep = 200 * time.Millisecond
	fade        = .8
)

// noise adds a face, and returns [Look].Noise: +Inf until three faces tell it. Twice the sum of the
// squares of two steps, less the square of both together, is three times that of the noise: an even
// movement adds nothing (the parallelogram law).
func (d *dimmed) noise(space face.Space, at time.Duration, x Look) float64 {
	if d.before[1] == nil {
		d.first = x.Quality
	}
	if at-d.at > longestStep {
		d.before, d.sum, d.weight = [2][]float32{}, 0, 0
	}
	a, b, c := d.before[0], d.before[1], x.Vector
	d.before, d.at = [2][]float32{b, c}, at
	if a != nil && b != nil && c != nil {
		both := quantized.SquaredDistance(a, c)
		steps := quantized.SquaredDistance(a, b) + quantized.SquaredDistance(b, c)
		d.sum, d.weight = float64(fade*d.sum)+max(0, (2*steps-both)/3), fade*d.weight+1
	}
	switch {
	case x.Quality.Gain <= 1 || b == nil || !x.changed(Look{Quality: d.first}):
		return 0
	case d.weight == 0:
		return math.Inf(1)
	}
	return space.Scale * math.Sqrt(d.sum/d.weight)
}

// changed reports whether the light or the size of a face differ from those of another look.
func (l Look) changed(x Look) bool {
	a, b := l.Quality, x.Quality
	return apart(a.Brightness, b.Brightness, sameLight) || apart(a.Gain, b.Gain, sameLight) ||
		apart(a.Contrast, b.Contrast, sameContrast) || math.Abs(a.Colour-b.Colour) > sameColour ||
		apart(float64(a.Size), float64(b.Size), sameSize)
}

// apart reports whether one value is more than a multiple of the other.
func apart(a, b, times float64) bool { return max(a, b) > times*min(a, b) }

// Differs reports whether a face shows another look than those that were counted: it differs from
// each by more than the space's Look, its landmarks have moved against each other, far against a
// look of another light or size, and its parts have moved apart from one, as far as aligned faces
// tell: light, and a photograph that is moved, do not do that ([movement]). Otherwise is true if
// the light or the size differ from a look and the landmarks have not moved far: so does a still
// when the camera turns grey at dusk, or zooms. A face without a vector, and every face of a space
// without that distance, is a new look; without landmarks and aligned faces the vectors alone
// decide.
func (l Look) Differs(space face.Space, counted []Look) (isNew, otherwise bool) {
	if space.Look == 0 || len(l.Vector) == 0 {
		return true, false
	}
	isNew = len(counted) == 0
	near := false
	for _, c := range counted {
		stir, least := stirOf(c.Landmarks, l.Landmarks), stirred
		if l.changed(c) {
			least = moved
			otherwise = otherwise || stir < moved
		}
		isNew = isNew || stir >= least
		far := space.Look
		if l.Aligned != nil && c.Aligned != nil {
			far *= closer
		}
		near = near || len(c.Vector) == len(l.Vector) &&
			quantized.Distance(l.Vector, c.Vector, space.Scale) < max(far, aboveNoise*l.Noise)
	}
	if !isNew || near || len(counted) == 0 {
		return isNew && !near, otherwise
	}
	return slices.ContainsFunc(counted, func(c Look) bool {
		return movement(c.Aligned, l.Aligned) >= movedApart
	}), otherwise
}

// stirOf returns how far the 68 landmarks of a face have moved against each other: the root mean
// square of what no shift, rotation and scaling explains, as a share of their spread. The line of
// the jaw does not count, as it is the first to be lost in the dark. It is about .01 for an unmoved
// picture of a face, and grows when a head turns or speaks. It is +Inf if there are no landmarks to
// compare.
func stirOf(before, now []face.Point) float64 {
	const jaw = 17
	if len(before) != 68 || len(now) != 68 {
		return math.Inf(1)
	}
	before, now = before[jaw:], now[jaw:]
	var a, b complex128
	n := complex(float64(len(now)), 0)
	for i := range now {
		a += complex(float64(before[i].X), float64(before[i].Y)) / n
		b += complex(float64(now[i].X), float64(now[i].Y)) / n
	}
	var both complex128
	var spread, other float64
	for i := range now {
		x := complex(float64(before[i].X), float64(before[i].Y)) - a
		y := complex(float64(now[i].X), float64(now[i].Y)) - b
		both += x * cmplx.Conj(y)
		other += real(x * cmplx.Conj(x))
		spread += real(y * cmplx.Conj(y))
	}
	rest := (spread - real(both*cmplx.Conj(both))/other) / spread
	if math.IsNaN(rest) {
		return math.Inf(1)
	}
	return math.Sqrt(max(rest, 0))
}

// NewLook returns the looks that still count beside a face, of those that were counted, and whether
// the face is another look ([Look.Differs]). After a change of the light or the size no earlier
// look counts. So a still before the camera, or a frozen camera, shows one look however long it is
// there, and one look confirms nobody and opens nothing.
func NewLook(space face.Space, x Look, counted []Look) (still []Look, isNew bool) {
	isNew, otherwise := x.Differs(space, counted)
	if otherwise {
		return nil, true
	}
	return counted, isNew
}

// newIdentities returns empty identities of faces in a space.
func newIdentities(space face.Space) *identities {
	return &identities{space: space, least: leastFrames, people: make(map[int]*evidence)}
}

// faded returns a sum of faces after another one.
func faded(sum float64) float64 {
	if sum *= math.Exp2(-1. / halfLife); sum < 1e-3 {
		return 0
	}
	return sum
}

// Add adds the verdict on a face of a track in a frame of that time. The look may be kept, so it
// must not change. A face near an enrolled one that is no [NewLook] keeps a person confirmed, and
// confirms nobody.
func (i *identities) Add(track int, at time.Duration, x Look, v online.Verdict) {
	e := i.of(track)
	x.Noise = e.dimmed.noise(i.space, at, x)
	e.judged, e.anchored = at, 0
	e.frames = faded(e.frames) + 1
	for _, s := range e.people {
		s.named, s.like = faded(s.named), faded(s.like)
	}
	person := v.Person
	if v.Reason == online.BetterFace {
		person = v.Best
	}
	if person == 0 || slices.Contains(e.denied, person) {
		return
	}
	s := e.people[person]
	if s == nil {
		s = new(support)
		e.people[person] = s
	}
	if v.Person == 0 {
		s.like++
		return
	}
	s.named++
	if !v.Anchored {
		return
	}
	if len(s.looks) < leastLooks {
		if looks, isNew := NewLook(i.space, x, s.looks); isNew {
			s.looks = append(looks, x)
		}
	}
	s.last, e.anchored = at, person
}

// longestHold is the longest time for which a judged face stands for later faces that look the
// same. Every program that holds faces judges them again sooner.
const longestHold = 30 * time.Second

// hold records that a face of a track is still in view at that time and looks as it did when it was
// last judged. This is no new evidence. If that face confirmed a person, the person stays
// confirmed, for at most 30 seconds.
func (e *evidence) hold(at time.Duration) {
	if e.anchored != 0 && at-e.judged <= longestHold {
		e.people[e.anchored].last = at
	}
}

// trust returns how a person is known.
func (e *evidence) trust(p online.Person, at time.Duration) Trust {
	if s := e.people[p]; s != nil && len(s.looks) >= leastLooks && at-s.last <= lapse {
		return Confirmed
	}
	return Likely
}

// confirmed returns the person as whom a track is confirmed, if there is only one, or 0.
func (e *evidence) confirmed(at time.Duration) (person online.Person) {
	for p := range e.people {
		if e.trust(p, at) != Confirmed {
			continue
		}
		if person != 0 {
			return 0
		}
		person = p
	}
	return person
}

func (i *identities) of(track int) *evidence {
	e := i.people[track]
	if e == nil {
		e = &evidence{people: make(map[online.Person]*support)}
		i.people[track] = e
	}
	return e
}

// Deny excludes people for a track, these and no others, as long as the track lasts.
func (i *identities) Deny(track int, people ...online.Person) {
	e := i.of(track)
	if !slices.Equal(e.denied, people) {
		e.denied = people
		i.Reset(track)
	}
}

// Reset forgets the verdicts on a track, because a later change makes them invalid, and the stored
// faces to which later ones would be joined.
func (i *identities) Reset(track int) {
	e := i.of(track)
	clear(e.people)
	*e = evidence{people: e.people, denied: e.denied, judged: e.judged, since: e.since}
}

// nobody returns the weight of the frames without a recognised person.
func (e *evidence) nobody() float64 {
	rest := e.frames
	for _, s := range e.people {
		rest -= s.named
	}
	return max(0, rest)
}

// Keep forgets all tracks except these.
func (i *identities) Keep(tracks []int) {
	for id := range i.people {
		if !slices.Contains(tracks, id) {
			delete(i.people, id)
		}
	}
}

// Who returns the beliefs about the tracks that are in view together at a time. Nobody is given to
// two of them: the track with more evidence gets the person. Faces that compete with each other for
// a person support them on both tracks, and the other track is a double.
func (i *identities) Who(at time.Duration, tracks []int) []Belief {
	type claim struct {
		at     int
		person online.Person
		// evidence, without and with the faces that lost the person to a better one
		named, weight float64
	}
	beliefs := make([]Belief, len(tracks))
	var claims []claim
	for place, id := range tracks {
		e := i.people[id]
		if e == nil || e.frames == 0 {
			continue
		}
		beliefs[place] = Belief{Frames: e.frames, Share: e.nobody() / e.frames}
		if e.frames < i.least*.95 { // fading reduces the weight of the first frames a little
			continue
		}
		for p, s := range e.people {
			if w := s.named + s.like; w >= leastShare*e.frames {
				claims = append(claims, claim{place, p, s.named, w})
			}
		}
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.named, a.named), cmp.Compare(a.at, b.at),
			cmp.Compare(a.person, b.person))
	})
	taken := make(map[online.Person]bool)
	for _, c := range claims {
		switch b := &beliefs[c.at]; {
		case b.Person != 0:
		case taken[c.person]:
			b.Double = c.person
		case c.named > 0:
			taken[c.person] = true
			b.Person, b.Double, b.Share = c.person, 0, c.weight/b.Frames
			b.Trust = i.people[tracks[c.at]].trust(c.person, at)
		}
	}
	return beliefs
}
