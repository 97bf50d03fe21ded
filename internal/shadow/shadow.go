// SPDX-License-Identifier: Apache-2.0

// Package shadow tells one state of a user's account of the system from another, as the PAM module does (account in
// tablet/pam/pam_faceauth.c).
package shadow

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// patience is how long a source of users, such as a server, may take.
const patience = 5 * time.Second

// Mark returns the mark of a user's account: a hash of the hash of the password, or for users whose password is
// elsewhere, of name, number, comment and home. Only root can read the former.
func Mark(ctx context.Context, user string) (string, error) {
	entry, err := getent(ctx, "shadow", user, 2)
	if err == nil && entry[1] != "" && entry[1][0] != '*' {
		return crypt(entry[1]), nil
	}
	if err != nil && !errors.Is(err, errNone) {
		return "", err
	}
	if entry, err = getent(ctx, "passwd", user, 6); err != nil {
		return "", err
	}
	return crypt(strings.Join([]string{entry[0], entry[2], entry[4], entry[5]}, ":")), nil
}

var errNone = errors.New("the system has no such user")

// getent returns the first fields of a user's entry, at least n.
func getent(ctx context.Context, database, user string, n int) ([]string, error) {
	if user == "" || strings.ContainsAny(user, ":\n\x00") {
		return nil, fmt.Errorf("%q: %w", user, errNone)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := exec.CommandContext(ctx, "getent", database, "--", user)
	c.WaitDelay = time.Second
	out, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 2 {
		return nil, fmt.Errorf("%s: %w", user, errNone)
	}
	if err != nil {
		return nil, fmt.Errorf("asking the system for its user %s: %w", user, err)
	}
	fields := strings.Split(strings.TrimSuffix(string(out), "\n"), ":")
	if len(fields) < n || fields[0] != user { // getent also finds users by their number
		return nil, fmt.Errorf("%s: %w", user, errNone)
	}
	return fields, nil
}

const (
	salt   = "faceauth"
	rounds = 1000
)

// crypt is crypt(3) with the setting $5$rounds=1000$faceauth$ (U. Drepper, Unix crypt using SHA-256 and SHA-512).
func crypt(text string) string {
	key := []byte(text)
	sum := func(parts ...[]byte) []byte {
		h := sha256.New()
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	stretched := func(digest []byte, n int) (long []byte) {
		for len(long) < n {
			long = append(long, digest...)
		}
		return long[:n]
	}
	b := sum(key, []byte(salt), key)
	parts := [][]byte{key, []byte(salt), stretched(b, len(key))}
	for n := len(key); n > 0; n >>= 1 {
		if n&1 == 1 {
			parts = append(parts, b)
		} else {
			parts = append(parts, key)
		}
	}
	a := sum(parts...)
	p := stretched(sum([]byte(strings.Repeat(text, len(key)))), len(key))
	s := stretched(sum([]byte(strings.Repeat(salt, 16+int(a[0])))), len(salt))
	for i := range rounds {
		first, last := a, p
		if i%2 == 1 {
			first, last = p, a
		}
		parts := [][]byte{first}
		if i%3 != 0 {
			parts = append(parts, s)
		}
		if i%7 != 0 {
			parts = append(parts, p)
		}
		a = sum(append(parts, last)...)
	}
	const digits = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var out strings.Builder
	fmt.Fprintf(&out, "$5$rounds=%d$%s$", rounds, salt)
	put := func(x, y, z byte, n int) {
		for w := uint(x)<<16 | uint(y)<<8 | uint(z); n > 0; n-- {
			out.WriteByte(digits[w&63])
			w >>= 6
		}
	}
	for i := range 10 {
		at := [3]int{i, 10 + i, 20 + i}
		put(a[at[i%3*2%3]], a[at[(i%3*2+1)%3]], a[at[(i%3*2+2)%3]], 4)
	}
	put(0, a[31], a[30], 3)
	return out.String()
}
