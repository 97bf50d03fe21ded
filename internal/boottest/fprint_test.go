// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
)

// Tests fprintd's own clients, unchanged, on a booted system. The names are off by default; docs/tablet.md says how to
// turn them on; and then they work only for a person at the device.
func TestFprintd(t *testing.T) {
	from := fixture.Fprintd(t)
	s := people(t)
	s.copy(t, from, "fprintd")
	so := strings.TrimSpace(s.run(t, "find /srv/share/fprintd -name pam_fprintd.so"))
	s.write(t, "/etc/pam.d/finger", "auth required "+so+" timeout=10 max-tries=1\n")
	if out, code := s.try(t, "/srv/share/fprintd/usr/bin/fprintd-list alice"); code == 0 {
		t.Errorf("it is not off: %s", out)
	}
	s.write(t, "/etc/default/faceauth", "FACEAUTH_OPTIONS=--source /srv/share/camera --fprintd\n")
	for _, command := range documented(t, "GDM and KDE by fprintd") {
		s.asAlice(t, command)
	}
	t.Cleanup(func() {
		s.write(t, "/etc/default/faceauth", "FACEAUTH_OPTIONS=--source /srv/share/camera\n")
		s.run(t,
			"rm /etc/dbus-1/system.d/faceauth-fprintd.conf "+
				"/usr/local/share/dbus-1/system-services/net.reactivated.Fprint.service; systemctl reload dbus; "+
				"systemctl stop faceauth")
	})
	// The daemon is not running, and the bus starts it.
	if out := s.run(t, "systemctl is-active faceauth; /srv/share/fprintd/usr/bin/fprintd-list alice || true",
		"--setenv=LC_ALL=C"); !strings.Contains(out, "right-index-finger") {
		t.Fatalf("fprintd-list: %s\n%s", out, s.journal(t))
	}
	looked := func() int {
		return strings.Count(s.run(t, "journalctl -q --no-pager -o cat -u faceauth"), "msg=verify ")
	}
	const login = "pamtester finger alice authenticate && echo let in"
	// service runs a script in a unit of the given name.
	service := func(name, script string) string {
		s.write(t, "/run/systemd/system/"+name,
			"[Service]\nType=oneshot\nExecStart=/bin/bash -c '"+script+"'\n"+
				"StandardOutput=truncate:/srv/share/out\nStandardError=inherit\n")
		s.try(t, "systemctl daemon-reload; systemctl start "+name+"; "+
			"rm /run/systemd/system/"+name+"; systemctl daemon-reload")
		b, err := os.ReadFile(filepath.Join(s.dir, "out"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct {
		name string
		in   bool
		run  func() string
	}{
		{"fprintd-verify at the device", true, func() string {
			return s.session(t, "alice", atDevice, "/srv/share/fprintd/usr/bin/fprintd-verify && echo let in")
		}},
		{"fprintd-verify from elsewhere", false, func() string {
			return s.session(t, "alice", elsewhere, "/srv/share/fprintd/usr/bin/fprintd-verify && echo let in")
		}},
		{"a service of a user from elsewhere", false, func() string {
			return s.session(t, "alice", elsewhere,
				"export XDG_RUNTIME_DIR=/run/user/$(id -u)\nsystemd-run --user --pipe --wait --quiet "+
					"/srv/share/fprintd/usr/bin/fprintd-verify && echo let in")
		}},
		{"a timer of the user, set from elsewhere", false, func() string {
			return s.later(t, "alice", "/srv/share/fprintd/usr/bin/fprintd-verify && echo let in")
		}},
		{"the module in a service of the system", false, func() string { return service("vpn.service", login) }},
		{"the module on a console", true, func() string { return service("getty@tty2.service", login) }},
		{"the module on a serial line", false, func() string { return service("serial-getty@ttyS0.service", login) }},
		{"the module of a display manager, before anybody", false, func() string {
			return service("gdm.service", login)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.trust(t)
			before := looked()
			out := c.run()
			if in := strings.Contains(out, "let in"); in != c.in || (looked() > before) != c.in {
				t.Errorf("let in %t, looked %t, want %t\n%s\n%s", in, looked() > before, c.in, out, s.journal(t))
			}
		})
	}
	// root runs a program in a session of a user, as sudo does, and one of a display manager, as the lock of GDM does.
	root := func(kind string) string {
		s.write(t, "/etc/pam.d/boot-root", "auth required pam_permit.so\naccount required pam_permit.so\n"+
			"session required pam_systemd.so\nsession required pam_exec.so quiet /srv/share/as-root\n")
		s.write(
			t,
			"/srv/share/as-root",
			"#!/bin/bash\n[ \"$PAM_TYPE\" = open_session ] || exit 0\nloginctl activate \"$XDG_SESSION_ID\" "+
				"2>/dev/null\n"+
				"{ "+login+"; systemd-run --pipe --wait --quiet --unit=sddm.service bash -c '"+login+", unlocked'; "+
				"} >/srv/share/out 2>&1 </dev/null\nexit 0\n",
		)
		s.run(t, "chmod 755 /srv/share/as-root; install -m 666 /dev/null /srv/share/out")
		s.trust(t)
		s.try(t, "pamtester "+kind+" boot-root alice open_session close_session")
		b, err := os.ReadFile(filepath.Join(s.dir, "out"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if out := root(atDevice); strings.Count(out, "let in") != 1 || !strings.Contains(out, "unlocked") {
		t.Errorf("root in a session at the device, or a display manager that unlocks: %s\n%s", out, s.journal(t))
	}
	if out := root(elsewhere); strings.Contains(out, "let in") {
		t.Errorf("root in a session from elsewhere: %s\n%s", out, s.journal(t))
	}
	// A face that does not match is a failure, which counts against the user who asked.
	s.camera(t, "vidtimit_rot/p3")
	s.trust(t)
	if out := service("getty@tty2.service", login); strings.Contains(out, "let in") {
		t.Errorf("a stranger: %s", out)
	}
	if out := s.run(t, "journalctl -q --no-pager -o cat -u faceauth -n 5"); !strings.Contains(out,
		`user=alice uid=0 result="no match" asker=0`) {
		t.Errorf("after a stranger: %s", out)
	}
	s.camera(t, "vidtimit_rot/p2")
	s.trust(t)
	// With a challenge, no message could tell the user what to do.
	if out, code := s.try(t, "faceauth daemon --fprintd --challenge turn"); code != 2 ||
		!strings.Contains(out, "leave out --challenge") {
		t.Errorf("with a challenge: %d, %s", code, out)
	}
}
