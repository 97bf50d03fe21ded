// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/socket"
)

// The items and environment of PAM for a session at the device, and for a session from elsewhere.
const (
	atDevice  = "-E XDG_SEAT=seat0 -E XDG_SESSION_TYPE=wayland -E XDG_SESSION_CLASS=user"
	elsewhere = "-I rhost=far.example -I tty=pts/1 -E XDG_SESSION_TYPE=tty -E " +
		"XDG_SESSION_CLASS=user"
)

var consoles atomic.Int32

// onConsole runs a script in the unit of a console, as login does. Each has a number of its own,
// because systemd may remember the one before for a moment.
func onConsole() string { return fmt.Sprintf("--unit=getty@tty%d.service", 6+consoles.Add(1)) }

// session runs a script in a session of a user, and returns its output.
func (s *system) session(t testing.TB, user, kind, script string) string {
	t.Helper()
	s.write(t, "/srv/share/in-session", "#!/bin/bash\n[ \"$PAM_TYPE\" = open_session ] && "+
		"[ -n \"$XDG_SESSION_ID\" ] || exit 0\n"+
		"loginctl activate \"$XDG_SESSION_ID\" 2>/dev/null\n"+
		"export LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"+
		"setpriv --reuid $PAM_USER --regid $PAM_USER --init-groups bash /srv/share/script "+
		">/srv/share/out 2>&1 "+
		"</dev/null\nexit 0\n")
	s.write(t, "/srv/share/script", script+"\n")
	s.run(t, "chmod 755 /srv/share/in-session; install -m 666 /dev/null /srv/share/out")
	const opened = "successfully opened a session"
	out := ""
	for try := 0; try < 9 && !strings.Contains(out, opened); try++ {
		// pam_systemd makes none now and then, on a busy machine
		out, _ = s.try(t, "pamtester "+kind+" boot-session "+user+" open_session close_session")
	}
	b := fixture.Must(os.ReadFile(filepath.Join(s.dir, "out")))(t)
	if !strings.Contains(out, opened) {
		t.Fatalf("no session: %s\n%s", out, b)
	}
	return string(b)
}

// later runs a command in a timer that a user sets in a session from elsewhere, and returns its
// output. When the timer goes off, that session has ended, and the user is at the device.
func (s *system) later(t testing.TB, user, command string) string {
	t.Helper()
	s.run(t, "loginctl enable-linger "+user+"; rm -f /tmp/there /tmp/later /tmp/over")
	defer s.run(t, "loginctl disable-linger "+user)
	s.write(t, "/srv/share/later", "until [ -e /tmp/there ]; do sleep .05; done\n"+command+
		" >/tmp/later 2>&1\n"+
		"touch /tmp/over\n")
	s.session(t, user, elsewhere,
		"export XDG_RUNTIME_DIR=/run/user/$(id -u)\nsystemd-run --user --quiet "+
			"--on-active=1 --timer-property=AccuracySec=100ms bash /srv/share/later")
	return s.session(t, user, atDevice,
		"touch /tmp/there\nfor i in {1..200}; do [ -e /tmp/over ] && break; "+
			"sleep .1; done; cat /tmp/later")
}

// prompter is the work of this program as an insider that answers prompts. It runs a command and
// answers each prompt with a line. It reports the whole output, and how long the first prompt took
// to appear.
func prompter() {
	lines := strings.Split(os.Getenv("LINES_TYPED"), "|")
	c := exec.Command(os.Args[1], os.Args[2:]...)
	in, err := c.StdinPipe()
	if err != nil {
		panic(err)
	}
	out, err := c.StderrPipe()
	if err != nil {
		panic(err)
	}
	c.Stdout = os.Stdout
	begun := time.Now()
	if err := c.Start(); err != nil {
		panic(err)
	}
	prompt := time.Duration(0)
	said := ""
	for r, n := bufio.NewReader(out), 0; ; {
		b, err := r.ReadByte()
		if err != nil {
			break
		}
		said += string(b)
		if strings.HasSuffix(said, ": ") && n >= len(lines) {
			in.Close() // nothing more is typed
		} else if strings.HasSuffix(said, ": ") {
			if prompt == 0 {
				prompt = time.Since(begun)
			}
			time.Sleep(typing())
			fmt.Fprintln(in, lines[n])
			n++
		}
	}
	in.Close()
	err = c.Wait()
	fmt.Printf("prompt %d total %d in %t\n%s\n", prompt.Milliseconds(),
		(time.Since(begun) - typing()).Milliseconds(), err == nil, said)
}

// typing is the time that a person takes to answer a prompt.
func typing() time.Duration {
	ms, _ := strconv.Atoi(os.Getenv("TYPING"))
	return time.Duration(ms) * time.Millisecond
}

// answered is the report of a prompter.
type answered struct {
	prompt, total time.Duration
	in            bool
	said          string // on the terminal of the prompt
	out           string // all of it
}

func parse(t testing.TB, out string) answered {
	t.Helper()
	m := regexp.MustCompile(`(?s)prompt (\d+) total (\d+) in (\w+)\n(.*)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no login was tried: %s", out)
	}
	ms := func(s string) time.Duration {
		n, _ := strconv.Atoi(s)
		return time.Duration(n) * time.Millisecond
	}
	return answered{ms(m[1]), ms(m[2]), m[3] == "true", m[4], out}
}

// prompted returns a command with which a script answers prompts.
func prompted(lines, command string) string {
	return "env " + insider + "=prompt LINES_TYPED='" + lines + "' /srv/share/insider " + command
}

// people enrols alice with the recording p2, reports that she gave her password, and starts the
// daemon anew.
func people(t *testing.T) *system {
	t.Helper()
	s := boot(t)
	s.run(t, "systemctl reset-failed faceauth; systemctl stop faceauth")
	s.camera(t, "vidtimit_rot/p2")
	if _, code := s.try(t, "faceauth login status --user alice"); code != 0 {
		out := s.run(t, "faceauth login enroll --user alice")
		t.Logf("enrolling: %s", out)
	}
	s.run(t, "faceauth login allow su --challenge none")
	s.trust(t)
	return s
}

// trust reports to the daemon that alice gave her password.
func (s *system) trust(t testing.TB) {
	t.Helper()
	s.run(t, "for asker in 0 $(id -u bob); do "+ask("password", "alice", "$asker", "", "")+"; done")
}

// ask returns a command that asks the daemon, and prints the last answer.
func ask(fields ...string) string {
	return "env " + insider + `=ask /srv/share/insider "` + strings.Join(fields, `" "`) + `"`
}

// asker is the work of this program as an insider that asks the daemon. It succeeds if it is not
// refused.
func asker() {
	path := socket.Path
	if os.Geteuid() == 0 {
		path += socket.ForRoot
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Fprintf(conn, "%s\nask\n", strings.Join(os.Args[1:], "\t"))
	last := ""
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		last = lines.Text()
	}
	fmt.Println(last)
	if !strings.HasPrefix(last, "ok ") && last != "end match" {
		os.Exit(1)
	}
}

// A profile belongs to the system's account: not to a later one with the same name and number, and
// not to one that is locked or has expired.
func TestAccounts(t *testing.T) {
	s := people(t)
	s.camera(t, "vidtimit_rot/p5")
	t.Cleanup(func() {
		s.camera(t, "vidtimit_rot/p2")
		s.try(t, "faceauth login forget --user carol; userdel carol")
		s.trust(t)
	})
	s.run(t, "useradd -u 4321 -m -s /bin/bash carol; echo carol:carol | chpasswd; faceauth login "+
		"enroll --user carol")
	login := func(lines string) answered {
		t.Helper()
		out, _ := s.try(t, prompted(lines, "pamtester -I tty=tty7 login carol authenticate"),
			onConsole())
		time.Sleep(300 * time.Millisecond) // until the daemon was told of the password
		return parse(t, out)
	}
	in := func(what, lines string, want bool) answered {
		t.Helper()
		a := login(lines)
		if a.in != want {
			t.Errorf("%s: let in %t, want %t: %s\n%s", what, a.in, want, a.said, s.journal(t))
		}
		return a
	}
	in("the face, at once after the enrolment by root", "", true)
	in("the password", "carol", true)
	for _, c := range []struct{ off, on string }{
		{"passwd -l carol", "passwd -u carol"},
		{"chage -E 2001-01-01 carol", "chage -E -1 carol"},
	} {
		s.run(t, c.off)
		if a := in(c.off, "", false); !strings.Contains(a.out, "locked or has expired") {
			t.Errorf("%s: it says %s", c.off, a.out)
		}
		s.run(t, c.on)
		in(c.on, "", true)
	}
	for command, again := range map[string]string{
		"userdel carol":         "useradd -u 4321 -s /bin/bash carol",
		"deluser --quiet carol": "adduser --quiet --uid 4321 --disabled-password --gecos '' carol",
	} {
		if _, code := s.try(t, "test -x /usr/sbin/"+strings.Fields(command)[0]); code != 0 {
			continue
		}
		s.run(t, command)
		in(command, "", false)
		out, code := s.try(t, "faceauth login try --user carol")
		if code == 0 || !strings.Contains(out, "no user") {
			t.Errorf("after %s: %s", command, out)
		}
		s.run(t, again+"; echo carol:other | chpasswd")
		in("the new user's password", "other", true)
		in("the face after "+command+" and the new password", "", false)
		// The user has only changed the password: the next one, within a minute after the face,
		// shows it.
		in("the password after the face", "other", true)
		in("the face of the new account", "", true)
	}
	// Enrolled again, and removed before the first login.
	s.run(t, "faceauth login forget --user carol; faceauth login enroll --user carol; userdel "+
		"carol; useradd -u 4321 -s /bin/bash carol; echo carol:third | chpasswd")
	in("the new user's password", "third", true)
	in("the face of the user before", "", false)
	s.run(t, "passwd -d carol")
	if a := login(""); !a.in || a.total > time.Second || strings.Contains(a.said, "camera") {
		t.Errorf("an account without a password: let in %t after %v: %s", a.in, a.total, a.said)
	}
}

// Users of other sources than /etc/passwd enrol and log in, too, though the daemon is built without
// cgo.
func TestOtherSources(t *testing.T) {
	s := people(t)
	t.Cleanup(func() {
		s.try(t, "faceauth login forget --user dave; rm /etc/userdb/*; mv /etc/nsswitch.before "+
			"/etc/nsswitch.conf")
		s.camera(t, "vidtimit_rot/p2")
	})
	s.write(t, "/etc/userdb/dave.user",
		`{"userName":"dave","uid":4400,"gid":4400,"homeDirectory":"/","disposition":"regular"}`+
			"\n")
	s.write(t, "/etc/userdb/dave.group", `{"groupName":"dave","gid":4400}`+"\n")
	s.run(t, "cd /etc/userdb; ln -s dave.user 4400.user; ln -s dave.group 4400.group; "+
		"cp /etc/nsswitch.conf /etc/nsswitch.before; sed -i 's/^\\(passwd\\|group\\):.*/\\1: "+
		"files systemd/' "+
		"/etc/nsswitch.conf; systemctl stop faceauth; ! grep dave /etc/passwd; getent passwd dave")
	s.camera(t, "vidtimit_rot/p5")
	s.run(t, "faceauth login enroll --user dave")
	s.run(t, ask("password", "dave", "0", "", ""))
	s.run(t, "faceauth login try --user dave")
	// Both ways: from the name to the number, and back.
	if out, _ := s.try(t, "faceauth login status", "--uid=4400"); !strings.Contains(out,
		"a login by face may begin") {
		t.Errorf("dave asks: %s\n%s", out, s.journal(t))
	}
	if out, code := s.try(t, "faceauth login enroll --user nobody-at-all"); code == 0 ||
		!strings.Contains(out, "no user of this system") {
		t.Errorf("an unknown user: %s", out)
	}
}

// Only a password that was checked restarts the 48 hours and the count of failures, and not what
// else lets in. A login from elsewhere by password starts neither the daemon nor an eye.
func TestOnlyPasswords(t *testing.T) {
	s := people(t)
	defer s.trust(t)
	other := func(module string) string {
		return "auth [success=3 default=ignore] pam_faceauth.so\n" +
			"auth [success=2 default=ignore] pam_unix.so try_first_pass\n" +
			"auth [success=1 default=ignore] " + module + "\nauth requisite pam_deny.so\n" +
			"auth optional pam_faceauth.so password\nauth required pam_permit.so\n"
	}
	s.write(t, "/etc/pam.d/finger-true", other("pam_exec.so quiet /bin/true"))
	s.write(t, "/etc/pam.d/empty", other("pam_permit.so"))
	s.run(t, "echo 'greeter finger-true' >>/etc/faceauth/services; echo 'greeter empty' "+
		">>/etc/faceauth/services")
	told := func() int {
		return strings.Count(s.run(t, "journalctl -q --no-pager -o cat -u faceauth"),
			"password used")
	}
	s.camera(t, "vidtimit_rot/p3") // a stranger
	for _, c := range []struct {
		name, service, lines string
		told                 int
	}{
		{"the password", "finger-true", "alice", 1},
		{"a wrong password, and then a finger", "finger-true", "guess", 0},
		{"no password, and then a finger", "finger-true", "|", 0},
		{"no password, and then nothing is checked", "empty", "|", 0},
	} {
		s.run(t, wake)
		before := told()
		a := s.console(t, c.service, c.lines, 0)
		time.Sleep(300 * time.Millisecond)
		if n := told() - before; !a.in || n != c.told {
			t.Errorf("%s: let in %t, and the daemon was told %d times, want %d: %s", c.name, a.in,
				n, c.told, a.said)
		}
	}
	s.camera(t, "vidtimit_rot/p2")
	// The face lets in, and then the password with the same handle of PAM.
	s.trust(t)
	before := told()
	out, _ := s.try(t, prompted("|alice",
		"pamtester -I tty=tty7 login alice authenticate authenticate"), onConsole())
	time.Sleep(300 * time.Millisecond)
	if n := told() - before; !parse(t, out).in || strings.Contains(out, "Not recognised") ||
		n != 1 {
		t.Errorf("a face and then the password: the daemon was told %d times: %s", n, out)
	}
	s.run(t, "systemctl stop faceauth")
	if out, _ := s.try(t, prompted("alice",
		"pamtester -I rhost=far.example -I tty=pts/5 login alice authenticate"),
		onConsole()); !parse(t, out).in {
		t.Errorf("the password from elsewhere: %s", out)
	}
	s.session(t, "bob", elsewhere, prompted("alice", "su alice -c true"))
	// A mail server checks passwords, too.
	needs(t, "saslauthd", "testsaslauthd")
	s.run(t, "cp /etc/pam.d/common-auth /etc/pam.d/smtp; echo 'account required pam_permit.so' "+
		">>/etc/pam.d/smtp; mkdir -p /tmp/sasl; systemd-run -q --unit=sasl saslauthd -d -a pam "+
		"-m /tmp/sasl")
	defer s.run(t, "systemctl stop sasl")
	if out := s.run(t, "for i in {1..50}; do [ -S /tmp/sasl/mux ] && break; sleep .1; done; "+
		"testsaslauthd -u alice -p alice -s smtp -f /tmp/sasl/mux"); !strings.Contains(out,
		"Success") {
		t.Errorf("saslauthd: %s", out)
	}
	if out, code := s.try(t, "sleep .3; systemctl is-active faceauth 'faceauth-eye@*'"); code == 0 {
		t.Errorf("after a login from elsewhere: %s", out)
	}
}

// Only a user with an active session at the device may use the camera.
func TestWhoMayAsk(t *testing.T) {
	s := people(t)
	looked := func() int {
		return strings.Count(s.run(t, "journalctl -q --no-pager -o cat -u faceauth"), "msg=verify ")
	}
	face := prompted("", "su alice -c true")
	const byManager = "export XDG_RUNTIME_DIR=/run/user/$(id -u)\n" +
		"systemd-run --user --pipe --wait --quiet "
	const lock = "busctl call org.freedesktop.login1 /org/freedesktop/login1/session/auto " +
		"org.freedesktop.login1.Session SetLockedHint b true\n"
	// verify is a login of alice without PAM, which ends in the report of a prompter.
	verify := prompted("", "faceauth login try")
	s.write(t, "/etc/pam.d/vpn", "@include common-auth\n@include common-account\n")
	for _, c := range []struct {
		name string
		look bool
		run  func() string
	}{
		{"a session at the device", true, func() string {
			return s.session(t, "bob", atDevice, face)
		}},
		{"a session from elsewhere", false, func() string {
			return s.session(t, "bob", elsewhere, face)
		}},
		{"a service of a user at the device", false, func() string {
			return s.session(t, "bob", atDevice, byManager+face)
		}},
		{"a service of the user at the device, without PAM", false, func() string {
			return s.session(t, "alice", atDevice, byManager+verify)
		}},
		{"a timer of the user, set from elsewhere, at the socket", false, func() string {
			return s.later(t, "alice", prompted("", ask("verify", "", "", "", "", "", "", "")))
		}},
		{"a program of the user in a session from elsewhere", false, func() string {
			return s.session(t, "alice", elsewhere, verify)
		}},
		{"a program of the user in a session at the device", true, func() string {
			return s.session(t, "alice", atDevice, verify)
		}},
		{"a locker under the manager of a user whose session is locked", true, func() string {
			return s.session(t, "alice", atDevice, lock+byManager+verify)
		}},
		{"sudo or su there", false, func() string {
			return s.session(t, "bob", atDevice, lock+byManager+face)
		}},
		{"a service that is not listed, with an empty password", false, func() string {
			out, _ := s.try(t, prompted("", "pamtester vpn alice authenticate"))
			return out
		}},
		{"a service that is not listed, at the device", false, func() string {
			out, _ := s.try(t, prompted("", "pamtester -I tty=tty7 vpn alice authenticate"),
				onConsole())
			return out
		}},
		{"a greeter", true, func() string {
			out, _ := s.try(t, prompted("", "pamtester -I tty=tty7 login alice authenticate"),
				onConsole())
			return out
		}},
		{"a greeter that does not say where it is", false, func() string {
			out, _ := s.try(t, prompted("", "pamtester login alice authenticate"), onConsole())
			return out
		}},
		{"a greeter on a network", false, func() string {
			out, _ := s.try(t, prompted("",
				"pamtester -I tty=pts/5 -I rhost=far.example login alice authenticate"))
			return out
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := looked()
			a := parse(t, c.run())
			// Wait for the log.
			for end := time.Now().Add(3 * time.Second); c.look && looked() == before &&
				time.Now().Before(end); {
				time.Sleep(20 * time.Millisecond)
			}
			if a.in != c.look || (looked() > before) != c.look {
				t.Errorf("let in %t, looked %t, want %t\n%s\n%s", a.in, looked() > before, c.look,
					a.said, s.journal(t))
			}
			if prompt := strings.Contains(a.said, "Enter for face"); prompt && !c.look {
				t.Errorf("the prompt: %s", a.said)
			}
		})
	}
	// If users other than root may write the list, the list does not count.
	s.run(t, "chmod 666 /etc/faceauth/services")
	if a := parse(t, s.session(t, "bob", atDevice, face)); a.in {
		t.Error("a list that everybody may write was believed")
	}
	s.run(t, "chmod 644 /etc/faceauth/services")
}
