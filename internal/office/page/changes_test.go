// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/page"
)

// An open page hears of what has changed, and of nothing else; and what it has is not sent again.
func TestChangesOfAnOpenPage(t *testing.T) {
	p, w := site(t, page.Options{})
	s := fixture.Must(http.Get(serve(t, p) + "/api/changes"))(t)
	defer s.Body.Close()
	if s.Header.Get("Content-Type") != "text/event-stream" || !s.Uncompressed {
		t.Errorf("%+v", s.Header)
	}
	lines := bufio.NewScanner(s.Body)
	next := func() (c struct {
		Now       map[string]any
		Questions int
		Views     []any
		Stale     []string
	}) {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				fixture.Check(t, json.Unmarshal([]byte(text), &c))
				return c
			}
		}
		t.Fatal(lines.Err())
		return c
	}
	all := []string{"corrections", "events", "inbox", "people", "sightings", "sinks"}
	if c := next(); c.Now["disk"] == nil || c.Questions != 0 || !slices.Equal(c.Stale, all) {
		t.Errorf("first %+v", c)
	}
	fixture.Must(w.Rename("alice", "ann"))(t)
	if c := next(); c.Now != nil || !slices.Equal(c.Stale, []string{"corrections", "people"}) {
		t.Errorf("then %+v", c)
	}
	etag := ask(p, "GET", "/page.css", "").Header().Get("ETag")
	if w := ask(p, "GET", "/page.css", "", "If-None-Match",
		etag); w.Code != http.StatusNotModified {
		t.Errorf("%q: %d", etag, w.Code)
	}
}

// An open page costs little: with sixteen still cameras and one person Now moves less than 60 MB in
// an hour, and Health less than 1 MB.
func TestSystemCosts(t *testing.T) {
	t.Parallel() // it mostly waits

	const slash = "door / left" // a name as people write it
	still := []part{{frames: 1 << 30}}
	cameras := []office.Camera{film(slash,
		[]part{{frames: 10}, {who: "Ann Archer", frames: 1 << 30, unsteady: .1}}, 40)}
	for i := range 15 {
		cameras = append(cameras, film(fmt.Sprint("camera ", i+2), still, 40))
	}
	s := perform(t, page.Options{}, 1, 40, cameras...)
	s.until(func() bool { return len(s.office.Now().People) == 1 })
	for _, path := range []string{url.PathEscape(slash),
		"door%20/%20left"} { // some proxies decode it
		if got := ask(s.page, "GET", "/camera/"+path, ""); got.Code != http.StatusOK {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
	views := []struct {
		name, there string
		most        float64 // MB in an hour
		sent        *counted
		tab         *browser
	}{
		{"now", "document.querySelector('#now-cameras img:not([hidden])')", 60, nil, nil},
		{"health", has("#view", "All is well."), 1, nil, nil},
	}
	for i, v := range views {
		l := fixture.Must(s.page.Listen("127.0.0.1:0"))(t)
		views[i].sent = &counted{Listener: l}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.page.Serve(ctx, views[i].sent, nil) }()
		t.Cleanup(func() {
			cancel()
			<-done
		})
		b := newBrowser(t)
		views[i].tab = b
		b.do(chromedp.Navigate("http://" + l.Addr().String() + "/#" + v.name))
		b.awaits(v.there)
	}
	time.Sleep(3 * time.Second) // what the views show at first
	before := []int64{views[0].sent.n.Load(), views[1].sent.n.Load()}
	time.Sleep(20 * time.Second)
	for i, v := range views {
		hour := float64(v.sent.n.Load()-before[i]) * 180 / 1e6
		if t.Logf("%s moves %.2f MB in an hour", v.name, hour); hour > v.most {
			t.Errorf("%s moves more than %g MB", v.name, v.most)
		}
		if v.tab.script("document.hidden") != "false" {
			t.Errorf("%s was not shown, and so it asked for nothing", v.name)
		}
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
