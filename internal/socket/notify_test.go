// SPDX-License-Identifier: Apache-2.0

package socket_test

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/socket"
	"github.com/faceauth/faceauth/internal/stage"
	"github.com/faceauth/faceauth/tablet"
)

// notified is a request at a notifier.
type notified struct {
	t      *testing.T
	conn   net.Conn
	lines  *bufio.Scanner
	notice socket.Notice
}

func (n *notified) shown() {
	if _, err := fmt.Fprintln(n.conn, socket.Shown); err != nil {
		n.t.Error(err)
	}
}

// notifier listens as a user in place of faceauth login notify, and calls answer with each request.
// Then it waits for the end of the request, and sends the word of it.
func (h *house) notifier(uid int, answer func(*notified)) (words <-chan string) {
	h.t.Helper()
	ended := make(chan string, 64)
	var l net.Listener
	h.as(uid, func() {
		l = fixture.Must(net.Listen("unix",
			filepath.Join(h.notifiers, fmt.Sprint(nobody))))(h.t)
	})
	h.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n := &notified{t: h.t, conn: conn, lines: bufio.NewScanner(conn)}
			n.notice, err = socket.ReadNotice(n.lines)
			if err == nil {
				answer(n)
			}
			n.lines.Scan()
			ended <- n.lines.Text()
			conn.Close()
		}
	}()
	return ended
}

const manager = "user@65534.service"

// sudo is the request of a module of root for sudo, with a challenge.
const sudo = "verify\tnobody\t65534\tsudo\tturn\t\t/usr/bin/sudo id\tapp-x.service, pts/3\nask\n"

// outsider is a house whose user is at the device, while a program of the user asks from outside
// the sessions.
func outsider(t *testing.T) *house {
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: time.Minute}}, socket.Options{})
	h.enrol("nobody", stage.Alice)
	h.logind.Place(manager, fixture.AtSeat(nobody))
	return h
}

// Nothing looks for a request from outside the sessions of which the person at the device is not
// told: without a notifier, with one of somebody else, and with one that shows nothing.
func TestNoNotifier(t *testing.T) {
	t.Parallel()
	for name, notifier := range map[string]func(h *house){
		"none":            func(*house) {},
		"somebody else's": func(h *house) { h.notifier(games, (*notified).shown) },
		"one without a screen": func(h *house) {
			h.notifier(nobody, func(n *notified) { n.conn.Close() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := outsider(t)
			notifier(h)
			used := h.camera.Opened()
			if got := h.send(0, sudo).last(); got != "NoNotifier" {
				t.Errorf("it is told %s", got)
			}
			if h.camera.Opened() != used {
				t.Error("the camera looked")
			}
		})
	}
}

// The person at the device is told of a request from outside the sessions before the camera looks,
// and what comes of it. One failure ends such requests until a password, whatever succeeds
// elsewhere. The history says where it came from.
func TestOutside(t *testing.T) {
	t.Parallel()
	h := outsider(t)
	used := h.camera.Opened()
	told := 0
	ended := h.notifier(nobody, func(n *notified) {
		if told++; told > 2 {
			t.Error("the person is told of what is refused")
		}
		if n.notice != (socket.Notice{Service: "sudo", Command: "/usr/bin/sudo id",
			From: "app-x.service, pts/3"}) ||
			h.camera.Opened() != used {
			t.Errorf("told of %v, and the camera was opened before: %t", n.notice,
				h.camera.Opened() != used)
		}
		n.shown()
	})
	h.camera.Play(stage.Show{Frames: stage.Seen(stage.Alice, 500), Pace: time.Millisecond})
	c := h.send(0, sudo)
	for said := ""; !strings.Contains(said, "say turn-"); said += c.lines.Text() {
		if !c.lines.Scan() {
			t.Fatalf("no gesture: %s\n%s", said, h.log)
		}
	}
	c.conn.Close()
	<-ended
	refused := func(what string, want bool) {
		t.Helper()
		h.logind.Place(manager, fixture.AtSeat(nobody))
		h.camera.Play(stage.Show{Pace: time.Millisecond})
		used = h.camera.Opened()
		c := h.send(0, sudo)
		defer c.conn.Close()
		if want {
			if got := c.last(); got != "PasswordNeeded" {
				t.Errorf("%s: %s, want a refusal\n%s", what, got, h.log)
			}
		} else {
			c.looking()
		}
	}
	refused("after one failure", true)
	// A login at the device succeeds all the same.
	// It says where they came from.
	login := func() (said string) {
		h.logind.Place("", fixture.AtSeat(nobody))
		h.camera.Play(stage.Show{Frames: stage.Seen(stage.Alice, 500), Pace: time.Millisecond})
		for lines := h.send(0, pam("nobody", nobody, "")).lines; lines.Scan(); {
			said += lines.Text() + "\n"
		}
		return said
	}
	for _, c := range []struct {
		what   string
		untold bool
	}{{"the first login at the device", true}, {"the second one", false}} {
		said := login()
		if !strings.HasSuffix(said, "end match\n") || c.untold != strings.Contains(said,
			"\nsay asked-outside sudo (app-x.service, pts/3), ") {
			t.Errorf("%s: %s", c.what, said)
		}
	}
	refused("after a success at the device", true)
	h.ask(0, "password", "nobody", "65534", "", "outside")
	refused("after a password outside the sessions", false)
	events := fixture.Must(h.a.History("nobody"))(t)
	seen := false
	for _, e := range events {
		seen = seen || e.Outside && e.From == "app-x.service, pts/3" && e.Service == "sudo"
	}
	if !seen || !strings.Contains(h.log.String(), `from="app-x.service, pts/3" outside=true`) {
		t.Errorf("the history does not say where it came from: %v\n%s", events, h.log)
	}
}

// Somebody at the device who did not ask ends the request, and the face lets in nobody until the
// password. A notifier that ends also ends the request.
func TestNotMe(t *testing.T) {
	t.Parallel()
	for _, says := range []string{socket.NotMe, ""} {
		t.Run(says, func(t *testing.T) {
			h := outsider(t)
			h.notifier(nobody, func(n *notified) {
				n.shown()
				h.seen(true)
				if says == "" {
					n.conn.Close()
				} else {
					fmt.Fprintln(n.conn, says)
				}
			})
			h.camera.Play(stage.Show{Pace: time.Millisecond})
			want := map[string]string{socket.NotMe: string(tablet.Objected), "": "error"}[says]
			if got := h.send(0, sudo).last(); got != want {
				t.Errorf("%s, want %s\n%s", got, want, h.log)
			}
			h.seen(false)
			// The request may be answered before the lock is on disk; the next one waits for its
			// end.
			h.camera.Play(stage.Show{Frames: stage.Seen(stage.Alice, 500), Pace: time.Millisecond})
			h.logind.Place("", fixture.AtSeat(nobody))
			want = map[string]string{socket.NotMe: "PasswordNeeded", "": "match"}[says]
			if got := h.send(0, pam("nobody", nobody, "")).last(); got != want {
				t.Errorf("a login at the device after that: %s, want %s\n%s", got, want, h.log)
			}
		})
	}
}
