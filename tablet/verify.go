// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Attempt is what is asked of [Authenticator.Verify].
type Attempt struct {
	User string
	// Asker is the number of the asking user if that is not the user, as with su; otherwise 0.
	// Failures count against the asker, so nobody can use up the attempts of another user. Faces
	// from other users' attempts are not learned.
	Asker   uint32
	Service string // of PAM, for the history; "" if it is not known
	From    string // where the program runs that asks, for the history; "" if it is not known
	// Outside is true if the program runs outside the sessions, so that nobody knows who started
	// it, and from where. Then the challenge is [TurnBoth], and one failure ends such attempts
	// until a password. A success elsewhere does not change that, and nothing is learned.
	Outside bool
	// Challenge is asked for if the policy has none. The deadline is then ten seconds or more.
	Challenge Challenge
	// Mark is by what the system knows the account of the user at present: it differs after the
	// account was removed and made again, or has another password. While the profile is not bound
	// to this mark, a match ends with [unproven]. Default: the mark of before.
	Mark string
	// Announce is called before the camera is opened, if the user may try. Its error refuses the
	// attempt. Default: none.
	Announce func() error
	// Recall is called before a match of the user by a PAM service at the device is told, if there
	// were attempts from outside the sessions since the last one, with these, oldest first.
	// Default: none.
	Recall func([]Event)
	// Still is asked before a match is told: an error revokes it. It tells whether who asked may
	// still do so, and must return soon. Default: they may.
	Still func() error
	// Asked is closed when somebody wants the verdict, as by Enter at a prompt. Before that the
	// camera looks, and nothing is judged, told, counted or noted. Default: somebody wants it at
	// once.
	Asked <-chan struct{}
}

// fresh is how old a frame may be when somebody asks.
const fresh = 2 * time.Second

// Verify watches the camera until it knows whether a user is there, and at most until the policy's
// deadline. Report is called with each change of the result, the final one included, and must not
// block. The release of the camera and learning come later and do not delay the result. If nobody
// asks until the deadline, or until ctx ends, the result is [Unasked].
//
// The error wraps [profile.ErrUnknown], is a [*Refused], or tells that the profile is unusable; the
// session has not begun then. After every later failure, and the end of ctx after somebody has
// asked, the result is [Failed].
func (a *Authenticator) Verify(
	ctx context.Context,
	try Attempt,
	report func(Result),
) (Result, error) {
	v, err := a.admit(try)
	if err != nil {
		return Result{}, err
	}
	if try.Announce != nil {
		if err := try.Announce(); err != nil {
			return Result{}, err
		}
	}
	v.begun, v.from = a.o.Now(), a.moment()
	v.report, v.told = report, v.result()
	report(v.told)
	if try.Asked == nil {
		v.begin()
	}
	err = a.watch(ctx, v.camera, eye.Login, v.policy.Deadline, mostSilence, try.Asked, v.begin,
		v.frame)
	if v.session == nil {
		v.session = new(Session)
		v.session.finish(Unasked, "")
	}
	switch {
	case v.result().Final && (err == nil || ctx.Err() != nil):
	case errors.Is(err, errOpen):
		v.session.finish(noCamera, "")
	case err != nil || !v.session.tick(a.o.Now()).Final: // or the clock was set back
		v.session.finish(Failed, "")
	}
	if err != nil && ctx.Err() == nil { // the caller cancelled it
		a.o.Log.Warn("verifying", "user", v.User, "error", err)
	}
	v.tell()
	if v.result().Word == Match {
		v.learn()
	}
	a.o.Wipe()
	return v.result(), nil
}

// verification is one run of Verify.
type verification struct {
	Attempt
	a        *Authenticator
	report   func(Result)
	told     Result // last
	camera   Camera
	space    face.Space
	people   *sighting.Watcher // with a temporary learner
	policy   Policy
	infrared bool // that camera decides
	unproven bool // a match lets nobody in without the password: the account is another one

	begun   time.Time // by the clock of the session, which stands still while the device sleeps
	from    moment    // the same by the other clocks
	recent  []glimpse // what was seen before somebody asked
	asked   moment
	session *Session // nil until somebody asks
	counted bool     // the attempt is on disk

	track  int
	faces  [][]float32 // vectors of the user on this track
	worths []float64   // the confidence of each
}

// glimpse is a frame with its time.
type glimpse struct {
	at    time.Time
	frame face.Frame
}

// admit returns the verification of a user who may try.
func (a *Authenticator) admit(try Attempt) (*verification, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := a.load(try.User)
	if err != nil {
		return nil, err
	}
	if try.Mark != "" && try.Mark != c.Told {
		c.Told = try.Mark
		if err := a.save(try.User, c); err != nil {
			return nil, err
		}
	}
	ask := c.ask
	if try.Outside {
		ask, try.Challenge = c.askOutside, TurnBoth
	}
	if why, wait := ask(try.Asker, a.o.Policy, a.moment()); why != "" {
		return nil, &Refused{why, wait}
	}
	v := &verification{Attempt: try, a: a, camera: a.camera, space: a.spaces[0], policy: a.o.Policy,
		unproven: c.moved(), infrared: a.o.Infrared != nil && c.Infrared != nil}
	if try.Challenge != "" && (v.policy.Challenge == "" || try.Outside) {
		v.policy.Challenge = try.Challenge
		v.policy.Deadline = max(v.policy.Deadline,
			Policy{Challenge: try.Challenge}.Defaults().Deadline)
	}
	snapshot := c.Learner
	if v.infrared {
		v.camera, v.space, v.policy.MinLiveness = a.o.Infrared, a.spaces[1], LeastLit
		snapshot = c.Infrared
	}
	l, err := unpacked(snapshot, v.space, a.o.Learner)
	if err != nil {
		return nil, err
	}
	v.people = sighting.NewWatcher(l)
	return v, v.policy.Check()
}

// draw returns an unpredictable side.
func draw() Word {
	var b [1]byte
	rand.Read(b[:]) // it cannot fail
	return []Word{TurnLeft, TurnRight}[b[0]&1]
}

// result is that of the session, with another word for a match that lets nobody in.
func (v *verification) result() Result {
	if v.session == nil {
		return Result{Word: looking}
	}
	r := v.session.Result()
	if r.Word == Match && v.unproven {
		r.Word = unproven
	}
	return r
}

// begin begins the session when somebody asks, and judges what was seen just before.
func (v *verification) begin() (over bool) {
	now := v.a.o.Now()
	v.session, _ = NewSession(v.policy, v.space, v.a.o.Draw(), now) // the policy was checked
	v.asked = v.a.moment()
	for _, g := range v.recent {
		if now.Sub(g.at) <= fresh {
			v.judge(g.at, g.frame)
			over = over || v.tell()
		}
	}
	v.recent = nil
	return over
}

// frame judges a frame, or keeps it for two seconds if nobody has asked. A challenge is told to
// nobody until then, so there is nothing to keep.
func (v *verification) frame(f face.Frame) (over bool) {
	now := v.a.o.Now()
	switch {
	case v.session != nil:
		v.judge(now, f)
		return v.tell()
	case v.policy.Challenge == "":
		v.recent = slices.DeleteFunc(v.recent, func(g glimpse) bool {
			return now.Sub(g.at) > fresh
		})
		v.recent = append(v.recent, glimpse{now, f})
	}
	return false
}

// tell reports the result if it has changed, and reports whether it is final. A final one is on
// disk before.
func (v *verification) tell() (final bool) {
	if v.told.Final {
		return true
	}
	if v.result().Final {
		v.end()
	}
	if r := v.result(); r != v.told {
		v.told = r
		v.report(r)
	}
	return v.told.Final
}

// count writes down the attempt, before anything is told. If the password was given meanwhile, it
// is not charged.
func (v *verification) count() error {
	if v.counted {
		return nil
	}
	now := v.a.moment()
	err := v.a.update(v.User, func(c *account) error {
		if v.Outside || !c.own(v.Asker) || !c.Limits.givenSince(v.asked, now) {
			c.changed(v.Asker, v.Outside, func(l *limits) { l.failed(now) })
		}
		return nil
	})
	v.counted = err == nil
	return err
}

// judge judges a frame.
func (v *verification) judge(now time.Time, f face.Frame) {
	if v.session.Result().Final {
		return
	}
	tracks := v.people.Track(now.Sub(v.begun), f.Samples)
	faces := make([]Face, len(f.Samples))
	for i, x := range f.Samples {
		faces[i] = Face{Track: tracks[i], Reason: x.Reason, Liveness: x.Liveness,
			Look: sighting.LookOf(x)}
		if p, ok := face.PoseOf(x.Landmarks); ok {
			faces[i].Pose = &p
		}
	}
	// The attempt must be written before the first good picture is judged; poor pictures do not
	// count.
	if len(faces) == 1 && f.Samples[0].Vector != nil && (v.counted || faces[0].Reason == "") {
		if err := v.count(); err != nil {
			v.fail(err)
			return
		}
		seen, err := v.people.Judge(now.Sub(v.begun), f.Samples, tracks, func(int) bool {
			return true
		})
		if err != nil {
			v.fail(err)
			return
		}
		faces[0].Match = v.a.match(*seen[0].Verdict)
		v.keep(f.Samples[0], tracks[0], faces[0].Match, seen[0].Verdict.Confidence)
	}
	v.session.Frame(now, faces)
}

// match reports whether a verdict names the user and the face is near an enrolled one.
func (a *Authenticator) match(v online.Verdict) bool {
	return v.Person == owner && v.Distance <= a.o.Anchor
}

// keep stores a face that could be learned. A face that looks like a picture is never learned, not
// even after a password.
func (v *verification) keep(x face.Sample, track int, match bool, confidence float64) {
	if track != v.track {
		v.track, v.faces, v.worths = track, nil, nil
	}
	least := v.policy.MinLiveness
	alive := least == 0 || x.Liveness != nil && float64(*x.Liveness) >= least
	if match && x.Reason == "" && alive {
		v.faces, v.worths = append(v.faces, x.Vector), append(v.worths, confidence)
	}
}

func (v *verification) fail(err error) {
	v.a.o.Log.Error("verifying", "user", v.User, "error", err)
	v.session.finish(Failed, "")
}

// end writes the result of the session, and keeps what the password may earn, which may come at
// once. If it cannot be written, or who asked may do so no more, the result is not a match.
func (v *verification) end() {
	if w := v.result().Word; w == Match || w == unproven {
		if err := v.void(); err != nil {
			v.a.o.Log.Warn("a match is void", "user", v.User, "error", err)
			v.session.finish(Failed, "")
		}
	}
	if !v.counted {
		return
	}
	now, word := v.a.moment(), v.result().Word
	e := Event{At: v.a.o.Now(), Service: v.Service, Asker: v.Asker, Result: string(word),
		From: v.From, Outside: v.Outside, Infrared: v.infrared}
	var untold []Event
	err := v.a.update(v.User, func(c *account) error {
		if v.Recall != nil && e.tells() {
			untold = c.untold()
		}
		c.note(e)
		c.changed(v.Asker, v.Outside, func(l *limits) {
			if word == Match {
				l.matched(now)
			} else {
				l.ended(now)
			}
		})
		switch {
		case v.Asker != 0 || v.Outside:
		case word == unproven:
			v.a.waiting = pending{user: v.User, at: e.At, unproven: true}
		case !v.unproven && !v.infrared && !v.sure():
			v.a.waiting = pending{user: v.User, at: e.At, faces: v.faces}
		}
		return nil
	})
	switch {
	case err != nil:
		v.fail(err)
	case len(untold) > 0:
		v.Recall(untold)
	}
}

// void returns why a match counts no more: the device has slept since the look began, or who asked
// may do so no more.
func (v *verification) void() error {
	up := v.a.moment().Up // first, as before the look it was read last: a pause between is no sleep
	awake := v.a.o.Now().Sub(v.begun)
	if up-v.from.Up > awake+time.Second/10 {
		return errors.New("the device has slept meanwhile")
	}
	if v.Still == nil {
		return nil
	}
	return v.Still()
}

// sure reports whether a match is far above the threshold, so that its faces are learned.
func (v *verification) sure() bool {
	if v.result().Word != Match || len(v.worths) == 0 {
		return false
	}
	s := slices.Sorted(slices.Values(v.worths))
	return s[len(s)/2] >= v.a.o.Learner.Learn
}

// learn learns the faces of a match.
func (v *verification) learn() {
	if v.Asker != 0 || v.Outside || v.infrared || !v.sure() {
		return
	}
	err := v.a.update(v.User, func(c *account) error {
		return v.a.learn(v.User, c, v.faces, false)
	})
	if err != nil {
		v.a.o.Log.Error("learning", "user", v.User, "error", err)
	}
}
