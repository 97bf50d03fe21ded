// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/tablet/profile"
)

// mostLooks is how many times the faces of an enrolment a profile may have. Each further look gives
// the faces of other people more faces to be near to.
const mostLooks = 3

// views are faces by colour, and by infrared, which may be missing.
type views [2][][]float32

// Enroll guides a person through enrolment as a user, by colour, and then by infrared if there is
// such a camera. It replaces an earlier profile only at the end. The caller must check the right to
// do this. A mark, see [Attempt], binds the profile to the system's account, and counts as the
// password; with "" the profile is bound as an earlier one was. Report is called with each change
// of the result, the final one included, and must not block.
//
// More adds the faces to the profile, for another look, as with glasses: each must be as near to an
// enrolled or taken face as a face of a login. Infrared faces are added only to infrared faces.
//
// The error wraps [face.ErrName] for an invalid name; with more also [ErrLooks], or
// [profile.ErrUnknown] without a profile. After every later failure, also the end of ctx, the
// result is [Failed].
func (a *Authenticator) Enroll(
	ctx context.Context,
	user, mark string,
	more bool,
	report func(Result),
) (Result, error) {
	if err := face.CheckName(user); err != nil {
		return Result{}, err
	}
	var known views
	if more {
		a.mu.Lock()
		c, err := a.load(user)
		a.mu.Unlock()
		for i := 0; i < len(known) && err == nil; i++ {
			known[i], err = a.labelled(*c.snapshots()[i], a.spaces[i])
		}
		switch {
		case err != nil:
			return Result{}, err
		case len(known[0])+len(stages) > mostLooks*len(stages):
			return Result{}, ErrLooks
		}
	}
	e := newEnrolment(a.spaces[0], a.o.Anchor, a.o.Policy.MinLiveness, a.o.Now())
	e.known = known[0]
	err := a.guided(ctx, a.camera, e, report)
	faces := views{e.faces}
	if e.result.Word == Enrolled && a.o.Infrared != nil && (!more || known[1] != nil) {
		e = newEnrolment(a.spaces[1], a.o.Anchor, LeastLit, a.o.Now())
		e.known, e.infrared = known[1], true
		err = a.guided(ctx, a.o.Infrared, e, report)
		faces[1] = e.faces
	}
	r := e.result
	switch {
	case r.Word == Enrolled:
		r.Word = a.enrolled(user, mark, faces, more)
	case r.Word == cameraTurned:
		a.o.Log.Warn("enrolling", "user", user, "error", e.turns.Check(e.turned))
	case r.Word == screenLike:
		a.o.Log.Warn("this camera's pictures look like a screen's, so logins by face would fail; "+
			"use another camera, an infrared one (--infrared), more light, or a smaller "+
			"--min-liveness", "user", user, "liveness",
			fmt.Sprintf("%.2f", e.liveness()))
	case r.Final:
	case err == nil:
		r = Result{Word: timedOut, Stage: r.Stage, Final: true}
	default:
		if ctx.Err() == nil { // the caller cancelled it
			a.o.Log.Warn("enrolling", "user", user, "error", err)
		}
		r = (Result{Word: Failed, Stage: r.Stage, Final: true})
		if errors.Is(err, errOpen) {
			r.Word = noCamera
		}
	}
	report(r)
	return r, nil
}

// guided guides a person through the poses in front of one camera, until the enrolment is final or
// the time is over.
func (a *Authenticator) guided(ctx context.Context, camera Camera, e *enrolment,
	report func(Result)) error {
	last := e.result
	report(last)
	return a.watch(ctx, camera, eye.Enrol, enrolmentLimit, enrolmentLimit+time.Second, nil, nil,
		func(f face.Frame) bool {
			r := e.Frame(a.o.Now(), f)
			if r != last && !r.Final {
				report(r)
			}
			last = r
			return r.Final
		})
}

// enrolled writes the profile of a user, unless the faces are another user's, and returns the final
// word.
func (a *Authenticator) enrolled(user, mark string, faces views, more bool) Word {
	a.mu.Lock()
	defer a.mu.Unlock()
	other, err := a.resembles(user, faces)
	if err == nil && other {
		return taken
	}
	if err == nil {
		err = a.keep(user, mark, faces, more)
	}
	if err != nil {
		a.o.Log.Error("enrolling", "user", user, "error", err)
		return Failed
	}
	return Enrolled
}

// labelled returns the enrolled faces of a snapshot; nil without one.
func (a *Authenticator) labelled(snapshot []byte, space face.Space) (faces [][]float32, err error) {
	l, err := unpacked(snapshot, space, a.o.Learner)
	if err != nil {
		return nil, err
	}
	for _, label := range l.Labels() {
		if !label.Negative {
			faces = append(faces, slices.Clone(l.Vector(label.ID)))
		}
	}
	return faces, nil
}

// resembles reports whether two or more faces would be recognised as another user, by colour or by
// infrared. It skips profiles that cannot be read.
func (a *Authenticator) resembles(user string, faces views) (bool, error) {
	users, err := a.store.Users()
	if err != nil {
		return false, err
	}
	for _, other := range users {
		if other == user {
			continue
		}
		c, err := a.load(other)
		for i := 0; i < len(faces) && err == nil; i++ {
			var alike bool
			alike, err = a.alike(*c.snapshots()[i], a.spaces[i], faces[i])
			if alike {
				return true, nil
			}
		}
		if err != nil {
			a.o.Log.Warn("a profile cannot be read", "user", other, "error", err)
		}
	}
	return false, nil
}

// alike reports whether a learner recognises two or more faces.
func (a *Authenticator) alike(snapshot []byte, space face.Space, faces [][]float32) (bool, error) {
	l, err := unpacked(snapshot, space, a.o.Learner)
	if err != nil || !l.Knows(owner) {
		return false, err
	}
	n := 0
	for _, x := range faces {
		verdict, err := l.Judge(x)
		if err != nil {
			return false, err
		}
		if a.match(verdict) {
			n++
		}
	}
	return n >= 2, nil
}

// keep writes the profile of a user with these faces, or with these, too. The limits stay.
func (a *Authenticator) keep(user, mark string, faces views, more bool) error {
	c, err := a.load(user)
	switch {
	case more && err != nil:
		return err
	case more:
	case err == nil:
		c = &account{Limits: c.Limits, Others: c.Others, History: c.History, Bound: c.Bound,
			Told: c.Told}
	default:
		if !errors.Is(err, profile.ErrUnknown) {
			a.o.Log.Warn("the profile that is replaced cannot be read", "user", user, "error", err)
		}
		c = new(account)
	}
	if !more {
		c.Enrolled = a.o.Now()
		c.UID, err = a.o.UID(user)
		if err != nil {
			return fmt.Errorf("looking for the user: %w", err)
		}
	}
	if mark != "" {
		c.Bound, c.Told = mark, mark
		c.Limits.password(a.moment())
	}
	for i, snapshot := range c.snapshots() {
		if faces[i] == nil {
			continue
		}
		if *snapshot, err = a.label(*snapshot, a.spaces[i], faces[i]); err != nil {
			return err
		}
	}
	c.note(Event{At: a.o.Now(), Result: string(Enrolled)})
	return a.save(user, c)
}

// label adds faces to a snapshot.
func (a *Authenticator) label(snapshot []byte, space face.Space,
	faces [][]float32) ([]byte, error) {
	l, err := unpacked(snapshot, space, a.o.Learner)
	if err != nil {
		return nil, err
	}
	for i, x := range faces {
		if err := l.Label(x, owner); err != nil {
			return nil, fmt.Errorf("face %d in %s: %w", i+1, space.ID, err)
		}
	}
	return l.MarshalBinary()
}
