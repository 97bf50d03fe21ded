// SPDX-License-Identifier: Apache-2.0

// Package input tells cameras, URLs and files apart, without opening them. facedet.Open opens them.
package input

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Schemes are the schemes of URLs that can be opened.
var Schemes = []string{"http", "https", "rtsp", "rtsps"}

// IsURL reports whether a name is a URL of one of the [Schemes].
func IsURL(name string) bool {
	scheme, _, found := strings.Cut(name, "://")
	return found && slices.Contains(Schemes, strings.ToLower(scheme))
}

// IsRecording reports whether name is that of a file or folder, and not of a camera or a URL.
func IsRecording(name string) bool {
	_, camera := Camera(name)
	return !camera && !strings.Contains(name, "://")
}

// Camera returns the number in "0" or "/dev/video0". A file or folder of such a name is no camera.
func Camera(name string) (int, bool) {
	info, err := os.Stat(name)
	if err == nil && (info.Mode().IsRegular() || info.IsDir()) {
		return 0, false
	}
	i, err := strconv.Atoi(strings.TrimPrefix(name, "/dev/video"))
	return i, err == nil && i >= 0
}

// Unopened returns the error about a file or folder that cannot be opened, without the name of the
// system call.
func Unopened(name string, err error) error {
	var call *fs.PathError
	if errors.As(err, &call) {
		err = call.Err
	}
	return fmt.Errorf("opening source %s: %w", cmp.Or(name, `""`), err)
}

// Shown returns the name of a source for messages, reports and logs. For a URL this is its scheme,
// its host and its path. User, password and query are left out, because cameras have tokens there.
// A path with "=" in it is left out, too, because some cameras have their password there.
func Shown(name string) string {
	if !strings.Contains(name, "://") {
		return name
	}
	u, err := url.Parse(name)
	if err != nil || u.Host == "" {
		return "URL"
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if strings.Contains(u.Path, "=") {
		shown.Path, shown.RawPath = "/...", ""
	}
	text := shown.String()
	if u.RawQuery != "" {
		text += "?..."
	}
	return text
}

// masked is an error without the secrets in its text.
type masked struct {
	err  error
	text string
}

func (m *masked) Error() string { return m.text }
func (m *masked) Unwrap() error { return m.err }

// telling matches names in a query whose values are always secret.
var telling = regexp.MustCompile(`(?i)tok|pass|pwd|key|auth|secret|sig|user|usr|cred|session`)

// shortest is the length from which a secret of letters alone is masked wherever it stands as a
// word: a shorter one may be a word of the message.
const shortest = 4

// Masker returns a function that removes the secrets of a source's URL from errors: user and
// password, the query, and its values. Foreign code decodes the stream, and may quote the URL.
// Other words of an error stay as they are.
func Masker(source string) func(error) error {
	u, err := url.Parse(source)
	if !strings.Contains(source, "://") {
		return func(err error) error { return err }
	}
	if err != nil {
		return func(err error) error {
			return &masked{err, strings.ReplaceAll(err.Error(), source, "URL")}
		}
	}
	var words, parts []string // masked as words, and only as parts of a URL
	add := func(s string, secret bool) {
		if s == "" {
			return
		}
		all := &words
		if !secret || len(s) < shortest &&
			strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }) < 0 {
			all = &parts
		}
		*all = append(*all, s, url.QueryEscape(s), url.PathEscape(s))
	}
	if u.User != nil {
		password, _ := u.User.Password()
		add(password, true)
		add(u.User.Username(), true)
		words = append(words, u.User.String())
	}
	if u.RawQuery != "" {
		words = append(words, u.RawQuery)
		for name, values := range u.Query() {
			for _, v := range values {
				add(v, telling.MatchString(name))
			}
		}
	}
	whole := strings.NewReplacer(source, Shown(source))
	word := oneOf(`(^|[^\pL\pN])`, words, `($|[^\pL\pN])`)
	part := oneOf(`([:/=])`, parts, `($|[@&:/\s])`)
	return func(err error) error {
		text := whole.Replace(err.Error())
		// twice: two neighbours share the character between them
		for _, r := range []*regexp.Regexp{word, word, part} {
			text = r.ReplaceAllString(text, "${1}***${2}")
		}
		if text != err.Error() {
			return &masked{err, text}
		}
		return err
	}
}

// oneOf matches one of several texts between two groups; it matches nothing if there are none.
func oneOf(before string, texts []string, after string) *regexp.Regexp {
	// one may begin with another
	slices.SortFunc(texts, func(a, b string) int { return len(b) - len(a) })
	for i, s := range texts {
		texts[i] = regexp.QuoteMeta(s)
	}
	if len(texts) == 0 {
		return regexp.MustCompile(`$^()()`)
	}
	return regexp.MustCompile(before + "(?:" + strings.Join(texts, "|") + ")" + after)
}
