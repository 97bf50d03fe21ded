// SPDX-License-Identifier: Apache-2.0

package bus_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/stage"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/bus"
	"github.com/godbus/dbus/v5"
)

// Every way into the daemon makes the same check of the calling process: what counts is where this process runs, and
// not whether its user is at the device, too. polkit allows everything here.
func TestHere(t *testing.T) {
	const games32, nobody32 = uint32(games), uint32(nobody)
	greeter := fixture.Session{UID: 120, Class: "greeter", Active: true, Seat: "seat0"}
	at := fixture.AtSeat
	far := func(x fixture.Session) fixture.Session { x.Remote, x.Seat = true, ""; return x }
	away := func(x fixture.Session) fixture.Session { x.Active = false; return x }
	locked := func(x fixture.Session) fixture.Session { x.Locked = true; return x }
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
		{"somebody else's session at the device", "", sessions(at(games32)), pam + intent + program},
		{"a greeter's session", "", sessions(greeter), pam + intent + program},
		{"a session from elsewhere", "", sessions(far(at(nobody32)), at(nobody32)), ""},
		{"a session that is not used now", "", sessions(away(at(nobody32))), ""},
		{"a session without a seat", "", sessions(unseated(at(nobody32))), ""},
		{"a display manager with its greeter", "gdm.service", sessions(greeter), pam + intent},
		{"a display manager by its second name", "display-manager.service", sessions(greeter), pam + intent},
		{"a display manager that unlocks", "gdm.service", sessions(locked(at(nobody32))), pam + intent},
		{"a display manager, and nothing is locked", "gdm.service", sessions(at(nobody32)), ""},
		{"a display manager, somebody else is there", "gdm.service", sessions(at(games32)), ""},
		{"a display manager with a far greeter", "gdm.service", sessions(far(greeter)), ""},
		{"a display manager with a near and a far greeter", "gdm.service", sessions(greeter, far(greeter)),
			pam + intent},
		{"a display manager, and the user is elsewhere, too", "sddm.service", sessions(far(at(nobody32)), greeter),
			pam + intent},
		{"a display manager without anybody", "gdm.service", nil, ""},
		{"login on a console", "getty@tty2.service", nil, pam + intent},
		{"login on a serial line", "serial-getty@ttyS0.service", nil, ""},
		// A timer that was set over ssh runs here, also after the connection has ended.
		{"a terminal or a service of a user at the device", manager, sessions(at(nobody32)), intent},
		{"a terminal, and its user is elsewhere, too", manager, sessions(far(at(nobody32)), at(nobody32)), intent},
		{"a terminal of a user who is away", manager, sessions(away(at(nobody32))), ""},
		{"the helper of polkit, for another such helper", "polkit-agent-helper@1-5-65534.service",
			sessions(at(nobody32)), ""},
		{"a locker, and its user is elsewhere, too", manager, sessions(far(at(nobody32)), locked(at(nobody32))),
			program},
		{"a service of a user who is elsewhere", manager, sessions(far(locked(at(nobody32)))), ""},
		{"a service of a user, somebody else is there", manager, sessions(locked(at(games32))), ""},
		{"a service of another user", "user@5.service", sessions(locked(at(nobody32)), locked(at(games32))), ""},
		{"a locker under the user's manager", manager, sessions(locked(at(nobody32))), program},
		{"a service of the system, as of systemd-run or cron", "vpn.service", sessions(locked(at(nobody32))), ""},
		{"a service that is named much the same", "not-gdm.service", sessions(greeter), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, tablet.Options{Policy: tablet.Policy{Delay: time.Hour, MaxDelay: time.Hour}})
			for _, action := range []string{"verify", "enroll", "other-user"} {
				h.polkit.set(nobody, action, true)
			}
			h.logind.Place(c.unit, c.sessions...)
			for _, way := range []string{pam, intent, program} {
				h.logind.Place("", at(nobody32))
				h.enrol(t, "nobody", stage.Alice)
				h.logind.Place(c.unit, c.sessions...)
				h.camera.Play(stage.Show{Frames: stage.Seen(stage.Bob, 9)})
				var word string
				var err error
				uid := nobody
				if way == intent {
					client := h.client(t, 0)
					err = client.Call(t.Context(), "ClaimFor", "nobody", nobody32, "sudo", "turn", "")
					if denied := name(err) == "Elsewhere"; denied == strings.Contains(c.ways, way) ||
						err != nil && !denied {
						t.Errorf("%s: %v", way, err)
					}
					client.Close()
					continue
				}
				if way == pam {
					uid = 0
				}
				client := h.client(t, uid)
				if way == pam {
					err = client.Call(t.Context(), "ClaimFor", "nobody", nobody32, "", "", "")
				}
				if err == nil {
					word, err = client.Verify(t.Context(), "nobody", func(string) {})
				}
				denied := name(err) == "Elsewhere"
				if denied == strings.Contains(c.ways, way) || err != nil && !denied {
					t.Errorf("%s: %v", way, err)
				}
				if err == nil && word != "verify-no-match" {
					t.Errorf("%s: %s", way, word)
				}
				// A failure of a locker does not count against the logins of the user.
				st, err := h.a.Status("nobody")
				if counted := !denied && c.unit != manager; err != nil || (st.Wait > 0) != counted {
					t.Errorf("%s: the user must wait %v, %v", way, st.Wait, err)
				}
				if err := h.client(t, 0).PasswordUsed(t.Context(), "nobody"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Who asks must still be at the device when the decision falls, by each way: a session that is no longer used gets no
// match.
func TestStillHere(t *testing.T) {
	for way, c := range map[string]struct {
		uid   int
		claim string
		args  []any
	}{
		"PAM":       {0, "ClaimFor", []any{"nobody", uint32(nobody), "", "", ""}},
		"a program": {nobody, "Claim", []any{"nobody"}},
	} {
		t.Run(way, func(t *testing.T) {
			h := newHouse(t, tablet.Options{})
			h.polkit.set(nobody, "verify", true)
			h.enrol(t, "nobody", stage.Alice)
			conn := dial(t, h.address, c.uid)
			signals := make(chan *dbus.Signal, 64)
			conn.Signal(signals)
			o, of := conn.Object(bus.Name, bus.Path), bus.Interface+"."
			if err := o.Call(of+c.claim, 0, c.args...).Err; err != nil {
				t.Fatal(err)
			}
			h.logind.Place("", fixture.Session{UID: nobody, Class: "greeter", Seat: "seat0"}) // not active
			h.camera.Play(stage.Show{Frames: stage.Seen(stage.Alice, 9)})
			if err := o.Call(of+"VerifyStart", 0).Err; err != nil {
				t.Fatal(err)
			}
			for s := range signals {
				if len(s.Body) == 2 && s.Body[1] == true {
					if s.Body[0] != "verify-error" {
						t.Errorf("the decision is %v", s.Body[0])
					}
					return
				}
			}
		})
	}
}

// While the lid is closed the camera sees nobody, so nobody waits for it, unless a docked device has another camera.
func TestLid(t *testing.T) {
	h := newHouse(t, tablet.Options{})
	h.polkit.set(nobody, "verify", true)
	h.enrol(t, "nobody", stage.Alice)
	for _, docked := range []bool{false, true} {
		h.logind.Lid(true, docked)
		h.camera.Play(stage.Show{Frames: stage.Seen(stage.Alice, 9)})
		_, err := h.client(t, nobody).Verify(t.Context(), "nobody", func(string) {})
		if refused := err != nil; refused == docked || refused && !strings.HasSuffix(name(err), "LidClosed") {
			t.Errorf("docked %t: %v", docked, err)
		}
	}
}

// Before somebody asks, nothing is told of what was prepared; then a match of just now is told at once. It is void when
// the person is no longer at the device, and when the faces were forgotten.
func TestPrepared(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(*testing.T, *house)
		want string
	}{
		{"asked", func(*testing.T, *house) {}, "verify-match"},
		{"another session is used now", func(_ *testing.T, h *house) {
			x := fixture.AtSeat(nobody)
			x.Active = false
			h.logind.Place("", x)
		}, "verify-error"},
		{"the faces were forgotten", func(t *testing.T, h *house) {
			if err := h.client(t, 0).Forget(t.Context(), "nobody"); err != nil {
				t.Fatal(err)
			}
		}, "ClaimDevice"},
		{"another client asks", func(t *testing.T, h *house) {
			if err := h.client(t, 0).Call(t.Context(), "Ask"); name(err) != "ClaimDevice" {
				t.Errorf("another client: %v", err)
			}
		}, "verify-match"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t, tablet.Options{})
			h.enrol(t, "nobody", stage.Alice)
			h.camera.Play(stage.Show{Frames: stage.Seen(stage.Alice, 500), Pace: 20 * time.Millisecond})
			conn := dial(t, h.address, 0)
			signals := make(chan *dbus.Signal, 64)
			conn.Signal(signals)
			o := conn.Object(bus.Name, bus.Path)
			call := func(method string, args ...any) string {
				err := o.Call(bus.Interface+"."+method, 0, args...).Err
				var failed dbus.Error
				if errors.As(err, &failed) {
					return strings.TrimPrefix(failed.Name, "org.faceauth.Error.")
				}
				if err != nil {
					t.Fatal(err)
				}
				return ""
			}
			if got := call("ClaimFor", "nobody", uint32(nobody), "login", "", ""); got != "" {
				t.Fatal(got)
			}
			if got := call("Ask"); got != "ClaimDevice" {
				t.Errorf("asked before anything is prepared: %q", got)
			}
			if got := call("Prepare"); got != "" {
				t.Fatal(got)
			}
			time.Sleep(500 * time.Millisecond)
			var told []any
			for len(signals) > 0 {
				if s := <-signals; s.Name == bus.Interface+".VerifyStatus" {
					told = append(told, s.Body...)
				}
			}
			if fmt.Sprint(told) != "[verify-looking false]" {
				t.Errorf("told before somebody asked: %v", told)
			}
			c.then(t, h)
			if got := call("Ask"); got != "" {
				if got != c.want {
					t.Errorf("asked: %q, want %q", got, c.want)
				}
				return
			}
			for s := range signals {
				if len(s.Body) == 2 && s.Body[1] == true {
					if s.Body[0] != c.want {
						t.Errorf("%v, want %s", s.Body, c.want)
					}
					break
				}
			}
			if got := call("Ask"); got != "ClaimDevice" {
				t.Errorf("asked twice: %q", got)
			}
		})
	}
}
