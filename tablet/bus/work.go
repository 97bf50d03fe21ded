// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet"
	"github.com/godbus/dbus/v5"
)

// mostService is the greatest length of the name of a PAM service.
const mostService = 128

// claimAs claims the device for a PAM module, which names the asker, its service, and the challenge of the service and
// the mark of the account, or "".
func (s *Service) claimAs(by caller, name string, asker uint32, service, challenge, mark string) *dbus.Error {
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
	_, failed := s.here(by, name)
	if failed != nil {
		return failed
	}
	if failed := s.account(name, mark, false); failed != nil {
		return failed
	}
	return s.claimFor(&claim{by: by, user: name, asker: asker, service: service,
		challenge: c, still: s.stillHere(by, name)})
}

// claimSelf claims the device for a program that is no PAM module of root. Root may do so from everywhere: what root is
// told lets in nobody.
func (s *Service) claimSelf(by caller, name string) *dbus.Error {
	user, _, failed := by.subject(name)
	if failed != nil {
		return failed
	}
	if by.root() {
		return s.claimFor(&claim{by: by, user: user})
	}
	p, failed := s.here(by, user)
	if failed != nil {
		return failed
	}
	return s.claimFor(&claim{by: by, user: user, asker: by.uid, manager: p.manager,
		still: s.stillHere(by, user)})
}

// stillHere returns a check that the program of a claim is still at the device.
func (s *Service) stillHere(by caller, user string) func() error {
	return func() error {
		if _, failed := s.here(by, user); failed != nil {
			return errElsewhere
		}
		return nil
	}
}

// claimFor makes a claim the present one.
func (s *Service) claimFor(c *claim) *dbus.Error {
	by := c.by
	user, self, failed := by.subject(c.user)
	if failed != nil {
		return failed
	}
	if err := online.CheckName(user); err != nil {
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

func (s *Service) release(by caller) *dbus.Error {
	c, failed := s.claimed(by)
	if failed == nil {
		s.drop(c)
	}
	return failed
}

func (s *Service) verifyStart(by caller) *dbus.Error {
	c, failed := s.claimed(by)
	if failed != nil {
		return failed
	}
	return s.start(c, func(ctx context.Context, began func()) error {
		s.sessions.Add(1)
		begun := time.Now()
		stopped := false
		try := tablet.Attempt{User: c.user, Asker: c.foreign(), Service: c.service, Challenge: c.challenge,
			Still: c.still}
		r, err := s.a.Verify(ctx, try, func(r tablet.Result) {
			began()
			s.mu.Lock()
			if c.matched = (time.Time{}); r.Final && r.Word == tablet.Match {
				c.matched = time.Now()
			}
			s.mu.Unlock()
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
func (s *Service) say(ctx context.Context, c *claim, member, prefix string, r tablet.Result) (stopped bool) {
	word := busWord(prefix, r)
	if stopped = r.Final && ctx.Err() != nil; stopped && c.taken.Load() {
		word = prefix + "interrupted"
	}
	s.send(c, member, word, r.Final)
	return stopped
}

// confirm lets a client use its match, once and at once, if its person is still at the device.
func (s *Service) confirm(by caller) *dbus.Error {
	c, failed := s.claimed(by)
	if failed != nil {
		return failed
	}
	s.mu.Lock()
	at := c.matched
	c.matched = time.Time{}
	s.mu.Unlock()
	if at.IsZero() || time.Since(at) > s.o.Match {
		return failure(matchVoid, "there is no match of just now; look again")
	}
	if c.still != nil && c.still() != nil {
		return failure(permissionDenied, "a face counts only for somebody at the device; use your password")
	}
	return nil
}

func (s *Service) stop(by caller) *dbus.Error {
	c, failed := s.claimed(by)
	if failed == nil {
		s.halt(c)
	}
	return failed
}

// enrollStart starts an enrolment. Known says that the caller knows what a face of root is; more keeps the enrolled
// faces.
func (s *Service) enrollStart(by caller, known, more bool) *dbus.Error {
	c, failed := s.claimed(by)
	if failed != nil {
		return failed
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
	enroll := s.a.Enroll
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

const rootsFace = "a photograph of root's face could become root; log in as yourself and use sudo. If root must have a " +
	"face: sudo faceauth tablet enroll --user root --i-know"

// ending logs the end of work. If the client stops it, or ends, that is no error.
func ending(stopped bool, word string) string {
	if stopped && word == string(tablet.Failed) {
		return "stopped"
	}
	return word
}
