// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/godbus/dbus/v5"
)

// insider makes this program, which then runs under the settings of the unit, try the actions of an
// attacker who runs code in the daemon.
const insider = "FACEAUTH_INSIDER"

// daemon and eye say in which sandbox an insider is.
const (
	daemon = 1 << iota
	eye
)

// tries are the actions of an insider, and the sandboxes that allow them. Each sandbox allows some
// action, which shows that programs work in it at all.
var tries = []struct {
	name    string
	allowed int
	try     func() error
}{
	{"read what the group video may", eye, func() error {
		_, err := os.ReadFile("/srv/share/video")
		return err
	}},
	{"write its own state", daemon, func() error {
		return os.WriteFile("/var/lib/faceauth/tried", nil, 0o600)
	}},
	{"ask the system bus", daemon, func() error {
		conn, err := dbus.ConnectSystemBus()
		if err != nil {
			return err
		}
		defer conn.Close()
		return conn.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err
	}},
	{"start a service as root", 0, func() error {
		conn, err := dbus.ConnectSystemBus()
		if err != nil {
			return err
		}
		defer conn.Close()
		type property struct {
			Name  string
			Value dbus.Variant
		}
		type command struct {
			Path   string
			Args   []string
			Ignore bool
		}
		type more struct {
			Name       string
			Properties []property
		}
		return conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
			Call("org.freedesktop.systemd1.Manager.StartTransientUnit", 0,
				"insider.service", "fail",
				[]property{{"ExecStart", dbus.MakeVariant([]command{{"/bin/true",
					[]string{"/bin/true"}, false}})}},
				[]more{}).
			Err
	}},
	{"be root", 0, func() error {
		if os.Getuid() == 0 || os.Geteuid() == 0 {
			return nil
		}
		return syscall.Setuid(0)
	}},
	{"have capabilities", 0, func() error {
		b, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return nil
		}
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			if !strings.Contains(string(b), set+":\t0000000000000000\n") {
				return nil
			}
		}
		return os.ErrPermission
	}},
	{"ask for an eye", daemon, func() error {
		c, err := net.Dial("unix", "/run/faceauth-eye")
		if err == nil {
			c.Close()
		}
		return err
	}},
	{"read a profile", 0, func() error {
		if _, err := os.ReadDir("/var/lib/faceauth"); err == nil && whose() == daemon {
			return os.ErrPermission // these processes are its own
		} else {
			return err
		}
	}},
	{"have a Unix socket", daemon, func() error {
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err == nil {
			syscall.Close(fd)
		}
		return err
	}},
	{"open a device", 0, func() error { _, err := os.Open("/dev/kmsg"); return err }},
	{"run a program", 0, func() error { return exec.Command("/bin/true").Run() }},
	{"read the passwords", 0, func() error { _, err := os.ReadFile("/etc/shadow"); return err }},
	{"read homes", 0, func() error { _, err := os.ReadDir("/home/alice"); return err }},
	{"write a program", 0, func() error { return os.WriteFile("/usr/bin/insider", nil, 0o755) }},
	{"write settings", 0, func() error { return os.WriteFile("/etc/insider", nil, 0o644) }},
	{"see other processes", 0, func() error {
		all, err := os.ReadDir("/proc")
		if err != nil {
			return err
		}
		for _, e := range all {
			if n, err := strconv.Atoi(e.Name()); err == nil && n != os.Getpid() {
				return nil
			}
		}
		return os.ErrPermission
	}},
	{"read what the kernel tells of the machine", 0, func() error {
		_, err := os.ReadFile("/proc/meminfo")
		return err
	}},
	{"use the network", 0, func() error { _, err := net.Dial("udp", "127.0.0.1:53"); return err }},
	{"listen", 0, func() error { _, err := net.Listen("tcp", "127.0.0.1:0"); return err }},
	{"use a netlink socket", 0, func() error {
		_, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW, 0)
		return err
	}},
	{"mount", 0, func() error { return syscall.Mount("tmpfs", "/tmp", "tmpfs", 0, "") }},
	{"make a namespace", 0, func() error { return syscall.Unshare(syscall.CLONE_NEWUSER) }},
	{"trace", 0, func() error { return call(syscall.SYS_PTRACE, 16, uintptr(os.Getppid()), 0) }},
	// bpf(BPF_PROG_LOAD)
	{"load code into the kernel", 0, func() error { return call(321, 5, 0, 0) }},
	// keyctl(KEYCTL_GET_KEYRING_ID, session)
	{"use keys", 0, func() error { return call(250, 0, ^uintptr(2), 0) }},
	{"make memory that is written and run", 0, func() error {
		_, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC,
			syscall.MAP_ANON|syscall.MAP_PRIVATE)
		return err
	}},
	{"make a program that is another user's", 0, func() error {
		if err := os.WriteFile("/var/lib/faceauth/tried", nil, 0o600); err != nil {
			return err
		}
		return syscall.Chmod("/var/lib/faceauth/tried", 0o4755)
	}},
	{"make a device", 0, func() error {
		return syscall.Mknod("/var/lib/faceauth/device", syscall.S_IFCHR|0o600, 1<<8|1)
	}},
	{"leave a core dump", 0, func() error {
		var l syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &l); err != nil || l.Max != 0 {
			return nil
		}
		return os.ErrPermission
	}},
}

func call(number, a, b, c uintptr) error {
	if _, _, e := syscall.Syscall(number, a, b, c); e != 0 {
		return e
	}
	return nil
}

// tryAll tries all actions of an insider.
func tryAll() {
	for _, x := range tries {
		err := x.try()
		fmt.Printf("%t %s: %v\n", (err == nil) == (x.allowed&whose() != 0), x.name, err)
	}
}

// whose returns the sandbox in which an insider is.
func whose() int {
	switch os.Getenv(insider) {
	case "eye":
		return eye
	}
	return daemon
}

// insider copies this program into the system.
func (s *system) insider(t testing.TB) {
	t.Helper()
	path := filepath.Join(s.dir, "insider")
	if _, err := os.Stat(path); err == nil {
		return
	}
	self := fixture.Must(os.Executable())(t)
	b := fixture.Must(os.ReadFile(self))(t)
	fixture.Check(t, os.WriteFile(path, b, 0o755))
}

// The promises of the units hold for a program that runs under their settings.
func TestSandbox(t *testing.T) {
	s := boot(t)
	s.run(t, "echo >/srv/share/video; chgrp video /srv/share/video; chmod 640 /srv/share/video")
	for _, x := range []struct{ unit, who string }{{"faceauth", "daemon"},
		{"faceauth-eye@", "eye"}} {
		t.Run(x.who, func(t *testing.T) {
			// An insider may see the processes of its own user, and another test, or the daemon's
			// insider, may have asked for an eye that has not ended yet.
			s.run(t, "systemctl stop 'faceauth-eye@*'")
			// The unit itself, with another program, which the unit may start.
			s.run(
				t,
				`sed -e 's|^ExecStart=.*|ExecStart=/srv/share/insider|' -e 's|^Type=.*||' \
		-e '/^Sockets\|^WantedBy\|^WatchdogSec\|^StandardOutput\|^CollectMode/d' \
		-e 's|^ExecPaths=|ExecPaths=/srv/share |' \
		-e 's|^Environment=.*|&  `+insider+"="+x.who+`\nType=oneshot\nStandardOutput=append:/srv/share/tried|' \
		/usr/lib/systemd/system/`+x.unit+`.service >/run/systemd/system/faceauth-insider.service &&
		systemctl daemon-reload && >/srv/share/tried`,
			)
			if out, code := s.try(t, "systemctl start faceauth-insider"); code != 0 {
				t.Fatalf("%s %s", out, s.run(t,
					"journalctl -q --no-pager -u faceauth-insider; cat /srv/share/tried; "+
						"cat /run/systemd/system/faceauth-insider.service"))
			}
			out := fixture.Must(os.ReadFile(filepath.Join(s.dir, "tried")))(t)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(lines) != len(tries) {
				t.Errorf("%d tries of %d", len(lines), len(tries))
			}
			for _, line := range lines {
				if !strings.HasPrefix(line, "true ") {
					t.Error(line)
				}
			}
			s.run(t,
				"rm -f /var/lib/faceauth/tried /run/systemd/system/faceauth-insider.service && "+
					"systemctl daemon-reload")
		})
	}
}

// The exposure is at most .4 of 10 points for the daemon, which has to know who calls (PrivateUsers
// would hide it), and .6 for an eye, which has to open a camera.
func TestExposure(t *testing.T) {
	s := boot(t)
	for unit, most := range map[string]string{"faceauth.service": "4",
		"faceauth-eye@x.service": "6"} {
		out, code := s.try(t, "systemd-analyze security --no-pager --threshold="+most+" "+unit)
		if code != 0 {
			t.Error(out)
		}
		lines := strings.Split(out, "\n")
		t.Log(lines[slices.IndexFunc(lines, func(l string) bool {
			return strings.Contains(l, "Overall")
		})])
	}
}
