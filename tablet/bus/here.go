// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"errors"
	"regexp"
	"slices"

	"github.com/godbus/dbus/v5"
)

// greeters are the units of systemd in which a program of root verifies before there is a session, or for the person of
// a session: display managers, which also unlock the screen, and getty, for login on a console of the device.
var greeters = []string{
	"gdm.service", "gdm3.service", "lightdm.service", "sddm.service", "greetd.service", "lxdm.service", "xdm.service",
	"plasmalogin.service",
}

var (
	consoles     = regexp.MustCompile(`^(getty|autovt)@tty[0-9]+\.service$`)
	userManagers = regexp.MustCompile(`^user@[0-9]+\.service$`)
)

// errElsewhere means that the person is not at the device, as far as known.
var errElsewhere = errors.New("elsewhere")

// seated is a session in logind.
type seated struct {
	uid            uint32
	class          string
	remote, active bool
	seat           string
}

// here reports whether the person of a session is at the device and uses it now.
func (x seated) here() bool { return !x.remote && x.active && x.seat != "" }

// here returns the asker of a program of root that wants to verify a user: the user of the program's session or, at a
// greeter, root. It refuses if that is not a person at the device, or if this is unknown. faceauth's PAM module has the
// same rules.
func (s *Service) here(by caller, user string) (asker uint32, failed *dbus.Error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Patience)
	defer cancel()
	asker, err := s.asker(ctx, by, user)
	if err != nil {
		s.o.Log.Warn("denied", "uid", by.uid, "action", "a login from elsewhere", "reason", err)
		return 0, failure(permissionDenied, "a face is looked for only for somebody at the device; use your password")
	}
	return asker, nil
}

func (s *Service) asker(ctx context.Context, by caller, user string) (uint32, error) {
	var pid uint32
	reply := s.asks.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetConnectionUnixProcessID", 0, by.sender)
	if err := reply.Store(&pid); err != nil {
		return 0, err
	}
	logind := s.asks.Object("org.freedesktop.login1", "/org/freedesktop/login1")
	var path dbus.ObjectPath
	err := logind.CallWithContext(ctx, loginManager+".GetSessionByPID", 0, pid).Store(&path)
	var answer dbus.Error
	switch {
	case err == nil:
		x, err := s.session(ctx, path)
		switch {
		case err != nil:
			return 0, err
		case !x.here():
			return 0, errElsewhere
		case x.class == "greeter":
			return 0, nil
		}
		return x.uid, nil
	case !errors.As(err, &answer) || answer.Name != "org.freedesktop.login1.NoSessionForPID":
		return 0, err
	}
	unit, err := s.unit(ctx, pid)
	if err != nil {
		return 0, err
	}
	switch {
	case consoles.MatchString(unit):
		return 0, nil
	case userManagers.MatchString(unit):
		// A user service belongs to all sessions of the user.
		if err := logind.CallWithContext(ctx, loginManager+".GetUserByPID", 0, pid).Store(&path); err != nil {
			return 0, err
		}
		var uid uint32
		err := s.property(ctx, "org.freedesktop.login1", path, "org.freedesktop.login1.User", "UID", &uid)
		if err != nil {
			return 0, err
		}
		return uid, s.among(ctx, func(x seated) bool { return x.uid == uid })
	case slices.Contains(greeters, unit):
		uid, err := UID(user)
		if err != nil {
			return 0, err
		}
		// A display manager also serves remote displays, and does not tell for which display it asks.
		return 0, s.among(ctx, func(x seated) bool { return x.class == "greeter" || x.uid == uid })
	}
	return 0, errElsewhere
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

// unit asks systemd for the unit of a process.
func (s *Service) unit(ctx context.Context, pid uint32) (name string, err error) {
	var path dbus.ObjectPath
	systemd := s.asks.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
	reply := systemd.CallWithContext(ctx, "org.freedesktop.systemd1.Manager.GetUnitByPID", 0, pid)
	if err := reply.Store(&path); err != nil {
		return "", err
	}
	err = s.property(ctx, "org.freedesktop.systemd1", path, "org.freedesktop.systemd1.Unit", "Id", &name)
	return name, err
}

// property reads a property of an object.
func (s *Service) property(ctx context.Context, service string, path dbus.ObjectPath, of, name string, to any) error {
	var v dbus.Variant
	reply := s.asks.Object(service, path).CallWithContext(ctx, propertiesInterface+".Get", 0, of, name)
	if err := reply.Store(&v); err != nil {
		return err
	}
	return v.Store(to)
}
