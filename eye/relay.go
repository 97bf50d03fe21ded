// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
)

// hostPort returns the host and port of a camera's URL. An eye that reads this URL can only connect
// there: whatever address it gives to connect, the program makes the connection to this host and
// hands it over. The program does not read the eye's address, so a wrong one has no effect.
func hostPort(name string) (string, error) {
	u, err := url.Parse(name)
	if err != nil {
		return "", err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "rtsp": "554",
			"rtsps": "322"}[strings.ToLower(u.Scheme)]
	}
	if port == "" || u.Hostname() == "" {
		return "", errors.New("the URL of a camera must have a host")
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

// target is the destination of an eye's connections.
type target struct {
	address string
	within  time.Duration
	login   *url.Userinfo // the program signs the requests with it; nil if the eye does
}

// Limits of one eye: connections being made at once, and connections in a row, after which there is
// one a second. A camera needs two or three.
const (
	relaysAtOnce = 4
	relaysInARow = 60
)

func newLimit() *rate.Limiter { return rate.NewLimiter(1, relaysInARow) }

// relay makes the connections of a child.
type relay struct {
	line   *os.File
	target atomic.Pointer[target]
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	limit  *rate.Limiter
}

func newRelay(line *os.File) *relay {
	r := &relay{line: line, limit: newLimit()}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.done.Add(1)
	go func() {
		defer r.done.Done()
		r.serve()
	}()
	return r
}

// close ends it. The methods of nil do nothing.
func (r *relay) close() {
	if r != nil {
		r.cancel()
		r.line.SetDeadline(time.Unix(1, 0))
		r.done.Wait()
		r.line.Close()
	}
}

// lead sets the destination of later connections, and the login with which the program signs their
// requests; nil for none.
func (r *relay) lead(name string, within time.Duration, login *url.Userinfo) {
	if r == nil {
		return
	}
	r.target.Store(nil)
	if address, err := hostPort(name); err == nil && strings.Contains(name, "://") {
		r.target.Store(&target{address, within, login})
	}
}

// serve answers the listener, which the child sends when it closes its sandbox.
func (r *relay) serve() {
	listener, err := r.listener()
	if err != nil {
		return // the child has ended, or has no listener
	}
	defer unix.Close(listener)
	slots := make(chan struct{}, relaysAtOnce)
	var asked sync.WaitGroup
	defer asked.Wait()
	for r.ctx.Err() == nil {
		fds := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 1000) // the end of the child ends the wait
		switch {
		case errors.Is(err, unix.EINTR) || err == nil && n == 0:
			continue
		case err != nil || fds[0].Revents&unix.POLLIN == 0:
			return // the child has ended
		}
		var q notification
		if err := notifyIoctl(listener, notifyReceive, unsafe.Pointer(&q)); err != nil {
			// the caller has ended meanwhile
			if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT) {
				continue
			}
			return
		}
		select {
		case slots <- struct{}{}:
		default:
			respond(listener, q.id, unix.EAGAIN)
			continue
		}
		if !r.limit.Allow() {
			<-slots
			respond(listener, q.id, unix.ECONNREFUSED)
			continue
		}
		asked.Add(1)
		go func() {
			defer asked.Done()
			defer func() { <-slots }()
			respond(listener, q.id, r.connect(listener, q))
		}()
	}
}

// listener receives the descriptor of the listener.
func (r *relay) listener() (int, error) {
	raw, err := r.line.SyscallConn()
	if err != nil {
		return 0, err
	}
	var fds []int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		b, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
		n, oobn, _, _, err := unix.Recvmsg(int(fd), b, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			return false
		}
		failed = err
		if err == nil && n == 1 {
			messages, err := unix.ParseSocketControlMessage(oob[:oobn])
			if err == nil && len(messages) == 1 {
				fds, _ = unix.ParseUnixRights(&messages[0])
			}
		}
		return true
	})
	if err == nil {
		err = failed
	}
	if err == nil && len(fds) != 1 {
		err = fmt.Errorf("%d descriptors came", len(fds))
	}
	if err != nil {
		return 0, err
	}
	return fds[0], nil
}

// connect makes the connection for a call of connect, whatever address the call has, and replaces
// the socket of the call.
func (r *relay) connect(listener int, q notification) unix.Errno {
	to := r.target.Load()
	if to == nil {
		return unix.ECONNREFUSED
	}
	file, e := r.dialled(to)
	if e != 0 {
		return e
	}
	defer file.Close()
	// FFmpeg and Go use nonblocking sockets, and the flag belongs to the connection. File.Fd clears
	// it.
	fd := file.Fd()
	if err := unix.SetNonblock(int(fd), true); err != nil {
		return unix.ENOBUFS
	}
	add := addition{
		id:     q.id,
		flags:  addAtNumber,
		source: uint32(fd),
		number: uint32(q.arguments[0]),
		mode:   unix.O_CLOEXEC,
	}
	if err := notifyIoctl(listener, notifyAdd, unsafe.Pointer(&add)); err != nil {
		return unix.ENOBUFS
	}
	return 0
}

// dialled returns a connection to the camera, or to the conversation that signs its requests.
func (r *relay) dialled(to *target) (*os.File, unix.Errno) {
	dial := func() (net.Conn, error) {
		ctx, cancel := context.WithTimeout(r.ctx, to.within)
		defer cancel()
		return new(net.Dialer).DialContext(ctx, "tcp", to.address)
	}
	conn, err := dial()
	var number syscall.Errno
	switch {
	case errors.As(err, &number):
		return nil, number
	case err != nil:
		return nil, unix.EHOSTUNREACH
	case to.login == nil:
		defer conn.Close()
		file, err := conn.(*net.TCPConn).File()
		if err != nil {
			return nil, unix.ENOBUFS
		}
		return file, 0
	}
	ours, theirs, err := sockets(unix.SOCK_STREAM)
	if err != nil {
		conn.Close()
		return nil, unix.ENOBUFS
	}
	defer ours.Close()
	own, err := net.FileConn(ours)
	if err != nil {
		conn.Close()
		theirs.Close()
		return nil, unix.ENOBUFS
	}
	c := &conversation{signer: signer{user: to.login}, dial: dial, within: to.within, eye: own,
		camera: conn}
	r.done.Go(func() { c.run(r.ctx) })
	return theirs, 0
}

// Requests of a seccomp listener and their structures: seccomp_unotify(2).
const (
	notifyReceive = 0xc0502100
	notifySend    = 0xc0182101
	notifyAdd     = 0x40182103
	addAtNumber   = 1
)

type notification struct {
	id          uint64
	pid, flags  uint32
	number      int32
	arch        uint32
	instruction uint64
	arguments   [6]uint64
}

type response struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

type addition struct {
	id           uint64
	flags        uint32
	source       uint32
	number, mode uint32
}

func notifyIoctl(fd int, request uintptr, p unsafe.Pointer) error {
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(p)); e != 0 {
		return e
	}
	return nil
}

// respond answers a call. An error means that the caller has ended.
func respond(listener int, id uint64, e unix.Errno) {
	a := response{id: id, err: -int32(e)}
	notifyIoctl(listener, notifySend, unsafe.Pointer(&a))
}
