// SPDX-License-Identifier: Apache-2.0

// Package tablet lets the people of a device log in with their faces.
//
// An [Authenticator] holds their sealed profiles. [Authenticator.Verify] looks into a camera until it knows whether a
// user is there, [Authenticator.Enroll] guides somebody through being enrolled, and the other methods say what was
// learned, and take it back. Package bus offers all that to other programs; the packages session and enrolment hold
// the decisions, and profile the store.
//
// # What a login rests on
//
// The learner accepts a face that is connected with the enrolled ones, over others that it has learned. Whoever leads a
// learner astray, a little at each login, leads it away from those. A login therefore asks for one thing more, that no
// learning changes: the face lies within [Options].Anchor of an enrolled one.
//
// A face that matches may be a picture of one. With a MinLiveness in the policy a login asks for a score of a liveness
// network, and enrolment does, too. Where the samples have no score nobody is let in.
//
// Faces seen at a login are learned only where they have earned it: after a match far above what a match takes, or
// after the password was given within a minute. Until then they are kept in memory, and nowhere else.
//
// An attempt is on disk before its first face is judged, so that no crash, and no camera that is pulled out, makes
// attempts that do not count.
package tablet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet/profile"
	"github.com/faceauth/faceauth/tablet/session"
)

// Errors of the methods of [Authenticator]. A user without a profile is [profile.ErrUnknown].
var (
	ErrBusy  = errors.New("the camera is in use")
	ErrSpace = errors.New("feature space that does not tell people apart by two faces; install the models")
)

// Refused is the error for a user who may not try just now.
type Refused struct {
	Why  session.Refusal
	Wait time.Duration // until they may, where it is a matter of waiting
}

func (r *Refused) Error() string {
	if r.Why == session.Wait {
		return fmt.Sprintf("%s: wait %v, or use your password", r.Why, r.Wait.Round(time.Second))
	}
	return fmt.Sprintf("%s: use your password", r.Why)
}

// Stream gives the frames of a camera. Next gives up when its context ends.
type Stream interface {
	Next(ctx context.Context) (face.Frame, error)
	Close() error
}

// Purpose is what a camera is opened for: the gate of quality differs.
type Purpose string

// Purposes.
const (
	Login     Purpose = "login"
	Enrolment Purpose = "enrolment"
)

// Camera opens the camera. It gives up when its context ends.
type Camera func(ctx context.Context, p Purpose) (Stream, error)

// Options of an [Authenticator]. The zero value of each field stands for its default.
type Options struct {
	Policy  session.Policy
	Learner online.Settings // Learn: default 0.9. A match below it teaches nothing

	// Anchor is the distance, in the units of the space, from the nearest enrolled face beyond which nobody is let
	// in. Default: the result of the function [Anchor].
	Anchor float64

	EnrolmentLimit time.Duration // of an enrolment. Default 60 s
	Quarantine     time.Duration // that faces wait for the password. Default 1 min
	// UID returns the number of a user of the system. A profile is then that user's, and nobody's who is given the
	// name later. Default: names are enough.
	UID func(user string) (uint32, error)

	Now func() time.Time
	// Boot returns a name of this start of the device, and how long it was ago, by a clock that nobody can set.
	// Default: the clock on the wall is believed.
	Boot func() (name string, up time.Duration)
	Draw func() session.Side // of a challenge. Default by lot, from a source that nobody can foresee
	Wipe func()              // is called when faces are not used any more; see the function of this name. Default none
	Log  *slog.Logger        // audit; default none
}

// Anchor returns the default of [Options].Anchor: 1.075 times the impostor radius of the space. For the built-in
// network that is 1.0, within which no face came to four of another person, of 39 (docs/results.md).
func Anchor(space face.Space) float64 { return 1.075 * space.ImpostorRadius }

func (o Options) defaults(space face.Space) Options {
	o.Policy = o.Policy.Defaults()
	o.Learner.Learn = cmp.Or(o.Learner.Learn, .9)
	o.Anchor = cmp.Or(o.Anchor, Anchor(space))
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

// Authenticator verifies and enrols users. It is safe for concurrent use; one camera serves one of them at a time. Make
// one with [New], and close it.
type Authenticator struct {
	store  *profile.Store
	space  face.Space
	o      Options
	camera Camera

	looking sync.Mutex     // held while the camera is in use
	watches sync.WaitGroup // goroutines that read it

	mu      sync.Mutex // guards the profiles between being read and written, and what follows
	waiting quarantine
	news    map[string]news // of a fleet, by user
}

// New returns an authenticator over a store, which stays the caller's. The error wraps [session.ErrPolicy],
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
	return &Authenticator{store: store, space: space, o: o, camera: camera}, nil
}

// Close waits for the camera to be released. Whoever called Verify or Enroll has ended their contexts before.
func (a *Authenticator) Close() {
	a.watches.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting.drop()
}

// moment returns what time it is, by both clocks.
func (a *Authenticator) moment() session.Moment {
	m := session.At(a.o.Now())
	if a.o.Boot != nil {
		m.Boot, m.Up = a.o.Boot()
	}
	return m
}

// Wipe has memory that is not used any more given up. What it held is overwritten where the program runs with
// GODEBUG=clobberfree=1, as the unit has it.
func Wipe() {
	// Buffers in a sync.Pool, as those of package cbor, are let go of by the second collection only.
	runtime.GC()
	runtime.GC()
	debug.FreeOSMemory()
}

// Policy returns the policy with its defaults filled in.
func (a *Authenticator) Policy() session.Policy { return a.o.Policy }

// patience is how long the camera may take to be released before others are told that it is in use.
const patience = 2 * time.Second

// pose returns how a head is held, or nil where that is not known.
func pose(x face.Sample) *face.Pose {
	p, ok := face.PoseOf(x.Landmarks)
	if !ok {
		return nil
	}
	return &p
}

// shot is what one read of the camera came to.
type shot struct {
	frame face.Frame
	err   error
}

// watch opens the camera and hands its frames to each, until that returns true, the deadline has passed, the camera
// fails, or ctx ends. It returns when the camera has been released, or does not let go for a while; the lock stays
// taken until it does. The error is the camera's or ctx's; nil at the deadline.
func (a *Authenticator) watch(ctx context.Context, p Purpose, limit time.Duration, each func(face.Frame) (over bool)) error {
	if !a.looking.TryLock() {
		return ErrBusy
	}
	ctx, cancel := context.WithCancel(ctx)
	shots, want, released := make(chan shot), make(chan struct{}, 1), make(chan struct{})
	want <- struct{}{}
	a.watches.Add(1)
	go func() {
		defer a.watches.Done()
		defer close(released)
		defer a.looking.Unlock() // before others hear that the camera is free
		a.read(ctx, p, want, shots)
	}()
	defer func() {
		cancel()
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
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case s := <-shots:
			if err := errors.Join(s.err, ctx.Err()); err != nil {
				return err
			}
			if each(s.frame) {
				return nil
			}
			want <- struct{}{}
		}
	}
}

// read opens the camera and hands over a frame whenever one is wanted, until it fails or ctx ends.
func (a *Authenticator) read(ctx context.Context, p Purpose, want <-chan struct{}, shots chan<- shot) {
	hand := func(s shot) bool {
		select {
		case shots <- s:
			return s.err == nil
		case <-ctx.Done():
			return false
		}
	}
	stream, err := a.camera(ctx, p)
	if err != nil {
		hand(shot{err: fmt.Errorf("opening the camera: %w", err)})
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
			err = errors.New("the camera gives no more pictures")
		}
		if !hand(shot{f, err}) {
			return
		}
	}
}
