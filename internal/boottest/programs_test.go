// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
)

// needs skips the test without a program, which is installed for these tests.
func needs(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			fixture.Missing(t, "%v; sh scripts/setup.sh test installs it", err)
		}
	}
}

// typist starts a program on a terminal of its own, and answers its prompts for a password, and those of a shell, with
// one line after the other; ^C is Enter, and the key a second later. It prints all that the program has said, and its
// exit code.
const typist = `import os, pty, re, select, sys, termios, time
lines, said, answered, code = sys.argv[1].split("|"), b"", 0, None
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
end = time.monotonic() + 40
while time.monotonic() < end:
    try:
        if select.select([terminal], [], [], .1)[0]:
            said += os.read(terminal, 4096)
    except OSError:  # it has ended, or login opens its terminal anew
        time.sleep(.1)
    if code is None:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code, end = os.waitstatus_to_exitcode(status), time.monotonic() + .3
    if re.search(rb"((press Enter\)|assword[^\n]*): ?|\$ )$", said[answered:]) and code is None:
        answered = len(said)
        if not lines:
            break
        # pkttyagent drops what is typed before it has switched the echo off.
        while termios.tcgetattr(terminal)[3] & termios.ECHO and time.monotonic() < end:
            time.sleep(.02)
        line = lines.pop(0)
        os.write(terminal, line.strip("^C").encode() + b"\n")
        if line == "^C":
            time.sleep(1)
            os.write(terminal, b"\x03")
if code is None:
    os.kill(pid, 9)
print(said.decode(errors="replace").replace("\r", "") + "\ncode", code)
`

// typed returns a command that answers the prompts of another one on a terminal.
func typed(lines, command string) string {
	return "/usr/bin/python3 /srv/share/typist '" + lines + "' " + command
}

// programs is people with the typist, and with alice as an administrator.
func programs(t *testing.T) *system {
	t.Helper()
	s := people(t)
	s.write(t, "/srv/share/typist", typist)
	s.run(t, "adduser --quiet alice sudo; echo 'alice ALL=(ALL) ALL' >/etc/sudoers; chmod 440 /etc/sudoers")
	t.Cleanup(func() {
		s.camera(t, "vidtimit_rot/p2")
		s.run(t, "faceauth login allow sudo su polkit-1 --off; faceauth login allow su --challenge none")
		s.trust(t)
	})
	return s
}

const (
	inManager = "export XDG_RUNTIME_DIR=/run/user/$(id -u)\nsystemd-run --user --quiet --collect "
	asked     = "Password (or look into the camera and press Enter)"
	turning   = "Turn your head a little to your"
)

// What sudo, su and pkexec say on a terminal, for each way to allow them: the program and its arguments as they are,
// the gesture, and nothing where no face counts. In the terminals of GNOME and KDE, which run outside the session, a
// face counts with a challenge alone.
func TestSudo(t *testing.T) {
	needs(t, "sudo", "pkexec")
	s := programs(t)
	long := strings.Repeat("x", 500)
	const scope = inManager + "--scope --unit=vte-spawn-$RANDOM.scope "
	const service = inManager + "--pipe --wait "
	// The agent that pkexec itself brings is refused by polkit.
	const pkexec = "bash -c 'me=$BASHPID; pkttyagent --process $me & sleep 1; " +
		"pkexec --disable-internal-agent --user bob id -un; exit $?'"
	for _, c := range []struct {
		name, challenge, before, command, lines string
		says, never                             []string
	}{
		{"sudo", "none", "", "sudo -k -u bob id -un", "|alice",
			[]string{"Your face would allow the following. sudo: /usr/bin/sudo -k -u bob id -un (alice -> alice", asked,
				"\nbob\n", "code 0"}, []string{turning}},
		{"sudo with a gesture", "turn", "", "sudo -k -u bob id -un", "|alice",
			[]string{"Your face would allow the following. sudo: /usr/bin/sudo -k", turning, "\nbob\n"}, nil},
		{"sudo by another name", "none", "", `bash -c 'exec -a "sudo apt upgrade" sudo -k -u bob id -un'`, "|alice",
			[]string{"sudo: /usr/bin/sudo -k -u bob id -un (alice"}, []string{"apt upgrade"}},
		{"sudo with more than can be shown", "none", "", "sudo -k -u bob echo " + long, "alice",
			[]string{"... [+", "too long to be shown whole", long, "code 0"}, []string{asked}},
		{"sudo in a terminal of GNOME, with a gesture", "turn", scope, "sudo -k -u bob id -un", "|alice",
			[]string{asked, turning, "\nbob\n"}, nil},
		{"sudo in a terminal of GNOME, without one", "none", scope, "sudo -k -u bob id -un", "alice",
			[]string{"\nbob\n"}, []string{asked}},
		{"sudo in a service of the user", "turn", service, "sudo -k -u bob id -un", "alice",
			[]string{"\nbob\n"}, []string{asked}},
		{"su, and no face makes root yet", "", "", "su alice -c 'id -un'", "alice", []string{"\nalice\n"}, []string{asked}},
		{"su with a gesture", "turn", "", "su alice -c 'id -un'", "|alice",
			[]string{"su: /usr/bin/su alice -c id -un", turning}, nil},
		{"pkexec", "none", "", pkexec, "|alice", []string{"Your face would allow the following. polkit-1",
			asked, "AUTHENTICATION COMPLETE", "bob\n", "code 0"}, nil},
		{"pkexec with a gesture", "turn", "", pkexec, "|alice", []string{asked, turning,
			"AUTHENTICATION COMPLETE", "bob\n"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if s.run(t, "faceauth login allow sudo su polkit-1 --off"); c.challenge != "" {
				s.run(t, "faceauth login allow sudo su polkit-1 --challenge "+c.challenge)
			}
			s.trust(t)
			out := s.session(t, "alice", atDevice, c.before+typed(c.lines, c.command))
			for _, w := range c.says {
				if !strings.Contains(out, w) {
					t.Errorf("it does not say %q: %s\n%s", w, out, s.journal(t))
				}
			}
			for _, w := range c.never {
				if strings.Contains(out, w) {
					t.Errorf("it says %q: %s", w, out)
				}
			}
		})
	}
}

// ^C ends the wait for the camera at once in su and sudo.
func TestInterrupted(t *testing.T) {
	needs(t, "sudo")
	s := programs(t)
	s.camera(t, "vidtimit_rot/p3") // a stranger, for whom the camera looks five seconds
	s.run(t, "faceauth login allow sudo su --challenge none")
	for _, command := range []string{"su alice -c true", "sudo -k -u bob true"} {
		s.trust(t)
		out := s.session(t, "alice", atDevice, "begun=$(date +%s%N); "+typed("^C", command)+
			"; echo took $((($(date +%s%N)-begun)/1000000))")
		var took int
		_, last, _ := strings.Cut(out, "\ntook ")
		if _, err := fmt.Sscan(last, &took); err != nil || took < 1000 || took > 3000 || !strings.Contains(out, asked) {
			t.Errorf("%s: %s\n%s", command, out, s.journal(t))
		}
	}
}

// An administrator enrols without sudo: polkit asks for the password.
func TestEnrolByPolkit(t *testing.T) {
	needs(t, "pkexec")
	s := programs(t)
	s.run(t, "faceauth login allow polkit-1 --off; faceauth login forget --user alice")
	out := s.session(t, "alice", atDevice, typed("alice", "bash -c 'me=$BASHPID; pkttyagent --process $me & sleep 1; "+
		"faceauth login enroll; exit $?'"))
	for _, w := range []string{"manage the faces of logins", "AUTHENTICATION COMPLETE", "\nenrolled\n", "code 0"} {
		if !strings.Contains(out, w) {
			t.Errorf("it does not say %q: %s\n%s", w, out, s.journal(t))
		}
	}
	if a := s.console(t, "login", "", 0); !a.in {
		t.Errorf("the face, at once after the enrolment: %s\n%s", a.said, s.journal(t))
	}
}

// The program login, on a console of the device, lets in by Enter and the face, and by the password when somebody else
// is there.
func TestConsole(t *testing.T) {
	needs(t, "login")
	s := programs(t)
	// There are no consoles here. One is made of a terminal that is seen nowhere else.
	const login = `bash -c 'touch /dev/tty33; mount --bind $(tty) /dev/tty33; umount -l /dev/pts; exec login alice'`
	s.run(t, "sed -i '/pam_loginuid/d' /etc/pam.d/login")
	for camera, lines := range map[string]string{"p2": "", "p3": "|alice"} {
		t.Run(camera, func(t *testing.T) {
			s.camera(t, "vidtimit_rot/"+camera)
			s.trust(t)
			out, _ := s.try(t, typed(lines+"|echo $(id -un) is in; exit", login), "--unit=getty@tty33.service",
				"--property=PrivateMounts=yes")
			if !strings.Contains(out, asked) || !strings.Contains(out, "\nalice is in\n") {
				t.Errorf("%s\n%s", out, s.journal(t))
			}
		})
	}
}

// A login that somebody asks for from elsewhere, or that nobody asks for, while the owner sits at the device, gets no
// look, by any way, also with a challenge.
func TestSudoFromElsewhere(t *testing.T) {
	needs(t, "sudo", "at", "atd")
	s := programs(t)
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
		"a timer of hers":          func() string { return s.later(t, "alice", sudo) },
		"a service of the system, as cron's": func() string {
			return there("systemd-run -q --collect --uid=alice " + wait)
		},
		"a timer of the system": func() string {
			return there("systemd-run -q --collect --on-active=1 --timer-property=AccuracySec=100ms --uid=alice " + wait)
		},
		"a session without a seat, as machinectl's": func() string {
			return there("systemd-run -q --collect --uid=alice --property=PAMName=login " + wait)
		},
		"at": func() string {
			return there("systemctl start atd; cd /; echo \"" + wait + "\" | runuser -u alice -- at now")
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := run()
			if strings.Contains(out, asked) || !strings.Contains(out, "assword") || strings.Contains(out, "\nbob\n") {
				t.Errorf("%s", out)
			}
		})
	}
}
