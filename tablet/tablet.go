// SPDX-License-Identifier: Apache-2.0

// Package tablet lets the people of a device log in with their faces.
//
// An [Authenticator] holds their sealed profiles. [Authenticator.Verify] watches a camera until it knows whether a user
// is there. [Authenticator.Enroll] guides a person through enrolment. Other methods show the learned faces, and remove
// them. A [Session] decides about a login, without a camera. Package socket offers all this to other programs, and
// profile stores the profiles.
//
// # What a login rests on
//
// The learner accepts a face that is connected with the enrolled faces, also through learned faces. An attacker could
// lead it away from the enrolled faces with small steps at many logins. So a login has one more condition, which
// learning cannot change: the face must be within [Options].Anchor of an enrolled face.
//
// A matching face may be a picture of a face. With a MinLiveness in the policy, login and enrolment need a score of a
// liveness network. Without a score nobody is let in.
//
// With an infrared camera ([Options].Infrared) an enrolment ends with the same poses for it. The profile then has faces
// of both spaces, which are never compared, and the infrared camera alone decides each login, by day and by night:
// three of five frames must match in its space, and the face must be lit by the camera's emitter, which makes the
// liveness score. If colour could decide as well, a screen would get in by colour. A profile without infrared faces
// goes by colour. Infrared faces are not learned.
//
// Faces from a login are learned only if they are earned: after a match far above the threshold, or if the password is
// given within a minute. Until then they are in memory only.
//
// A profile belongs to an account of the system, and to the password that it has: an enrolment by root binds it. After
// another password a face lets in alone again when the password was given within a minute after it was seen; see
// [Authenticator.Account].
//
// While a prompt waits, the camera looks already. Nobody is told anything until somebody asks, and then the attempt is
// written to disk before a face is judged. So neither a crash nor an unplugged camera gives uncounted attempts.
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

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet/profile"
)

// Errors of the methods of [Authenticator]. A user without a profile is [profile.ErrUnknown].
var (
	ErrBusy  = errors.New("the camera is in use")
	errStill = errors.New("the camera, or the eye, sends nothing")
	errOpen  = errors.New("opening the camera")
	ErrLooks = errors.New("the profile has as many looks as it may; to replace them: faceauth login enroll")
	ErrSpace = errors.New("the feature space cannot tell people apart; install the models")
)

// Refused is the error for a user who may not try at present.
type Refused struct {
	Why  Refusal
	Wait time.Duration // time until a try is allowed; 0 if waiting does not help
}

func (r *Refused) Error() string {
	if r.Why == Wait {
		return fmt.Sprintf("%s: wait %v, or use your password", r.Why, r.Wait.Round(time.Second))
	}
	return fmt.Sprintf("%s: use your password", r.Why)
}

// Stream returns the frames of a camera. Next returns when its context ends.
type Stream interface {
	Next(ctx context.Context) (face.Frame, error)
	Close() error
}

// Purpose tells why a camera is opened; it decides the quality gate.
type Purpose string

// Purposes.
const (
	Login     Purpose = "login"
	Enrolment Purpose = "enrolment"
)

// Camera opens the camera. It returns when its context ends.
type Camera func(ctx context.Context, p Purpose) (Stream, error)

// Options of an [Authenticator]. A zero field means the default.
type Options struct {
	Policy  Policy
	Learner online.Settings // default of Learn: 0.9. A match below it is not learned

	// Anchor is the greatest distance from the nearest enrolled face for a login, in units of the space. Default: the
	// result of the function [Anchor].
	Anchor float64

	// Infrared opens the infrared camera, whose vectors are of [face.Space.Infrared]. Default: there is none.
	Infrared Camera

	Silence        time.Duration // longest time of a login without a frame, also at first. Default 2.5 s
	EnrolmentLimit time.Duration // time limit of an enrolment. Default 60 s
	Quarantine     time.Duration // time for which faces wait for the password. Default 1 min
	// UID returns the number of a user of the system. A profile then belongs to this number, and not to a later user
	// with the same name. Default: only names count.
	UID func(user string) (uint32, error)

	Now func() time.Time
	// Boot returns the identity of this boot of the device and the time since then, by a clock that nobody can set: see
	// the function [Boot]. Default: use the wall clock.
	Boot func() (name string, up time.Duration)
	Draw func() Side  // side of a challenge. Default: random and unpredictable
	Wipe func()       // called when faces are no longer used; see the function [Wipe]. Default none
	Log  *slog.Logger // audit; default none
}

// Anchor returns the default of [Options].Anchor: 1.075 times the impostor radius of the space. For the built-in
// network this is 1.0; no face of another person among 39 was within it of four enrolled faces (lab/NOTES.md).
func Anchor(space face.Space) float64 { return 1.075 * space.ImpostorRadius }

func (o Options) defaults(space face.Space) Options {
	o.Policy = o.Policy.Defaults()
	o.Learner.Learn = cmp.Or(o.Learner.Learn, .9)
	o.Anchor = cmp.Or(o.Anchor, Anchor(space))
	o.Silence = cmp.Or(o.Silence, 2500*time.Millisecond)
	o.EnrolmentLimit = cmp.Or(o.EnrolmentLimit, time.Minute)
	o.Quarantine = cmp.Or(o.Quarantine, time.Minute)
	if o.Now == nil {
		o.Now = time.Now
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

// Authenticator verifies and enrols users. It is safe for concurrent use; the camera serves one call at a time. [New]
// makes one; close it.
type Authenticator struct {
	store  *profile.Store
	space  face.Space
	o      Options
	camera Camera

	looking sync.Mutex     // held while the camera is in use
	watches sync.WaitGroup // goroutines that read the camera

	mu      sync.Mutex // guards reading and writing of profiles, and the fields below
	waiting quarantine
	trying  map[*verification]bool // false: the password was given since, so the attempt is not charged
}

// New returns an authenticator over a store, which the caller closes. The error wraps [ErrPolicy],
// [online.ErrSettings] or [ErrSpace].
func New(store *profile.Store, space face.Space, camera Camera, o Options) (*Authenticator, error) {
	o = o.defaults(space)
	if err := o.Policy.Check(); err != nil {
		return nil, err
	}
	if !(o.Anchor > 0) {
		return nil, fmt.Errorf("%s: %w", space.ID, ErrSpace)
	}
	if _, err := online.New(space, o.Learner); err != nil {
		return nil, err
	}
	return &Authenticator{store: store, space: space, o: o, camera: camera, trying: make(map[*verification]bool)}, nil
}

// Close waits for the release of the camera. The contexts of Verify and Enroll must have ended.
func (a *Authenticator) Close() {
	a.watches.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting.drop()
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

// patience is how long the release of the camera may take before other callers are told that it is in use.
const patience = 2 * time.Second

// pose returns the pose of a head, or nil if it is not known.
func pose(x face.Sample) *face.Pose {
	p, ok := face.PoseOf(x.Landmarks)
	if !ok {
		return nil
	}
	return &p
}

// shot is the result of one read of the camera.
type shot struct {
	frame face.Frame
	err   error
}

// watch opens the camera and calls each with its frames, until each returns true, the deadline has passed, the camera
// fails, sends nothing during a login, or ctx ends. When asked is closed, it calls begin, and the deadline counts
// anew. It returns when the camera is released, or after patience; the lock stays held until the release. The error is
// the camera's or ctx's; nil at the deadline.
func (a *Authenticator) watch(
	ctx context.Context,
	camera Camera,
	p Purpose,
	limit time.Duration,
	asked <-chan struct{},
	begin func() (over bool),
	each func(face.Frame) (over bool),
) (err error) {
	if !a.looking.TryLock() {
		return ErrBusy
	}
	ctx, cancel := context.WithCancel(ctx)
	shots, want, released := make(chan shot), make(chan struct{}, 1), make(chan struct{})
	want <- struct{}{}
	a.watches.Go(func() {
		defer close(released)
		defer a.looking.Unlock() // unlock before other callers learn that the camera is free
		a.read(ctx, camera, p, want, shots)
	})
	defer func() {
		cancel()
		if errors.Is(err, errStill) { // nobody waits for it any longer
			return
		}
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-released:
		case <-timer.C:
			a.o.Log.Warn("the camera does not let go")
		}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	silence := limit
	if p == Login {
		silence = a.o.Silence
	}
	silent := time.NewTimer(silence)
	defer silent.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-silent.C:
			if p != Login {
				continue // the limit is as long
			}
			return errStill
		case <-timer.C:
			return nil
		case <-asked:
			asked = nil
			if begin() {
				return nil
			}
			timer.Reset(limit)
			silent.Reset(silence)
		case s := <-shots:
			if err = errors.Join(s.err, ctx.Err()); err != nil {
				return err
			}
			if each(s.frame) {
				return nil
			}
			silent.Reset(silence)
			want <- struct{}{}
		}
	}
}

// read opens the camera and hands over a frame whenever one is wanted, until the camera fails or ctx ends.
func (a *Authenticator) read(
	ctx context.Context,
	camera Camera,
	p Purpose,
	want <-chan struct{},
	shots chan<- shot,
) {
	hand := func(s shot) bool {
		select {
		case shots <- s:
			return s.err == nil
		case <-ctx.Done():
			return false
		}
	}
	stream, err := camera(ctx, p)
	if err != nil {
		hand(shot{err: fmt.Errorf("%w: %w", errOpen, err)})
		return
	}
	defer func() {
		if err := stream.Close(); err != nil {
			a.o.Log.Warn("closing the camera", "error", err)
		}
	}()
	for {
		select {
		case <-want:
		case <-ctx.Done():
			return
		}
		f, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			err = errors.New("the camera sends no more pictures")
		}
		if !hand(shot{f, err}) {
			return
		}
	}
}
