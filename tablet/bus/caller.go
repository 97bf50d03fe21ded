// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

// Actions of polkit.
const (
	verifyAction = "org.faceauth.verify"
	enrollAction = "org.faceauth.enroll"
	otherAction  = "org.faceauth.other-user"
)

// Time limits for answers of the bus and polkit, and for a person whom polkit asks for a password.
const (
	busPatience    = 3 * time.Second
	personPatience = 2 * time.Minute
)

// waitingPerUser is the number of requests of one user that may wait for polkit at once.
const waitingPerUser = 4

// caller is the sender of a request.
type caller struct {
	sender string
	uid    uint32
}

func (c caller) root() bool { return c.uid == 0 }

// caller asks the bus for the sender of a request.
func (s *service) caller(sender string) (caller, *dbus.Error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Patience)
	defer cancel()
	c := caller{sender: sender}
	err := s.asks.BusObject().
		CallWithContext(ctx, "org.freedesktop.DBus.GetConnectionUnixUser", 0, c.sender).
		Store(&c.uid)
	if err != nil {
		return c, failure(permissionDenied, "the bus does not know who is calling; call again")
	}
	return c, nil
}

// subject returns the user of a request and whether this is the caller. An empty name means the caller.
func (c caller) subject(name string) (user string, self bool, failed *dbus.Error) {
	own, err := lookup(c.uid)
	switch {
	case name == "" && err != nil:
		return "", false, failure(invalidUser, "the caller is no user of this system; name the user")
	case name == "":
		return own, true, nil
	}
	return name, err == nil && name == own, nil
}

// UID returns the number of a user of this system, from all its sources. The error is a [user.UnknownUserError] if
// there is no such user.
func UID(name string) (uint32, error) {
	u, err := user.Lookup(name)
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) {
		u, err = getent(name, func(u *user.User) bool { return u.Username == name })
	}
	if err != nil {
		return 0, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	return uint32(uid), err
}

func lookup(uid uint32) (string, error) {
	number := strconv.FormatUint(uint64(uid), 10)
	u, err := user.LookupId(number)
	var unknown user.UnknownUserIdError
	if errors.As(err, &unknown) {
		u, err = getent(number, func(u *user.User) bool { return u.Uid == number })
	}
	if err != nil {
		return "", err
	}
	return u.Username, nil
}

// getentPatience is how long a source of users, such as a server, may take.
const getentPatience = 2 * time.Second

// getent asks the system for a user by name or number. Without cgo, package user reads only /etc/passwd, and knows
// nobody of LDAP, SSSD or systemd-homed.
func getent(key string, is func(*user.User) bool) (*user.User, error) {
	if key == "" || len(key) > 256 || strings.ContainsAny(key, ":\n\x00") {
		return nil, user.UnknownUserError(key)
	}
	ctx, cancel := context.WithTimeout(context.Background(), getentPatience)
	defer cancel()
	c := exec.CommandContext(ctx, "/usr/bin/getent", "passwd", "--", key)
	c.WaitDelay = time.Second
	out, err := c.Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 2) {
		return nil, fmt.Errorf("asking the system for a user: %w", err)
	}
	f := strings.Split(strings.TrimSuffix(string(out), "\n"), ":")
	if len(f) < 4 {
		return nil, user.UnknownUserError(key)
	}
	if u := (&user.User{Username: f[0], Uid: f[2]}); is(u) {
		return u, nil
	}
	return nil, user.UnknownUserError(key)
}

// may returns nil if polkit allows all actions to a caller. Ask lets polkit ask a person for a password.
func (s *service) may(c caller, ask bool, actions ...string) *dbus.Error {
	if c.root() {
		return nil
	}
	if !s.queue(c.uid) {
		return failure(tooManyRequests, "too many requests of this user are waiting for an answer; wait a few seconds")
	}
	defer s.unqueue(c.uid)
	for _, action := range actions {
		if ok := s.polkit(c, action, ask); !ok {
			s.o.Log.Warn("denied", "uid", c.uid, "action", action)
			return failure(permissionDenied,
				"polkit does not allow "+action+" here; an administrator may do it anywhere: run the command with sudo",
				action)
		}
	}
	return nil
}

// polkit asks polkit whether a caller may do something. Every unclear answer counts as no.
func (s *service) polkit(c caller, action string, ask bool) bool {
	patience, flags := s.o.Patience, uint32(0)
	if ask {
		patience, flags = personPatience, 1
	}
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	type subject struct {
		Kind    string
		Details map[string]dbus.Variant
	}
	var answer struct {
		Authorized bool
		Challenge  bool
		Details    map[string]string
	}
	err := s.asks.Object("org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority").CallWithContext(ctx,
		"org.freedesktop.PolicyKit1.Authority.CheckAuthorization", 0,
		subject{"system-bus-name", map[string]dbus.Variant{"name": dbus.MakeVariant(c.sender)}},
		action, map[string]string{}, flags, "").Store(&answer)
	if err != nil {
		s.o.Log.Error("polkit does not answer", "error", err)
		return false
	}
	return answer.Authorized
}

// queue counts a waiting request of a user, if there is room for one more.
func (s *service) queue(uid uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[uid] >= waitingPerUser {
		return false
	}
	s.waiting[uid]++
	return true
}

func (s *service) unqueue(uid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[uid]--; s.waiting[uid] == 0 {
		delete(s.waiting, uid)
	}
}
