// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"time"
)

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
