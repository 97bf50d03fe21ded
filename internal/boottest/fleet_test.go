// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// The commands in docs/tablet.md make an account follow a person of a fleet. The test uses the installed unit, its
// user, its sandbox, and the rules of the bus.
func TestFleet(t *testing.T) {
	s := boot(t)
	const env = "export XDG_DATA_HOME=/root/office FACEAUTH_MODELS=/usr/share/faceauth/models; "
	until := func(what, script, want string) string {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
			out, _ := s.try(t, script)
			if strings.Contains(out, want) {
				return out
			}
			if time.Now().After(end) {
				log, _ := s.try(t, "journalctl -q --no-pager -o cat -u faceauth-fleet -n 20")
				t.Fatalf("%s: %s\n%s\n%s", what, out, log, s.journal(t))
			}
		}
	}
	s.camera(t, "vidtimit_rot/p2")
	s.run(t, "faceauth tablet forget --user alice || true")
	s.bound = false
	s.run(t,
		"systemd-run -q --unit=fleet-server --setenv=XDG_DATA_HOME=/root/server faceauth fleet serve --listen "+
			"127.0.0.1:4222")
	until("the server", "XDG_DATA_HOME=/root/server faceauth fleet devices", "no device has joined")
	s.run(
		t,
		env+"XDG_DATA_HOME=/root/server faceauth fleet invite --json | sed 's/.*\"token\":\"\\([^\"]*\\)\".*/\\1/' | "+
			"faceauth fleet join --name office && faceauth enroll /srv/faces/vidtimit_rot/p2 --name alice --fleet",
	)
	var people []struct{ Number string }
	out := s.run(t, env+"faceauth people --fleet --json")
	if err := json.Unmarshal([]byte(out), &people); err != nil || len(people) != 1 {
		t.Fatalf("%s: %v", out, err)
	}
	s.run(t, "systemd-run -q --unit=fleet-office --setenv=XDG_DATA_HOME=/root/office faceauth fleet follow")
	t.Cleanup(func() {
		s.try(
			t,
			"systemctl disable --now faceauth-fleet; systemctl stop fleet-office fleet-server; "+
				"systemctl reset-failed; rm -rf /root/office /root/server; "+
				"find /var/lib/faceauth-fleet -mindepth 1 -delete; faceauth tablet follow --user alice --off; "+
				"systemctl stop faceauth",
		)
	})

	const number = "0123456789abcdef0123456789abcdef"
	done := 0
	for _, command := range documented(t, "Known from a fleet") {
		command = strings.ReplaceAll(command, number, people[0].Number)
		switch rest, other := strings.CutPrefix(command, "sudo -u faceauth-fleet "); {
		case strings.HasPrefix(command, "faceauth fleet invite "):
			out := s.run(t, "XDG_DATA_HOME=/root/server "+command+" --json")
			var invited struct{ Token string }
			if err := json.Unmarshal([]byte(out), &invited); err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			s.write(t, "/srv/share/token", invited.Token+"\n")
		case other:
			s.run(t, "runuser -u faceauth-fleet -- "+rest+" </srv/share/token; rm /srv/share/token")
		default:
			t.Log(s.asAlice(t, command))
		}
		done++
	}
	if done != 5 {
		t.Errorf("%d commands are documented", done)
	}
	until("the account follows", "faceauth tablet status --user alice", "4 faces from there; in step since")
	verify := func(want string) {
		t.Helper()
		for try := 1; ; try++ {
			out, _ := s.try(t, "faceauth tablet verify --user alice")
			if strings.Contains(out, want) {
				return
			}
			if !strings.Contains(out, "nobody was seen") || try == 5 {
				t.Fatalf("%s\n%s", out, s.journal(t))
			}
		}
	}
	verify("recognised; give your password once")
	s.trust(t)
	verify("recognised\n")

	// Only the unit's user may call the fleet's methods, and that user has no other special permission.
	for user, want := range map[string]bool{"bob": false, "faceauth-eye": false, "faceauth-fleet": true} {
		call := "busctl call org.faceauth /org/faceauth/Device org.faceauth.Fleet Followed"
		if out, code := s.try(t, "runuser -u "+user+" -- "+call); (code == 0) != want ||
			want && !strings.Contains(out, people[0].Number) {
			t.Errorf("%s: %d, %s", user, code, out)
		}
	}
	for _, call := range []string{"Users", "Health", "PasswordUsed s alice", "Forget s alice",
		`Follow ssb alice "" false`} {
		if out, code := s.try(t, "runuser -u faceauth-fleet -- busctl call org.faceauth /org/faceauth/Device "+
			"org.faceauth.Device "+call); code == 0 {
			t.Errorf("faceauth-fleet may %s: %s", call, out)
		}
	}
	if out, code := s.try(t, "runuser -u faceauth -- ls /var/lib/faceauth-fleet; "+
		"runuser -u faceauth-fleet -- ls /var/lib/faceauth"); code == 0 ||
		strings.Contains(out, "fleet\n") {
		t.Errorf("they read each other's: %s", out)
	}

	// The process is killed, and another daemon runs.
	s.run(t, "systemctl kill -s KILL faceauth-fleet; systemctl kill -s KILL faceauth")
	until("both are back", "faceauth tablet status --user alice", "4 faces from there, on which")
	until("they are in step", "faceauth tablet status --user alice", "in step since")
	verify("recognised\n")

	// After a revocation the unit ends for good, and says why.
	s.run(t, "XDG_DATA_HOME=/root/server faceauth fleet revoke tablet")
	until("it ends", "systemctl is-failed faceauth-fleet", "failed")
	until("nothing rests on the fleet", "faceauth tablet status --user alice", "it was revoked")
	if out := s.run(t, "journalctl -q --no-pager -o cat -u faceauth-fleet -n 20"); !strings.Contains(out,
		"the fleet does not let this device in") {
		t.Error(out)
	}
}
