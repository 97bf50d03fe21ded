// SPDX-License-Identifier: Apache-2.0

// Package tablet lets the people of a device log in with their faces.
//
// An [Authenticator] holds their sealed profiles. [Authenticator.Verify] watches a camera until it
// knows whether a user is there. [Authenticator.Enroll] guides a person through enrolment. Other
// methods show the learned faces, and remove them. A [Session] decides about a login, without a
// camera. Package socket offers all this to other programs, and profile stores the profiles.
//
// # What a login rests on
//
// The learner accepts a face that is connected with the enrolled faces, also through learned faces.
// An attacker could lead it away from the enrolled faces with small steps at many logins. So a
// login has one more condition, which learning cannot change: the face must be within
// [Options].Anchor of an enrolled face.
//
// A matching face may be a picture of a face. With a MinLiveness in the policy, login and enrolment
// need a score of a liveness network. Without a score nobody is let in.
//
// With an infrared camera ([Options].Infrared) an enrolment ends with the same poses for it, and
// this camera alone decides each login, by day and by night: if colour could decide as well, a
// screen would get in by colour. Faces of the two spaces are never compared, and the light of the
// emitter makes the liveness score. A profile without infrared faces goes by colour. Infrared faces
// are not learned.
//
// Faces from a login are learned only if they are earned: after a match far above the threshold, or
// if the password is given within a minute. Until then they are in memory only.
//
// A profile belongs to an account of the system, and to the password that it has: an enrolment by
// root binds it. After another password a face lets in alone again when the password was given
// within a minute after it was seen.
//
// While a prompt waits, the camera looks already. Nobody is told anything until somebody asks, and
// then the attempt is written to disk before a face is judged. So neither a crash nor an unplugged
// camera gives uncounted attempts.
package tablet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet/profile"
)

// Errors of the methods of [Authenticator]. A user without a profile is [profile.ErrUnknown].
var (
	errStill = errors.New("the camera, or the eye, sends nothing")
	errOpen  = errors.New("opening the camera")
	ErrLooks = errors.New(
		"the profile has as many looks as it may; to replace them: faceauth login enroll")
	errSpace = errors.New("the feature space cannot tell people apart; install the models")
)

// Refused is the error for a user who may not try at present.
type Refused struct {
	Why  Refusal
	Wait time.Duration // time until a try is allowed; 0 if waiting does not help
}

func (r *Refused) Error() string { return fmt.Sprintf("%s: use your password", r.Why) }

// Stream returns the frames of a camera. Next returns when its context ends.
type Stream interface {
	Next(ctx context.Context) (face.Frame, error)
	Close() error
}

// Camera opens the camera for a login or an enrolment, with the gate that this needs. It returns
// when its context ends.
type Camera func(context.Context, eye.Gate) (Stream, error)

// Options of an [Authenticator]. A zero field means the default.
type Options struct {
	Policy  Policy
	Learner online.Settings // default of Learn: 0.9. A match below it is not learned

	// Anchor is the greatest distance from the nearest enrolled face for a login, in units of the
	// space. Default 1.075 times the impostor radius of the space, which is 1.0 for the built-in
	// network: no face of another person among 39 was within it of four enrolled faces
	// (lab/NOTES.md).
	Anchor float64

	// Infrared opens the infrared camera, whose vectors are of [face.Space.Infrared]. Default:
	// there is none.
	Infrared Camera

	// UID returns the number of a user of the system. A profile then belongs to this number, and
	// not to a later user with the same name. Default: only names count.
	UID func(user string) (uint32, error)

	Now func() time.Time
	// Boot returns the identity of this boot of the device and the time since then, by a clock that
	// nobody can set. Default: use the wall clock.
	Boot func() (name string, up time.Duration)
	Draw func() Word  // TurnLeft or TurnRight, for a challenge. Default: random and unpredictable
	Wipe func()       // called when faces are no longer used, to overwrite them. Default none
	Log  *slog.Logger // audit; default none
}

func (o Options) defaults(space face.Space) Options {
	o.Policy = o.Policy.Defaults()
	o.Learner.Learn = cmp.Or(o.Learner.Learn, .9)
	o.Anchor = cmp.Or(o.Anchor, 1.075*space.ImpostorRadius)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.UID == nil {
		o.UID = func(string) (uint32, error) { return 0, nil }
	}
	if o.Draw == nil {
		o.Draw = draw
	}
	if o.Wipe == nil {
		o.Wipe = func() {}
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

// Authenticator verifies and enrols users. It is safe for concurrent use, but for the camera: of
// Verify and Enroll one call at a time may run, as package socket sees to. [New] makes one.
type Authenticator struct {
	store  *profile.Store
	spaces [2]face.Space // of the cameras in colour and in infrared
	o      Options
	camera Camera

	mu      sync.Mutex // guards reading and writing of profiles, and the field below
	waiting pending
}

// New returns an authenticator over a store, which the caller closes. The error wraps [ErrPolicy]
// or [online.ErrSettings], or says that the space has no radii.
func New(store *profile.Store, space face.Space, camera Camera, o Options) (*Authenticator, error) {
	o = o.defaults(space)
	if err := o.Policy.Check(); err != nil {
		return nil, err
	}
	if !(o.Anchor > 0) {
		return nil, fmt.Errorf("%s: %w", space.ID, errSpace)
	}
	if _, err := online.New(space, o.Learner); err != nil {
		return nil, err
	}
	return &Authenticator{store: store, spaces: [2]face.Space{space, space.Infrared()}, o: o,
		camera: camera}, nil
}

// moment returns the time by both clocks.
func (a *Authenticator) moment() moment {
	m := onWall(a.o.Now())
	if a.o.Boot != nil {
		m.Boot, m.Up = a.o.Boot()
	}
	return m
}

// Policy returns the policy with its defaults.
func (a *Authenticator) Policy() Policy { return a.o.Policy }

// shot is the result of one read of the camera.
type shot struct {
	frame face.Frame
	err   error
}

// mostSilence is the longest time of a login without a frame, also at first.
const mostSilence = 2500 * time.Millisecond

// watch opens the camera and calls each with its frames, until each returns true, the limit has
// passed, the camera fails or sends nothing for the time of silence, or ctx ends. When asked is
// closed, it calls begin, and both times count anew. It returns when the camera is released. The
// error is the camera's or ctx's; nil at the limit.
func (a *Authenticator) watch(
	ctx context.Context,
	camera Camera,
	gate eye.Gate,
	limit, silence time.Duration,
	asked <-chan struct{},
	begin func() (over bool),
	each func(face.Frame) (over bool),
) error {
	ctx, cancel := context.WithCancel(ctx)
	shots := make(chan shot, 1)
	var stream Stream
	var reader sync.WaitGroup
	next := func() {
		var s shot
		if stream == nil {
			stream, s.err = camera(ctx, gate)
			if s.err != nil {
				s.err = fmt.Errorf("%w: %w", errOpen, s.err)
			}
		}
		if s.err == nil {
			s.frame, s.err = stream.Next(ctx)
		}
		shots <- s
	}
	reader.Go(next)
	defer func() {
		cancel()
		reader.Wait()
		if stream != nil {
			stream.Close()
		}
	}()
	timer, silent := time.NewTimer(limit), time.NewTimer(silence)
	begun := a.o.Now()
	heard := begun
	// What is left of a time, by the clock of the authenticator: that of a trial follows
	// recordings, however slow the machine is.
	left := func(of time.Duration, since time.Time) time.Duration {
		gone := a.o.Now().Sub(since)
		if gone < 0 { // it was set back
			return 0
		}
		return of - gone
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-silent.C:
			if more := left(silence, heard); more > 0 {
				silent.Reset(more)
				continue
			}
			if asked == nil { // before, an eye has more time to start
				return errStill
			}
		case <-timer.C:
			if more := left(limit, begun); more > 0 {
				timer.Reset(more)
				continue
			}
			return nil
		case <-asked:
			asked = nil
			if begin() {
				return nil
			}
			timer.Reset(limit)
			begun = a.o.Now()
		case s := <-shots:
			switch {
			case errors.Is(s.err, io.EOF):
				return errors.New("the camera sends no more pictures")
			case s.err != nil:
				return s.err
			case each(s.frame):
				return nil
			}
			reader.Go(next)
		}
		heard = a.o.Now()
		silent.Reset(silence)
	}
}
