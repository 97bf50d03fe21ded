// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// desktop is the work of this program as an insider that stands in for a desktop's notifications:
// it writes each one to a file, and presses the button that is named by BUTTON.
func desktop() {
	bus, err := dbus.ConnectSessionBus()
	if err != nil {
		panic(err)
	}
	const name, path = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
	err = bus.ExportMethodTable(map[string]any{
		"Notify": func(_ string, replaces uint32, _, title, text string, actions []string,
			_ map[string]dbus.Variant,
			_ int32) (uint32, *dbus.Error) {
			f, err := os.OpenFile("/srv/share/notices", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
			if err == nil {
				fmt.Fprintf(f, "%s | %s\n", title, strings.ReplaceAll(text, "\n", " "))
				f.Close()
			}
			if button := os.Getenv("BUTTON"); button != "" && len(actions) > 0 {
				time.AfterFunc(time.Second, func() {
					bus.Emit(path, name+".ActionInvoked", uint32(1), button)
				})
			}
			return 1, nil
		},
		"CloseNotification": func(uint32) *dbus.Error { return nil },
	}, path, name)
	if err != nil {
		panic(err)
	}
	if _, err := bus.RequestName(name, dbus.NameFlagDoNotQueue); err != nil {
		panic(err)
	}
	fmt.Println("ready")
	time.Sleep(time.Minute)
}

// showing returns a script that has a desktop which shows notifications, in a session, and then
// runs a command.
func showing(button, command string) string {
	return `export XDG_RUNTIME_DIR=/run/user/$(id -u) DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$(id -u)/bus
env ` + insider + `=desktop BUTTON=` + button + ` /srv/share/insider >/tmp/desktop.$$ 2>&1 &
desktop=$!
for i in {1..100}; do grep -q ready /tmp/desktop.$$ && break; sleep .1; done
` + command + `
kill $desktop
`
}

// What a user's manager runs, nobody tells from what somebody else has started there, whatever it
// is called. So the person at the device is told of each request, by a notification, before the
// camera looks for a gesture to both sides; without a desktop that shows it there is the password
// alone.
func TestOutsideTheSession(t *testing.T) {
	s := programs(t)
	needs(t, "sudo")
	s.run(t, "faceauth login allow sudo --challenge turn; install -m 666 /dev/null "+
		"/srv/share/notices")
	sudo := typed("|alice", "sudo -k -u bob id -un")
	const byName = "export XDG_RUNTIME_DIR=/run/user/$(id -u)\n" +
		"systemd-run --user --quiet --collect "
	notices := func() string { return s.run(t, "cat /srv/share/notices; : >/srv/share/notices") }
	for name, how := range map[string]string{
		"a scope":                         byName + "--scope ",
		"a scope with a terminal's name":  byName + "--scope --unit=vte-spawn-$RANDOM.scope ",
		"a service":                       byName + "--pipe --wait ",
		"a service with a desktop's name": byName + "--pipe --wait --unit=app-x$RANDOM.service ",
	} {
		t.Run(name, func(t *testing.T) {
			s.trust(t)
			out := s.session(t, "alice", atDevice, showing("", how+sudo))
			said := notices()
			if !strings.Contains(out, asked) || !strings.Contains(out, turning) ||
				!strings.Contains(out, "\nbob\n") ||
				!strings.HasPrefix(said,
					"sudo asks for your face | /usr/bin/sudo -k -u bob id -un from ") {
				t.Errorf("%s\nnotices: %s\n%s", out, said, s.journal(t))
			}
			out = s.session(t, "alice", atDevice, how+sudo)
			if strings.Contains(out, turning) || !strings.Contains(out, "\nbob\n") ||
				notices() != "" {
				t.Errorf("without a desktop: %s\n%s", out, s.journal(t))
			}
		})
	}
	t.Run("a timer that was set from elsewhere", func(t *testing.T) {
		s.trust(t)
		out := s.later(t, "alice", typed("|alice", "sudo -k -u bob id -un"))
		if strings.Contains(out, turning) || !strings.Contains(out, "\nbob\n") {
			t.Errorf("%s\n%s", out, s.journal(t))
		}
	})
	t.Run("one failure", func(t *testing.T) {
		s.camera(t, "vidtimit_rot/p3")
		s.trust(t)
		try := byName + "--scope " + typed("|wrong", "timeout 30 sudo -k -u bob id -un")
		s.session(t, "alice", atDevice, showing("", try))
		if said := notices(); !strings.Contains(said, "asks for your face") {
			t.Fatalf("it did not look: %s\n%s", said, s.journal(t))
		}
		out := s.session(t, "alice", atDevice, showing("", try))
		if said := notices(); said != "" ||
			!strings.Contains(out, "Log in with your password first") {
			t.Errorf("%s\nnotices: %s\n%s", out, said, s.journal(t))
		}
		if out := s.run(t, "faceauth login history --user alice"); !strings.Contains(out,
			"service sudo, from outside the sessions (run-") {
			t.Errorf("the history: %s", out)
		}
		s.camera(t, "vidtimit_rot/p2")
		if a := s.console(t, "login", "", 0); !a.in || !strings.Contains(a.out, "outside your "+
			"sessions have asked for your face: sudo (run-") {
			t.Errorf("the next login: %s\n%s", a.out, s.journal(t))
		}
	})
	t.Run("Not me", func(t *testing.T) {
		s.trust(t)
		out := s.session(t, "alice", atDevice, showing("not-me", byName+"--scope "+sudo))
		if !strings.Contains(out, "did not ask for this") || !strings.Contains(out, "\nbob\n") {
			t.Errorf("%s\n%s", out, s.journal(t))
		}
		if out, _ := s.try(t, "faceauth login status --user alice"); !strings.Contains(out,
			"log in with the password first") {
			t.Errorf("the face still counts: %s", out)
		}
		notices()
	})
}

// sshd, unchanged, with a key: what somebody starts from there while the owner is at the device
// gets no look without a notification, whatever the unit is called. With one, she sees what asks.
func TestSSH(t *testing.T) {
	s := programs(t)
	needs(t, "sudo", "/usr/sbin/sshd", "ssh")
	s.run(t, "faceauth login allow sudo --challenge turn; sed -i '/pam_loginuid/d' /etc/pam.d/*; "+
		"grep -q pam_systemd /etc/pam.d/common-session || echo 'session optional pam_systemd.so' "+
		">>/etc/pam.d/common-session; mkdir -p /run/sshd; [ -e /root/k ] || ssh-keygen -q -t "+
		"ed25519 -N '' -f /root/k; "+
		"install -d -o alice -m 700 /home/alice/.ssh; install -o alice -m 600 /root/k.pub "+
		"/home/alice/.ssh/authorized_keys; ssh-keygen -A; systemd-run -q --unit=far-sshd "+
		"/usr/sbin/sshd -D -e")
	defer s.run(t, "systemctl stop far-sshd")
	const service = "systemd-run --user --pty --quiet --collect --unit=app-x1.service sudo -k " +
		"-u bob id -un"
	for _, c := range []struct {
		name, command string
		desktop       bool
	}{
		{"sudo", "sudo -k -u bob id -un", true},
		{"a service", service, false},
		{"a service, and a desktop that tells", service, true},
		{"a scope", "systemd-run --user --scope --quiet --collect --unit=app-x2.scope sudo -k " +
			"-u bob id -un", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.trust(t)
			s.run(t, "rm -f /tmp/over /tmp/far; install -m 666 /dev/null /srv/share/notices")
			far := "runuser -u root -- bash -c '" + strings.ReplaceAll(typed("|alice",
				"ssh -tt -o StrictHostKeyChecking=no -i /root/k alice@localhost "+c.command), "'",
				`'\''`) +
				" >/tmp/far 2>&1; touch /tmp/over'"
			done := make(chan string, 1)
			there := "touch /tmp/there; for i in {1..400}; do [ -e /tmp/over ] && break; sleep " +
				".1; done; rm /tmp/there"
			if c.desktop {
				there = showing("", there)
			}
			go func() { done <- s.session(t, "alice", atDevice, there) }()
			s.run(t, "for i in {1..100}; do [ -e /tmp/there ] && break; sleep .1; done; "+far)
			<-done
			out, said := s.run(t, "cat /tmp/far"), s.run(t, "cat /srv/share/notices")
			looks := c.desktop && c.command == service
			if strings.Contains(out, turning) != looks || !strings.Contains(out, "assword") ||
				strings.Contains(said, "sudo asks for your face") != looks ||
				looks && !strings.Contains(said, "from app-x1.service, /dev/pts/") {
				t.Errorf("%s\nnotices: %s\n%s", out, said, s.journal(t))
			}
		})
	}
}

// A login that somebody asks for from elsewhere, or that nobody asks for, while the owner sits at
// the device, gets no look, by any way, also with a challenge.
func TestSudoFromElsewhere(t *testing.T) {
	s := programs(t)
	needs(t, "sudo", "at", "atd")
	s.run(t, "faceauth login allow sudo --challenge turn")
	sudo := typed("", "sudo -k -u bob id -un")
	s.write(t, "/srv/share/far", sudo+" >/tmp/far 2>&1; touch /tmp/over\n")
	// there runs a command for alice while she is at the device, and returns what sudo says.
	there := func(command string) string {
		s.run(t, "rm -f /tmp/far /tmp/over /tmp/there; "+command)
		return s.session(t, "alice", atDevice, "touch /tmp/there\n"+
			"for i in {1..200}; do [ -e /tmp/over ] && break; sleep .1; done; cat /tmp/far")
	}
	const wait = "bash -c 'until [ -e /tmp/there ]; do sleep .05; done; bash /srv/share/far'"
	for name, run := range map[string]func() string{
		"a session from elsewhere": func() string { return s.session(t, "alice", elsewhere, sudo) },
		"a service of the system, as cron's": func() string {
			return there("systemd-run -q --collect --uid=alice " + wait)
		},
		"a timer of the system": func() string {
			return there("systemd-run -q --collect --on-active=1 " +
				"--timer-property=AccuracySec=100ms --uid=alice " + wait)
		},
		"a session without a seat, as machinectl's": func() string {
			return there("systemd-run -q --collect --uid=alice --property=PAMName=login " + wait)
		},
		"at": func() string {
			return there("systemctl start atd; cd /; echo \"" + wait +
				"\" | runuser -u alice -- at now")
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := run()
			if strings.Contains(out, asked) || !strings.Contains(out, "assword") ||
				strings.Contains(out, "\nbob\n") {
				t.Errorf("%s", out)
			}
		})
	}
}
