// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/tablet"
)

// eyes are those of a daemon: a fresh one for each login, as one that was taken over could show again what it has seen.
// The next one opens its networks while nobody waits for it.
type eyes struct {
	config eye.Config
	device string
	log    *slog.Logger

	mu     sync.Mutex
	next   *eye.Eye
	closed bool
	told   bool // about the sandbox
}

func newEyes(c eye.Config, device string, log *slog.Logger) *eyes {
	return &eyes{config: c, device: device, log: log}
}

// take returns the eye that is ready, or starts one.
func (s *eyes) take(ctx context.Context) (*eye.Eye, error) {
	s.mu.Lock()
	e := s.next
	s.next = nil
	s.mu.Unlock()
	if e != nil {
		return e, nil
	}
	return eye.Start(ctx, s.config)
}

// renew starts the eye of the next login. It opens its networks while nobody waits for it.
func (s *eyes) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.next != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	e, err := eye.Start(ctx, s.config)
	if err != nil { // what needs no camera goes on: status, undo, forget
		s.log.Warn("no eye can be started, so nobody is recognised", "error", err)
		return
	}
	s.next = e
}

// looking is the stream of a login, with its eye.
type looking struct {
	*eye.Stream
	eye  *eye.Eye
	eyes *eyes
	once sync.Once
}

// Close ends the eye, and has another one ready.
func (l *looking) Close() error {
	l.once.Do(func() {
		l.eye.Close()
		l.eyes.renew()
	})
	return nil
}

// camera implements [tablet.Camera]. An eye that broke while it waited is replaced.
func (s *eyes) camera(ctx context.Context, p tablet.Purpose) (tablet.Stream, error) {
	gate := eye.Login
	if p == tablet.Enrolment {
		gate = eye.Enrol
	}
	for try := 1; ; try++ {
		e, err := s.take(ctx)
		if err != nil {
			return nil, err
		}
		// The end of ctx comes before this timeout. No more faces than eight are of use to a login.
		stream, err := e.Open(ctx, s.device, eye.Options{Gate: gate, Faces: 8, Live: true, Pace: true, Timeout: time.Minute})
		if err == nil {
			s.report(e.Report())
			return &looking{Stream: stream, eye: e, eyes: s}, nil
		}
		e.Close()
		if !eye.Broken(err) || try == 2 || ctx.Err() != nil {
			s.renew()
			return nil, err
		}
		s.log.Warn("the eye is started anew", "error", err)
	}
}

// report says once what the kernel has not to offer.
func (s *eyes) report(r eye.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.told && (r.Landlock == 0 || !r.Seccomp) {
		s.told = true
		s.log.Warn("the eye is not in the whole of its sandbox", "why", fmt.Sprintf("Landlock %d, seccomp %t", r.Landlock,
			r.Seccomp))
	}
}

// Close ends the eye that waits.
func (s *eyes) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.next != nil {
		s.next.Close()
		s.next = nil
	}
}
