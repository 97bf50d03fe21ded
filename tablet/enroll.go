// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet/profile"
)

// Enroll guides a person through enrolment as a user. It replaces an earlier profile only at the end. The caller must
// check the right to do this. A mark, see [Authenticator.Account], binds the profile to the system's account, and
// counts as the password; with "" the profile is bound as an earlier one was. Report is called with each change of the
// result, the final one included, and must not block.
//
// The error wraps [face.ErrName] for an invalid name. After every later failure, also the end of ctx, the result is
// [Failed].
func (a *Authenticator) Enroll(
	ctx context.Context,
	user, mark string,
	report func(Result),
) (Result, error) {
	if err := face.CheckName(user); err != nil {
		return Result{}, err
	}
	return a.guide(ctx, user, mark, nil, nil, report)
}

// mostLooks is how many times the faces of an enrolment a profile may have. Each further look gives the faces of other
// people more faces to be near to.
const mostLooks = 3

// AddLook does the same as [Authenticator.Enroll], but adds the faces to the profile: for another look, as with
// glasses. Each must be as near to an enrolled or taken face as a face of a login. The error wraps [ErrLooks], or
// [profile.ErrUnknown] without a profile.
func (a *Authenticator) AddLook(
	ctx context.Context,
	user string,
	report func(Result),
) (Result, error) {
	a.mu.Lock()
	c, err := a.load(user)
	a.mu.Unlock()
	if err != nil {
		return Result{}, err
	}
	known := labelled(c.learner)
	if len(known)+Stages > mostLooks*Stages {
		return Result{}, ErrLooks
	}
	var infrared [][]float32
	if a.o.Infrared != nil && c.Infrared != nil {
		l, err := a.inInfrared(c)
		if err != nil {
			return Result{}, err
		}
		infrared = labelled(l)
	}
	return a.guide(ctx, user, "", known, infrared, report)
}

// labelled returns the enrolled faces of a user.
func labelled(l *online.Learner) (faces [][]float32) {
	for _, label := range l.Labels() {
		if !label.Negative {
			faces = append(faces, slices.Clone(l.Vector(label.ID)))
		}
	}
	return faces
}

// guide guides a person through an enrolment by colour, and then by infrared if there is such a camera. If faces are
// known, those that are taken are added to them; infrared faces only to infrared faces.
func (a *Authenticator) guide(
	ctx context.Context,
	user, mark string,
	known, knownInfrared [][]float32,
	report func(Result),
) (Result, error) {
	e := newEnrolment(a.space, a.o.Anchor, a.o.Policy.MinLiveness, a.o.Now(), a.o.EnrolmentLimit)
	e.known = known
	turned, err := a.guided(ctx, a.camera, e, report)
	faces, infrared := e.Faces(), [][]float32(nil)
	if e.Result().Word == Enrolled && a.o.Infrared != nil && (known == nil || knownInfrared != nil) {
		e = newEnrolment(a.space.Infrared(), a.o.Anchor, LeastLit, a.o.Now(), a.o.EnrolmentLimit)
		e.known, e.infrared = knownInfrared, true
		turned, err = a.guided(ctx, a.o.Infrared, e, report)
		infrared = e.Faces()
	}
	switch r := e.Result(); {
	case r.Word == Enrolled:
		e.End(a.enrolled(user, mark, faces, infrared, known != nil))
	case r.Word == Turned:
		a.o.Log.Warn("enrolling", "user", user, "error", e.Turns().Check(turned))
	case r.Word == ScreenLike:
		a.o.Log.Warn("this camera's pictures look like a screen's, so logins by face would fail; use another camera, an "+
			"infrared one (--infrared), more light, or a smaller --min-liveness", "user", user, "liveness",
			fmt.Sprintf("%.2f", e.Live()))
	case r.Final:
	case err != nil:
		if ctx.Err() == nil { // the caller cancelled it
			a.o.Log.Warn("enrolling", "user", user, "error", err)
		}
		if errors.Is(err, errOpen) {
			e.End(NoCamera)
		}
		e.End(Failed)
	default:
		e.End(TimedOut)
	}
	report(e.Result())
	return e.Result(), nil
}

// guided guides a person through the poses in front of one camera, until the enrolment is final or the time is over. It
// returns the degrees by which the last picture was turned.
func (a *Authenticator) guided(ctx context.Context, camera Camera, e *enrolment, report func(Result)) (turned int,
	err error) {
	last := e.Result()
	report(last)
	err = a.watch(ctx, camera, Enrolment, a.o.EnrolmentLimit, nil, nil, func(f face.Frame) bool {
		turned = f.Turned
		r := e.Frame(a.o.Now(), enrolmentFaces(f))
		if r.Final {
			return true
		}
		if r != last {
			report(r)
			last = r
		}
		return false
	})
	return turned, err
}

func enrolmentFaces(f face.Frame) []enrolmentFace {
	faces := make([]enrolmentFace, len(f.Samples))
	for i, x := range f.Samples {
		faces[i] = enrolmentFace{Reason: x.Reason, Pose: pose(x), Vector: x.Vector, Liveness: x.Liveness,
			Turns: x.Turns, Norm: x.Quality.Norm}
	}
	return faces
}

// enrolled writes the profile of a user, unless the faces are another user's, and returns the final word.
func (a *Authenticator) enrolled(user, mark string, faces, infrared [][]float32, more bool) Word {
	a.mu.Lock()
	defer a.mu.Unlock()
	other, err := a.resembles(user, faces, colour)
	if err == nil && !other && infrared != nil {
		other, err = a.resembles(user, infrared, a.inInfrared)
	}
	if err == nil && other {
		return Taken
	}
	if err == nil {
		err = a.keep(user, mark, faces, infrared, more)
	}
	if err != nil {
		a.o.Log.Error("enrolling", "user", user, "error", err)
		return Failed
	}
	return Enrolled
}

// colour returns the learner of the faces in colour.
func colour(c *account) (*online.Learner, error) { return c.learner, nil }

// inInfrared returns the learner of the infrared faces, which is empty if there are none.
func (a *Authenticator) inInfrared(c *account) (*online.Learner, error) {
	if c.Infrared == nil {
		return online.New(a.space.Infrared(), a.o.Learner)
	}
	l := new(online.Learner)
	if err := l.UnmarshalBinary(c.Infrared); err != nil {
		return nil, fmt.Errorf("profile: %w: %w", profile.ErrDamaged, err)
	}
	return l, l.Configure(a.o.Learner)
}

// resembles reports whether two or more faces would be recognised as another user. It skips profiles that cannot be
// read.
func (a *Authenticator) resembles(
	user string,
	faces [][]float32,
	space func(*account) (*online.Learner, error),
) (bool, error) {
	users, err := a.store.Users()
	if err != nil {
		return false, err
	}
	for _, other := range users {
		if other == user {
			continue
		}
		c, err := a.load(other)
		var l *online.Learner
		if err == nil {
			l, err = space(c)
		}
		if err != nil {
			a.o.Log.Warn("a profile cannot be read", "user", other, "error", err)
			continue
		}
		if !l.Knows(owner) {
			continue
		}
		alike := 0
		for _, x := range faces {
			verdict, err := l.Judge(x)
			if err != nil {
				return false, err
			}
			if a.match(verdict) {
				alike++
			}
		}
		if alike >= 2 {
			return true, nil
		}
	}
	return false, nil
}

// keep writes the profile of a user with these faces, or with these, too. The limits stay.
func (a *Authenticator) keep(user, mark string, faces, infrared [][]float32, more bool) error {
	c, err := a.newAccount(user)
	if err != nil {
		return err
	}
	before, err := a.load(user)
	switch {
	case more && err != nil:
		return err
	case more:
		c = before
	case err == nil:
		c.Limits, c.Others, c.History = before.Limits, before.Others, before.History
		c.Bound, c.Told = before.Bound, before.Told
	case !errors.Is(err, profile.ErrUnknown):
		a.o.Log.Warn("the profile that is replaced cannot be read", "user", user, "error", err)
	}
	if mark != "" {
		c.Bound, c.Told = mark, mark
		c.Limits.password(a.moment())
	}
	for i, x := range faces {
		if err := c.learner.Label(x, owner); err != nil {
			return fmt.Errorf("face %d: %w", i+1, err)
		}
	}
	if infrared != nil {
		l, err := a.inInfrared(c)
		if err != nil {
			return err
		}
		for i, x := range infrared {
			if err := l.Label(x, owner); err != nil {
				return fmt.Errorf("infrared face %d: %w", i+1, err)
			}
		}
		if c.Infrared, err = l.MarshalBinary(); err != nil {
			return err
		}
	}
	c.note(Event{At: a.o.Now(), Result: string(Enrolled)})
	return a.save(user, c)
}
