// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/profile"
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
	// Broken says why there is no authenticator, which is nil then: every request is refused with it. Default: there is
	// one.
	Broken error
}

// service answers the calls of [Interface].
type service struct {
	conn *dbus.Conn // for requests and answers
	asks *dbus.Conn // for questions to the bus, polkit and logind
	a    *tablet.Authenticator
	o    Options
	ctx  context.Context
	desk *desk

	running  sync.WaitGroup
	sessions atomic.Uint64

	mu      sync.Mutex
	claim   *claim         // the present claim, or nil
	waiting map[uint32]int // number of a user's requests that wait for polkit
	asleep  bool           // the device is about to sleep
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
	ctx, cancel := context.WithCancel(ctx)
	s := &service{
		conn:    conn,
		asks:    asks,
		a:       a,
		o:       o,
		ctx:     ctx,
		waiting: make(map[uint32]int),
	}
	s.desk = newDesk(s)
	defer s.running.Wait()
	defer cancel()
	signals := make(chan *dbus.Signal, 16)
	asks.Signal(signals)
	defer asks.RemoveSignal(signals)
	s.running.Go(func() {
		s.notices(signals)
	})
	s.watchSleep()
	// From here on this package reads the messages itself: package dbus would start a goroutine for each call.
	messages := make(chan *dbus.Message, messagesRead)
	conn.Eavesdrop(messages)
	defer conn.Eavesdrop(nil) // otherwise closing the connection could panic
	early, err := s.requestName(messages, Name)
	if err != nil {
		return err
	}
	s.running.Go(func() {
		for _, m := range early {
			s.desk.take(m, time.Now())
		}
		s.desk.read(messages)
	})
	s.running.Go(func() { s.watchdog(ctx) })
	ready()
	return s.until(ctx)
}

// until waits for the end, and ends all work.
func (s *service) until(ctx context.Context) error {
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

// told returns an error in the form of the bus. Details that an unprivileged caller must not see go to the log only.
func (s *service) told(err error) *dbus.Error {
	var r *tablet.Refused
	var gone user.UnknownUserError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &gone):
		return failure(invalidUser, "no user of this system has that name; check the spelling")
	case errors.As(err, &r) && r.Why == tablet.Wait:
		return failure(tooSoon, err.Error(), seconds(r.Wait))
	case errors.As(err, &r):
		return failure(passwordNeeded, err.Error())
	case errors.Is(err, profile.ErrUnknown):
		return failure(noProfile, "there is no profile of that user; make one: sudo faceauth login enroll --user NAME")
	case errors.Is(err, face.ErrName):
		return failure(invalidUser, "no user can have that name; check the spelling")
	case errors.Is(err, tablet.ErrLooks):
		return failure(tooManyLooks, err.Error())
	case errors.Is(err, online.ErrJournal):
		return failure(internal,
			"the learned faces of so long ago cannot be taken back; forget the profile and enrol again")
	}
	s.o.Log.Error("failed", "error", err)
	return failure(internal, "something went wrong; the log tells the reason: journalctl -u faceauth")
}

// root returns nil if the caller is root.
func (s *service) root(by caller) *dbus.Error {
	if !by.root() {
		s.o.Log.Warn("denied", "uid", by.uid, "action", "root's")
		return failure(permissionDenied, "only root may do that; run the command with sudo")
	}
	return nil
}

func (s *service) health(by caller) (map[string]dbus.Variant, *dbus.Error) {
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
