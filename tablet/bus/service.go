// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/enrolment"
	"github.com/faceauth/faceauth/tablet/profile"
	"github.com/faceauth/faceauth/tablet/session"
	"github.com/godbus/dbus/v5"
)

// ErrRunning is returned by [Serve] if another process has the name.
var ErrRunning = errors.New("another faceauth daemon is running")

// ErrBus is returned by [Serve] when the connection to the bus ends.
var ErrBus = errors.New("the system bus is gone")

// Options of [Serve].
type Options struct {
	Log  *slog.Logger  // audit: callers, requests and results; never a score or a face. Default none
	Idle time.Duration // Serve returns after this time without requests. Default never
	// Patience is the time limit for answers of the bus and polkit. Default 3 s.
	Patience time.Duration
	// Fprint also offers fprintd's interface, for programs that use only that: see [FprintName].
	Fprint bool
	// FleetUser is the user who may use [FleetInterface]. Default: the constant of this name.
	FleetUser string
}

// Service answers the calls of [Interface].
type Service struct {
	conn *dbus.Conn // for requests and answers
	asks *dbus.Conn // for questions to the bus, polkit and logind
	a    *tablet.Authenticator
	o    Options
	ctx  context.Context
	desk *desk

	running  sync.WaitGroup
	sessions atomic.Uint64

	mu       sync.Mutex
	claim    *claim            // the present claim, or nil
	waiting  map[uint32]int    // number of a user's requests that wait for polkit
	starting map[string]*claim // claims whose signals wait for an answer to the client
	asleep   bool              // the device is about to sleep
}

// Serve answers calls until ctx ends, or until there were no requests for some time; then it ends all work and returns
// nil. It uses two connections to the bus, which the caller closes: the first is for calls, and the second for
// questions to the bus, polkit and logind. Ready is called after the start. The error wraps [ErrRunning] or [ErrBus],
// or is that of the bus.
func Serve(ctx context.Context, conn, asks *dbus.Conn, a *tablet.Authenticator, o Options, ready func()) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Patience = cmp.Or(o.Patience, busPatience)
	o.FleetUser = cmp.Or(o.FleetUser, FleetUser)
	ctx, cancel := context.WithCancel(ctx)
	s := &Service{
		conn:     conn,
		asks:     asks,
		a:        a,
		o:        o,
		ctx:      ctx,
		waiting:  make(map[uint32]int),
		starting: make(map[string]*claim),
	}
	s.desk = newDesk(s)
	defer s.running.Wait()
	defer cancel()
	signals := make(chan *dbus.Signal, 16)
	asks.Signal(signals)
	defer asks.RemoveSignal(signals)
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		s.notices(signals)
	}()
	s.watchSleep()
	// From here on this package reads the messages itself: package dbus would start a goroutine for each call.
	messages := make(chan *dbus.Message, messagesRead)
	conn.Eavesdrop(messages)
	defer conn.Eavesdrop(nil) // otherwise closing the connection could panic
	early, err := s.requestName(messages, Name)
	if err != nil {
		return err
	}
	if o.Fprint {
		more, err := s.requestName(messages, FprintName)
		early = append(early, more...)
		switch {
		case errors.Is(err, ErrRunning):
			s.o.Log.Warn(
				"another program has the name " + FprintName + ", perhaps the service of a fingerprint reader; " +
					"faceauth answers only its own name")
		case err != nil:
			return err
		}
	}
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		for _, m := range early {
			s.desk.take(m, time.Now())
		}
		s.desk.read(messages)
	}()
	ready()
	return s.until(ctx)
}

// until waits for the end, and ends all work.
func (s *Service) until(ctx context.Context) error {
	var idle <-chan time.Time
	if s.o.Idle > 0 {
		ticker := time.NewTicker(min(s.o.Idle/4, time.Second))
		defer ticker.Stop()
		idle = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
		case <-s.conn.Context().Done():
			if ctx.Err() == nil {
				return ErrBus
			}
		case <-s.asks.Context().Done():
			if ctx.Err() == nil {
				return ErrBus
			}
		case now := <-idle:
			if s.held() != nil || s.desk.idle(now) < s.o.Idle {
				continue
			}
			s.o.Log.Info("nobody asks for anything")
			s.leave()
		}
		if held := s.held(); held != nil {
			s.drop(held)
		}
		return nil
	}
}

// name calls the bus about a name.
func (s *Service) name(method, name string, flags dbus.Flags, more ...any) *dbus.Message {
	body := append([]any{name}, more...)
	m := &dbus.Message{Type: dbus.TypeMethodCall, Flags: flags, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(
			dbus.ObjectPath("/org/freedesktop/DBus")), dbus.FieldInterface: dbus.MakeVariant("org.freedesktop.DBus"),
		dbus.FieldMember: dbus.MakeVariant(method), dbus.FieldDestination: dbus.MakeVariant("org.freedesktop.DBus"),
		dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)),
	}}
	s.conn.Send(m, nil)
	return m
}

// requestName requests a name, and returns calls that came before the answer of the bus.
func (s *Service) requestName(messages <-chan *dbus.Message, wanted string) (early []*dbus.Message, err error) {
	asked := s.name("RequestName", wanted, 0, uint32(dbus.NameFlagDoNotQueue)).Serial()
	timer := time.NewTimer(s.o.Patience)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil, fmt.Errorf("asking the bus for the name %s: it does not answer", wanted)
		case <-s.ctx.Done():
			return nil, s.ctx.Err()
		case m, ok := <-messages:
			if !ok {
				return nil, ErrBus
			}
			if m.Type == dbus.TypeMethodCall && len(early) < messagesRead {
				early = append(early, m)
				continue
			}
			if serial, _ := m.Headers[dbus.FieldReplySerial].Value().(uint32); serial != asked {
				continue
			}
			if m.Type == dbus.TypeError {
				name, _ := m.Headers[dbus.FieldErrorName].Value().(string)
				return nil, fmt.Errorf("asking the bus for the name %s: %w; check that the policy file is installed",
					wanted, dbus.Error{Name: name, Body: m.Body})
			}
			if len(m.Body) != 1 || m.Body[0] != uint32(dbus.RequestNameReplyPrimaryOwner) {
				return early, ErrRunning
			}
			return early, nil
		}
	}
}

// leave releases the name, and answers the calls that came before.
func (s *Service) leave() {
	s.name("ReleaseName", Name, dbus.FlagNoReplyExpected)
	if s.o.Fprint {
		s.name("ReleaseName", FprintName, dbus.FlagNoReplyExpected)
	}
	for range 20 {
		time.Sleep(50 * time.Millisecond)
		if s.desk.idle(time.Now()) >= 50*time.Millisecond && s.held() == nil {
			return
		}
	}
}

// told returns an error in the form of the bus. Details that an unprivileged caller must not see go to the log only.
func (s *Service) told(err error) *dbus.Error {
	var r *tablet.Refused
	switch {
	case err == nil:
		return nil
	case errors.As(err, &r) && r.Why == session.Wait:
		return failure(tooSoon, err.Error(), seconds(r.Wait))
	case errors.As(err, &r):
		return failure(passwordNeeded, err.Error())
	case errors.Is(err, profile.ErrUnknown):
		return failure(noProfile, "there is no profile of that user; make one: sudo faceauth tablet enroll --user NAME")
	case errors.Is(err, online.ErrName):
		return failure(invalidUser, "no user can have that name; check the spelling")
	case errors.Is(err, online.ErrJournal):
		return failure(internal,
			"the learned faces of so long ago cannot be taken back; forget the profile and enrol again")
	}
	s.o.Log.Error("failed", "error", err)
	return failure(internal, "something went wrong; the log tells the reason: journalctl -u faceauth")
}

// claimAs does the same as claimFor for a PAM module, which names the asker.
func (s *Service) claimAs(by caller, name string, asker uint32) *dbus.Error {
	if failed := s.root(by); failed != nil {
		return failed
	}
	return s.claimFor(by, name, asker, Interface)
}

// claimFor claims the device for a user through one of the interfaces. Asker is the user who wants to be that user.
func (s *Service) claimFor(by caller, name string, asker uint32, named string) *dbus.Error {
	user, self, failed := by.subject(name)
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
	c := &claim{by: by, named: named, user: user, asker: asker, at: time.Now()}
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

func (s *Service) release(by caller, named string) *dbus.Error {
	c, failed := s.claimed(by, named)
	if failed == nil {
		s.drop(c)
	}
	return failed
}

func (s *Service) verifyStart(by caller, named string) *dbus.Error {
	c, failed := s.claimed(by, named)
	if failed != nil {
		return failed
	}
	return s.start(c, func(ctx context.Context, began func()) error {
		s.sessions.Add(1)
		begun := time.Now()
		stopped := false
		r, err := s.a.Verify(ctx, c.user, c.foreign(), func(r session.Result) {
			began()
			stopped = r.Final && ctx.Err() != nil
			word := verifyWord(r)
			if stopped && c.taken.Load() {
				word = "verify-interrupted"
			}
			s.send(c, "VerifyStatus", word, r.Final)
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

func (s *Service) stop(by caller, named string) *dbus.Error {
	c, failed := s.claimed(by, named)
	if failed == nil {
		s.halt(c)
	}
	return failed
}

func (s *Service) enrollStart(by caller) *dbus.Error {
	c, failed := s.claimed(by, Interface)
	if failed != nil {
		return failed
	}
	c.idle.Stop() // polkit may be waiting for an administrator's password
	failed = s.may(c.by, true, enrollAction)
	c.idle.Reset(idleClaim)
	if failed != nil {
		return failed
	}
	if _, err := UID(c.user); err != nil {
		return failure(invalidUser, "no user of this system has that name; check the spelling")
	}
	return s.start(c, func(ctx context.Context, began func()) error {
		stage := 0
		stopped := false
		r, err := s.a.Enroll(ctx, c.user, func(r enrolment.Result) {
			began()
			stopped = r.Final && ctx.Err() != nil
			if r.Stage > stage {
				stage = r.Stage
				s.send(c, "EnrollStatus", took[r.Took], false)
			}
			word := enrollWord(r)
			if stopped && c.taken.Load() {
				word = "enroll-interrupted"
			}
			s.send(c, "EnrollStatus", word, r.Final)
		})
		if err == nil {
			s.o.Log.Info("enroll", "user", c.user, "uid", c.by.uid, "result", ending(stopped, string(r.Word)))
			if r.Word == enrolment.Enrolled {
				s.followChanged() // the fleet may get the faces
			}
		}
		return err
	})
}

// ending logs the end of work. If the client stops it, or ends, that is no error.
func ending(stopped bool, word string) string {
	if stopped && (word == string(session.Failed) || word == string(enrolment.Failed)) {
		return "stopped"
	}
	return word
}

// about returns the user of a request if the caller has the permission: for the caller itself that of some actions, for
// other users that of an administrator.
func (s *Service) about(by caller, name string, actions ...string) (user string, failed *dbus.Error) {
	user, self, failed := by.subject(name)
	if failed != nil {
		return "", failed
	}
	if !self {
		actions = append(actions, otherAction)
	}
	return user, s.may(by, true, actions...)
}

func (s *Service) status(by caller, name string) (map[string]dbus.Variant, *dbus.Error) {
	user, failed := s.about(by, name)
	if failed != nil {
		return nil, failed
	}
	st, err := s.a.Status(user)
	if err != nil {
		return nil, s.told(err)
	}
	return map[string]dbus.Variant{
		"enrolled": dbus.MakeVariant(st.Enrolled.Unix()),
		"labelled": dbus.MakeVariant(uint32(st.Labelled)),
		"learned":  dbus.MakeVariant(uint32(st.Learned)),
		"frozen":   dbus.MakeVariant(st.Frozen),
		"drifted":  dbus.MakeVariant(st.Drifted),
		"refusal":  dbus.MakeVariant(string(st.Refusal)),
		"wait":     dbus.MakeVariant(seconds(st.Wait)),
		"fleet":    dbus.MakeVariant(followingOf(st.Fleet)),
	}, nil
}

func (s *Service) undo(by caller, name string, since time.Time) (uint32, *dbus.Error) {
	user, failed := s.about(by, name)
	if failed != nil {
		return 0, failed
	}
	n, err := s.a.Undo(user, since)
	if err == nil {
		s.o.Log.Info("undo", "user", user, "uid", by.uid, "faces", n)
	}
	return uint32(n), s.told(err)
}

func (s *Service) freeze(by caller, name string, on bool) *dbus.Error {
	var actions []string
	if !on {
		actions = append(actions, enrollAction)
	}
	user, failed := s.about(by, name, actions...)
	if failed != nil {
		return failed
	}
	err := s.a.Freeze(user, on)
	if err == nil {
		s.o.Log.Info("freeze", "user", user, "uid", by.uid, "on", on)
	}
	return s.told(err)
}

func (s *Service) forget(by caller, name string) *dbus.Error {
	user, failed := s.about(by, name)
	if failed != nil {
		return failed
	}
	s.interruptFor(user)
	err := s.a.Forget(user)
	if err == nil {
		s.o.Log.Info("forget", "user", user, "uid", by.uid)
	}
	return s.told(err)
}

func (s *Service) users(by caller) ([]string, *dbus.Error) {
	if failed := s.may(by, true, otherAction); failed != nil {
		return nil, failed
	}
	users, err := s.a.Users()
	return users, s.told(err)
}

// root returns nil if the caller is root.
func (s *Service) root(by caller) *dbus.Error {
	if !by.root() {
		s.o.Log.Warn("denied", "uid", by.uid, "action", "root's")
		return failure(permissionDenied, "only root may do that; run the command with sudo")
	}
	return nil
}

func (s *Service) passwordUsed(by caller, user string, asker uint32) *dbus.Error {
	if failed := s.root(by); failed != nil {
		return failed
	}
	c := claim{by: by, user: user, asker: asker}
	err := s.a.Password(user, c.foreign())
	if err == nil {
		s.o.Log.Info("password used", "user", user, "asker", asker)
	}
	return s.told(err)
}

func (s *Service) health(by caller) (map[string]dbus.Variant, *dbus.Error) {
	if failed := s.root(by); failed != nil {
		return nil, failed
	}
	resident, err := Resident()
	if err != nil {
		return nil, s.told(err)
	}
	return map[string]dbus.Variant{
		"resident": dbus.MakeVariant(resident),
		"sessions": dbus.MakeVariant(s.sessions.Load()),
	}, nil
}

// seconds rounds up.
func seconds(d time.Duration) uint32 { return uint32((d + time.Second - 1) / time.Second) }

// Resident returns the resident memory of this process in bytes.
func Resident() (uint64, error) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/self/statm holds %q", b)
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	return pages * uint64(os.Getpagesize()), err
}
