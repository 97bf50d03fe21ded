// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/sighting"
)

// ErrPolicy is wrapped by the errors of [Policy.Check].
var ErrPolicy = errors.New("unusable policy")

// Policy sets the conditions and limits of sessions. A zero field means the default.
type Policy struct {
	// time limit of a session. Default 5 s, with a challenge 10 s, with two turns 15 s
	Deadline time.Duration

	Challenge Challenge // action that a matching person must do. Default none
	// MinLiveness is the least mean liveness score in [0,1] over the matching frames of the window.
	// A frame without a score counts as 0, so that nobody is let in without the network. Default 0:
	// not required.
	MinLiveness float64

	// number of sessions without a match until the password is due. Default 5
	Failures int
	// pause after the first failure; each failure doubles it, up to a minute. Default 1 s
	Delay time.Duration
}

// A session decides by the last judged frames: of window frames, needed must match; after a
// gesture, which has shown a person who moves, fewer.
const window, needed, neededAfter = 5, 3, 2

// Defaults returns p with defaults filled in.
func (p Policy) Defaults() Policy {
	deadline := 5 * time.Second
	switch p.Challenge {
	case Turn:
		deadline = 10 * time.Second
	case TurnBoth:
		deadline = 15 * time.Second
	}
	p.Deadline = cmp.Or(p.Deadline, deadline)
	p.Failures = cmp.Or(p.Failures, 5)
	p.Delay = cmp.Or(p.Delay, time.Second)
	return p
}

// Check returns nil for a usable policy with defaults. The error wraps [ErrPolicy].
func (p Policy) Check() error {
	switch {
	case p.Deadline <= 0 || p.Deadline > time.Minute:
		return fmt.Errorf("%w: a deadline of %v; use at most a minute", ErrPolicy, p.Deadline)
	case p.Challenge != "" && p.Challenge != Turn && p.Challenge != TurnBoth:
		return fmt.Errorf("%w: unknown challenge %q; use %s, %s or none", ErrPolicy, p.Challenge,
			Turn, TurnBoth)
	case !(p.MinLiveness >= 0 && p.MinLiveness <= 1):
		return fmt.Errorf("%w: a liveness of %v; use a value from 0 to 1", ErrPolicy, p.MinLiveness)
	}
	return nil
}

// Word is the state of a login or an enrolment, or its result, as it is sent. Package words has a
// sentence for each.
type Word string

// Words of a login and an enrolment: instructions for the person in front of the camera.
const (
	twoFaces  Word = "two-faces"
	noFace    Word = "no-face" // no person was seen; the last word of a login
	lifeless  Word = "not-live"
	Retry     Word = "retry" // the result's Reason tells why the picture was not used
	Straight  Word = "look-straight"
	TurnLeft  Word = "turn-left"
	TurnRight Word = "turn-right"

	// Failed is the last word if the camera, the models or the program itself failed.
	Failed Word = "error"
	// noCamera is the last word if the camera cannot be opened.
	noCamera Word = "no-camera"
	// Unasked is the last word of a login whose verdict nobody wanted.
	Unasked Word = "unasked"
)

// Words of a login. Only Match lets anybody in; after each other final word the password is asked
// for.
const (
	looking Word = "looking"
	Match   Word = "match"
	// final: a person was seen often and well enough, and was not the user
	NoMatch Word = "no-match"
	// final: the user was seen, with a picture's score or as unmoved as one
	notLive Word = "taken-for-picture"
	poor    Word = "poor-picture" // final: a person was seen, but never well enough to be judged
	// tooFew is the last word if fewer pictures came, or could be judged, than a decision needs: on
	// a machine that is too slow, or of a person who did not stay.
	tooFew Word = "too-few-pictures"
	// Objected is the end of a session that the person at the device has ended: somebody else had
	// asked.
	Objected Word = "not-me"
	// unproven is the end of a session that would be a match if the faces belonged to the account
	// beyond doubt. If the password is given now, it proves that.
	unproven Word = "give-password"
)

// Words of an enrolment.
const (
	tilt         Word = "tilt"
	otherPerson  Word = "other-person"
	Enrolled     Word = "enrolled"
	screenLike   Word = "camera-like-screen"
	timedOut     Word = "timed-out"
	taken        Word = "already-another-user"
	cameraTurned Word = "camera-turned" // see [face.Turns]
)

// Result is the state of a login or an enrolment.
type Result struct {
	Word   Word
	Reason face.Reason // for Retry and "poor-picture": why the last picture was not used
	Stage  int         // of an enrolment: number of faces taken
	Took   Word        // of an enrolment: pose of the face taken in this frame, or ""
	Final  bool
}

// course is the state of a login or an enrolment, and its time limit.
type course struct {
	end, last time.Time
	result    Result
}

// Result returns the state.
func (c *course) Result() Result { return c.result }

// late sets the time, and reports whether the time limit has passed. A clock that was set back ends
// the course.
func (c *course) late(now time.Time) bool {
	if !c.result.Final && now.Before(c.last) {
		c.finish(Failed, "")
	}
	c.last = now
	return !c.result.Final && !now.Before(c.end)
}

func (c *course) say(w Word, why face.Reason) Result {
	c.result = Result{Word: w, Reason: why, Stage: c.result.Stage}
	return c.result
}

func (c *course) finish(w Word, why face.Reason) Result {
	c.say(w, why)
	c.result.Final = true
	return c.result
}

// Face is one judged face in a frame.
type Face struct {
	Track    int           // constant while one person stays in view
	Reason   face.Reason   // why the picture is not used, or ""
	Match    bool          // it is the user's face; for a challenge also set for turned faces
	Pose     *face.Pose    // for a challenge; nil if not known
	Liveness *float32      // liveness score; nil if not measured
	Look     sighting.Look // by which a still is told from a person; zero if there is none
}

// Session is one attempt to log in by face; it reads no clock and no camera. One goroutine may use
// it at a time. [NewSession] makes one.
type Session struct {
	course
	policy Policy
	space  face.Space

	track   int
	window  []judgement // the last judged frames, the newest last
	gesture *gesture    // the requested gesture; nil without a challenge
	parted  bool        // nobody was seen after the gesture, or the face is on another track
	judged  bool        // a person was seen well enough
	seen    bool
	trouble face.Reason
	frames  int // that came
	looks   int // frames in a row in which the face was judged, or its turn was looked for
	most    int // the most of them in this phase

	matched  bool    // enough frames matched
	liveness float64 // the highest mean score when they did
	short    bool    // only the liveness score prevented a match
	still    bool    // the last judged face was no new look
}

// judgement is the result for a judged frame.
type judgement struct {
	match    bool
	liveness float64
	look     sighting.Look
}

// NewSession begins a session at a moment, for faces in a space. Toward is TurnLeft or TurnRight,
// the first turn of a challenge. The policy has its defaults filled in. The error wraps
// [ErrPolicy].
func NewSession(p Policy, space face.Space, toward Word, now time.Time) (*Session, error) {
	p = p.Defaults()
	if err := p.Check(); err != nil {
		return nil, err
	}
	return &Session{
		course:  course{end: now.Add(p.Deadline), result: Result{Word: looking}},
		policy:  p,
		space:   space,
		gesture: newGesture(p.Challenge, toward),
	}, nil
}

// Frame processes a frame of that moment, and returns the state. After the end it changes nothing.
// Matches count only while exactly one face, the same one, is in view. A frame that shows the same
// look as one of the window is neither a match nor a mismatch ([sighting.NewLook]), so a still
// never gets in. With a challenge they are collected twice: before the request, where a head that
// holds still counts, too, and after the action.
func (s *Session) Frame(now time.Time, faces []Face) Result {
	if s.tick(now).Final {
		return s.result
	}
	s.frames++
	if len(faces) == 0 {
		s.forget(0)
		return s.say(looking, "")
	}
	s.seen = true
	if len(faces) > 1 {
		s.restart()
		return s.say(twoFaces, "")
	}
	f := faces[0]
	if f.Track != s.track {
		s.forget(f.Track)
	}
	if s.gesture.in(asking) {
		if f.Pose == nil {
			return s.say(s.gesture.word(), "")
		}
		s.looked()
		switch s.gesture.see(*f.Pose, f.Match) {
		case wrong:
			return s.finish(NoMatch, "")
		case finished:
			s.window, s.looks, s.most = s.window[:0], 0, 0
			return s.say(Straight, "")
		}
		return s.say(s.gesture.word(), "")
	}
	if f.Reason != "" {
		s.trouble = f.Reason
		if s.gesture.in(finished) {
			return s.say(Straight, "")
		}
		return s.say(Retry, f.Reason)
	}
	s.judged = true
	s.looked()
	j := judgement{match: f.Match, look: f.Look}
	if f.Liveness != nil {
		j.liveness = float64(*f.Liveness)
	}
	counted := make([]sighting.Look, len(s.window))
	for i := range s.window {
		counted[i] = s.window[i].look
	}
	counted, isNew := sighting.NewLook(s.space, f.Look, counted)
	s.still = !isNew
	if isNew || s.gesture.in(waiting) {
		s.window = s.window[len(s.window)-len(counted):]
		s.window = append(s.window, j)
		if len(s.window) > window {
			s.window = s.window[1:]
		}
	}
	if s.parted && !f.Match {
		s.restart() // somebody else has come instead
	}
	matched, alive := s.enough()
	switch enough := f.Match && matched && alive; {
	case enough && s.gesture.in(waiting):
		s.gesture.phase, s.looks, s.most = asking, 0, 0
		return s.say(s.gesture.word(), "")
	case enough:
		return s.finish(Match, "")
	case f.Match && matched:
		s.short = true
		return s.say(lifeless, "")
	case s.gesture.in(finished):
		return s.say(Straight, "")
	}
	return s.say(looking, "")
}

// enough reports whether enough frames of the window match, with a high enough liveness score.
func (s *Session) enough() (matched, alive bool) {
	matches, sum := 0, 0.
	for _, j := range s.window {
		if j.match {
			matches++
			sum += j.liveness
		}
	}
	if matches < s.least() {
		return false, false
	}
	mean := sum / float64(matches)
	s.matched, s.liveness = true, max(s.liveness, mean)
	return true, mean >= s.policy.MinLiveness
}

// least is the number of matches that a decision needs.
func (s *Session) least() int {
	if s.gesture.in(finished) && !s.parted {
		return neededAfter
	}
	return needed
}

// looked counts a look at the face.
func (s *Session) looked() {
	s.looks++
	s.most = max(s.most, s.looks)
}

// unmoved reports whether the user alone was seen, in a window of frames with too few looks.
func (s *Session) unmoved() bool {
	other := slices.ContainsFunc(s.window, func(j judgement) bool { return !j.match })
	return s.still && s.most >= window && len(s.window) > 0 && len(s.window) < needed && !other
}

// Liveness returns the highest mean score of the matching frames of a window with enough matches,
// and whether there was such a window. The session would let in with a MinLiveness of up to this
// score. For a measurement use MinLiveness 1, which never lets in early.
func (s *Session) Liveness() (mean float64, ok bool) { return s.liveness, s.matched }

// forget starts collecting evidence again, for a face on the given track. One turn that is done
// remains: heads turn on so far that no face is seen. But then as many faces of the user must
// follow as at first, and another person's, or a second face, has it done again.
func (s *Session) forget(track int) {
	s.track, s.window, s.still, s.looks = track, s.window[:0], false, 0
	if s.gesture != nil && s.gesture.phase != waiting {
		s.most = 0
	}
	s.parted = s.gesture.in(finished) && len(s.gesture.sides) == 1
	if !s.parted {
		s.gesture.forget()
	}
}

// restart is forget, also of a gesture that is done.
func (s *Session) restart() {
	s.forget(0)
	s.parted = false
	s.gesture.forget()
}

// tick sets the time, and returns the state. A clock that was set back ends the session.
func (s *Session) tick(now time.Time) Result {
	switch late := s.late(now); {
	case !late:
		return s.result
	case s.short || s.unmoved():
		return s.finish(notLive, "")
	case s.judged && s.most >= s.least():
		return s.finish(NoMatch, "")
	case s.judged || s.frames < needed:
		return s.finish(tooFew, "")
	case s.seen:
		return s.finish(poor, s.trouble)
	}
	return s.finish(noFace, "")
}
