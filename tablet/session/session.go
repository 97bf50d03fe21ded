// SPDX-License-Identifier: Apache-2.0

// Package session decides whether a login by face succeeds.
//
// A [Session] is one attempt: it is told what each frame holds, and says when it has seen enough. [Limits] are what
// is remembered of a user between attempts: how long to wait after failures, and when the password is due again.
//
// Neither reads a clock or a camera. Every way that a session can go ends in a [Result] that is final, and only one
// of those, [Match], lets anybody in.
package session

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/face"
)

// ErrPolicy is wrapped by the errors of [Policy.Check].
var ErrPolicy = errors.New("unusable policy")

// Policy says when a session ends, and what limits there are. The zero value of each field stands for its default.
type Policy struct {
	Window   int           // judged frames, one after the other, that a decision looks at. Default 5
	Needed   int           // of these, so many must match. Default 3
	Deadline time.Duration // after which a session is over. Default 5 s, with a challenge 10 s

	Challenge Challenge // what is asked of a person who matches. Default nothing
	// MinLiveness is the mean passive score in [0,1], over the matching frames of the window, that a match takes. A
	// frame that was not scored counts as 0, so that nobody is let in for want of a network. Default 0: it is not asked.
	MinLiveness float64

	Failures int           // sessions without a match until the password is due. Default 5
	Delay    time.Duration // after the first failure; each doubles it. Default 1 s
	MaxDelay time.Duration // that it grows to. Default 1 min
	Password time.Duration // after which the password is due again. Default 48 h
}

// Defaults returns p with what was left open filled in.
func (p Policy) Defaults() Policy {
	deadline := 5 * time.Second
	if p.Challenge != "" {
		deadline = 10 * time.Second
	}
	p.Window = cmp.Or(p.Window, 5)
	p.Needed = cmp.Or(p.Needed, 3)
	p.Deadline = cmp.Or(p.Deadline, deadline)
	p.Failures = cmp.Or(p.Failures, 5)
	p.Delay = cmp.Or(p.Delay, time.Second)
	p.MaxDelay = cmp.Or(p.MaxDelay, time.Minute)
	p.Password = cmp.Or(p.Password, 48*time.Hour)
	return p
}

// Check returns nil for a policy, with its defaults filled in, that can be followed. A single frame decides nothing.
func (p Policy) Check() error {
	switch {
	case p.Needed < 2 || p.Window < p.Needed:
		return fmt.Errorf("%w: %d of %d frames must match; it takes two or more, and a window that holds them", ErrPolicy, p.Needed, p.Window)
	case p.Deadline <= 0 || p.Deadline > time.Minute:
		return fmt.Errorf("%w: a deadline of %v; use one of up to a minute", ErrPolicy, p.Deadline)
	case p.Failures < 1:
		return fmt.Errorf("%w: %d failures until the password is due; use 1 or more", ErrPolicy, p.Failures)
	case p.Delay < 0 || p.MaxDelay < p.Delay:
		return fmt.Errorf("%w: delays from %v to %v", ErrPolicy, p.Delay, p.MaxDelay)
	case p.Password <= 0:
		return fmt.Errorf("%w: a password is due after %v", ErrPolicy, p.Password)
	case p.Challenge != "" && p.Challenge != Turn && p.Challenge != Blink:
		return fmt.Errorf("%w: unknown challenge %q; use %s or %s, or none", ErrPolicy, p.Challenge, Turn, Blink)
	case !(p.MinLiveness >= 0 && p.MinLiveness <= 1):
		return fmt.Errorf("%w: a liveness of %v; use one from 0 to 1", ErrPolicy, p.MinLiveness)
	}
	return nil
}

// Word says how a session stands, or how it ended.
type Word string

// Words that are final. Only Match lets anybody in; after each of the others the password is asked for.
const (
	Match   Word = "match"
	NoMatch Word = "no match"             // somebody was seen well enough, and it was not the user
	NoFace  Word = "no face"              // nobody was seen
	NotLive Word = "taken for a picture"  // the user was seen, and scored for a picture of a face
	Poor    Word = "no usable picture"    // somebody was seen, but never well enough to be judged
	Failed  Word = "something went wrong" // the camera, the models or the program itself
	// Unproven is the end of a session that would be a match, if the faces it was measured by had been seen here. The
	// password, given now, vouches for them.
	Unproven Word = "like faces that were never seen here"
)

// Words that are not final: what the person in front of the camera can do.
const (
	Looking   Word = "looking"
	TwoFaces  Word = "more than one face"
	Lifeless  Word = "taken for a picture so far"
	Retry     Word = "retry" // the result's Reason says why the picture was of no use
	Straight  Word = "look straight into the camera"
	TurnLeft  Word = "turn your head to your left"
	TurnRight Word = "turn your head to your right"
	BlinkNow  Word = "blink"
)

// Result is how a session stands.
type Result struct {
	Word   Word
	Reason face.Reason // of Retry, and of Poor, why the last picture was of no use
	Final  bool
}

// Face is one face in a frame, after it was judged.
type Face struct {
	Track    int         // constant while one person stays in view
	Reason   face.Reason // why the picture is of no use, or ""
	Match    bool        // it is the user's; for a challenge, of one that is turned away, too
	Pose     *face.Pose  // for a challenge; nil where it is not known
	Liveness *float32    // passive score; nil where it was not measured
}

// Session is one attempt to log in by face. It is used by one goroutine at a time. Make one with [New].
type Session struct {
	policy Policy
	end    time.Time
	last   time.Time
	result Result

	track   int
	window  []judgement // of the last judged frames, the newest last
	gesture *gesture    // that is being asked for; nil without a challenge
	judged  bool        // somebody was seen well enough
	seen    bool
	trouble face.Reason

	matched  bool    // enough frames matched
	liveness float64 // the highest mean score when they did
	short    bool    // for want of liveness alone nobody was let in
	unproven bool    // no match lets anybody in
}

// judgement is what counts of a judged frame.
type judgement struct {
	match    bool
	liveness float64
}

// New begins a session at a moment. Side is what a challenge draws by lot, from a source that nobody can foresee: to
// which side a head must turn. The policy has its defaults filled in. The error wraps [ErrPolicy].
func New(p Policy, side Side, now time.Time) (*Session, error) {
	p = p.Defaults()
	if err := p.Check(); err != nil {
		return nil, err
	}
	return &Session{policy: p, end: now.Add(p.Deadline), last: now, result: Result{Word: Looking}, gesture: newGesture(p.Challenge, side)}, nil
}

// Unproven has the session let nobody in: where it would end with [Match], it ends with the word Unproven. Call it before
// the first frame.
func (s *Session) Unproven() { s.unproven = true }

// Result returns how the session stands.
func (s *Session) Result() Result { return s.result }

// Frame tells the session what a frame of that moment holds, and returns how it stands. After the end it changes
// nothing. Matches count only while one face, and the same, is in view. With a challenge they are gathered twice:
// before it is asked for, and after it was done.
func (s *Session) Frame(now time.Time, faces []Face) Result {
	if s.Tick(now).Final {
		return s.result
	}
	if len(faces) == 0 {
		s.forget(0)
		return s.say(Looking, "")
	}
	s.seen = true
	if len(faces) > 1 {
		s.forget(0)
		return s.say(TwoFaces, "")
	}
	f := faces[0]
	if f.Track != s.track {
		s.forget(f.Track)
	}
	if s.gesture.asked() {
		if f.Pose == nil {
			return s.say(s.gesture.word, "")
		}
		switch s.gesture.see(now, *f.Pose, f.Match) {
		case wrong:
			return s.finish(NoMatch, "")
		case done:
			s.window = s.window[:0]
			return s.say(Straight, "")
		}
		return s.say(s.gesture.word, "")
	}
	if f.Reason != "" {
		s.trouble = f.Reason
		if s.gesture.finished() {
			return s.say(Straight, "")
		}
		return s.say(Retry, f.Reason)
	}
	s.judged = true
	j := judgement{match: f.Match}
	if f.Liveness != nil {
		j.liveness = float64(*f.Liveness)
	}
	if s.window = append(s.window, j); len(s.window) > s.policy.Window {
		s.window = s.window[1:]
	}
	matched, alive := s.enough()
	switch enough := f.Match && matched && alive; {
	case enough && s.gesture.waiting():
		s.gesture.ask()
		return s.say(s.gesture.word, "")
	case enough:
		return s.finish(Match, "")
	case f.Match && matched:
		s.short = true
		return s.say(Lifeless, "")
	case s.gesture.finished():
		return s.say(Straight, "")
	}
	return s.say(Looking, "")
}

// enough reports whether enough frames of the window match, and whether these score high enough for a live face.
func (s *Session) enough() (matched, alive bool) {
	matches, sum := 0, 0.
	for _, j := range s.window {
		if j.match {
			matches++
			sum += j.liveness
		}
	}
	if matches < s.policy.Needed {
		return false, false
	}
	mean := sum / float64(matches)
	s.matched, s.liveness = true, max(s.liveness, mean)
	return true, mean >= s.policy.MinLiveness
}

// Liveness returns the highest mean score that the matching frames of a window had while there were enough of them, and
// whether there ever were. At a policy with a MinLiveness up to it the session lets in; a measurement asks for 1, with
// which it goes on to the end.
func (s *Session) Liveness() (mean float64, ok bool) { return s.liveness, s.matched }

// forget begins to gather evidence anew, for a face on that track.
func (s *Session) forget(track int) {
	s.track, s.window = track, s.window[:0]
	s.gesture.forget()
}

// Tick tells the session what time it is, and returns how it stands. A clock that was set back ends it.
func (s *Session) Tick(now time.Time) Result {
	switch {
	case s.result.Final:
	case now.Before(s.last):
		return s.finish(Failed, "")
	case !now.Before(s.end):
		switch {
		case s.short:
			return s.finish(NotLive, "")
		case s.judged:
			return s.finish(NoMatch, "")
		case s.seen:
			return s.finish(Poor, s.trouble)
		}
		return s.finish(NoFace, "")
	}
	s.last = now
	return s.result
}

// Fail ends the session because something went wrong, or because it was stopped. After the end it changes nothing.
func (s *Session) Fail() Result {
	if s.result.Final {
		return s.result
	}
	return s.finish(Failed, "")
}

// Revoke makes a session that has ended one that failed: its end could not be noted.
func (s *Session) Revoke() { s.finish(Failed, "") }

func (s *Session) say(w Word, why face.Reason) Result {
	s.result = Result{Word: w, Reason: why}
	return s.result
}

func (s *Session) finish(w Word, why face.Reason) Result {
	if w == Match && s.unproven {
		w = Unproven
	}
	s.result = Result{Word: w, Reason: why, Final: true}
	return s.result
}
