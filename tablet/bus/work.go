// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/tablet"
	"github.com/godbus/dbus/v5"
)

// mostService is the greatest length of the name of a PAM service.
const mostService = 128

// claimAs claims the device for a PAM module, which names the asker, its service, and the challenge of the service and
// the mark of the account, or "".
func (s *service) claimAs(by caller, name string, asker uint32, service, challenge, mark string) *dbus.Error {
	if failed := s.root(by); failed != nil {
		return failed
	}
	if len(service) > mostService {
		return failure(internal, "the name of a service is too long")
	}
	c := tablet.Challenge(challenge)
	if c != "" && c != tablet.Turn && c != tablet.Blink {
		return failure(internal, "unknown challenge "+strconv.Quote(challenge)+"; use turn or blink, or none")
	}
	q := question{user: name, asker: asker, intent: c != "" || s.a.Policy().Challenge != ""}
	if _, failed := s.here(by, q); failed != nil {
		return failed
	}
	if failed := s.account(name, mark); failed != nil {
		return failed
	}
	return s.claimFor(&claim{by: by, user: name, asker: asker, service: service, challenge: c,
		still: s.stillHere(by, q)})
}

// claimSelf claims the device for a program that is no PAM module of root. Root may do so from everywhere: what root is
// told lets in nobody.
func (s *service) claimSelf(by caller, name string) *dbus.Error {
	user, _, failed := by.subject(name)
	if failed != nil {
		return failed
	}
	if by.root() {
		return s.claimFor(&claim{by: by, user: user})
	}
	q := question{user: user, asker: by.uid}
	p, failed := s.here(by, q)
	if failed != nil {
		return failed
	}
	return s.claimFor(&claim{by: by, user: user, asker: by.uid, manager: p.manager, still: s.stillHere(by, q)})
}

// stillHere returns a check that the program of a claim is still at the device.
func (s *service) stillHere(by caller, q question) func() error {
	return func() error {
		if _, failed := s.here(by, q); failed != nil {
			return errElsewhere
		}
		return nil
	}
}

// claimFor makes a claim the present one.
func (s *service) claimFor(c *claim) *dbus.Error {
	by := c.by
	user, self, failed := by.subject(c.user)
	if failed != nil {
		return failed
	}
	if err := face.CheckName(user); err != nil {
		return s.told(err)
	}
	if held := s.held(); held != nil && held.by.sender == by.sender {
		return failure(alreadyInUse, "this program has claimed the device already; release it first")
	}
	if self {
		failed = s.may(by, false, verifyAction)
	} else {
		failed = s.may(by, true, otherAction)
	}
	if failed != nil {
		return failed
	}
	c.user, c.at = user, time.Now()
	c.rank = c.rankOf()
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.idle = time.AfterFunc(idleClaim, func() { s.drop(c) })
	if failed := s.take(c); failed != nil {
		c.idle.Stop()
		c.cancel()
		return failed
	}
	if !s.watch(by.sender) {
		s.drop(c)
		return failure(permissionDenied, "the caller is gone")
	}
	// The client's time begins with the answer, so that a busy bus does not shorten it.
	s.mu.Lock()
	c.granted, c.at = true, time.Now()
	s.mu.Unlock()
	return nil
}

func (s *service) release(by caller) *dbus.Error {
	c, failed := s.claimed(by)
	if failed == nil {
		s.drop(c)
	}
	return failed
}

// verifyStart starts a verification. If asked is not nil, nothing is told until the client asks.
func (s *service) verifyStart(by caller, asked chan struct{}) *dbus.Error {
	c, failed := s.claimed(by)
	if failed != nil {
		return failed
	}
	s.mu.Lock()
	if !c.looking() {
		c.asked = asked
	}
	s.mu.Unlock()
	return s.start(c, func(ctx context.Context, began func()) error {
		s.sessions.Add(1)
		begun := time.Now()
		stopped := false
		try := tablet.Attempt{User: c.user, Asker: c.foreign(), Service: c.service, Challenge: c.challenge,
			Still: c.still, Asked: asked}
		r, err := s.a.Verify(ctx, try, func(r tablet.Result) {
			began()
			stopped = s.say(ctx, c, "VerifyStatus", verifying, r)
		})
		var refused *tablet.Refused
		switch {
		case errors.As(err, &refused):
			s.o.Log.Info("verify refused", "user", c.user, "uid", c.by.uid, "asker", c.asker, "reason",
				string(refused.Why))
		case err == nil:
			s.o.Log.Info("verify", "user", c.user, "uid", c.by.uid, "result", ending(stopped, string(r.Word)), "asker",
				c.asker, "reason", string(r.Reason), "took", time.Since(begun).Round(time.Millisecond))
		}
		return err
	})
}

// say sends a result of started work, and reports whether the work was stopped.
func (s *service) say(ctx context.Context, c *claim, member, prefix string, r tablet.Result) (stopped bool) {
	word := busWord(prefix, r)
	if stopped = r.Final && ctx.Err() != nil; stopped && c.taken.Load() {
		word = prefix + "interrupted"
	}
	s.send(c, member, word, r.Final)
	return stopped
}

// ask wants the verdict of what Prepare has started.
func (s *service) ask(by caller) *dbus.Error {
	c, failed := s.claimed(by)
	if failed != nil {
		return failed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.asked == nil || !c.looking() {
		return failure(claimDevice, "nothing is prepared, or it has ended; start again")
	}
	close(c.asked)
	c.asked = nil
	return nil
}

func (s *service) stop(by caller) *dbus.Error {
	c, failed := s.claimed(by)
	if failed == nil {
		s.halt(c)
	}
	return failed
}

// enrollStart starts an enrolment. Known says that the caller knows what a face of root is; more keeps the enrolled
// faces. Mark is that of the account, and binds the faces to it; only root knows it, others leave it empty.
func (s *service) enrollStart(by caller, known, more bool, mark string) *dbus.Error {
	c, failed := s.claimed(by)
	switch {
	case failed != nil:
		return failed
	case len(mark) > mostMark:
		return longMark()
	case mark != "" && !by.root():
		return s.root(by)
	}
	c.idle.Stop() // polkit may be waiting for an administrator's password
	failed = s.may(c.by, true, enrollAction)
	c.idle.Reset(idleClaim)
	if failed != nil {
		return failed
	}
	switch uid, err := UID(c.user); {
	case err != nil:
		return s.told(err)
	case uid == 0 && !(known && by.root()):
		return failure(permissionDenied, rootsFace)
	}
	enroll := func(ctx context.Context, user string, report func(tablet.Result)) (tablet.Result, error) {
		return s.a.Enroll(ctx, user, mark, report)
	}
	if more {
		enroll = s.a.AddLook
	}
	return s.start(c, func(ctx context.Context, began func()) error {
		stage := 0
		stopped := false
		r, err := enroll(ctx, c.user, func(r tablet.Result) {
			began()
			if r.Stage > stage {
				stage = r.Stage
				s.send(c, "EnrollStatus", took[r.Took], false)
			}
			stopped = s.say(ctx, c, "EnrollStatus", enrolling, r)
		})
		if err == nil {
			s.o.Log.Info("enroll", "user", c.user, "uid", c.by.uid, "result", ending(stopped, string(r.Word)), "more",
				more)
		}
		return err
	})
}

const rootsFace = "a photograph of root's face could become root; log in as yourself and use sudo. If root must have " +
	"a face: sudo faceauth login enroll --user root --i-know"

// ending logs the end of work. If the client stops it, or ends, that is no error.
func ending(stopped bool, word string) string {
	if stopped && word == string(tablet.Failed) {
		return "stopped"
	}
	return word
}
