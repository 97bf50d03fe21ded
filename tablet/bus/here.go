// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/godbus/dbus/v5"
)

// greeters are the units of systemd in which a program of root verifies before there is a session, or for the person of
// a session: display managers, which also unlock the screen. So is the unit that the system calls displayManager.
var greeters = []string{
	"gdm.service", "gdm3.service", "lightdm.service", "sddm.service", "greetd.service", "lxdm.service", "xdm.service",
	"plasmalogin.service",
}

const displayManager = "display-manager.service"

var (
	// getty, for login on a console of the device.
	consoles     = regexp.MustCompile(`^(getty|autovt)@tty[0-9]+\.service$`)
	userManagers = regexp.MustCompile(`^user@[0-9]+\.service$`)
)

// Reasons why nobody is at the device, as far as known.
var (
	errElsewhere = errors.New("elsewhere")
	errManager   = errors.New("a program outside the sessions, which is no locker of a locked session")
)

// seated is a session in logind.
type seated struct {
	uid                    uint32
	class                  string
	remote, active, locked bool
	seat                   string
}

// here reports whether the person of a session is at the device and uses it now.
func (x seated) here() bool { return !x.remote && x.active && x.seat != "" }

// place is where a program runs whose person is at the device.
type place struct {
	greeter bool // a display manager, or login on a console
	// The program runs under the manager of the user, in no session. Nobody knows who started it, and from where: it
	// may unlock a session that is locked, and its failures do not count against the user's logins.
	manager bool
}

// here returns the place of a program that asks for a user. It refuses if that is not at the device, or if this is
// unknown. What counts is the session of the program itself, and not the sessions that its user has.
func (s *Service) here(by caller, user string) (p place, failed *dbus.Error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Patience)
	defer cancel()
	p, err := s.place(ctx, by, user)
	if err != nil {
		s.o.Log.Warn("denied", "uid", by.uid, "action", "a login from elsewhere", "reason", err)
		return p, failure(permissionDenied, "a face is looked for only for somebody at the device; use your password")
	}
	if s.lid(ctx, "LidClosed") && !s.lid(ctx, "Docked") {
		return p, failure(lidClosed, "the lid is closed, so the camera sees nobody; use your password")
	}
	return p, nil
}

// lid returns a property of logind about the lid. Without an answer it is false: a closed lid only costs time.
func (s *Service) lid(ctx context.Context, name string) (is bool) {
	var v dbus.Variant
	err := s.asks.Object("org.freedesktop.login1", "/org/freedesktop/login1").
		CallWithContext(ctx, propertiesInterface+".Get", 0, loginManager, name).Store(&v)
	return err == nil && v.Store(&is) == nil && is
}

func (s *Service) place(ctx context.Context, by caller, user string) (p place, err error) {
	var pid uint32
	reply := s.asks.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetConnectionUnixProcessID", 0, by.sender)
	if err := reply.Store(&pid); err != nil {
		return p, err
	}
	if pid == 0 { // of another namespace; for logind it would mean this daemon
		return p, errElsewhere
	}
	logind := s.asks.Object("org.freedesktop.login1", "/org/freedesktop/login1")
	var path dbus.ObjectPath
	err = logind.CallWithContext(ctx, loginManager+".GetSessionByPID", 0, pid).Store(&path)
	var answer dbus.Error
	switch {
	case err == nil:
		x, err := s.session(ctx, path)
		switch {
		case err != nil:
			return p, err
		case !x.here():
			return p, errElsewhere
		case x.class == "greeter":
			return place{greeter: true}, nil
		}
		return place{}, nil
	case !errors.As(err, &answer) || answer.Name != "org.freedesktop.login1.NoSessionForPID":
		return p, err
	}
	units, err := s.units(ctx, pid)
	if err != nil {
		return p, err
	}
	is := func(f func(string) bool) bool { return slices.ContainsFunc(units, f) }
	switch {
	case is(consoles.MatchString):
		if !by.root() {
			return p, errElsewhere
		}
		return place{greeter: true}, nil
	case is(userManagers.MatchString):
		// A program of root here is sudo, su or polkit's helper.
		if by.root() || is(func(u string) bool { return u != fmt.Sprintf("user@%d.service", by.uid) }) {
			return p, errManager
		}
		locked := false
		err := s.among(ctx, func(x seated) bool {
			mine := x.uid == by.uid
			locked = locked || mine && x.here() && x.locked
			return mine
		})
		if err == nil && !locked {
			err = errManager
		}
		return place{manager: true}, err
	case by.root() && is(func(u string) bool { return u == displayManager || slices.Contains(greeters, u) }):
		uid, err := UID(user)
		if err != nil {
			return p, err
		}
		// A display manager also serves remote displays, and does not tell for which display it asks.
		return place{greeter: true}, s.among(ctx, func(x seated) bool { return x.class == "greeter" || x.uid == uid })
	}
	return p, errElsewhere
}

// among returns nil if one of the sessions is at the device and none is remote.
func (s *Service) among(ctx context.Context, which func(seated) bool) error {
	var all []struct {
		ID   string
		UID  uint32
		User string
		Seat string
		Path dbus.ObjectPath
	}
	logind := s.asks.Object("org.freedesktop.login1", "/org/freedesktop/login1")
	reply := logind.CallWithContext(ctx, loginManager+".ListSessions", 0)
	if err := reply.Store(&all); err != nil {
		return err
	}
	here := false
	for _, l := range all {
		x, err := s.session(ctx, l.Path)
		switch {
		case err != nil:
			return err
		case !which(x):
		case x.remote:
			return errElsewhere
		default:
			here = here || x.here()
		}
	}
	if !here {
		return errElsewhere
	}
	return nil
}

// session asks logind about a session.
func (s *Service) session(ctx context.Context, path dbus.ObjectPath) (x seated, err error) {
	var all map[string]dbus.Variant
	err = s.asks.Object("org.freedesktop.login1", path).
		CallWithContext(ctx, propertiesInterface+".GetAll", 0, "org.freedesktop.login1.Session").
		Store(&all)
	if err != nil {
		return x, err
	}
	var user struct {
		UID  uint32
		Path dbus.ObjectPath
	}
	var seat struct {
		Name string
		Path dbus.ObjectPath
	}
	wanted := map[string]any{
		"Remote": &x.remote, "Active": &x.active, "Class": &x.class, "User": &user, "Seat": &seat,
		"LockedHint": &x.locked,
	}
	for name, to := range wanted {
		v, ok := all[name]
		if !ok {
			return x, errors.New("logind does not tell the " + name + " of a session")
		}
		if err := v.Store(to); err != nil {
			return x, err
		}
	}
	x.uid, x.seat = user.UID, seat.Name
	return x, nil
}

// units asks systemd for the names of the unit of a process.
func (s *Service) units(ctx context.Context, pid uint32) (names []string, err error) {
	var path dbus.ObjectPath
	systemd := s.asks.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
	reply := systemd.CallWithContext(ctx, "org.freedesktop.systemd1.Manager.GetUnitByPID", 0, pid)
	if err := reply.Store(&path); err != nil {
		return nil, err
	}
	var v dbus.Variant
	reply = s.asks.Object("org.freedesktop.systemd1", path).
		CallWithContext(ctx, propertiesInterface+".Get", 0, "org.freedesktop.systemd1.Unit", "Names")
	if err := reply.Store(&v); err != nil {
		return nil, err
	}
	err = v.Store(&names)
	return names, err
}
