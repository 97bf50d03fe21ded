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
	process *os.Process
	ended   chan struct{}
	state   *os.ProcessState // after ended
	killed  atomic.Bool      // this program killed it
	relay   *relay           // makes its connections
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

// spawn starts a child with a socket to it.
func spawn(c Config) (net.Conn, *child, error) {
	ours, theirs, err := sockets(unix.SOCK_STREAM)
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, nil, err
	}
	line, theirLine, err := sockets(unix.SOCK_SEQPACKET | unix.SOCK_NONBLOCK)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	defer theirLine.Close()
	path, command := "/proc/self/exe", []string{os.Args[0], "eye"}
	if len(c.Command) > 0 {
		path, command = c.Command[0], c.Command
	}
	cmd := &exec.Cmd{
		Path: path, Args: command, Env: append(environment(), wire.LineVariable+"=4", oneArena),
		ExtraFiles: []*os.File{theirs, theirLine}, Stderr: c.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, WaitDelay: time.Second,
	}
	ch := &child{ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel kills the child when the thread that started it ends, so this thread must live
		// as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		ch.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		cmd.Wait()
		ch.state = cmd.ProcessState
		close(ch.ended)
	}()
	if err := <-started; err != nil {
		conn.Close()
		line.Close()
		return nil, nil, err
	}
	ch.relay = newRelay(line)
	return conn, ch, nil
}

// kill kills the child.
func (c *child) kill() {
	if c != nil {
		c.killed.Store(true)
		c.process.Kill()
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
	w, ok := c.state.Sys().(syscall.WaitStatus)
	switch {
	case ok && w.Signaled() && w.Signal() == syscall.SIGKILL:
		return "it was killed, perhaps for want of memory"
	case ok && w.Signaled():
		return "signal: " + w.Signal().String()
	case ok && w.ExitStatus() == 2: // exit code of Go's runtime after a fault or abort in a library
		return "a fault in a library, or in Go: exit code 2"
	case ok:
		return fmt.Sprintf("exit code %d", w.ExitStatus())
	}
	return ""
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
