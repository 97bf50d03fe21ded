// SPDX-License-Identifier: Apache-2.0

package socket_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/socket"
	"github.com/faceauth/faceauth/internal/stage"
	"github.com/faceauth/faceauth/tablet"
)

// Every way into the daemon makes the same check of the calling process: what counts is where this
// process runs, and not whether its user is at the device, too.
func TestHere(t *testing.T) {
	const games32, nobody32 = uint32(games), uint32(nobody)
	greeter := fixture.Session{UID: 120, Class: "greeter", Active: true, Seat: "seat0"}
	at := fixture.AtSeat
	far := func(x fixture.Session) fixture.Session { x.Remote, x.Seat = true, ""; return x }
	away := func(x fixture.Session) fixture.Session { x.Active = false; return x }
	locked := func(x fixture.Session) fixture.Session { x.Locked = true; return x }
	text := func(x fixture.Session) fixture.Session { x.Type = "tty"; return x }
	unseated := func(x fixture.Session) fixture.Session { x.Seat = ""; return x }
	sessions := func(x ...fixture.Session) []fixture.Session { return x }
	// The ways: a PAM module of root, one with a challenge, and a program of the user.
	const pam, intent, program = "p", "i", "u"
	const manager = "user@65534.service"
	for _, c := range []struct {
		name     string
		unit     string
		sessions []fixture.Session
		ways     string // those that are answered
	}{
		{"a session at the device", "", sessions(at(nobody32)), pam + intent + program},
		{"somebody else's session at the device", "", sessions(at(games32)),
			pam + intent + program},
		{"a greeter's session", "", sessions(greeter), pam + intent + program},
		{"a session from elsewhere", "", sessions(far(at(nobody32)), at(nobody32)), ""},
		{"a session that is not used now", "", sessions(away(at(nobody32))), ""},
		{"a session without a seat", "", sessions(unseated(at(nobody32))), ""},
		{"a display manager with its greeter", "gdm.service", sessions(greeter), pam + intent},
		{"a display manager by its second name", "display-manager.service", sessions(greeter),
			pam + intent},
		{"a display manager that unlocks", "gdm.service", sessions(locked(at(nobody32))),
			pam + intent},
		{"a display manager, and nothing is locked", "gdm.service", sessions(at(nobody32)), ""},
		{"a display manager, somebody else is there", "gdm.service", sessions(at(games32)), ""},
		{"a display manager with a far greeter", "gdm.service", sessions(far(greeter)), ""},
		{"a display manager with a near and a far greeter", "gdm.service",
			sessions(greeter, far(greeter)), pam + intent},
		{"a display manager, and the user is elsewhere, too", "sddm.service",
			sessions(far(at(nobody32)), greeter), pam + intent},
		{"a display manager without anybody", "gdm.service", nil, ""},
		{"login on a console", "getty@tty2.service", nil, pam + intent},
		{"login on a serial line", "serial-getty@ttyS0.service", nil, ""},
		// A timer that was set over ssh runs here, also after the connection has ended.
		{"a terminal or a service of a user at the device", manager, sessions(at(nobody32)),
			intent},
		{"a terminal, and its user is elsewhere, too", manager,
			sessions(far(at(nobody32)), at(nobody32)), intent},
		{"a terminal, and nothing can be shown where its user is", manager,
			sessions(text(at(nobody32))), ""},
		{"a terminal of a user who is away", manager, sessions(away(at(nobody32))), ""},
		{"the helper of polkit", "polkit-agent-helper@1-1-65534.service", sessions(at(nobody32)),
			intent},
		{"the helper of polkit, whose asker's number is somebody else's by now",
			"polkit-agent-helper@1-1-5.service", sessions(at(nobody32)), ""},
		{"the helper of polkit, for another such helper", "polkit-agent-helper@1-5-65534.service",
			sessions(at(nobody32)), ""},
		{"a locker, and its user is elsewhere, too", manager,
			sessions(far(at(nobody32)), locked(at(nobody32))), program},
		{"a service of a user who is elsewhere", manager, sessions(far(locked(at(nobody32)))), ""},
		{"a service of a user, somebody else is there", manager, sessions(locked(at(games32))), ""},
		{"a service of another user", "user@5.service",
			sessions(locked(at(nobody32)), locked(at(games32))), ""},
		{"a locker under the user's manager", manager, sessions(locked(at(nobody32))), program},
		{"a service of the system, as of systemd-run or cron", "vpn.service",
			sessions(locked(at(nobody32))), ""},
		{"a service that is named much the same", "not-gdm.service", sessions(greeter), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, tablet.Options{Policy: tablet.Policy{Delay: time.Minute,
				Deadline: time.Second / 2}},
				socket.Options{})
			h.enrol("nobody", stage.Alice)
			h.notifier(nobody, func(n *notified) { n.shown() })
			h.logind.Place(c.unit, c.sessions...)
			if s, err := socket.Client(h.path).Status(t.Context(), "nobody"); err != nil || s.Here {
				t.Errorf("root is at the device: %v", err)
			}
			h.camera.Play(stage.Show{Frames: stage.Seen(stage.Bob, 9)})
			for way, request := range map[string]struct {
				uid  int
				line string
			}{pam: {0, "verify\tnobody\t65534\t\t\t\t\t"},
				intent:  {0, "verify\tnobody\t65534\tsudo\tturn\t\tid\tfar"},
				program: {nobody, "verify\t\t\t\t\t\t\t"}} {
				client, want := h.send(request.uid, request.line+"\nask\n"), "Elsewhere"
				if strings.Contains(c.ways, way) {
					want = "no-match"
				}
				got := want
				if way != intent || want == "Elsewhere" { // with a challenge it takes ten seconds
					got = client.last()
				} else {
					client.looking()
					client.conn.(*net.UnixConn).CloseWrite()
					client.last() // its attempt has ended
				}
				client.conn.Close()
				if got != want {
					t.Errorf("%s: %s, want %s", way, got, want)
				}
				// A failure of a locker does not count against the logins of the user.
				st, err := h.a.Status("nobody")
				counted := want == "no-match" && !(way == program && c.unit == manager)
				if way != intent && (err != nil || st.Wait > 0 != counted) {
					t.Errorf("%s: the user must wait %v, %v", way, st.Wait, err)
				}
				h.ask(0, "password", "nobody", "0", "", "")
			}
		})
	}
}
