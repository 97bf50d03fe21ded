// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
)

// has reports whether the system has a program.
func has(program string) bool {
	places := []string{"/usr/bin/", "/usr/sbin/"}
	if filepath.IsAbs(program) {
		places = []string{"/"}
	}
	return slices.ContainsFunc(places, func(at string) bool {
		_, err := os.Stat(filepath.Join(base, at, program))
		return err == nil
	})
}

// needs skips the test without a program, which is installed for these tests.
func needs(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if !has(p) {
			fixture.Missing(t, "there is no %s; install it (sh scripts/setup.sh system installs "+
				"most of what these tests want)", p)
		}
	}
}

// newer skips the test if a command is of a program that only a newer release has.
func newer(t testing.TB, command string) {
	t.Helper()
	if p, _, _ := strings.Cut(command, " "); (p == "sudo-rs" || p == "run0") && !has(p) {
		t.Skip("this release has no " + p)
	}
}

// typist starts a program on a terminal of its own, and answers its prompts for a password, and
// those of a shell, with one line after the other. A line that begins with ^ is Enter, and the rest
// of it when the camera looks, where C is the key Ctrl-C and M is Enter. It prints all that the
// program has said, and its exit code.
const typist = `import os, pty, re, select, sys, termios, time
lines, said, answered, code, late = sys.argv[1].split("|"), b"", 0, None, None
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
end = time.monotonic() + 50
while time.monotonic() < end:
    try:
        if select.select([terminal], [], [], .1)[0]:
            said += os.read(terminal, 4096)
    except OSError:  # it has ended, or login opens its terminal anew
        time.sleep(.1)
    if code is None:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            try:  # what it has said is there at once, however slow this is
                while select.select([terminal], [], [], .3)[0]:
                    said += os.read(terminal, 4096)
            except OSError:
                pass
            break
    if late and b"Looking" in said[answered:]:
        os.write(terminal, late)
        late = None
    if re.search(rb"(assword[^\n]*: ?|\$ )$", said[answered:]):
        answered = len(said)
        if not lines:
            break
        # pkttyagent drops what is typed before it has switched the echo off.
        while termios.tcgetattr(terminal)[3] & termios.ECHO and time.monotonic() < end:
            time.sleep(.02)
        line = lines.pop(0)
        if line.startswith("^"):
            late, line = line[1:].replace("C", "\x03").replace("M", "\n").encode(), ""
        os.write(terminal, line.encode() + b"\n")
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
	s.run(t, "adduser --quiet alice sudo; echo 'alice ALL=(ALL) ALL' >/etc/sudoers; chmod 440 "+
		"/etc/sudoers")
	t.Cleanup(func() {
		s.camera(t, "vidtimit_rot/p2")
		s.run(t, "faceauth login allow sudo su polkit-1 --off; faceauth login allow su "+
			"--challenge none")
		s.trust(t)
	})
	return s
}

const (
	inManager = "export XDG_RUNTIME_DIR=/run/user/$(id -u)\nsystemd-run --user --quiet --collect "
	asked     = "Password (Enter for face)"
	turning   = "Turn your head a little to your"
)

// What sudo, su and pkexec say on a terminal, for each way to allow them: the program and its
// arguments as they are, the gesture, and nothing where no face counts. In the terminals of GNOME
// and KDE, which run outside the session, a face counts with a challenge alone.
func TestSudo(t *testing.T) {
	needs(t, "sudo", "pkexec")
	s := programs(t)
	long := strings.Repeat("x", 500)
	const scope = inManager + "--scope --unit=vte-spawn-$RANDOM.scope "
	// The agent that pkexec itself brings is refused by polkit.
	const pkexec = "bash -c 'me=$BASHPID; pkttyagent --process $me & sleep 1; " +
		"pkexec --disable-internal-agent --user bob id -un; exit $?'"
	for _, c := range []struct {
		name, challenge, before, command, lines string
		says, never                             []string
	}{
		{"sudo", "none", "", "sudo -k -u bob id -un", "|alice",
			[]string{"Your face would allow the following as bob: /usr/bin/sudo -k -u bob id -un " +
				"(alice, session-", asked,
				"Looking; type", "\nbob\n", "code 0"}, []string{turning}},
		{"sudo for root", "none", "", "sudo -k id -un", "|alice",
			[]string{"the following as root: /usr/bin/sudo -k id -un (",
				"\nroot\n", "code 0"}, nil},
		{"sudo -i", "none", "", "sudo -k -i id -un", "|alice",
			[]string{"the following as root: /usr/bin/sudo -k -i id -un (",
				"\nroot\n", "code 0"}, nil},
		{"sudo with a gesture", "turn", "", "sudo -k -u bob id -un", "|alice",
			[]string{"as bob: /usr/bin/sudo -k", turning, "\nbob\n"}, nil},
		{"sudo by another name", "none", "",
			`bash -c 'exec -a "sudo apt upgrade" sudo -k -u bob id -un'`, "|alice",
			[]string{"as bob: /usr/bin/sudo -k -u bob id -un (alice"}, []string{"apt upgrade"}},
		{"sudo with more than can be shown", "none", "", "sudo -k -u bob echo " + long, "alice",
			[]string{"... [+", "too long to be shown whole", long, "code 0"}, []string{asked}},
		{"sudo in a terminal of GNOME, without one", "none", scope, "sudo -k -u bob id -un",
			"alice",
			[]string{"\nbob\n"}, []string{asked}},
		{"su, and no face makes root yet", "", "", "su alice -c 'id -un'", "alice",
			[]string{"\nalice\n"}, []string{asked}},
		{"su with a gesture", "turn", "", "su alice -c 'id -un'", "|alice",
			[]string{"as alice: /usr/bin/su alice -c id -un", turning}, nil},
		{"su -", "none", "", "su - alice -c 'id -un'", "|alice",
			[]string{"as alice: /usr/bin/su - alice -c id -un", "\nalice\n", "code 0"}, nil},
		{"sudo-rs", "none", "", "sudo-rs -k -u bob id -un", "|alice",
			[]string{"as bob: /usr/lib/cargo/bin/sudo -k -u bob id -un (alice, session-", asked,
				"Looking; type", "\nbob\n", "code 0"}, nil},
		{"run0", "none", "", "run0 -u bob id -un", "|alice",
			[]string{"Your face would allow this: press Space and Enter.", asked, "bob\n",
				"code 0"}, nil},
		{"pkexec", "none", "", pkexec, "|alice",
			[]string{"Your face would allow this: press Space and Enter.", asked,
				"AUTHENTICATION COMPLETE", "bob\n", "code 0"}, nil},
		{"pkexec, and a blank for a dialog that sends no empty answer", "none", "", pkexec,
			" |alice", []string{"Looking",
				"AUTHENTICATION COMPLETE", "bob\n", "code 0"}, nil},
		{"pkexec with a gesture", "turn", "", pkexec, "|alice", []string{asked, turning,
			"AUTHENTICATION COMPLETE", "bob\n"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			newer(t, c.command)
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

// While the camera looks, ^C leads to the password in sudo, whose command then runs, and ends su,
// sudo-rs and run0, as at their own prompts; and a password that is typed is taken at once, and
// shown nowhere. A second Enter is nothing.
func TestInterrupted(t *testing.T) {
	needs(t, "sudo")
	s := programs(t)
	s.camera(t, "vidtimit_rot/p3") // a stranger, for whom the camera looks five seconds
	s.run(t, "faceauth login allow sudo su polkit-1 --challenge none")
	const su, sudo = "su alice -c 'id -un'", "sudo -k -u bob id -un"
	const sudoRS, run0 = "sudo-rs -k -u bob id -un", "run0 -u bob id -un"
	for _, c := range []struct{ lines, command, says, never string }{
		{"^C|alice", sudo, "\nbob\n\ncode 0", "alice\n"},
		{"^C", su, "code -2", ""},
		{"^alice!\x7fM", sudo, "\nbob\n\ncode 0", "alice!"},
		{"^MMaliceM", sudo, "\nbob\n\ncode 0", "alice\n"},
		{"^aliceM", su, "\nalice\n\ncode 0", "alice\n\nalice"},
		{"^guessM|alice", sudo, "\nbob\n\ncode 0", "guess"},
		{"^C", sudoRS, "code -2", ""},
		{"^aliceM", sudoRS, "\nbob\n\ncode 0", "alice\n"},
		{"^C", run0, "code -2", ""},
		{"^aliceM", run0, "AUTHENTICATION COMPLETE", "end it.\nalice"},
	} {
		t.Run(c.command+" "+c.lines, func(t *testing.T) {
			newer(t, c.command)
			s.trust(t)
			out := s.session(t, "alice", atDevice, typed(c.lines, c.command))
			if !strings.Contains(out, asked) || !strings.Contains(out, c.says) || c.never != "" &&
				strings.Contains(out, c.never) {
				t.Errorf("%s\n%s", out, s.journal(t))
			}
			last := s.run(t,
				"journalctl -q --no-pager -o cat -u faceauth | grep 'msg=verify ' | tail -n 1")
			if strings.Contains(last, "took=5.") {
				t.Errorf("the camera looked on: %s", last)
			}
		})
	}
}

// An administrator enrols without sudo: polkit asks for the password.
func TestEnrolByPolkit(t *testing.T) {
	needs(t, "pkexec")
	s := programs(t)
	s.run(t, "faceauth login allow polkit-1 --off; faceauth login forget --user alice")
	out := s.session(t, "alice", atDevice,
		typed("alice", "bash -c 'me=$BASHPID; pkttyagent --process $me & sleep 1; "+
			"faceauth login enroll; exit $?'"))
	for _, w := range []string{"manage the faces of logins", "AUTHENTICATION COMPLETE",
		"\nenrolled\n", "code 0"} {
		if !strings.Contains(out, w) {
			t.Errorf("it does not say %q: %s\n%s", w, out, s.journal(t))
		}
	}
	if a := s.console(t, "login", "", 0); !a.in {
		t.Errorf("the face, at once after the enrolment: %s\n%s", a.said, s.journal(t))
	}
}

// The program login, on a console of the device, lets in by Enter and the face, and by the password
// when somebody else is there. ^C while the camera looks does what it does at login's own prompt:
// it ends that of Debian 12, and nothing in that of util-linux.
func TestConsole(t *testing.T) {
	needs(t, "login")
	s := programs(t)
	// There are no consoles here. One is made of a terminal that is seen nowhere else.
	const login = `bash -c 'touch /dev/tty33; mount --bind $(tty) /dev/tty33; umount -l /dev/pts; exec login alice'`
	s.run(t, "sed -i '/pam_loginuid/d' /etc/pam.d/login")
	const in = "\nalice is in\n"
	ended := in
	if out, _ := s.try(t, "login --version"); !strings.Contains(out, "util-linux") {
		ended = "code -2"
	}
	for _, c := range []struct{ camera, lines, want string }{{"p2", "", in}, {"p3", "|alice", in},
		{"p3", "^C|alice", ended}} {
		t.Run(c.camera+" "+c.lines, func(t *testing.T) {
			s.camera(t, "vidtimit_rot/"+c.camera)
			s.trust(t)
			out, _ := s.try(t, typed(c.lines+"|echo $(id -un) is in; exit", login),
				"--unit=getty@tty33.service", "--property=PrivateMounts=yes")
			if !strings.Contains(out, asked) || !strings.Contains(out, c.want) {
				t.Errorf("%s\n%s", out, s.journal(t))
			}
		})
	}
}
