// SPDX-License-Identifier: Apache-2.0

package sighting

import (
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
)

// Trust says on what a name rests.
type Trust string

const (
	// Nobody is without a name.
	Nobody Trust = ""
	// Learned is where only learned faces speak for the name, or an enrolled face from further off.
	Learned Trust = "learned"
	// Confirmed is where at least two faces of the sighting lie within the anchor of a face that the person was enrolled
	// with ([online.Learner.Radii]): nothing that was ever learned has a part in it.
	Confirmed Trust = "confirmed"
)

// Seen is what is made of a face in a frame.
type Seen struct {
	Track int // of the person in view; see [Tracker]
	// Verdict is that on this face alone; nil for a face without a vector. Of a face that is held it is the last one of
	// its track, and says that nothing was learned.
	Verdict *online.Verdict
	Belief  Belief // who the person in view is taken for
	// Trust says on what the name of this face rests: Confirmed where the belief is, and an enrolled face is near enough
	// for a name. The face of a head that is turned far away is Learned.
	Trust Trust
	// Since is when the track came into view. Where Known is set, the belief has a name now, and had none, or another,
	// before: earlier faces of the track are that person's, too.
	Since time.Duration
	Known bool
	// Lessons are the numbers of the observations of the track that were learned now: this face, and
	// faces before it that waited for the track to be confirmed.
	Lessons []int64
}

// Watcher follows the people before one camera: it ties their faces over frames, has a learner judge them, and gathers
// what speaks for whom. It is used by one goroutine at a time; memory is bounded by who is in view. Make one with
// [NewWatcher].
//
// The learner learns along confirmed sightings alone: of somebody who was confirmed since they came into view, and only
// as that person; the last eight faces before that are learned then, too. A face that follows another on a track is
// joined to it (a must-link, [online.Observation].Follows), so that a head which turns is followed further than single
// faces could be.
type Watcher struct {
	learner *online.Learner
	tracker *Tracker
	who     *Identities
	chains  map[int]*chain
	look    bool
	sure    bool // look stays false while all faces are held
}

// waiting is a face that is learned once the track is confirmed.
type waiting struct {
	vector []float32
	number int64 // of the observation
}

// mostWaiting bounds the faces of a track that wait, the newest.
const mostWaiting = 8

// chain is what was stored of a track.
type chain struct {
	waiting []waiting
	stored  []int64 // numbers of stored faces, the newest last
	since   time.Duration
	known   string
	verdict *online.Verdict // the last one
	judged  time.Duration   // when it was made
}

// longestChain is how many stored faces a new one of the track is joined to.
const longestChain = 4

// NewWatcher returns a watcher that has seen nobody. It keeps the learner, which may be used between frames.
func NewWatcher(l *online.Learner, s Settings, r Rules) *Watcher {
	return &Watcher{
		learner: l, tracker: NewTracker(l.Space(), s), who: NewIdentities(r), chains: make(map[int]*chain),
	}
}

// Track gives numbers to the faces of a frame, as [Tracker.Update] does. [Watcher.Judge] comes after it.
func (w *Watcher) Track(at time.Duration, faces []face.Sample) []int {
	tracks := w.tracker.Update(at, faces)
	live := w.tracker.Live()
	w.who.Keep(live)
	for track := range w.chains {
		if !slices.Contains(live, track) {
			delete(w.chains, track)
		}
	}
	return tracks
}

// Judge has the learner judge the faces of the frame, whose tracks are given, and learn from those for which hold,
// given the number of the face, is false. The error is that of [online.Learner.ObserveFrame].
func (w *Watcher) Judge(at time.Duration, faces []face.Sample, tracks []int, hold func(i int) bool) ([]Seen, error) {
	for _, track := range tracks {
		if c := w.chains[track]; c != nil && (w.forgotten(c.known) || c.verdict != nil && w.forgotten(c.verdict.Label)) {
			w.Reset(track) // its verdicts speak for somebody whom the learner does not know any more
		}
	}
	var observed []online.Observation
	var of []int // the face of each observation
	poor := make([]bool, len(faces))
	for i, s := range faces {
		if s.Vector == nil {
			continue
		}
		poor[i] = hold(i)
		o := online.Observation{Vector: s.Vector, Hold: poor[i]}
		if c := w.chains[tracks[i]]; c != nil {
			o.Follows = c.stored
		}
		if o.As = w.who.confirmed(tracks[i], at); o.As == "" {
			o.Hold = true
		}
		observed, of = append(observed, o), append(of, i)
	}
	before := w.learner.Counts().Observed
	verdicts, err := w.learner.ObserveFrame(observed)
	if err != nil {
		return nil, err
	}
	seen := make([]Seen, len(faces))
	for i, s := range faces {
		if c := w.chains[tracks[i]]; s.Held && c != nil {
			w.who.Hold(tracks[i], at)
			if c.verdict != nil {
				v := *c.verdict
				seen[i].Verdict = &v
			}
		}
	}
	for q := range verdicts {
		v, number := &verdicts[q], before+int64(q)+1
		s := &seen[of[q]]
		s.Verdict = v
		if v.Learned {
			s.Lessons = []int64{number}
		}
		w.who.Add(tracks[of[q]], at, *v)
		c := w.chain(tracks[of[q]], at)
		c.keep(*v, at)
		c.join(v.Stored)
		if observed[q].As == "" && !poor[of[q]] {
			c.wait(waiting{observed[q].Vector, number})
		}
		if err := w.recall(c, w.who.confirmed(tracks[of[q]], at), number, s); err != nil {
			return nil, err
		}
	}
	enrolled := w.learner.Radii().Enrolled
	w.look, w.sure = false, true
	for i, b := range w.who.Who(at, tracks) {
		s := &seen[i]
		// Of somebody who has a name, every other face is enough.
		if faces[i].Reason != face.NoVector && (faces[i].Held || b.Name == "") && w.unsure(tracks[i], b, at) {
			w.look = true
		}
		// A face that is held changes neither number: it is no evidence.
		if faces[i].Reason != face.NoVector && (b.Frames < sureFrames || b.Share < sureShare) {
			w.sure = false
		}
		s.Track, s.Belief = tracks[i], b
		c := w.chain(tracks[i], at)
		s.Since = c.since
		s.Known, c.known = b.Name != "" && b.Name != c.known, b.Name
		switch v := s.Verdict; {
		case v == nil || v.Label == "":
		case b.Trust == Confirmed && b.Name == v.Label && v.Distance <= enrolled:
			s.Trust = Confirmed
		default:
			s.Trust = Learned
		}
	}
	return seen, nil
}

// forgotten reports whether a name is that of nobody any more.
func (w *Watcher) forgotten(name string) bool { return name != "" && !w.learner.Knows(name) }

// Limits of [Watcher.Look]. Somebody unknown is told of after 25 frames (package presence).
const (
	sureFrames = 25
	sureShare  = .8
	againAfter = 300 * time.Millisecond
)

// unsure reports whether more faces of a track should be judged.
func (w *Watcher) unsure(track int, b Belief, at time.Duration) bool {
	return b.Frames < sureFrames || b.Share < sureShare && at-w.chain(track, at).judged >= againAfter
}

// Look reports whether more faces of somebody in the last frame should be judged: there were too few, or they do not
// agree. Ask a [face.Looker] for them then.
func (w *Watcher) Look() bool { return w.look }

// Ask tells a stream that may hold faces what [Watcher.Look] reports, after each frame of it: to look closely at the
// next one, or that this will not be asked for while the same faces are held.
func (w *Watcher) Ask(s face.Stream) {
	l, ok := s.(face.Looker)
	switch {
	case !ok:
	case w.look:
		l.Look()
	case w.sure:
		l.Sure()
	}
}

// keep notes the last verdict.
func (c *chain) keep(v online.Verdict, at time.Duration) {
	v.Learned, v.NoRoom, v.Stored = false, false, 0
	c.verdict, c.judged = &v, at
}

// recall has the learner learn what waited for a track to be confirmed, which may include the face at hand, of that
// number.
func (w *Watcher) recall(c *chain, as string, number int64, s *Seen) error {
	if as == "" {
		return nil
	}
	for _, x := range c.waiting {
		v, err := w.learner.Recall(online.Observation{Vector: x.vector, Follows: c.stored, As: as}, x.number)
		if err != nil {
			return err
		}
		c.join(v.Stored)
		if v.Learned {
			s.Lessons = append(s.Lessons, x.number)
		}
		if x.number == number {
			s.Verdict.Learned, s.Verdict.NoRoom, s.Verdict.Stored = v.Learned, v.NoRoom, v.Stored
		}
	}
	c.waiting = nil
	return nil
}

// join notes where a face of the track was stored; 0 is for nowhere.
func (c *chain) join(stored int64) {
	if stored == 0 {
		return
	}
	if c.stored = append(c.stored, stored); len(c.stored) > longestChain {
		c.stored = slices.Delete(c.stored, 0, 1)
	}
}

func (c *chain) wait(x waiting) {
	if c.waiting = append(c.waiting, x); len(c.waiting) > mostWaiting {
		c.waiting = slices.Delete(c.waiting, 0, 1)
	}
}

// See is [Watcher.Track] and [Watcher.Judge].
func (w *Watcher) See(at time.Duration, faces []face.Sample, hold func(i int) bool) ([]Seen, error) {
	return w.Judge(at, faces, w.Track(at, faces), hold)
}

func (w *Watcher) chain(track int, at time.Duration) *chain {
	c := w.chains[track]
	if c == nil {
		c = &chain{since: at}
		w.chains[track] = c
	}
	return c
}

// Live returns the tracks of those who are in view, or were a moment ago.
func (w *Watcher) Live() []int { return w.tracker.Live() }

// Next returns the number that the next new person gets.
func (w *Watcher) Next() int { return w.tracker.Next() }

// Deny says that a track is not a person, for as long as it lasts.
func (w *Watcher) Deny(track int, name string) {
	w.who.Deny(track, name)
	w.unchain(track)
}

// Allow takes a [Watcher.Deny] back: the track may be this person again.
func (w *Watcher) Allow(track int, name string) {
	w.who.Allow(track, name)
	w.unchain(track)
}

// Reset forgets the verdicts on a track: they were made before something was known that changes them.
func (w *Watcher) Reset(track int) {
	w.who.Reset(track)
	w.unchain(track)
}

// unchain has no later face of a track joined to what was stored of it.
func (w *Watcher) unchain(track int) {
	if c := w.chains[track]; c != nil {
		c.stored, c.waiting, c.known, c.verdict = nil, nil, "", nil
	}
}
