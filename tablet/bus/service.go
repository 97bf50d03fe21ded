package bus

import (
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
	"github.com/godbus/dbus/v5/introspect"
	"github.com/godbus/dbus/v5/prop"
)

// ErrRunning is returned by [Serve] where another process has the name.
var ErrRunning = errors.New("another faceauth daemon is running")

// ErrBus is returned by [Serve] when the bus goes away.
var ErrBus = errors.New("the system bus is gone")

// Options of [Serve].
type Options struct {
	Log *slog.Logger // audit: who asked for what, and what came of it; never a score or a face. Default none
}

// Service answers the calls of [Interface]. Its methods are those of the interface, for package dbus.
type Service struct {
	conn *dbus.Conn
	a    *tablet.Authenticator
	o    Options
	ctx  context.Context

	running  sync.WaitGroup
	sessions atomic.Uint64

	mu      sync.Mutex
	claim   *claim         // the one there is, or nil
	waiting map[uint32]int // requests of a user that wait for polkit
}

// Serve answers calls on a connection to the bus until ctx ends, and then ends what was started and returns nil. Ready is
// called when it has begun. The error wraps [ErrRunning] or [ErrBus], or is that of the bus.
func Serve(ctx context.Context, conn *dbus.Conn, a *tablet.Authenticator, o Options, ready func()) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Service{conn: conn, a: a, o: o, ctx: ctx, waiting: make(map[uint32]int)}
	defer s.running.Wait()
	defer cancel()
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	defer conn.RemoveSignal(signals)
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		s.departures(signals)
	}()
	if err := s.export(); err != nil {
		return err
	}
	reply, err := conn.RequestName(Name, dbus.NameFlagDoNotQueue)
	if err != nil {
		return fmt.Errorf("asking the bus for the name %s: %w; is the policy file installed?", Name, err)
	}
	if reply != dbus.RequestNameReplyPrimaryOwner {
		return ErrRunning
	}
	ready()
	select {
	case <-ctx.Done():
		if held := s.held(); held != nil {
			s.drop(held)
		}
		return nil
	case <-conn.Context().Done():
		if ctx.Err() != nil {
			return nil
		}
		return ErrBus
	}
}

func (s *Service) export() error {
	if err := s.conn.Export(s, Path, Interface); err != nil {
		return err
	}
	if err := s.conn.Export(introspect.Introspectable(XML), Path, "org.freedesktop.DBus.Introspectable"); err != nil {
		return err
	}
	_, err := prop.Export(s.conn, Path, prop.Map{Interface: {
		"EnrollStages": {Value: uint32(enrolment.Stages), Emit: prop.EmitConst},
	}})
	return err
}

// told returns an error of this program in the words of the bus. What an unprivileged caller need not know goes to the
// log alone.
func (s *Service) told(err error) *dbus.Error {
	var r *tablet.Refused
	switch {
	case err == nil:
		return nil
	case errors.As(err, &r) && r.Why == session.Wait:
		return failure(tooSoon, err.Error())
	case errors.As(err, &r):
		return failure(passwordNeeded, err.Error())
	case errors.Is(err, profile.ErrUnknown):
		return failure(noProfile, "there is no profile of that user")
	case errors.Is(err, online.ErrName):
		return failure(invalidUser, "no user can have that name")
	case errors.Is(err, online.ErrJournal):
		return failure(internal, "what was learned cannot be taken back so far; forget the profile and enrol again")
	}
	s.o.Log.Error("failed", "error", err)
	return failure(internal, "something went wrong; the log says what")
}

// Claim implements the interface.
func (s *Service) Claim(name string, sender dbus.Sender) *dbus.Error {
	by, failed := s.caller(sender)
	if failed != nil {
		return failed
	}
	user, self, failed := by.subject(name)
	if failed != nil {
		return failed
	}
	if err := online.CheckName(user); err != nil {
		return s.told(err)
	}
	if _, failed := s.claimed(sender); failed == nil {
		return failure(alreadyInUse, "this program has claimed the device already")
	}
	if self {
		failed = s.may(by, false, verifyAction)
	} else {
		failed = s.may(by, true, otherAction)
	}
	if failed != nil {
		return failed
	}
	c := &claim{by: by, user: user}
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
	return nil
}

// Release implements the interface.
func (s *Service) Release(sender dbus.Sender) *dbus.Error {
	c, failed := s.claimed(sender)
	if failed == nil {
		s.drop(c)
	}
	return failed
}

// VerifyStart implements the interface.
func (s *Service) VerifyStart(sender dbus.Sender) *dbus.Error {
	c, failed := s.claimed(sender)
	if failed != nil {
		return failed
	}
	return s.start(c, func(ctx context.Context, began func()) error {
		s.sessions.Add(1)
		begun := time.Now()
		stopped := false
		r, err := s.a.Verify(ctx, c.user, func(r session.Result) {
			began()
			stopped = r.Final && ctx.Err() != nil
			s.send(c, "VerifyStatus", verifyWord(r), r.Final)
		})
		var refused *tablet.Refused
		switch {
		case errors.As(err, &refused):
			s.o.Log.Info("verify refused", "user", c.user, "uid", c.by.uid, "reason", string(refused.Why))
		case err == nil:
			s.o.Log.Info("verify", "user", c.user, "uid", c.by.uid, "result", ending(stopped, string(r.Word)), "reason", string(r.Reason), "took", time.Since(begun).Round(time.Millisecond))
		}
		return err
	})
}

// VerifyStop implements the interface.
func (s *Service) VerifyStop(sender dbus.Sender) *dbus.Error { return s.stop(sender) }

func (s *Service) stop(sender dbus.Sender) *dbus.Error {
	c, failed := s.claimed(sender)
	if failed == nil {
		s.halt(c)
	}
	return failed
}

// EnrollStart implements the interface.
func (s *Service) EnrollStart(sender dbus.Sender) *dbus.Error {
	c, failed := s.claimed(sender)
	if failed != nil {
		return failed
	}
	c.idle.Stop() // an administrator may be asked for a password
	failed = s.may(c.by, true, enrollAction)
	c.idle.Reset(idleClaim)
	if failed != nil {
		return failed
	}
	if _, err := UID(c.user); err != nil {
		return failure(invalidUser, "no user of this system has that name")
	}
	return s.start(c, func(ctx context.Context, began func()) error {
		stage := 0
		stopped := false
		r, err := s.a.Enroll(ctx, c.user, func(r enrolment.Result) {
			began()
			stopped = r.Final && ctx.Err() != nil
			if r.Stage > stage {
				stage = r.Stage
				s.send(c, "EnrollStatus", "enroll-stage-passed", false)
			}
			s.send(c, "EnrollStatus", enrollWord(r), r.Final)
		})
		if err == nil {
			s.o.Log.Info("enroll", "user", c.user, "uid", c.by.uid, "result", ending(stopped, string(r.Word)))
		}
		return err
	})
}

// ending says in the log how something ended: a client that stops it, or goes, is no fault.
func ending(stopped bool, word string) string {
	if stopped && (word == string(session.Failed) || word == string(enrolment.Failed)) {
		return "stopped"
	}
	return word
}

// EnrollStop implements the interface.
func (s *Service) EnrollStop(sender dbus.Sender) *dbus.Error { return s.stop(sender) }

// about returns the user that a request is about, where the caller may ask for that: for themselves with leave for
// some actions, for others with that of an administrator.
func (s *Service) about(name string, sender dbus.Sender, actions ...string) (user string, by caller, failed *dbus.Error) {
	by, failed = s.caller(sender)
	if failed != nil {
		return "", by, failed
	}
	user, self, failed := by.subject(name)
	if failed != nil {
		return "", by, failed
	}
	if !self {
		actions = append(actions, otherAction)
	}
	return user, by, s.may(by, true, actions...)
}

// Status implements the interface.
func (s *Service) Status(name string, sender dbus.Sender) (map[string]dbus.Variant, *dbus.Error) {
	user, _, failed := s.about(name, sender)
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
		"wait":     dbus.MakeVariant(uint32((st.Wait + time.Second - 1) / time.Second)),
	}, nil
}

// Undo implements the interface.
func (s *Service) Undo(name string, since int64, sender dbus.Sender) (uint32, *dbus.Error) {
	user, by, failed := s.about(name, sender)
	if failed != nil {
		return 0, failed
	}
	n, err := s.a.Undo(user, time.Unix(since, 0))
	if err == nil {
		s.o.Log.Info("undo", "user", user, "uid", by.uid, "faces", n)
	}
	return uint32(n), s.told(err)
}

// Freeze implements the interface.
func (s *Service) Freeze(name string, on bool, sender dbus.Sender) *dbus.Error {
	var actions []string
	if !on {
		actions = append(actions, enrollAction)
	}
	user, by, failed := s.about(name, sender, actions...)
	if failed != nil {
		return failed
	}
	err := s.a.Freeze(user, on)
	if err == nil {
		s.o.Log.Info("freeze", "user", user, "uid", by.uid, "on", on)
	}
	return s.told(err)
}

// Forget implements the interface.
func (s *Service) Forget(name string, sender dbus.Sender) *dbus.Error {
	user, by, failed := s.about(name, sender)
	if failed != nil {
		return failed
	}
	err := s.a.Forget(user)
	if err == nil {
		s.o.Log.Info("forget", "user", user, "uid", by.uid)
	}
	return s.told(err)
}

// Users implements the interface.
func (s *Service) Users(sender dbus.Sender) ([]string, *dbus.Error) {
	by, failed := s.caller(sender)
	if failed != nil {
		return nil, failed
	}
	if failed := s.may(by, true, otherAction); failed != nil {
		return nil, failed
	}
	users, err := s.a.Users()
	return users, s.told(err)
}

// root returns nil where root calls.
func (s *Service) root(sender dbus.Sender) *dbus.Error {
	by, failed := s.caller(sender)
	if failed == nil && !by.root() {
		s.o.Log.Warn("denied", "uid", by.uid, "action", "root's")
		return failure(permissionDenied, "only root may do that")
	}
	return failed
}

// PasswordUsed implements the interface.
func (s *Service) PasswordUsed(user string, sender dbus.Sender) *dbus.Error {
	if failed := s.root(sender); failed != nil {
		return failed
	}
	err := s.a.Password(user)
	if err == nil {
		s.o.Log.Info("password used", "user", user)
	}
	return s.told(err)
}

// Health implements the interface.
func (s *Service) Health(sender dbus.Sender) (map[string]dbus.Variant, *dbus.Error) {
	if failed := s.root(sender); failed != nil {
		return nil, failed
	}
	resident, err := Resident()
	if err != nil {
		return nil, s.told(err)
	}
	return map[string]dbus.Variant{"resident": dbus.MakeVariant(resident), "sessions": dbus.MakeVariant(s.sessions.Load())}, nil
}

// Resident returns how much memory of this process is resident, in bytes.
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
