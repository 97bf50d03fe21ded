// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/wire"
	"golang.org/x/sys/unix"
)

// inside is the name of a file with a scene. An eye that finds it restricts itself with the sandbox,
// and tries the actions of an attacker.
const inside = "FACEAUTH_EYE_INSIDE"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "loads":
		loads()
	case len(os.Args) > 1 && os.Args[1] == "newer":
		newer()
		return
	case len(os.Args) > 1 && os.Args[1] == "eye":
		if os.Getenv(tells) != "" {
			tell()
		}
		text, err := os.ReadFile(os.Getenv(inside))
		if err == nil {
			tryAll(text)
			return
		}
		if err := Main(context.Background(), 3, os.Getenv("FACEAUTH_EYE_FOR")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// scene is the surroundings of a try.
type scene struct {
	Roots             []string
	Inside, Outside   string // a file among the roots, and one that is not
	Folder            string // is not among the roots
	Camera, Elsewhere string // addresses of listeners that name themselves
	Others            []int  // processes: the program, and perhaps the loader and another eye
}

// any returns nil if it can be done to one of the others.
func (s scene) any(do func(pid int) error) (err error) {
	for _, pid := range s.Others {
		err = do(pid)
		if err == nil {
			return nil
		}
	}
	return err
}

func (s scene) online() bool { return strings.Contains(strings.Join(s.Roots, " "), "://") }

// tries are the actions. The first action must succeed, which shows that programs work in the
// sandbox at all.
var tries = []struct {
	name    string
	allowed func(scene) bool
	try     func(scene) error
}{
	{"read the recording", always, func(s scene) error {
		_, err := os.ReadFile(s.Inside)
		return err
	}},
	{"read another file", never, func(s scene) error {
		_, err := os.ReadFile(s.Outside)
		return err
	}},
	{"read another file by way of a descriptor's name", never, func(s scene) error {
		_, err := os.ReadFile("/proc/self/root" + s.Outside)
		return err
	}},
	{"list another folder", never, func(s scene) error {
		_, err := os.ReadDir(s.Folder)
		return err
	}},
	{"read the passwords", never, func(scene) error {
		_, err := os.ReadFile("/etc/passwd")
		return err
	}},
	{"look into another process", never, func(s scene) error {
		return s.any(func(pid int) (err error) {
			for _, name := range []string{"mem", "maps", "environ", "cmdline", "fd/3", "root"} {
				_, err = os.Open(fmt.Sprintf("/proc/%d/%s", pid, name))
				if err == nil {
					return nil
				}
			}
			return err
		})
	}},
	{"find a login where every user sees it", never, func(scene) error {
		if strings.Contains(fmt.Sprint(os.Args, os.Environ()), "secret") {
			return nil
		}
		return os.ErrPermission
	}},
	{"share memory that is written to", never, func(scene) error {
		if shared == "" {
			return os.ErrPermission
		}
		return nil
	}},
	{"write beside the recording", never,
		func(s scene) error { return os.WriteFile(s.Inside+".new", []byte("x"), 0o600) }},
	{"write into the recording", never, func(s scene) error {
		f, err := os.OpenFile(s.Inside, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.Write([]byte("x"))
		}
		return err
	}},
	{"remove the recording", never, func(s scene) error { return os.Remove(s.Inside) }},
	{
		"make a folder",
		never,
		func(s scene) error {
			return os.Mkdir(filepath.Join(filepath.Dir(s.Inside), "new"),
				0o700)
		},
	},
	{"change rights", never, func(s scene) error { return os.Chmod(s.Inside, 0o777) }},
	{"run a program", never, func(scene) error { return exec.Command("/bin/true").Run() }},
	{"become a program", never, func(scene) error {
		return syscall.Exec("/bin/true", []string{"true"}, nil)
	}},
	{"make a process, which could outlive the eye", never, func(scene) error {
		pid, _, e := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		switch {
		case e != 0:
			return e
		case pid == 0:
			for {
				syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
			}
		}
		return nil
	}},
	{"have memory that is written and run", never, func(scene) error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC,
			unix.MAP_PRIVATE|unix.MAP_ANON)
		return err
	}},
	{"make memory that was written run", never, func(scene) error {
		m, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return err
		}
		return unix.Mprotect(m, unix.PROT_READ|unix.PROT_EXEC)
	}},
	{"type into the terminal", never, func(scene) error {
		c := byte('x')
		err := call(unix.SYS_IOCTL, 2, unix.TIOCSTI|1<<40, uintptr(unsafe.Pointer(&c)))
		if err == syscall.ENOTTY { // the call reached the kernel, and there was no terminal
			return nil
		}
		return err
	}},
	{"ask a driver for something else than a picture", never, func(scene) error {
		err := call(unix.SYS_IOCTL, 2, 0x5716, 0) // of type W
		if err == syscall.ENOTTY {
			return nil
		}
		return err
	}},
	{"make a file without a name", never, func(scene) error {
		_, err := unix.MemfdCreate("x", 0)
		return err
	}},
	{"be called on the network", never, func(scene) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}},
	{"run a program from memory", never, func(scene) error {
		fd, err := unix.MemfdCreate("x", 0)
		if err != nil {
			return err
		}
		path, _ := unix.BytePtrFromString("")
		return call(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(path)),
			unix.AT_EMPTY_PATH)
	}},
	{
		"use the network where it is the camera's",
		scene.online,
		func(s scene) error { return reach(s.Camera, "camera") },
	},
	{"use the network elsewhere", never, func(s scene) error {
		return reach(s.Elsewhere, "elsewhere")
	}},
	{"use another machine by the port of the camera", never, func(s scene) error {
		_, port, _ := net.SplitHostPort(s.Camera)
		return reach(net.JoinHostPort("127.0.0.2", port), "elsewhere")
	}},
	{"use another machine without a call of connect", never, func(s scene) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		_, port, _ := net.SplitHostPort(s.Elsewhere)
		n, _ := strconv.Atoi(port)
		return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN,
			&unix.SockaddrInet4{Port: n, Addr: [4]byte{127, 0, 0, 1}})
	}},
	{"send a datagram", never, func(s scene) error {
		_, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		return err
	}},
	{"use another kind of stream", never, func(scene) error {
		// IPPROTO_MPTCP, which Landlock does not know
		_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 262)
		return err
	}},
	{"answer its own calls of connect", never, func(scene) error {
		for fd := range 64 {
			var s [80]byte
			if err := call(unix.SYS_IOCTL, uintptr(fd), 0xc0502100,
				uintptr(unsafe.Pointer(&s))); err == nil {
				return nil
			}
		}
		return os.ErrPermission
	}},
	{"listen on the network", never, func(scene) error {
		_, err := net.Listen("tcp", "127.0.0.1:0")
		return err
	}},
	{"use a Unix socket", never, func(scene) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}},
	{"ask the system bus", never, func(scene) error {
		return dial("unix", "/run/dbus/system_bus_socket")
	}},
	{"have a pair of sockets", never,
		func(scene) error {
			_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM,
				0)
			return err
		}},
	{
		"use a raw socket",
		never,
		func(scene) error { _, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0); return err },
	},
	{"use netlink", never, func(scene) error {
		_, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)
		return err
	}},
	{"end another process", never, func(s scene) error {
		return s.any(func(pid int) error { return syscall.Kill(pid, 0) })
	}},
	{"end a thread of another process", never, func(s scene) error {
		return s.any(func(pid int) error { return unix.Tgkill(pid, pid, 0) })
	}},
	{"trace another process", never, func(s scene) error { return s.any(unix.PtraceAttach) }},
	{"read another process's memory", never, func(s scene) error {
		var b [8]byte
		return s.any(func(pid int) error {
			_, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &b[0], Len: 8}},
				[]unix.RemoteIovec{{Base: 4096, Len: 8}}, 0)
			return err
		})
	}},
	{"take a descriptor of another process", never, func(s scene) error {
		return s.any(func(pid int) error {
			_, err := unix.PidfdOpen(pid, 0)
			return err
		})
	}},
	{"be root", never, func(scene) error { return call(unix.SYS_SETUID, 0, 0, 0) }},
	{"make a namespace", never, func(scene) error { return unix.Unshare(unix.CLONE_NEWUSER) }},
	{"mount", never, func(scene) error { return unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "") }},
	{"load code into the kernel", never, func(scene) error { return call(unix.SYS_BPF, 5, 0, 0) }},
	{"use io_uring", never, func(scene) error {
		var params [120]byte
		return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
	}},
	{"use keys", never, func(scene) error { return call(unix.SYS_KEYCTL, 0, ^uintptr(2), 0) }},
	{"make a device", never, func(s scene) error {
		return unix.Mknod(s.Inside+".dev", unix.S_IFCHR|0o600, 1<<8|1)
	}},
	{"leave a core dump", never, func(scene) error { return limit(unix.RLIMIT_CORE, 0) }},
	{"have more memory", never, func(scene) error { return limit(unix.RLIMIT_DATA, 1<<30) }},
	{"be looked into", never, func(scene) error {
		if n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || n != 0 {
			return nil
		}
		return os.ErrPermission
	}},
	{"get privileges by a program", never, func(scene) error {
		if n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || n != 1 {
			return nil
		}
		return os.ErrPermission
	}},
}

func always(scene) bool { return true }
func never(scene) bool  { return false }

func call(number, a, b, c uintptr) error {
	if _, _, e := syscall.Syscall(number, a, b, c); e != 0 {
		return e
	}
	return nil
}

func dial(network, address string) error {
	c, err := net.Dial(network, address)
	if err == nil {
		c.Close()
	}
	return err
}

// reach returns nil if it reaches the listener of that name.
func reach(address, name string) error {
	c, err := net.DialTimeout("tcp", address, time.Minute)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	b, err := io.ReadAll(c)
	if string(b) != name {
		return fmt.Errorf("%q answers, %w", b, errors.Join(err, os.ErrPermission))
	}
	return nil
}

// limit returns nil if a limit can be lifted.
func limit(what int, most uint64) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(what, &l); err != nil {
		return nil
	}
	if l.Max > most {
		return nil
	}
	if os.Geteuid() == 0 { // root may raise a limit
		return os.ErrPermission
	}
	return unix.Setrlimit(what, &unix.Rlimit{Cur: most + 1, Max: most + 1})
}

// shared are the lines of /proc/self/maps of memory that is shared and may be written to.
var shared string

// tryAll tries all actions inside the sandbox.
func tryAll(text []byte) {
	var s scene
	if err := json.Unmarshal(text, &s); err != nil {
		panic(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(maps)) {
		rights := strings.Fields(line)[1]
		if strings.Contains(rights, "w") && strings.HasSuffix(rights, "s") {
			shared += line
		}
	}
	if err := confine(1 << 30); err != nil {
		panic(err)
	}
	line, err := strconv.Atoi(os.Getenv(wire.LineVariable))
	if err != nil {
		line = -1
	}
	report, err := sandbox(s.Roots, line)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stderr, "sandbox %d %t\n", report.Landlock, report.Seccomp)
	for _, x := range tries {
		// Every thread is restricted, and not only the thread that began the sandbox.
		done := make(chan error)
		go func() { done <- x.try(s) }()
		err := <-done
		fmt.Fprintf(os.Stderr, "%t %s: %v\n", (err == nil) == x.allowed(s), x.name, err)
	}
}

// Inside the sandbox every forbidden action is refused, also of an eye that is a copy.
func TestSandbox(t *testing.T) {
	listen := func(address, name string) string {
		l := fixture.Must(net.Listen("tcp", address))(t)
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				io.WriteString(c, name)
				c.Close()
			}
		}()
		return l.Addr().String()
	}
	camera, elsewhere := listen("127.0.0.1:0", "camera"), listen("127.0.0.1:0", "elsewhere")
	_, port, _ := net.SplitHostPort(camera)
	listen("127.0.0.2:"+port, "elsewhere")
	for name, roots := range map[string]func(file, folder string) []string{
		"a recording": func(file, _ string) []string { return []string{file} },
		"a folder":    func(_, folder string) []string { return []string{folder} },
		"a camera":    func(file, _ string) []string { return []string{"0", file} },
		"a network camera": func(file, _ string) []string {
			return []string{"http://user:secret@" + camera + "/stream", file}
		},
		"a link to a film": func(file, _ string) []string {
			os.Symlink(file, file+".link")
			return []string{file +
				".link"}
		},
		"a folder of links": func(file, folder string) []string {
			d := t.TempDir()
			os.Symlink(file,
				d+"/1.jpg")
			return []string{d}
		},
	} {
		for _, copied := range []bool{false, true} {
			if copied {
				name += ", a copy"
			}
			t.Run(name, func(t *testing.T) {
				folder, other := t.TempDir(), t.TempDir()
				s := scene{
					Inside: filepath.Join(folder, "film.avi"), Outside: filepath.Join(other, "private"),
					Folder: other, Camera: camera, Elsewhere: elsewhere, Others: []int{os.Getpid()},
				}
				for _, f := range []string{s.Inside, s.Outside} {
					fixture.Check(t, os.WriteFile(f, []byte("text"), 0o600))
				}
				s.Roots = roots(s.Inside, folder)
				if s.online() && !relays() {
					t.Skip("this kernel cannot have a program connect for another one; Linux 5.9 or " +
						"later can")
				}
				out := tryInside(t, s, copied)
				lines := strings.Split(strings.TrimSpace(out), "\n")
				if len(lines) != len(tries)+1 {
					t.Errorf("%d tries of %d:\n%s", len(lines)-1, len(tries), out)
				}
				if strings.HasPrefix(lines[0], "sandbox 0") {
					t.Skip("this kernel has no Landlock")
				}
				for _, line := range lines[1:] {
					if !strings.HasPrefix(line, "true ") {
						t.Error(line)
					}
				}
			})
		}
	}
}

// tryInside lets an eye try all actions, makes its connections, and returns its output.
func tryInside(t *testing.T, s scene, copied bool) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "scene")
	t.Setenv(inside, name)
	c, said := config(t), new(fixture.Log)
	if copied {
		c, said = copies(t)
		other := fixture.Must(eye.Start(t.Context(), c))(t)
		defer other.Close()
		all := listen(t, said, 2)
		s.Others = append(s.Others, all[1].Parent, all[1].Process)
	}
	c.Stderr = said
	fixture.Check(t, os.WriteFile(name, fixture.Must(json.Marshal(s))(t), 0o600))
	e := fixture.Must(eye.Start(t.Context(), c))(t)
	defer e.Close()
	_, err := e.Open(t.Context(), s.Roots[0], eye.Options{Gate: eye.Learn})
	if !errors.Is(err, eye.ErrBroken) {
		t.Errorf("it says %v", err)
	}
	e.Close()
	text := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		text = said.String()
		text = text[max(0, strings.Index(text, "sandbox ")):]
		if strings.Count(text, "\n") > len(tries) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return text
}

// An eye that no program has started ends with an error.
func TestAlone(t *testing.T) {
	c := exec.Command("/proc/self/exe", "eye")
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(out), "only faceauth can start an eye") {
		t.Errorf("%v: %s", err, out)
	}
}

// An eye serves its own user or a named user, and nobody else.
func TestStrangers(t *testing.T) {
	t.Setenv("FACEAUTH_EYE_FOR", "nobody")
	if os.Geteuid() == 65534 {
		t.Skip("nobody runs this")
	}
	e := start(t)
	if _, err := e.Open(t.Context(), "nothing", eye.Options{Gate: eye.Learn}); !errors.Is(err,
		eye.ErrBroken) {
		t.Errorf("an eye for nobody answers %v", err)
	}
}

// Invalid requests are answered with an error, and do not end the eye.
func TestRequests(t *testing.T) {
	for _, q := range []request{{}, {Open: &wire.Open[eye.Options]{Name: "x"}}, {Next: &wire.Next{}},
		{Setup: &wire.Setup[eye.Vision]{}},
		{Setup: &wire.Setup[eye.Vision]{Version: 9}}} {
		a, b := net.Pipe()
		s := &server{conn: a}
		go func() {
			s.handle(t.Context(), q)
			a.Close()
		}()
		m, err := wire.Read(b, wire.Limits{})
		if err != nil || m.Kind != wire.Failed {
			t.Errorf("%+v: %+v, %v", q, m, err)
		}
		b.Close()
	}
}
