// SPDX-License-Identifier: Apache-2.0

package sighting

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
)

// Trust tells how a name is known.
type Trust string

const (
	// Nobody means: no name.
	Nobody Trust = ""
	// Likely means: the name is not confirmed. One look is near an enrolled face, or enrolled faces
	// further off or learned faces support the name.
	Likely Trust = "likely"
	// Confirmed means: at least two looks of the sighting ([NewLook]) are within the anchor
	// distance of an enrolled face of the person ([online.Learner.Radii]). No learned face plays a
	// part.
	Confirmed Trust = "confirmed"
)

// Seen is the result for a face in a frame.
type Seen struct {
	Track int // of the person in view; see [Tracker]
	// Verdict is the verdict on this face alone. It is nil for a face without a vector. For a held
	// face it is the last verdict of its track, with nothing learned, and without a name that a
	// better face of the frame has.
	Verdict *online.Verdict
	Belief  Belief // who the person in view is taken for
	// Trust tells how the name of this face is known: Confirmed if the belief is, and an enrolled
	// face is near enough for a name. The face of a head that is turned far away is Likely.
	Trust Trust
	// Since is when the track came into view. Known is true if the belief has a new person: the
	// earlier faces of the track are then that person's, too.
	Since time.Duration
	Known bool
	// Lessons are the numbers of the observations of the track that were learned now: this face,
	// and earlier faces that waited for the confirmation of the track.
	Lessons []int64
}

// Watcher follows the people before one camera: it follows their faces over frames, lets a learner
// judge them, and collects the verdicts. One goroutine may use it at a time. Memory is limited by
// the number of people in view. [NewWatcher] makes one.
//
// The learner learns only from confirmed sightings: faces of a person who was confirmed since
// coming into view, and only as that person. The last eight faces before the confirmation are then
// learned, too. Consecutive faces of a track are joined (a must-link,
// [online.Observation].Follows), so that the learner can follow a turning head further than with
// single faces. A track in doubt is not confirmed until the doubt ends, and a face that was seen in
// doubt is never learned. It keeps the name of its track only if the nearest enrolled face is of
// this person, and within the limit of a name ([online.Radii].Limit): another person may have taken
// the seat. If heads may have turned far between two frames, because they are more than 0.2 s
// apart, the first four such faces in doubt still get the name of the faces before
// them, as a learned name.
type Watcher struct {
	learner  *online.Learner
	restored int // [online.Learner.Restored] at the last frame
	tracker  Tracker
	who      identities
	look     []int // faces of the last frame to be asked for, by face.Sample.Track
}

// waiting is a face that is learned once the track is confirmed.
type waiting struct {
	online.Observation
	number int64
}

// mostWaiting is the greatest number of waiting faces of a track, the newest.
const mostWaiting = 8

// longestChain is the greatest number of stored faces to which a new face of the track is joined.
const longestChain = 4

// NewWatcher returns a watcher that has seen no frame. It keeps the learner, which others may use
// between frames.
func NewWatcher(l *online.Learner) *Watcher {
	return &Watcher{learner: l, tracker: *NewTracker(l.Space()), who: *newIdentities(l.Space())}
}

// NewStillsWatcher returns a watcher for a source whose pictures lie far apart in time, and that
// knows which faces are one person, by the Track of its samples. Places then mean nothing, and each
// face is compared as after a gap. Two of its pictures, and not three, give a name if they agree.
func NewStillsWatcher(l *online.Learner) *Watcher {
	w := NewWatcher(l)
	w.tracker.given, w.who.least = true, leastStills
	return w
}

// Restart ends all tracks, as [Tracker.Restart] does.
func (w *Watcher) Restart() { w.tracker.Restart() }

// Track gives numbers to the faces of a frame, as [Tracker.Update] does. [Watcher.Judge] comes
// after it.
func (w *Watcher) Track(at time.Duration, faces []face.Sample) []int {
	tracks := w.tracker.Update(at, faces)
	w.who.Keep(w.tracker.Live())
	for _, track := range tracks {
		if w.who.people[track] == nil {
			w.who.of(track).since = at
		}
	}
	return tracks
}

// tracked is a face of a frame on its track.
type tracked struct {
	face     face.Sample
	track    int
	evidence *evidence
	asked    online.Observation // of a face with a vector
	poor     bool               // it may not be learned
	seen     Seen
}

// Judge lets the learner judge the faces of the frame, with their tracks, and learn from the faces
// for which hold(i) is false; a nil hold means the faces with a Reason. Sources say what the
// learner learns each face from ([online.Observation].Source); without any this is unknown. The
// error comes from [online.Learner.ObserveFrame].
func (w *Watcher) Judge(at time.Duration, faces []face.Sample, tracks []int, hold func(i int) bool,
	sources ...int64) ([]Seen, error) {
	all := make([]tracked, len(faces))
	for i, track := range tracks {
		all[i] = tracked{face: faces[i], track: track, evidence: w.who.of(track)}
	}
	w.refresh(all)
	for i := range all {
		x := &all[i]
		if x.face.Vector == nil {
			continue
		}
		x.poor = x.face.Reason != ""
		if hold != nil {
			x.poor = hold(i)
		}
		if len(sources) > 0 {
			x.asked.Source = sources[i]
		}
		w.ask(x)
	}
	err := w.observe(all)
	if err != nil {
		return nil, err
	}
	w.look = nil
	seen := make([]Seen, len(all))
	for i, b := range w.who.Who(w.tracker.now, tracks) {
		w.decide(&all[i], b)
		seen[i] = all[i].seen
	}
	return seen, nil
}

// refresh forgets what tracks have of people whom the learner has forgotten, and of a learner that
// was read again.
func (w *Watcher) refresh(all []tracked) {
	for _, x := range all {
		v := x.evidence.verdict
		if w.forgotten(x.evidence.known) || v != nil && w.forgotten(v.Person) {
			w.Reset(x.track)
		}
	}
	n := w.learner.Restored()
	if n == w.restored {
		return
	}
	w.restored = n // the numbers of faces and observations mean others now
	for _, e := range w.who.people {
		e.stored, e.waiting = nil, nil
	}
}

// ask prepares what the learner is asked about a face: as whom, and after which faces, it may learn
// it.
func (w *Watcher) ask(x *tracked) {
	o := &x.asked
	o.Vector, o.Frontal, o.Picture = x.face.Vector, x.face.Quality.Frontal(), x.face.JPEG
	if w.tracker.follows(x.track) && !w.strange(x.track, x.evidence.known, x.face) {
		o.Follows = x.evidence.stored
	}
	o.As = w.confirmed(x.track, w.tracker.now)
	o.Hold = x.poor || o.As == 0
}

// observe lets the learner judge the faces, and gives the tracks the evidence.
func (w *Watcher) observe(all []tracked) error {
	now := w.tracker.now // the clock of the source may be set back
	var judged []*tracked
	var asked []online.Observation
	var held []online.Person // a photograph on the wall keeps no name from anybody
	for i := range all {
		x := &all[i]
		if x.face.Vector != nil {
			judged, asked = append(judged, x), append(asked, x.asked)
		}
		p := w.confirmed(x.track, now)
		if x.face.Held && p != 0 && x.evidence.shows(p) {
			held = append(held, p)
		}
	}
	number := w.learner.Counts().Observed
	verdicts, err := w.learner.ObserveFrame(asked, held...)
	if err != nil {
		return err
	}
	taken := make(map[online.Person]bool)
	for _, v := range verdicts {
		taken[v.Person] = true
	}
	for i := range all {
		x := &all[i]
		if !x.face.Held {
			continue
		}
		x.evidence.hold(now)
		if x.evidence.verdict != nil {
			v := *x.evidence.verdict
			if taken[v.Person] { // nobody is in one frame twice
				v.Refuse(online.BetterFace)
			}
			taken[v.Person] = true
			x.seen.Verdict = &v
		}
	}
	for i, x := range judged {
		number++
		err := w.weigh(x, &verdicts[i], number)
		if err != nil {
			return err
		}
	}
	return nil
}

// weigh gives a track the verdict on its face, which was the observation of that number, and lets
// the learner learn what waited for it.
func (w *Watcher) weigh(x *tracked, v *online.Verdict, number int64) error {
	now, e := w.tracker.now, x.evidence
	x.seen.Verdict = v
	if v.Learned {
		x.seen.Lessons = []int64{number}
	}
	w.who.Add(x.track, now, LookOf(x.face), *v)
	if v.Anchored && v.Person == e.confirmed(now) {
		w.tracker.believe(x.track)
	}
	e.keep(*v)
	e.join(v.Stored)
	// A face in doubt may be another person's, also when the doubt ends because the first person is
	// back.
	if x.asked.As == 0 && !x.poor && !w.tracker.inDoubt(x.track) {
		e.waiting = appended(e.waiting, waiting{x.asked, number}, mostWaiting)
	}
	return w.recall(e, w.confirmed(x.track, now), number, &x.seen)
}

// decide says who a face is, by the belief about its track.
func (w *Watcher) decide(x *tracked, b Belief) {
	s, e := &x.seen, x.evidence
	// For a person with a name, every second face is enough.
	if x.face.Reason != face.NoVector && (x.face.Held || b.Person == 0) &&
		e.unsure(b, w.tracker.now) {
		w.look = append(w.look, x.face.Track)
	}
	if b.Trust == Confirmed && w.tracker.inDoubt(x.track) {
		b.Trust = Likely
	}
	if b.Person != 0 && w.strange(x.track, b.Person, x.face) {
		if v := s.Verdict; v.Person == b.Person && !v.Anchored {
			v.Refuse(online.Strayed)
		}
		b.Person, b.Trust = 0, Nobody
	} else {
		s.Known, e.known = b.Person != 0 && b.Person != e.known, b.Person
	}
	s.Track, s.Belief, s.Since = x.track, b, e.since
	switch v := s.Verdict; {
	case v == nil || v.Person == 0:
	case b.Trust == Confirmed && b.Person == v.Person && v.Distance <= w.learner.Radii().Enrolled:
		s.Trust = Confirmed
	default:
		s.Trust = Likely
	}
}

// confirmed returns the only person as whom a track is confirmed, or 0. A track in doubt is
// confirmed as no one.
func (w *Watcher) confirmed(track int, at time.Duration) online.Person {
	if w.tracker.inDoubt(track) {
		return 0
	}
	return w.who.of(track).confirmed(at)
}

// strange reports whether a face on a track in doubt must not have the name of its track: the
// nearest enrolled face is another person's, or all are further away than the limit of a name.
func (w *Watcher) strange(track int, p online.Person, s face.Sample) bool {
	if s.Vector == nil || !w.tracker.inDoubt(track) {
		return false
	}
	limit := cmp.Or(w.learner.Radii().Limit, math.Inf(1))
	nearest, _ := w.learner.Closest(s.Vector, limit)
	return nearest == 0 || nearest != p
}

// forgotten reports whether the learner no longer knows a person.
func (w *Watcher) forgotten(p online.Person) bool { return p != 0 && !w.learner.Knows(p) }

// Limits of [Watcher.Ask]. An unknown person is reported after 25 frames (package office).
const (
	sureFrames = 25
	sureShare  = .8
	againAfter = 300 * time.Millisecond
)

// unsure reports whether more faces of a track should be judged.
func (e *evidence) unsure(b Belief, at time.Duration) bool {
	return b.Frames < sureFrames || b.Share < sureShare && at-e.judged >= againAfter
}

// Ask asks a stream that may hold faces for new vectors of undecided people of the last frame: too
// few faces of them were judged, or the verdicts disagree. Another stream is not asked.
// Call it after each frame.
func (w *Watcher) Ask(s face.Stream) {
	h, ok := s.(face.Holding)
	if ok && len(w.look) > 0 {
		h.Look(w.look...)
	}
}

// shows reports whether the last verdict is this person.
func (e *evidence) shows(p online.Person) bool { return e.verdict != nil && e.verdict.Person == p }

// keep stores the last verdict.
func (e *evidence) keep(v online.Verdict) {
	v.Learned, v.NoRoom, v.Stored = false, false, 0
	e.verdict = &v
}

// recall lets the learner learn the faces that waited for the confirmation of a track. The present
// face, with the given number, may be one of them.
func (w *Watcher) recall(e *evidence, as online.Person, number int64, s *Seen) error {
	if as == 0 {
		return nil
	}
	for _, x := range e.waiting {
		x.Hold, x.Follows, x.As = false, e.stored, as
		v, err := w.learner.Recall(x.Observation, x.number)
		if err != nil {
			return err
		}
		e.join(v.Stored)
		if v.Learned {
			s.Lessons = append(s.Lessons, x.number)
		}
		if x.number == number {
			s.Verdict.Learned, s.Verdict.NoRoom, s.Verdict.Stored = v.Learned, v.NoRoom, v.Stored
		}
	}
	e.waiting = nil
	return nil
}

// join records the number of a stored face of the track; 0 means not stored.
func (e *evidence) join(stored int64) {
	if stored != 0 {
		e.stored = appended(e.stored, stored, longestChain)
	}
}

// appended appends to a list, and drops the oldest beyond most.
func appended[T any](list []T, x T, most int) []T {
	list = append(list, x)
	if len(list) > most {
		list = slices.Delete(list, 0, 1)
	}
	return list
}

// See calls [Watcher.Track] and [Watcher.Judge].
func (w *Watcher) See(at time.Duration, faces []face.Sample,
	hold func(i int) bool) ([]Seen, error) {
	return w.Judge(at, faces, w.Track(at, faces), hold)
}

// Live returns the tracks of the people in view at present or a moment ago.
func (w *Watcher) Live() []int { return w.tracker.Live() }

// Deny excludes people for a track, these and no others, as long as the track lasts.
func (w *Watcher) Deny(track int, people ...online.Person) { w.who.Deny(track, people...) }

// Reset forgets the verdicts on a track, because a later change makes them invalid, and its stored
// faces, so that later faces are not joined to them.
func (w *Watcher) Reset(track int) { w.who.Reset(track) }
