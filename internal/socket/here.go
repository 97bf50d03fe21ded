// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

// displayManager is what the system calls the unit of its display manager.
const displayManager = "display-manager.service"

var (
	// getty, for login on a console of the device.
	consoles     = regexp.MustCompile(`^(getty|autovt)@tty[0-9]+\.service$`)
	userManagers = regexp.MustCompile(`^user@[0-9]+\.service$`)
	// The helper of polkit 127 and later is a service. Its name has the number and the user of the
	// process that asks.
	polkitService = regexp.MustCompile(
		`^polkit-agent-helper@[0-9]+-([0-9]+)(?:_[0-9]+)?-([0-9]+)\.service$`)
)

// Reasons why nobody is at the device, as far as known.
var (
	errElsewhere = errors.New("elsewhere")
	errManager   = errors.New(
		"a program outside the sessions: no locker of a locked session, and no challenge")
)

// origin is where a program runs that asks.
type origin int

const (
	atSeat  origin = iota // in a session at the device, or before there is one
	locking               // a locker under the manager of its user
	// outside the sessions, under a user's manager: nobody knows who started the program, and from
	// where, as whoever has that user's number can start programs there, and name their units.
	outside
)

// seated is a session in logind.
type seated struct {
	uid                    uint32
	class, kind            string
	remote, active, locked bool
	seat                   string
}

// here reports whether the person of a session is at the device and uses it now.
func (x seated) here() bool { return !x.remote && x.active && x.seat != "" }

// screen reports whether a notification can be seen in a session.
func (x seated) screen() bool { return x.kind == "x11" || x.kind == "wayland" || x.kind == "mir" }

// question is what a program wants to know.
type question struct {
	user   string
	asker  uint32 // who wants to be that user
	intent bool   // a challenge shows that the asker means it
	helped bool   // polkit's helper asks for the process
}

// here returns nil if a program that asks is at the device. It refuses if that is not so, or if
// this is unknown. What counts is the session of the program itself, and not the sessions that its
// user has. The failures of a program outside the sessions do not count against the user's logins.
func (s *service) here(by *call, q question) (from origin, err error) {
	from, err = s.place(by, q)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		s.o.Log.Error("logind or systemd does not answer", "error", err)
		return from, &Error{Name: internal, Message: "logind does not answer; use your password"}
	case err != nil:
		s.o.Log.Warn("denied", "uid", by.uid, "action", "a login from elsewhere", "reason", err)
		return from, &Error{Name: "Elsewhere"}
	}
	return from, nil
}

// Names on the bus of logind and systemd.
const (
	logind       = "org.freedesktop.login1"
	logindPath   = "/org/freedesktop/login1"
	loginManager = logind + ".Manager"
	systemd      = "org.freedesktop.systemd1"
)

// bus is a connection to the bus of logind and systemd, for one question.
type bus struct {
	*dbus.Conn
	ctx context.Context
}

// property asks for a property of an object.
func (b bus) property(name string, path dbus.ObjectPath, of, what string, to any) error {
	var v dbus.Variant
	if err := b.call(name, path, "org.freedesktop.DBus.Properties.Get", &v, of, what); err != nil {
		return err
	}
	return v.Store(to)
}

func (b bus) call(name string, path dbus.ObjectPath, method string, answer any, args ...any) error {
	return b.Object(name, path).CallWithContext(b.ctx, method, 0, args...).Store(answer)
}

func systemBus() string {
	return cmp.Or(os.Getenv("DBUS_SYSTEM_BUS_ADDRESS"), "unix:path=/run/dbus/system_bus_socket")
}

// place asks where the program at the other end of a connection runs. That program must still be
// there afterwards, so that its number is not that of another one.
func (s *service) place(by *call, q question) (from origin, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	if by.pid <= 0 { // of another namespace; for logind it would mean this daemon
		return atSeat, errElsewhere
	}
	var fd int
	err = control(by.conn, func(socket int) (err error) {
		fd, err = unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		return err
	})
	if errors.Is(err, unix.ENOPROTOOPT) { // before Linux 6.5
		fd, err = unix.PidfdOpen(int(by.pid), 0)
	}
	if err != nil {
		return atSeat, err
	}
	defer unix.Close(fd)
	conn, err := dbus.Connect(cmp.Or(s.o.Bus, systemBus()), dbus.WithContext(ctx))
	if err != nil {
		return atSeat, fmt.Errorf("connecting to the system bus: %w", errors.Join(err, ctx.Err()))
	}
	defer conn.Close()
	from, err = (bus{conn, ctx}).place(uint32(by.pid), by, q)
	if err != nil {
		return from, err
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0); n != 0 ||
		err != nil {
		return from, errors.New("the program has ended")
	}
	return from, nil
}

func (b bus) place(pid uint32, by *call, q question) (from origin, err error) {
	var path dbus.ObjectPath
	err = b.call(logind, logindPath, loginManager+".GetSessionByPID", &path, pid)
	var answer dbus.Error
	switch {
	case err == nil:
		x, err := b.session(path)
		// the number of who asked may be another's by now
		if err == nil && (!x.here() || q.helped && x.uid != q.asker) {
			err = errElsewhere
		}
		return atSeat, err
	case !errors.As(err, &answer) || answer.Name != "org.freedesktop.login1.NoSessionForPID":
		return atSeat, err
	}
	units, err := b.units(pid)
	if err != nil {
		return atSeat, err
	}
	is := func(f func(string) bool) bool { return slices.ContainsFunc(units, f) }
	switch {
	case is(consoles.MatchString):
		if !by.root() {
			err = errElsewhere
		}
		return atSeat, err
	case is(userManagers.MatchString):
		return b.managed(units, by, q)
	case by.root() && is(polkitService.MatchString) && q.intent && !q.helped:
		// What counts is where the process is that shows the question.
		m := polkitService.FindStringSubmatch(units[slices.IndexFunc(units,
			polkitService.MatchString)])
		pid, _ := strconv.ParseUint(m[1], 10, 32)
		asker, err := strconv.ParseUint(m[2], 10, 32)
		if err != nil || pid == 0 {
			return atSeat, errElsewhere
		}
		q.asker, q.helped = uint32(asker), true
		return b.place(uint32(pid), by, q)
	case by.root() && is(func(u string) bool { return u == displayManager || Manages(u) != "" }):
		uid, err := UID(q.user)
		if err != nil {
			return atSeat, err
		}
		return atSeat, b.used(func(x seated) bool {
			return x.class == "greeter" || x.uid == uid && x.locked
		})
	}
	return atSeat, errElsewhere
}

// managed returns nil for a program under a user's manager, where desktops start lockers and
// terminals. A locker may unlock the session that its user has at the device. A program of root is
// sudo, su or polkit's helper: it may ask with a challenge, while its asker's session has a screen
// on which this is shown, is used, and is not locked.
func (b bus) managed(units []string, by *call, q question) (from origin, err error) {
	owner, from := by.uid, locking
	if by.root() {
		owner, from = q.asker, outside
	}
	if (by.root() && !q.intent) || !slices.Contains(units, fmt.Sprintf("user@%d.service", owner)) {
		return from, errManager
	}
	return from, b.used(func(x seated) bool {
		return x.uid == owner && x.locked != by.root() && (from == locking || x.screen())
	})
}

// used returns nil if one of the sessions that are used at a seat now is one of these.
func (b bus) used(which func(seated) bool) error {
	var all []struct {
		ID   string
		UID  uint32
		User string
		Seat string
		Path dbus.ObjectPath
	}
	if err := b.call(logind, logindPath, loginManager+".ListSessions", &all); err != nil {
		return err
	}
	for _, l := range all {
		x, err := b.session(l.Path)
		if err == nil && x.here() && which(x) { // a session may have ended meanwhile
			return nil
		}
	}
	return cmp.Or(b.ctx.Err(), errElsewhere) // or nobody answers
}

// session asks logind about a session.
func (b bus) session(path dbus.ObjectPath) (x seated, err error) {
	var user struct {
		UID  uint32
		Path dbus.ObjectPath
	}
	var seat struct {
		Name string
		Path dbus.ObjectPath
	}
	var all map[string]dbus.Variant
	if err := b.call(logind, path, "org.freedesktop.DBus.Properties.GetAll", &all, logind+
		".Session"); err != nil {
		return x, err
	}
	for name, to := range map[string]any{
		"Remote": &x.remote, "Active": &x.active, "Class": &x.class, "Type": &x.kind, "User": &user,
		"Seat":       &seat,
		"LockedHint": &x.locked,
	} {
		if err := all[name].Store(to); err != nil {
			return x, fmt.Errorf("%s of a session: %w", name, err)
		}
	}
	x.uid, x.seat = user.UID, seat.Name
	return x, nil
}

// units asks systemd for the names of the unit of a process.
func (b bus) units(pid uint32) (names []string, err error) {
	var path dbus.ObjectPath
	err = b.call(systemd, "/org/freedesktop/systemd1", systemd+".Manager.GetUnitByPID", &path, pid)
	if err != nil {
		return nil, err
	}
	err = b.property(systemd, path, systemd+".Unit", "Names", &names)
	return names, err
}
