// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/footage"
)

// A program can open the file of any name that it gets, and a table keeps its lines and columns.
func TestNames(t *testing.T) {
	for _, n := range []string{"plain.mp4", "caf\xe9.mp4", "new\nline\ttab.mp4", "張.mp4", ""} {
		b := fixture.Must(json.Marshal(name(n)))(t)
		var got string
		if json.Unmarshal(b, &got) != nil {
			var both struct{ Text, Base64 string }
			fixture.Check(t, json.Unmarshal(b, &both))
			raw, err := base64.StdEncoding.DecodeString(both.Base64)
			if err != nil || !strings.Contains(both.Text, "caf") {
				t.Errorf("%q: %s, %v", n, b, err)
			}
			got = string(raw)
		}
		if got != n {
			t.Errorf("%q came back as %q", n, got)
		}
		if strings.ContainsAny(cell(n), "\n\t\r") {
			t.Errorf("the cell %q", cell(n))
		}
	}
}

// The exit code says that something was not looked at, unless something worse happened.
func TestReadingEnd(t *testing.T) {
	left := footage.Left{Path: "a.heic", Why: ".heic (cannot be read here)"}
	one := unreadable{"a.mp4", "it is broken"}
	for name, c := range map[string]struct {
		r    *reading
		err  error
		n    int
		code int
		text string
	}{
		"all was read":         {&reading{}, nil, 2, 0, ""},
		"nobody, all was read": {&reading{}, cli.Fail(cli.Refused, errors.New("none")), 2, cli.Refused, "none"},
		"left out":             {&reading{left: []footage.Left{left}}, nil, 2, cli.Partly, "left out: 1 .heic"},
		"nobody, one unread": {&reading{unread: []unreadable{one}}, cli.Fail(cli.Refused, errors.New("none")),
			2, cli.Partly, "none; 1 of 2 recordings could not be read: a.mp4; alice may be there"},
		"a part is missing": {&reading{short: []unreadable{one}}, nil, 1, cli.Partly, "a part is missing of a.mp4"},
		"nothing was read":  {&reading{unread: []unreadable{one}}, nil, 1, cli.BadSource, "a.mp4: it is broken"},
		"something worse": {&reading{unread: []unreadable{one}}, cli.Fail(cli.BadGallery,
			errors.New("bad")), 2, cli.BadGallery, "bad"},
	} {
		err := c.r.end(c.err, c.n, "alice")
		text := ""
		if err != nil {
			text = err.Error()
		}
		if cli.Code(err) != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d %q, want %d %q", name, cli.Code(err), text, c.code, c.text)
		}
	}
}
