// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/socket"
)

// console is a login on a console of the device, by a program that only logs in.
func (s *system) console(t testing.TB, service, lines string, typing time.Duration) answered {
	t.Helper()
	out, _ := s.try(t, fmt.Sprintf("export TYPING=%d; ", typing.Milliseconds())+prompted(lines,
		"pamtester -I tty=tty7 "+service+" alice authenticate"), onConsole())
	return parse(t, out)
}

// In every fault of the daemon, the bus of logind or the store, the prompt appears at once, and a
// typed password is used at once: at most 50 ms and 200 ms later than in a login without faceauth.
// If the daemon ends, nobody waits for it.
func TestPromptFirst(t *testing.T) {
	s := people(t)
	s.write(t, "/etc/pam.d/plain", "auth required pam_unix.so nullok\n")
	s.write(t, "/etc/pam.d/only", "auth sufficient pam_faceauth.so\nauth required pam_deny.so\n")
	s.run(t, "echo 'greeter only' >>/etc/faceauth/services")
	prompt, total := time.Hour, time.Hour
	for range 3 {
		a := s.console(t, "plain", "alice", 0)
		if !a.in {
			t.Fatal(a.said)
		}
		prompt, total = min(prompt, a.prompt), min(total, a.total)
	}
	t.Logf("without faceauth: prompt %v, login %v", prompt, total)
	const daemon, dbus = "$(systemctl show -p MainPID --value faceauth)",
		"$(pidof dbus-daemon | tr ' ' '\\n' | sort -n | head -1)"
	for _, c := range []struct {
		name    string
		before  string
		between string // runs between the try by password and the try by face
		after   string
		in      bool          // whether the face lets in
		limit   time.Duration // the longest time of a try by face, refused or not
	}{
		{"warm", wake, "", "", true, 2 * time.Second},
		{"cold", "systemctl stop faceauth",
			"for i in {1..50}; do " + wake + " && break; sleep .1; done; systemctl stop faceauth",
			"", true,
			3 * time.Second},
		{"a daemon that hangs", wake + "; kill -STOP " + daemon, "", "kill -CONT " + daemon, false,
			4 * time.Second},
		{"a bus that hangs", wake + "; kill -STOP " + dbus, "", "kill -CONT " + dbus, false,
			4 * time.Second},
		{"a daemon that cannot start",
			"systemctl stop faceauth; mv /usr/bin/faceauth /usr/bin/faceauth.away", "",
			"mv /usr/bin/faceauth.away /usr/bin/faceauth; systemctl reset-failed faceauth; " +
				"systemctl start faceauth", false, 4 * time.Second},
		{"eyes that cannot start",
			"systemctl stop faceauth; mv /usr/bin/faceauth-eye /usr/bin/faceauth.away", "",
			"mv /usr/bin/faceauth.away /usr/bin/faceauth-eye; systemctl reset-failed faceauth; " +
				"systemctl start faceauth",
			false, 4 * time.Second},
		{"a broken store", "systemctl stop faceauth; cp -a /var/lib/faceauth /root/; " +
			"head -c 5000 /dev/urandom >/var/lib/faceauth/profiles", "",
			"systemctl stop faceauth; rm -rf /var/lib/faceauth/*; cp -a /root/faceauth/. " +
				"/var/lib/faceauth/; rm -r /root/faceauth; systemctl reset-failed faceauth; " +
				"systemctl start faceauth", false,
			4 * time.Second},
		{"no bus", "systemctl stop faceauth; mv /run/dbus/system_bus_socket /run/dbus/away", "",
			"mv /run/dbus/away /run/dbus/system_bus_socket", false, 4 * time.Second},
		{"a daemon that is masked", "systemctl mask --now --runtime faceauth", "",
			"systemctl unmask --runtime faceauth; systemctl restart faceauth.socket " +
				"faceauth-root.socket", false,
			4 * time.Second},
		{"no socket", "systemctl stop faceauth-root.socket faceauth", "",
			"systemctl reset-failed; systemctl restart faceauth.socket faceauth-root.socket",
			false, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer s.trust(t)
			login := func(service, lines string) string {
				return prompted(lines, "pamtester -I tty=tty7 "+service+" alice authenticate")
			}
			prompts := func() (a, f answered) {
				// All in one script, as no other script could start while the bus hangs.
				out, _ := s.try(t, c.before+strings.Repeat("\n"+login("login", "alice")+
					"\necho ====\n"+c.between, 3)+
					"\n"+login("only", "")+"\n"+c.after, onConsole())
				parts := strings.Split(out, "====\n")
				if len(parts) != 4 {
					t.Fatal(out)
				}
				a, f = parse(t, parts[0]), parse(t, parts[3])
				for _, more := range parts[1:3] {
					b := parse(t, more)
					a.in, a.prompt, a.total = a.in && b.in, min(a.prompt, b.prompt),
						min(a.total, b.total)
				}
				return a, f
			}
			// The machine is busy: the best of three tries counts, and the best of sixty if three
			// are not enough. What waits for the daemon or a bus is late in each.
			a, f := prompts()
			late := func() bool {
				return a.prompt > prompt+50*time.Millisecond ||
					a.total > total+200*time.Millisecond ||
					f.total > c.limit
			}
			for try := 1; try < 20 && late(); try++ {
				s.trust(t)
				b, g := prompts()
				a.in, a.prompt, a.total, f = a.in && b.in, min(a.prompt, b.prompt),
					min(a.total, b.total), g
			}
			if !a.in || a.prompt > prompt+50*time.Millisecond ||
				a.total > total+200*time.Millisecond {
				t.Errorf("the password: let in %t, prompt after %v, login after %v", a.in, a.prompt,
					a.total)
			}
			if f.in != c.in || f.total > c.limit {
				t.Errorf("the face: let in %t, want %t, prompt after %v, ended after %v\n%s\n%s",
					f.in, c.in, f.prompt, f.total, f.said, s.journal(t))
			}
			if off := c.name == "a daemon that is masked" || c.name == "no socket"; off &&
				strings.Contains(f.said, asked) {
				t.Errorf("the prompt offers the camera: %s", f.said)
			}
			t.Logf("password: prompt %v, login %v; face: prompt %v, ended %v", a.prompt, a.total,
				f.prompt, f.total)
		})
	}
}

// Neither the module nor the program waits for a daemon that is killed during a login.
func TestDaemonKilled(t *testing.T) {
	s := people(t)
	defer func() {
		s.camera(t, "vidtimit_rot/p2")
		s.run(t, "systemctl reset-failed faceauth")
		s.trust(t)
	}()
	s.camera(t, "vidtimit_rot/p3")
	for _, c := range []struct{ name, command string }{
		{"a login", "pamtester -I tty=tty7 quick alice authenticate"},
		{"faceauth login try", "faceauth login try --user alice"},
		{"faceauth login enroll", "faceauth login enroll --user bob"},
	} {
		s.write(t, "/etc/pam.d/quick",
			"auth sufficient pam_faceauth.so noprompt\nauth required pam_deny.so\n")
		s.run(t, "echo 'greeter quick' >>/etc/faceauth/services")
		const most = 300 * time.Millisecond
		took := time.Duration(math.MaxInt64)
		for try := 0; try < 5 && took > most; try++ { // a busy machine is slow now and then
			s.run(t, "systemctl reset-failed faceauth; "+wake)
			s.trust(t)
			out := s.run(t,
				"exec 3>&1; ( "+c.command+
					"; date +%s%N >&3 ) >/srv/share/said 2>&1 & sleep .7; date +%s%N; "+
					"systemctl kill -s KILL faceauth; wait", onConsole())
			lines := strings.Fields(out)
			if len(lines) != 2 {
				t.Fatalf("%s: %q", c.name, out)
			}
			killed, _ := strconv.ParseInt(lines[0], 10, 64)
			ended, _ := strconv.ParseInt(lines[1], 10, 64)
			if ended < killed {
				t.Fatalf("%s: it ended before the daemon was killed\n%s", c.name,
					s.run(t, "cat /srv/share/said"))
			}
			took = min(took, time.Duration(ended-killed))
		}
		if took > most {
			t.Errorf("%s: it ended %v after the daemon was killed\n%s", c.name, took,
				s.run(t, "cat /srv/share/said"))
		}
	}
}

// flood is the work of an insider that floods the daemon: with up to 10,000 requests a second, a
// connection each, and with connections that stay open and ask for nothing.
func flood() {
	n, _ := strconv.Atoi(os.Getenv("CONNECTIONS"))
	for i := range n {
		go func() {
			for kept := []net.Conn{}; ; time.Sleep(time.Second / 10000 * time.Duration(n)) {
				conn, err := net.Dial("unix", socket.Path)
				if err != nil {
					continue
				}
				if kept = append(kept, conn); i%2 == 0 || len(kept) > 100 {
					fmt.Fprintf(conn, "verify\t%s\t\t\t\t\t\t\n", strings.Repeat("x", 300*(i%3)))
					kept[0].Close()
					kept = kept[1:]
				}
			}
		}()
	}
	time.Sleep(time.Minute)
}

// While a user floods the daemon, a login takes at most half as long again as without, and the
// daemon's memory does not grow.
func TestFlooded(t *testing.T) {
	s := people(t)
	s.run(t, wake)
	// quickest is the best of three logins, as the machine is busy, and of nine if three are not
	// enough.
	quickest := func(connections int, limit time.Duration) time.Duration {
		best := time.Hour
		for try := 0; try < 3 || try < 9 && best > limit; try++ {
			a := s.console(t, "login", "", 0)
			if !a.in {
				t.Errorf("%d connections: not let in\n%s", connections, s.journal(t))
			}
			best = min(best, a.total)
			t.Logf("%d connections: prompt %v, login %v", connections, a.prompt, a.total)
		}
		return best
	}
	limit := quickest(0, time.Second) * 3 / 2
	for _, connections := range []int{1, 100} {
		s.run(t, fmt.Sprintf(
			"systemd-run --quiet --unit=flood --property=User=bob --setenv=%s=flood "+
				"--setenv=CONNECTIONS=%d /srv/share/insider", insider, connections))
		time.Sleep(2 * time.Second)
		if best := quickest(connections, limit); best > limit {
			t.Errorf("%d connections: the quickest login took %v, and may take %v", connections,
				best, limit)
		}
		out := s.run(t,
			"grep VmRSS /proc/$(systemctl show -p MainPID --value faceauth)/status | tr -dc 0-9")
		if kB, err := strconv.Atoi(out); err != nil || kB > 200<<10 {
			t.Errorf("%d connections: %s kB of memory, %v", connections, out, err)
		}
		s.run(t, "systemctl is-active flood; systemctl stop flood")
	}
}
