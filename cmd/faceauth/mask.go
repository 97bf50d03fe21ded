// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"github.com/faceauth/faceauth/internal/input"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/office"
)

// masked is an error without the secrets in its text.
type masked struct {
	err  error
	text string
}

func (m *masked) Error() string { return m.text }
func (m *masked) Unwrap() error { return m.err }

// telling matches names in a query whose values are always secret.
var telling = regexp.MustCompile(`(?i)tok|pass|pwd|key|auth|secret|sig|user|usr|cred|session`)

// shortest is the length from which other values of a query are masked: a 1 occurs in many words.
const shortest = 4

// masker returns a function that removes the secrets of a source's URL from errors: user and password, the query, and
// its values. Foreign code decodes the stream, and may quote the URL.
func masker(source string) func(error) error {
	u, err := url.Parse(source)
	if !strings.Contains(source, "://") {
		return func(err error) error { return err }
	}
	if err != nil {
		return func(err error) error { return &masked{err, strings.ReplaceAll(err.Error(), source, "URL")} }
	}
	var secrets []string
	add := func(s string) {
		if s != "" {
			secrets = append(secrets, s, url.QueryEscape(s), url.PathEscape(s))
		}
	}
	if u.User != nil {
		password, _ := u.User.Password()
		add(password)
		if user := u.User.Username(); len(user) >= shortest || password == "" {
			add(user)
		}
		secrets = append(secrets, u.User.String())
	}
	if u.RawQuery != "" {
		secrets = append(secrets, u.RawQuery)
		for name, values := range u.Query() {
			for _, v := range values {
				if len(v) >= shortest || telling.MatchString(name) {
					add(v)
				}
			}
		}
	}
	// longer secrets first, because one may begin with another
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	pairs := []string{source, input.Shown(source)}
	for _, s := range slices.Compact(secrets) {
		pairs = append(pairs, s, "***")
	}
	replace := strings.NewReplacer(pairs...)
	return func(err error) error {
		if text := replace.Replace(err.Error()); text != err.Error() {
			return &masked{err, text}
		}
		return err
	}
}

// hidden is a camera whose errors contain no secrets.
type hidden struct {
	office.Stream
	hide func(error) error
}

// Look implements [face.Looker]: an office asks its cameras for more faces of a person without a name.
func (h hidden) Look() {
	if l, ok := h.Stream.(face.Looker); ok {
		l.Look()
	}
}

// Sure implements [face.Looker].
func (h hidden) Sure() {
	if l, ok := h.Stream.(face.Looker); ok {
		l.Sure()
	}
}

// Next implements [face.Stream].
func (h hidden) Next(ctx context.Context) (face.Frame, error) {
	f, err := h.Stream.Next(ctx)
	if err != nil {
		err = h.hide(err)
	}
	return f, err
}
