// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/faceauth/faceauth/office/page"
)

// An open page hears of what has changed, and of nothing else; and what it has is not sent again.
func TestChangesOfAnOpenPage(t *testing.T) {
	p, w := site(t, page.Options{})
	s, err := http.Get(serve(t, p) + "/api/changes")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Body.Close()
	if s.Header.Get("Content-Type") != "text/event-stream" || !s.Uncompressed {
		t.Errorf("%+v", s.Header)
	}
	lines := bufio.NewScanner(s.Body)
	next := func() (c struct {
		Now   map[string]any
		Views []any
		Stale []string
	}) {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(text), &c); err != nil {
					t.Fatal(err)
				}
				return c
			}
		}
		t.Fatal(lines.Err())
		return c
	}
	all := []string{"corrections", "events", "inbox", "people", "sightings", "sinks"}
	if c := next(); c.Now["questions"] != 0. || !slices.Equal(c.Stale, all) {
		t.Errorf("first %+v", c)
	}
	if err := w.Rename("alice", "ann"); err != nil {
		t.Fatal(err)
	}
	if c := next(); c.Now != nil || !slices.Equal(c.Stale, []string{"corrections", "people"}) {
		t.Errorf("then %+v", c)
	}
	etag := ask(p, "GET", "/page.css", "").Header().Get("ETag")
	if w := ask(p, "GET", "/page.css", "", "If-None-Match", etag); w.Code != http.StatusNotModified {
		t.Errorf("%q: %d", etag, w.Code)
	}
}

// counted counts the bytes that a server sends.
type counted struct {
	net.Listener
	n atomic.Int64
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &counting{c, l}, err
}

type counting struct {
	net.Conn
	of *counted
}

func (c *counting) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.of.n.Add(int64(n))
	return n, err
}
