// SPDX-License-Identifier: Apache-2.0

// Package boottest boots a copy of the running Linux system, installs faceauth on it as
// docs/login.md says, and tries logins and attacks. So it tests how the units, polkit, logind and
// PAM work together. BASE names the root of another system to boot a copy of, which
// packaging/tree.sh has made, with the project's programs in it.
package boottest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
)

// system is a booted system with faceauth installed. Its users are alice and bob, and their
// passwords are their names. All tests share it, one after the other.
type system struct {
	dir  string // the folder that is /srv/share in the system
	pid  string // the number of its first process
	stop func()
}

// booted is the system that all these tests share.
var booted *system

func TestMain(m *testing.M) {
	switch os.Getenv(insider) {
	case "":
	case "prompt":
		prompter()
		return
	case "flood":
		flood()
		return
	case "ask":
		asker()
		return
	case "desktop":
		desktop()
		return
	default:
		tryAll()
		return
	}
	code := m.Run()
	if booted != nil {
		booted.stop()
	}
	os.Exit(code)
}

// base is the root of the system of which a copy is booted.
var base = os.Getenv("BASE")

// boot returns the system. The first call boots it and installs faceauth.
func boot(t *testing.T) *system {
	t.Helper()
	if testing.Short() {
		t.Skip("a system is booted, and recordings play at their own pace")
	}
	if booted != nil {
		return booted
	}
	if os.Getuid() != 0 {
		fixture.Missing(t, "only root can boot a system of its own; run the tests as root")
	}
	if out, err := exec.Command("findmnt", "-n", "-t", "cgroup2", "-o",
		"TARGET").Output(); err != nil ||
		len(out) == 0 {
		fixture.Missing(t, "no cgroup2 file system is mounted, so no systemd can be booted")
	}
	for _, program := range []string{"/lib/systemd/systemd", "/usr/lib/polkit-1/polkitd",
		"/usr/bin/dbus-daemon",
		"/usr/bin/pamtester"} {
		if _, err := os.Stat(base + program); err != nil {
			fixture.Missing(t, "%v; sh scripts/setup.sh system installs it", err)
		}
	}
	faces, root := fixture.Recordings(t, "faces"), fixture.Root(t)
	project := root
	if base != "" {
		project = base + "/home/bob/faceauth"
	}
	fixture.Models(t)
	fixture.MountNamespace(t)
	dir := fixture.Must(os.MkdirTemp("", "faceauth-boot"))(t)
	fixture.Check(t, os.Chmod(dir, 0o755))
	said := new(fixture.Log)
	c := exec.Command(filepath.Join(root, "internal/boottest/boot"), dir,
		project+"=/srv/project", faces+"=/srv/faces", models.Dir()+"=/srv/models")
	c.Stderr, c.SysProcAttr = said, &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	fixture.Check(t, c.Start())
	s := &system{dir: dir, stop: sync.OnceFunc(func() {
		c.Process.Signal(syscall.SIGTERM)
		c.Wait()
		os.RemoveAll(dir)
	})}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if b, err := os.ReadFile(filepath.Join(dir, "pid")); err == nil {
			s.pid = strings.TrimSpace(string(b))
			if out, code := s.try(t, "systemctl is-system-running --wait"); code == 0 {
				break
			} else if time.Now().After(end) {
				t.Fatalf("the system does not boot: %s %s", out, said)
			}
		} else if time.Now().After(end) {
			s.stop()
			fixture.Missing(t, "no system can be booted here: %s", said)
		}
	}
	booted = s
	s.prepare(t)
	return s
}

// try runs a shell script in a service of its own, as root, and returns its output and its exit
// code. The script has less than a minute.
func (s *system) try(t testing.TB, script string, options ...string) (out string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	args := append([]string{"-t", s.pid, "-a", "systemd-run", "--pipe", "--wait", "--quiet",
		"--collect", "--setenv=LC_ALL=C.UTF-8"}, options...)
	c := exec.CommandContext(ctx, "nsenter", append(args, "bash", "-c", script)...)
	var b bytes.Buffer
	c.Stdout, c.Stderr, c.WaitDelay = &b, &b, time.Second
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("this hangs: %s\n%s", script, &b)
	case errors.As(err, &exit):
		return b.String(), exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return b.String(), 0
}

// run runs a shell script, which must succeed, and returns its output.
func (s *system) run(t testing.TB, script string, options ...string) string {
	t.Helper()
	out, code := s.try(t, script, options...)
	if code != 0 {
		t.Fatalf("%s\nexit code %d: %s\n%s", script, code, out, s.journal(t))
	}
	return out
}

// write writes a file.
func (s *system) write(t testing.TB, path, text string) {
	t.Helper()
	s.run(t, fmt.Sprintf("mkdir -p %s && cat >%s <<'END'\n%sEND\n", filepath.Dir(path), path, text))
}

// camera makes the camera play a recording from now on, four times, because a busy machine misses
// frames.
func (s *system) camera(t testing.TB, recording string) {
	t.Helper()
	s.run(t, fmt.Sprintf(`loop=/srv/share/loop-%s
		if [ ! -d $loop ]; then
			mkdir $loop
			for i in 1 2 3 4; do for f in /srv/faces/%s/*; do ln -s $f $loop/$i-$(basename $f); done; done
		fi
		ln -sfn $loop /srv/share/camera`, filepath.Base(recording), recording))
}

func (s *system) journal(t testing.TB) string {
	t.Helper()
	out, _ := s.try(t, "journalctl -q --no-pager -o cat -u faceauth -u faceauth-eye@* -n 60")
	return out
}

// prepare makes the users and installs faceauth as docs/login.md says. This enrols alice, with the
// recording p2.
func (s *system) prepare(t testing.TB) {
	t.Helper()
	s.insider(t)
	s.write(t, "/etc/pam.d/boot-session",
		"auth required pam_permit.so\naccount required pam_permit.so\n"+
			"session required pam_systemd.so\n"+
			"session required pam_exec.so quiet /srv/share/in-session\n")
	// Without the template, tests can make units that have the names of consoles.
	s.run(t, "rm -f /usr/lib/systemd/system/getty@.service "+
		"/usr/lib/systemd/system/autovt@.service; systemctl daemon-reload")
	s.run(t, "for u in alice bob; do id $u >/dev/null 2>&1 || useradd -m -s /bin/bash $u; echo $u:$u | chpasswd; done")
	// Nobody guesses passwords here, so no refusal has to wait.
	s.run(t, "sed -i 's/pam_unix.so nullok/& nodelay/' /usr/share/pam-configs/unix; "+
		"sed -i /pam_faildelay/d /etc/pam.d/login")
	s.camera(t, "vidtimit_rot/p2")
	s.write(t, "/etc/default/faceauth", "FACEAUTH_OPTIONS=--source /srv/share/camera\n")
	s.install(t)
}

// wake has the daemon started, if it does not run.
const wake = "faceauth login status --user alice"

// The service starts at the first call, and keeps running for longer than its watchdog's time.
func TestUnit(t *testing.T) {
	s := boot(t)
	s.run(t,
		"mkdir -p /run/systemd/system/faceauth.service.d && printf '[Service]\nWatchdogSec=1\n' "+
			">/run/systemd/system/faceauth.service.d/quick.conf && systemctl daemon-reload")
	defer s.run(t,
		"rm /run/systemd/system/faceauth.service.d/quick.conf; systemctl daemon-reload; "+
			"systemctl stop faceauth")
	out, code := s.try(t, "time "+wake)
	if code != 0 {
		t.Fatalf("the service does not come up: %s\n%s", out, s.journal(t))
	}
	t.Log(out)
	before := s.run(t, "systemctl show -p MainPID --value faceauth")
	time.Sleep(2500 * time.Millisecond)
	if after := s.run(t, "systemctl show -p MainPID --value faceauth"); after != before ||
		strings.TrimSpace(after) == "0" {
		t.Errorf("the service was %s, and is %s\n%s", before, after, s.journal(t))
	}
	if n := strings.TrimSpace(s.run(t, "systemctl show -p NRestarts --value faceauth")); n != "0" {
		t.Errorf("the service was restarted %s times\n%s", n, s.journal(t))
	}
}
