// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/tablet"
)

// claim is the use of the camera for one request.
type claim struct {
	*call
	user    string
	foreign uint32 // number of a user who wants to be that user, or 0
	rank    int
	asked   chan struct{} // closed when the client asks for the verdict
	ctx     context.Context
	cancel  context.CancelCauseFunc
	ended   chan struct{}
}

// errTaken is why the context of a claim ends when another one takes the camera, or when the faces
// are forgotten.
var errTaken = errors.New("taken by another request")

// Ranks of claims.
const (
	rankForeign = iota // a user who wants to be another user, as with su
	rankDirect         // a user's program, without PAM
	rankLogin          // a user's own login, or one at a greeter
)

// foreign returns the number of a user who wants to be another user, or 0. Root may be everybody,
// and so may people at a greeter, which runs as root.
func foreign(user string, asker uint32) uint32 {
	if uid, err := UID(user); asker == 0 || err == nil && uid == asker {
		return 0
	}
	return asker
}

// hold gives a claim the camera. The newest gets it, but a user who wants to be another user cannot
// take it from a user's own login, nor can a program that is no login. When the claim is
// interrupted, or its client is gone, its context ends.
func (s *service) hold(c *claim) error {
	c.ctx, c.cancel = context.WithCancelCause(s.ctx)
	c.asked, c.ended = make(chan struct{}), make(chan struct{})
	for {
		s.mu.Lock()
		held := s.held
		if held == nil {
			s.held = c
			s.mu.Unlock()
			break
		}
		s.mu.Unlock()
		newer := held.rank > c.rank || held.rank == c.rank && held.number > c.number
		if newer && held.ctx.Err() == nil {
			c.cancel(nil)
			return &Error{Name: "AlreadyInUse"}
		}
		s.o.Log.Info("a newer claim takes the device", "uid", c.uid, "from", held.uid)
		held.interrupt()
	}
	c.conn.SetReadDeadline(time.Time{})
	s.running.Go(func() { // ends when serve closes the connection
		defer c.cancel(nil)
		for asked := false; ; {
			line, err := c.lines.ReadSlice('\n')
			if err != nil {
				return
			}
			if string(line) == "ask\n" && !asked {
				asked = true
				close(c.asked)
			}
		}
	})
	s.running.Go(func() {
		for c.ctx.Err() == nil {
			select {
			case <-c.ctx.Done():
			case <-time.After(heartbeat):
				if c.send("") != nil {
					c.cancel(nil)
				}
			}
		}
	})
	return nil
}

// interrupt ends a claim for a reason that is not its client's, and waits until it has ended.
func (c *claim) interrupt() {
	c.cancel(errTaken)
	<-c.ended
}

// release ends a claim when its work has ended.
func (s *service) release(c *claim) {
	c.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = nil
	close(c.ended)
}

// tell sends a result.
func (c *claim) tell(r tablet.Result, enrolling bool) {
	switch word := wordOf(r, enrolling); {
	case !r.Final:
		c.say(word)
	case context.Cause(c.ctx) == errTaken:
		c.end("interrupted")
	case context.Cause(c.ctx) == errObjected:
		c.end(string(tablet.Objected))
	default:
		c.end(word)
	}
}

// longestRecall is about how many bytes of attempts a person is told: a PAM module reads lines of
// at most 1,024.
const longestRecall = 500

// recall says which attempts came from outside the sessions, the latest first.
func (c *call) recall(attempts []tablet.Event) {
	text := "asked-outside"
	for i, e := range slices.Backward(attempts) {
		next := fmt.Sprintf(" %s (%s), %s", e.Service, e.From, e.At.Format("02 Jan 15:04"))
		if len(text)+len(next) > longestRecall {
			text += fmt.Sprintf("; +%d", i+1)
			break
		}
		if i < len(attempts)-1 {
			text += ";"
		}
		text += next
	}
	c.say(text)
}

// end sends the last word.
func (c *call) end(word string) {
	c.word = word
	c.send("end " + word)
}

// reasons are the words for the reasons of [tablet.Retry].
var reasons = map[face.Reason]string{
	face.TooSmall: "too-small", face.TooDark: "too-dark", face.TooBright: "too-bright",
	face.Flat:  "low-contrast",
	face.Moved: "blurred", face.Tilted: "tilted", face.CutOff: "no-vector", face.Covered: "covered",
	face.Blurred: "blurred", face.TurnedAway: "turned-away", face.NoVector: "no-vector",
	face.Unclear: "unclear", face.Incomplete: "no-vector",
}

func wordOf(r tablet.Result, enrolling bool) string {
	switch {
	case r.Word != tablet.Retry:
		return string(r.Word)
	case enrolling && r.Reason == face.TurnedAway: // people are asked to turn, but not so far
		return "turned-too-far"
	}
	return reasons[r.Reason]
}

// asked are the fields of a request to verify. Of what a program of a user names only the challenge
// counts, as a locker's: nobody vouches for the rest.
type asked struct {
	asker           uint32 // who wants to be the user
	pam             bool   // a PAM module of root asks
	service, mark   string
	challenge       tablet.Challenge
	command, origin string
}

func (c *call) asked(f []string) (q asked, err error) {
	asker, service, challenge, mark, command, origin := f[0], f[1], f[2], f[3], f[4], f[5]
	q = asked{asker: c.uid, challenge: tablet.Challenge(challenge)}
	if !c.root() {
		return q, nil
	}
	q.service, q.mark, q.command, q.origin = service, mark, command, origin
	if asker == "" {
		return q, nil
	}
	uid, err := strconv.ParseUint(asker, 10, 32)
	if err != nil {
		return q, noNumber
	}
	q.asker, q.pam = uint32(uid), true
	return q, nil
}

// verify looks for a user until there is a verdict. Nothing is told until the client asks; and
// nothing looks for a request from outside the sessions until the person at the device is told of
// it.
func (s *service) verify(by *call, user string, f []string) (any, error) {
	ask, err := by.asked(f)
	if err != nil {
		return nil, err
	}
	c := &claim{call: by, user: user, foreign: foreign(user, ask.asker), rank: rankDirect}
	try := tablet.Attempt{User: user, Challenge: ask.challenge, Service: ask.service,
		Mark: ask.mark, From: ask.origin}
	// what root is told without PAM lets in nobody, so root may ask from everywhere
	if ask.pam || !by.root() {
		q := question{user: user, asker: ask.asker, intent: ask.challenge != "" ||
			s.a.Policy().Challenge != ""}
		from, err := s.here(by, q)
		if err != nil {
			return nil, err
		}
		if from == locking {
			c.foreign = ask.asker
		}
		try.Outside = from == outside
		try.Still = func() error {
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
	if err := s.hold(c); err != nil {
		return nil, err
	}
	defer s.release(c)
	try.Asker, try.Asked, try.Recall = c.foreign, c.asked, c.recall
	var over func(word string)
	if try.Outside {
		try.Asked = nil // it is asked for at once
		try.Announce = func() (err error) {
			over, err = s.notify(c, ask.asker,
				Notice{Service: ask.service, Command: ask.command, From: ask.origin})
			return err
		}
	}
	begun := time.Now()
	r, err := s.a.Verify(c.ctx, try, func(r tablet.Result) { c.tell(r, false) })
	if over != nil {
		over(c.word)
	}
	log := s.o.Log.With("user", user, "uid", by.uid)
	origin := slog.Group("", "asker", ask.asker, "service", ask.service, "from", ask.origin,
		"outside", try.Outside)
	if context.Cause(c.ctx) == errObjected {
		err = s.a.Lock(user, c.foreign, ask.service, ask.origin)
		log.Warn("the person at the device did not ask; a face lets in nobody until the password "+
			"is given", origin,
			"error", err)
		return nil, err
	}
	var refused *tablet.Refused
	switch {
	case errors.As(err, &refused):
		log.Info("verify refused", origin, "reason", string(refused.Why))
	case err == nil && r.Word != tablet.Unasked: // then the password was typed
		log.Info("verify", "result", string(r.Word), "stopped", c.ctx.Err() != nil, origin,
			"reason", string(r.Reason), "took", time.Since(begun).Round(time.Millisecond))
	}
	return nil, err
}

// enroll enrols a user. The mark of the account binds the faces to it.
func (s *service) enroll(by *call, user string, f []string) (any, error) {
	mark, more := f[0], f[1] == "true"
	switch uid, err := UID(user); {
	case !by.root():
		return nil, onlyRoot
	case err != nil:
		return nil, err
	case uid == 0:
		return nil, &Error{Name: "PermissionDenied",
			Message: "a photograph of root's face could become root, so root is " +
				"not enrolled; log in as yourself and use sudo"}
	}
	c := &claim{call: by, user: user, rank: rankLogin}
	if err := s.hold(c); err != nil {
		return nil, err
	}
	defer s.release(c)
	stage := 0
	r, err := s.a.Enroll(c.ctx, user, mark, more, func(r tablet.Result) {
		if r.Stage > stage {
			stage = r.Stage
			c.say("took-" + string(r.Took))
		}
		c.tell(r, true)
	})
	if err == nil {
		s.o.Log.Info("enroll", "user", user, "uid", by.uid, "result", string(r.Word), "stopped",
			c.ctx.Err() != nil, "more", more)
	}
	return nil, err
}

func (s *service) status(by *call, user string, _ []string) (any, error) {
	st, err := s.a.Status(user)
	if err == nil && !by.root() {
		_, elsewhere := s.place(by, question{user: user, asker: by.uid})
		st.Here = elsewhere == nil
	}
	return st, err
}

func (s *service) history(_ *call, user string, _ []string) (any, error) {
	all, err := s.a.History(user)
	return append([]tablet.Event{}, all...), err
}

func (s *service) undo(by *call, user string, f []string) (any, error) {
	since := f[0]
	seconds, err := strconv.ParseInt(since, 10, 64)
	if err != nil {
		return nil, noNumber
	}
	n, err := s.a.Undo(user, time.Unix(seconds, 0))
	if err == nil {
		s.o.Log.Info("undo", "user", user, "uid", by.uid, "faces", n)
	}
	return n, err
}

func (s *service) forget(by *call, user string, _ []string) (any, error) {
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

// password records that a password was given. The module has checked that it was given at the
// device: a program that logs in may have ended before that could be asked here.
func (s *service) password(by *call, user string, f []string) (any, error) {
	asker, mark, outside := f[0], f[1], f[2] == "outside"
	uid, err := strconv.ParseUint(asker, 10, 32)
	switch {
	case !by.root():
		return nil, onlyRoot
	case err != nil:
		return nil, noNumber
	}
	giver := foreign(user, uint32(uid))
	if outside {
		err = s.a.PasswordOutside(user, giver)
	} else {
		err = s.a.Password(user, giver, mark)
	}
	if err != nil {
		return nil, err
	}
	s.o.Log.Info("password used", "user", user, "asker", asker, "outside", outside)
	return true, nil
}

// subject returns the user of a request. An empty name means the caller; root alone may name
// another user.
func (c *call) subject(name string) (user string, err error) {
	if name != "" && c.root() {
		return name, face.CheckName(name)
	}
	own, err := lookup(c.uid)
	switch {
	case err != nil:
		return "", noUser
	case name != "" && name != own:
		return "", onlyRoot
	}
	return own, nil
}
