// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// UID returns the number of a user of this system, from all its sources. The error is a
// [user.UnknownUserError] if there is no such user.
func UID(name string) (uint32, error) {
	u, err := user.Lookup(name)
	if errors.As(err, new(user.UnknownUserError)) {
		u, err = found(name, 0)
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
	if errors.As(err, new(user.UnknownUserIdError)) {
		u, err = found(number, 2)
	}
	if err != nil {
		return "", err
	}
	return u.Username, nil
}

// found asks the system for a user by a field of the entry: getent finds users both by name and by
// number.
func found(key string, field int) (*user.User, error) {
	e, err := entry("passwd", key)
	if err == nil && e[field] != key {
		err = user.UnknownUserError(key)
	}
	if err != nil {
		return nil, err
	}
	return &user.User{Username: e[0], Uid: e[2]}, nil
}

// Mark returns the mark of a user's account, which tells one state of it from another, as the PAM
// module makes it: a hash of the hash of the password, or for users whose password is elsewhere, of
// name, number, comment and home. Only root can read the former.
func Mark(name string) (string, error) {
	e, err := entry("shadow", name)
	if err == nil && e[1] != "" && e[1][0] != '*' {
		return hashed(e[1]), nil
	}
	if err == nil || errors.As(err, new(user.UnknownUserError)) {
		e, err = entry("passwd", name)
	}
	switch {
	case err != nil:
		return "", err
	case e[0] != name:
		return "", user.UnknownUserError(name)
	}
	return hashed(e[0] + ":" + e[2] + ":" + e[4] + ":" + e[5]), nil
}

// hashed returns a hash of 64 bits: fewer than the salt of a password has, so no password can be
// guessed by it.
func hashed(text string) string {
	h := fnv.New64a()
	h.Write([]byte(text))
	return fmt.Sprintf("%016x", h.Sum64())
}

// getents bounds how many processes ask at once: users without a name could start more than the
// unit may have.
var getents = make(chan struct{}, 8)

// entry asks the system for the entry of a user, by name or number: six fields or more. Without
// cgo, package user reads only /etc/passwd, and knows nobody of LDAP, SSSD or systemd-homed.
func entry(database, key string) ([]string, error) {
	if key == "" || len(key) > 256 || strings.ContainsAny(key, ":\n\x00") {
		return nil, user.UnknownUserError(key)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case getents <- struct{}{}:
		defer func() { <-getents }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c := exec.CommandContext(ctx, "/usr/bin/getent", database, "--", key)
	c.WaitDelay = time.Second
	out, err := c.Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 2) {
		return nil, fmt.Errorf("asking the system for a user: %w", err)
	}
	f := strings.Split(strings.TrimSuffix(string(out), "\n"), ":")
	if len(f) < 6 {
		return nil, user.UnknownUserError(key)
	}
	return f, nil
}
