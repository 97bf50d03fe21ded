// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/faceauth/faceauth/internal/wire"
	"golang.org/x/sys/unix"
)

// child is the process of an eye that this program has started. Methods of nil do nothing.
type child struct {
	pid    int
	signal func(syscall.Signal) // does nothing once the process has ended
	broken func()               // the process has ended by itself, or is ended for what it did
	ended  chan struct{}
	state  syscall.WaitStatus // after ended
	untold bool               // after ended: nobody tells the state
	killed atomic.Bool        // this program killed it
	relay  *relay             // makes its connections
}

// kept are prefixes of the environment variables that a child gets. Other variables may be secret.
var kept = []string{
	"PATH=", "LANG=", "LC_", "TZ=", "TMPDIR=", "LD_LIBRARY_PATH=", "GODEBUG=", "GOTRACEBACK=",
	"GOMAXPROCS=",
	"GOCOVERDIR=",
	"OPENCV_", "OMP_", "OPENBLAS_", "http_proxy=", "https_proxy=", "no_proxy=", "HTTP_PROXY=",
	"HTTPS_PROXY=",
	"NO_PROXY=",
	"SSL_CERT_FILE=", "SSL_CERT_DIR=", "FACEAUTH_EYE_",
}

// oneArena makes the C library keep the memory of all threads of an eye in one heap. Most of it is
// used by one thread, and what one heap has free is lost for the others. The library reads it
// before the process can set anything.
const oneArena = "MALLOC_ARENA_MAX=1"

func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return !slices.ContainsFunc(kept, func(k string) bool { return strings.HasPrefix(v, k) })
	})
}

// sockets returns a pair of sockets: one for this program, and one for a child.
func sockets(kind int) (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(pair[0]), "eye"), os.NewFile(uintptr(pair[1]), "program"), nil
}

// ends are the ends of the sockets to a child: one for messages, one for its connections.
type ends struct {
	conn      net.Conn
	line      *os.File
	theirs    *os.File
	theirLine *os.File
}

func newEnds() (e ends, err error) {
	ours, theirs, err := sockets(unix.SOCK_STREAM)
	if err != nil {
		return e, err
	}
	e.conn, err = net.FileConn(ours)
	ours.Close()
	if err != nil {
		theirs.Close()
		return e, err
	}
	e.theirs = theirs
	e.line, e.theirLine, err = sockets(unix.SOCK_SEQPACKET | unix.SOCK_NONBLOCK)
	if err != nil {
		e.conn.Close()
		theirs.Close()
	}
	return e, err
}

// given closes the ends that the child has.
func (e ends) given() {
	e.theirs.Close()
	e.theirLine.Close()
}

// close closes the ends that this program has.
func (e ends) close() {
	e.conn.Close()
	e.line.Close()
}

// command returns the process of a child that gets these files as 3 and following.
func command(c Config, files []*os.File, env ...string) *exec.Cmd {
	path, args := "/proc/self/exe", []string{os.Args[0], "eye"}
	if len(c.Command) > 0 {
		path, args = c.Command[0], c.Command
	}
	env = append(env, wire.LineVariable+"=4", oneArena)
	return &exec.Cmd{
		Path: path, Args: args, Env: append(environment(), env...), ExtraFiles: files,
		Stderr:      c.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, WaitDelay: time.Second,
	}
}

// run starts a process, and calls ended once it has ended.
func run(cmd *exec.Cmd, ended func()) error {
	started := make(chan error)
	go func() {
		// The kernel kills the child when the thread that started it ends, so this thread must live
		// as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		cmd.Wait()
		ended()
	}()
	return <-started
}

// spawn starts a child with a socket to it.
func spawn(c Config) (net.Conn, *child, error) {
	e, err := newEnds()
	if err != nil {
		return nil, nil, err
	}
	defer e.given()
	cmd := command(c, []*os.File{e.theirs, e.theirLine})
	ch := &child{ended: make(chan struct{}), broken: func() {}}
	ch.signal = func(s syscall.Signal) { cmd.Process.Signal(s) }
	err = run(cmd, func() {
		ch.state, _ = cmd.ProcessState.Sys().(syscall.WaitStatus)
		close(ch.ended)
	})
	if err != nil {
		e.close()
		return nil, nil, err
	}
	ch.pid, ch.relay = cmd.Process.Pid, newRelay(e.line)
	return e.conn, ch, nil
}

// kill kills the child.
func (c *child) kill() {
	if c != nil {
		c.killed.Store(true)
		c.signal(syscall.SIGKILL)
	}
}

// distrust notes that the child broke.
func (c *child) distrust() {
	if c != nil {
		c.broken()
	}
}

// end kills the child and waits until it has ended. It does not wait for a child that hangs in the
// kernel, as in a driver.
func (c *child) end() {
	if c == nil {
		return
	}
	c.kill()
	select {
	case <-c.ended:
	case <-time.After(2 * time.Second):
	}
	c.relay.close()
}

// fate describes how a child ended that this program did not kill, or returns "".
func (c *child) fate() string {
	if c == nil || c.killed.Load() {
		return ""
	}
	for left := 5; ; { // its socket is closed, so it only has to end
		select {
		case <-c.ended:
		case <-time.After(glance):
			_, asleep := c.look()
			if asleep {
				left--
			}
			if left == 0 {
				return ""
			}
			continue
		}
		break
	}
	switch w := c.state; {
	case c.untold:
		return ""
	case w.Signaled() && w.Signal() == syscall.SIGKILL:
		return "it was killed, perhaps for want of memory"
	case w.Signaled():
		return "signal: " + w.Signal().String()
	case w.ExitStatus() == 2: // exit code of Go's runtime after a fault or abort in a library
		return "a fault in a library, or in Go: exit code 2"
	default:
		return fmt.Sprintf("exit code %d", w.ExitStatus())
	}
}

// lead sets the target of the child's connections: the host of a source that is a URL; see
// [relay.lead].
func (c *child) lead(name string, within time.Duration, login *url.Userinfo) {
	if c != nil {
		c.relay.lead(name, within, login)
	}
}

// relays reports whether the program makes the child's connections.
func (c *child) relays() bool { return c != nil && c.relay != nil }

// dial connects to a socket at which the system manager starts eyes. Only this user or root may
// listen there.
func dial(ctx context.Context, path string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	uid, err := wire.Peer(conn)
	if err == nil && uid != 0 && uid != os.Geteuid() {
		err = fmt.Errorf("user %d listens at %s; only root or this user may", uid, path)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
