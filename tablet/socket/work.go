// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/tablet"
	"golang.org/x/sys/unix"
)

// Greatest lengths of the name of a PAM service and of a mark of an account.
const mostService, mostMark = 128, 256

// claim is the use of the camera for one request.
type claim struct {
	user    string
	by      caller
	foreign uint32 // number of a user who wants to be that user, or 0
	rank    int
	taken   atomic.Bool // another one took the camera
	ctx     context.Context
	cancel  context.CancelFunc
	ended   chan struct{}
	slept   time.Duration // how long the device had slept before
}

// Ranks of claims.
const (
	rankForeign = iota // a user who wants to be another user, as with su
	rankDirect         // a user's program, without PAM
	rankLogin          // a user's own login, or one at a greeter
)

// foreign returns the number of a user who wants to be another user, or 0. Root may be everybody, and so may people at
// a greeter, which runs as root.
func foreign(user string, asker uint32) uint32 {
	if uid, err := UID(user); asker == 0 || err == nil && uid == asker {
		return 0
	}
	return asker
}

// hold gives a claim the camera. The newest gets it, but a user who wants to be another user cannot take it from a
// user's own login, nor can a program that is no login. When the claim is interrupted, or its client is gone, its
// context ends.
func (s *service) hold(c *claim, lines *answers, asked chan struct{}) error {
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.ended, c.slept = make(chan struct{}), slept()
	for {
		s.mu.Lock()
		held := s.held
		if held == nil {
			s.held = c
			s.mu.Unlock()
			break
		}
		newer := held.rank > c.rank || held.rank == c.rank && held.by.number > c.by.number
		if newer && held.ctx.Err() == nil {
			s.mu.Unlock()
			c.cancel()
			return refusal{alreadyInUse, 0,
				"another login is using the camera; try again in a few seconds, or use your password"}
		}
		s.mu.Unlock()
		s.o.Log.Info("a newer claim takes the device", "uid", c.by.uid, "from", held.by.uid)
		held.interrupt()
	}
	lines.conn.SetReadDeadline(time.Time{})
	s.running.Go(func() { // ends when serve closes the connection
		defer c.cancel()
		for {
			line, err := lines.lines.ReadSlice('\n')
			if err != nil {
				return
			}
			if string(line) == "ask\n" && asked != nil {
				close(asked)
				asked = nil
			}
		}
	})
	s.running.Go(func() {
		for c.ctx.Err() == nil {
			select {
			case <-c.ctx.Done():
			case <-time.After(heartbeat):
				if lines.send("") != nil {
					c.cancel()
				}
			}
		}
	})
	return nil
}

// interrupt ends a claim for a reason that is not its client's, and waits until it has ended.
func (c *claim) interrupt() {
	c.taken.Store(true)
	c.cancel()
	<-c.ended
}

// release ends a claim when its work has ended.
func (s *service) release(c *claim) {
	c.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = nil
	close(c.ended)
}

// final returns the last word. What was seen before the device slept counts no more.
func (c *claim) final(word string) string {
	if c.taken.Load() && c.ctx.Err() != nil || slept()-c.slept > time.Second/10 {
		return "interrupted"
	}
	return word
}

// tell sends a result, and reports whether the work was stopped.
func (c *claim) tell(lines *answers, r tablet.Result, enrolling bool) (stopped bool) {
	word := wordOf(r, enrolling)
	if r.Final {
		word = c.final(word)
	}
	lines.say(word, r.Final)
	return r.Final && c.ctx.Err() != nil
}

// slept returns how long the device has slept since it was started.
func slept() time.Duration {
	var all, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil {
		return 0
	}
	return time.Duration(all.Nano() - awake.Nano())
}

// verify looks for a user until there is a verdict. If asked is not nil, nothing is told until the client asks.
func (s *service) verify(by caller, lines *answers, f []string, asked chan struct{}) (any, error) {
	name, asker, service, challenge, mark := f[0], f[1], f[2], tablet.Challenge(f[3]), f[4]
	user, err := by.subject(name)
	if err != nil {
		return nil, err
	}
	asks := by.uid
	pam := by.root() && asker != ""
	if !by.root() && (asker != "" || service != "" || challenge != "" || mark != "") {
		return nil, onlyRoot()
	}
	if pam {
		n, err := strconv.ParseUint(asker, 10, 32)
		if err != nil {
			return nil, refusal{internal, 0, "the asker is no number"}
		}
		asks = uint32(n)
	}
	switch {
	case len(service) > mostService || len(mark) > mostMark:
		return nil, refusal{internal, 0, "the name of a service or the mark of an account is too long"}
	case challenge != "" && challenge != tablet.Turn && challenge != tablet.Blink:
		return nil, refusal{internal, 0, "unknown challenge " + strconv.Quote(f[3]) + "; use turn or blink, or none"}
	}
	c := &claim{user: user, by: by, foreign: foreign(user, asks), rank: rankDirect}
	var still func() error
	if pam || !by.root() { // what root is told without PAM lets in nobody, so root may ask from everywhere
		q := question{user: user, asker: asks, intent: challenge != "" || s.a.Policy().Challenge != ""}
		managed, err := s.here(by, q)
		if err != nil {
			return nil, err
		}
		if managed {
			c.foreign = asks
		}
		still = func() error {
			_, err := s.here(by, q)
			return err
		}
	}
	switch {
	case c.foreign != 0:
		c.rank = rankForeign
	case by.root():
		c.rank = rankLogin
	}
	if mark != "" {
		if err := s.a.Account(user, mark); err != nil {
			return nil, err
		}
	}
	if err := s.hold(c, lines, asked); err != nil {
		return nil, err
	}
	defer s.release(c)
	begun := time.Now()
	stopped := false
	try := tablet.Attempt{User: user, Asker: c.foreign, Service: service, Challenge: challenge, Still: still, Asked: asked}
	r, err := s.a.Verify(c.ctx, try, func(r tablet.Result) {
		stopped = c.tell(lines, r, false)
	})
	var refused *tablet.Refused
	select {
	case <-asked:
	default:
		if asked != nil && err == nil { // the password was typed
			return nil, nil
		}
	}
	switch {
	case errors.As(err, &refused):
		s.o.Log.Info("verify refused", "user", user, "uid", by.uid, "asker", asks, "reason", string(refused.Why))
	case err == nil:
		s.o.Log.Info("verify", "user", user, "uid", by.uid, "result", ending(stopped, string(r.Word)), "asker", asks,
			"reason", string(r.Reason), "took", time.Since(begun).Round(time.Millisecond))
	}
	return nil, err
}

const rootsFace = "a photograph of root's face could become root; log in as yourself and use sudo. If root must have " +
	"a face: sudo faceauth login enroll --user root --i-know"

// enroll enrols a user. The mark of the account binds the faces to it.
func (s *service) enroll(by caller, lines *answers, f []string) (any, error) {
	name, kind, mark := f[0], f[1], f[2]
	user, err := by.subject(name)
	switch {
	case !by.root():
		return nil, onlyRoot()
	case err != nil:
		return nil, err
	case len(mark) > mostMark:
		return nil, refusal{internal, 0, "the mark of an account is too long"}
	}
	switch uid, err := UID(user); {
	case err != nil:
		return nil, err
	case uid == 0 && kind != "root":
		return nil, refusal{permissionDenied, 0, rootsFace}
	}
	c := &claim{user: user, by: by, rank: rankLogin}
	if err := s.hold(c, lines, nil); err != nil {
		return nil, err
	}
	defer s.release(c)
	stage := 0
	stopped := false
	report := func(r tablet.Result) {
		if r.Stage > stage {
			stage = r.Stage
			lines.say("took-"+string(r.Took), false)
		}
		stopped = c.tell(lines, r, true)
	}
	var r tablet.Result
	if kind == "look" {
		r, err = s.a.AddLook(c.ctx, user, report)
	} else {
		r, err = s.a.Enroll(c.ctx, user, mark, report)
	}
	if err == nil {
		s.o.Log.Info("enroll", "user", user, "uid", by.uid, "result", ending(stopped, string(r.Word)), "more",
			kind == "look")
	}
	return nil, err
}

// ending logs the end of work. If the client stops it, or ends, that is no error.
func ending(stopped bool, word string) string {
	if stopped && word == string(tablet.Failed) {
		return "stopped"
	}
	return word
}

func (s *service) status(by caller, _ *answers, f []string) (any, error) {
	user, err := by.subject(f[0])
	if err != nil {
		return nil, err
	}
	return s.a.Status(user)
}

func (s *service) history(by caller, _ *answers, f []string) (any, error) {
	user, err := by.subject(f[0])
	if err != nil {
		return nil, err
	}
	all, err := s.a.History(user)
	if all == nil {
		all = []tablet.Event{}
	}
	return all, err
}

func (s *service) undo(by caller, _ *answers, f []string) (any, error) {
	user, err := by.subject(f[0])
	if err != nil {
		return nil, err
	}
	since, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		return nil, refusal{internal, 0, "the time is no number"}
	}
	n, err := s.a.Undo(user, time.Unix(since, 0))
	if err == nil {
		s.o.Log.Info("undo", "user", user, "uid", by.uid, "faces", n)
	}
	return n, err
}

func (s *service) forget(by caller, _ *answers, f []string) (any, error) {
	user, err := by.subject(f[0])
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	if held != nil && held.user == user {
		held.interrupt() // it uses the faces
	}
	if err := s.a.Forget(user); err != nil {
		return nil, err
	}
	s.o.Log.Info("forget", "user", user, "uid", by.uid)
	return true, nil
}

// password records that a password was given. The module has checked that it was given at the device: a program that
// logs in may have ended before that could be asked here.
func (s *service) password(by caller, _ *answers, f []string) (any, error) {
	user, mark := f[0], f[2]
	asker, err := strconv.ParseUint(f[1], 10, 32)
	switch {
	case !by.root():
		return nil, onlyRoot()
	case err != nil || len(mark) > mostMark:
		return nil, refusal{internal, 0, "the asker is no number, or the mark of the account is too long"}
	}
	if err := s.a.Password(user, foreign(user, uint32(asker)), mark); err != nil {
		return nil, err
	}
	s.o.Log.Info("password used", "user", user, "asker", asker)
	return true, nil
}

// amHere tells whether a program is at the device. Root may ask from everywhere.
func (s *service) amHere(by caller, _ *answers, f []string) (any, error) {
	user, err := by.subject(f[0])
	if err == nil {
		_, err = s.here(by, question{user: user, asker: by.uid})
	}
	return true, err
}

func onlyRoot() error {
	return refusal{permissionDenied, 0, "only root may do that; run the command with sudo"}
}

// subject returns the user of a request. An empty name means the caller; root alone may name another user.
func (c caller) subject(name string) (user string, err error) {
	if name != "" && c.root() {
		return name, face.CheckName(name)
	}
	own, err := lookup(c.uid)
	switch {
	case err != nil:
		return "", refusal{invalidUser, 0, "the caller is no user of this system; name the user"}
	case name != "" && name != own:
		return "", onlyRoot()
	}
	return own, nil
}
