// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Attempt is what is asked of [Authenticator.Verify].
type Attempt struct {
	User string
	// Asker is the number of the asking user if that is not the user, as with su; otherwise 0. Failures count against
	// the asker, so nobody can use up the attempts of another user. Faces from other users' attempts are not learned.
	Asker   uint32
	Service string // of PAM, for the history; "" if it is not known
	// Challenge is asked for if the policy has none. The deadline is then ten seconds or more.
	Challenge Challenge
	// Still is asked before a match is told: an error revokes it. It tells whether who asked may still do so, and must
	// return soon. Default: they may.
	Still func() error
	// Asked is closed when somebody wants the verdict, as by Enter at a prompt. Before that the camera looks, and what
	// it sees is no attempt: nothing is told, counted or noted. Default: somebody wants it at once.
	Asked <-chan struct{}
}

// fresh is how long a match may wait until somebody asks.
const fresh = 2 * time.Second

// Verify watches the camera until it knows whether a user is there, and at most until the policy's deadline. Report is
// called with each change of the result, the final one included, and must not block. The release of the camera and
// learning come later and do not delay the result. If nobody asks until the deadline, the result is [Unasked].
//
// The error wraps [profile.ErrUnknown], is a [*Refused], or tells that the profile is unusable; the session has not
// begun then. After every later failure, also the end of ctx, the result is [Failed].
func (a *Authenticator) Verify(
	ctx context.Context,
	try Attempt,
	report func(Result),
) (Result, error) {
	begun, user := a.o.Now(), try.User
	l, unproven, infrared, err := a.admit(user, try.Asker)
	if err != nil {
		return Result{}, err
	}
	policy := a.o.Policy
	if policy.Challenge == "" && try.Challenge != "" {
		policy.Challenge = try.Challenge
		policy.Deadline = max(policy.Deadline, Policy{Challenge: try.Challenge}.Defaults().Deadline)
	}
	camera, space := a.camera, a.space
	if infrared {
		camera, space, policy.MinLiveness = a.o.Infrared, a.space.Infrared(), LeastLit
	}
	v := &verification{
		a: a, user: user, asker: try.Asker, service: try.Service, policy: policy, space: space,
		still: try.Still, begun: begun, asked: try.Asked == nil, unproven: unproven, infrared: infrared,
		people: sighting.NewWatcher(l, sighting.Settings{}, sighting.Rules{}),
	}
	if err := v.restart(); err != nil {
		return Result{}, err
	}
	v.charged(true)
	defer v.charged(false)
	last := v.result()
	report(last)
	ended := false
	tell := func() bool {
		r := v.result()
		if r.Final && !ended {
			ended = true
			v.end() // write the limits to disk before anybody is let in
			r = v.result()
		}
		if r != last {
			report(r)
			last = r
		}
		return r.Final
	}
	err = a.watch(ctx, camera, Login, policy.Deadline, try.Asked, func() bool {
		v.ask()
		return tell()
	}, func(f face.Frame) bool {
		if !v.asked {
			v.glimpse(f)
			return false
		}
		v.frame(f)
		return tell()
	})
	switch {
	case v.asked && v.result().Final:
	case err != nil:
		if ctx.Err() == nil { // the caller cancelled it
			a.o.Log.Warn("verifying", "user", user, "error", err)
		}
		if errors.Is(err, errOpen) {
			v.session.finish(NoCamera, "")
		} else {
			v.session.finish(Failed, "")
		}
	case !v.asked:
		v.session.finish(Unasked, "")
	case !v.session.Tick(a.o.Now()).Final:
		v.session.Fail() // the clock was set back
	}
	tell()
	v.learn()
	a.o.Wipe()
	return v.result(), nil
}

// admit returns the learner of a user who may try. Unproven is true if a match lets nobody in without the password: the
// account is another one. Infrared is true if that camera decides.
func (a *Authenticator) admit(user string, asker uint32) (l *online.Learner, unproven, infrared bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := a.load(user)
	if err != nil {
		return nil, false, false, err
	}
	if why, wait := c.ask(asker, a.o.Policy, a.moment()); why != "" {
		return nil, false, false, &Refused{why, wait}
	}
	l, infrared = c.learner, a.o.Infrared != nil && c.Infrared != nil
	if infrared {
		l, err = a.inInfrared(c)
	}
	return l, c.moved(), infrared, err
}

// draw returns an unpredictable side.
func draw() Side {
	var b [1]byte
	rand.Read(b[:]) // it cannot fail
	return Side(b[0]&1 == 1)
}

// verification is one run of Verify.
type verification struct {
	a        *Authenticator
	user     string
	asker    uint32
	service  string
	still    func() error
	people   *sighting.Watcher // with a temporary learner
	policy   Policy
	space    face.Space
	session  *Session
	begun    time.Time
	asked    bool      // somebody wants the verdict
	found    time.Time // when a session before that ended with a match
	counted  bool      // the attempt is on disk
	unproven bool      // see admit
	infrared bool

	track  int
	faces  [][]float32 // vectors of the user on this track
	worths []float64   // the confidence of each
}

// restart begins a new session.
func (v *verification) restart() (err error) {
	v.session, err = NewSession(v.policy, v.space, v.a.o.Draw(), v.a.o.Now())
	v.found = time.Time{}
	return err
}

// result is that of the session, with another word for a match that lets nobody in.
func (v *verification) result() Result {
	r := v.session.Result()
	if r.Word == Match && v.unproven {
		r.Word = Unproven
	}
	return r
}

// glimpse looks at a frame before somebody asks. A challenge is told to nobody yet, so there is nothing to judge.
func (v *verification) glimpse(f face.Frame) {
	if v.policy.Challenge != "" || !v.found.IsZero() && v.a.o.Now().Sub(v.found) <= fresh {
		return
	}
	if v.result().Final {
		v.restart() // a session with this policy was made before
	}
	v.frame(f)
	switch v.result().Word {
	case Match:
		v.found = v.a.o.Now()
	case Unproven:
		v.found = v.a.o.Now()
		v.wait() // if the password is typed now, nobody asks
	}
}

// ask begins the attempt: with a match of just now, or with a new session.
func (v *verification) ask() {
	v.asked = true
	v.charged(true)
	if v.found.IsZero() || v.a.o.Now().Sub(v.found) > fresh {
		v.restart()
	} else if err := v.count(); err != nil {
		v.fail(err)
	}
}

// charged begins an attempt, or ends it.
func (v *verification) charged(begins bool) {
	v.a.mu.Lock()
	defer v.a.mu.Unlock()
	if begins {
		v.a.trying[v] = true
	} else {
		delete(v.a.trying, v)
	}
}

// count writes down the attempt, before anything is told.
func (v *verification) count() error {
	if v.counted {
		return nil
	}
	failed := func(l *limits) { l.failed(v.a.moment()) }
	err := v.a.limit(v.user, func(c *account) {
		if v.a.trying[v] {
			c.changed(v.asker, failed)
		}
	})
	v.counted = err == nil
	return err
}

// wait keeps faces that only lack the password.
func (v *verification) wait() {
	if v.asker != 0 {
		return
	}
	v.a.mu.Lock()
	defer v.a.mu.Unlock()
	faces := make([][]float32, len(v.faces))
	for i, x := range v.faces {
		faces[i] = slices.Clone(x)
	}
	v.a.waiting.put(v.user, v.a.o.Now(), faces, true)
}

// frame judges a frame.
func (v *verification) frame(f face.Frame) {
	now := v.a.o.Now()
	tracks := v.people.Track(now.Sub(v.begun), f.Samples)
	faces := make([]Face, len(f.Samples))
	for i, x := range f.Samples {
		faces[i] = Face{Track: tracks[i], Reason: x.Reason, Pose: pose(x), Liveness: x.Liveness, Look: sighting.LookOf(x)}
	}
	// The attempt must be written before the first good picture is judged; poor pictures do not count.
	if len(faces) == 1 && f.Samples[0].Vector != nil && (v.counted || faces[0].Reason == "") {
		if v.asked {
			if err := v.count(); err != nil {
				v.fail(err)
				return
			}
		}
		seen, err := v.people.Judge(now.Sub(v.begun), f.Samples, tracks, func(int) bool { return true })
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

// keep stores a face that could be learned. A face that looks like a picture is never learned, not even after a
// password.
func (v *verification) keep(x face.Sample, track int, match bool, confidence float64) {
	if track != v.track {
		v.track, v.faces, v.worths = track, nil, nil
	}
	if match && x.Reason == "" && v.alive(x) {
		v.faces, v.worths = append(v.faces, x.Vector), append(v.worths, confidence)
	}
}

// alive reports whether the score of a single face is high enough for a live face.
func (v *verification) alive(x face.Sample) bool {
	least := v.policy.MinLiveness
	return least == 0 || x.Liveness != nil && float64(*x.Liveness) >= least
}

func (v *verification) fail(err error) {
	v.a.o.Log.Error("verifying", "user", v.user, "error", err)
	v.session.Fail()
}

// end writes the result of the session. If it cannot be written, or who asked may do so no more, the result is not a
// match.
func (v *verification) end() {
	if w := v.result().Word; v.still != nil && (w == Match || w == Unproven) {
		if err := v.still(); err != nil {
			v.a.o.Log.Warn("a match is void", "user", v.user, "error", err)
			v.session.finish(Failed, "")
		}
	}
	if !v.counted {
		return
	}
	now, match := v.a.moment(), v.result().Word == Match
	e := Event{At: v.a.o.Now(), Service: v.service, Asker: v.asker, Result: string(v.result().Word),
		Infrared: v.infrared}
	err := v.a.limit(v.user, func(c *account) {
		c.note(e)
		c.changed(v.asker, func(l *limits) {
			if match {
				l.matched(now)
			} else {
				l.ended(now)
			}
		})
	})
	if err != nil {
		v.a.o.Log.Error("verifying", "user", v.user, "error", err)
		v.session.finish(Failed, "")
	}
	// The password may come at once after the result, so the faces for it must wait in quarantine before.
	if v.result().Word == Unproven {
		v.wait()
	}
}

// learn learns the faces of a match far above the threshold, and keeps other faces for the password.
func (v *verification) learn() {
	if len(v.faces) == 0 {
		return
	}
	if v.asker != 0 || v.infrared || v.unproven {
		for _, x := range v.faces {
			clear(x)
		}
		return
	}
	now := v.a.o.Now()
	matched := v.result().Word == Match
	if matched && median(v.worths) >= v.a.o.Learner.Learn {
		if err := v.a.update(v.user, func(c *account) error { return v.a.learn(v.user, c, v.faces, now) }); err != nil {
			v.a.o.Log.Error("learning", "user", v.user, "error", err)
		}
		return
	}
	v.a.mu.Lock()
	defer v.a.mu.Unlock()
	v.a.waiting.put(v.user, now, v.faces, false)
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return s[len(s)/2]
}
