// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/faceauth/faceauth/internal/wire"
	"golang.org/x/sys/unix"
)

// Loader starts eyes that are copies of one process, which has loaded the libraries and opened the
// networks, and has seen nothing: what no eye writes to, they have in memory once. The zero value
// is ready to use, for one [Config].Command and Vision, and by several goroutines. Once one of its
// eyes has ended by itself, as after an attack, it begins with another process, whose addresses in
// memory are others.
type Loader struct {
	// Failed is called if the process cannot be copied, with the reason: the eye is then started
	// by itself, and the next one has another process. May be nil.
	Failed func(error)
	// Timeout is for starting the process, and for copying it. Default 1 min.
	Timeout time.Duration

	mu      sync.Mutex
	process *loading
}

// loading is the process of a loader.
type loading struct {
	control *net.UnixConn
	kill    func() error
	eyes    sync.WaitGroup

	mu    sync.Mutex // guards spent
	spent bool       // there will be no further eye
}

// loaderVariable is the environment variable of a loader with the number of the file at which it is
// asked for copies. C++ reads it (internal/cv/loader.cpp).
const loaderVariable = "FACEAUTH_EYE_LOADER"

// Kinds of copies: an eye; and the first one, from which the process learns what it is to open.
const (
	copyEye   = 'e'
	copyFirst = 'f'
)

// Close ends the process once its last eye has ended. A later eye starts another process.
func (l *Loader) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.process.retire()
	l.process = nil
	return nil
}

// spawn starts an eye with a socket to it. It waits for the first one until its networks are open.
func (l *Loader) spawn(ctx context.Context, c Config) (net.Conn, *child, error) {
	if l == nil {
		return spawn(c)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	conn, ch, err := l.copied(ctx, c)
	if err == nil {
		return conn, ch, nil
	}
	l.process.retire()
	l.process = nil
	return l.alone(ctx, c, err)
}

// copied starts an eye that is a copy of the process, which it starts if there is none.
func (l *Loader) copied(ctx context.Context, c Config) (net.Conn, *child, error) {
	within := cmp.Or(l.Timeout, time.Minute)
	ctx, cancel := context.WithTimeoutCause(ctx, within,
		fmt.Errorf("copying the process: no answer within %v", within))
	defer cancel()
	if !l.process.usable() {
		l.process.retire()
		p, err := load(ctx, c)
		l.process = p
		if err != nil {
			return nil, nil, err
		}
	}
	return l.process.copy(ctx, copyEye)
}

// alone starts an eye that is no copy.
func (l *Loader) alone(ctx context.Context, c Config, why error) (net.Conn, *child, error) {
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if l.Failed != nil {
		l.Failed(why)
	}
	return spawn(c)
}

// load starts the process of a loader, and lets it open the networks. An error about these is left
// to the eyes.
func load(ctx context.Context, c Config) (*loading, error) {
	ours, theirs, err := sockets(unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, err
	}
	cmd := command(c, []*os.File{theirs}, loaderVariable+"=3")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		theirs.Close()
		return nil, err
	}
	err = run(cmd, func() {})
	theirs.Close() // before anything is asked: its end is seen when nobody has this open
	if err != nil {
		conn.Close()
		return nil, err
	}
	p := &loading{control: conn.(*net.UnixConn), kill: cmd.Process.Kill}
	socket, first, err := p.copy(ctx, copyFirst)
	if err != nil {
		p.retire()
		return nil, err
	}
	e := &Eye{c: c, conn: socket, child: first, closing: make(chan struct{})}
	defer e.Close()
	err = e.send(ctx, request{Setup: &wire.Setup[Vision]{Version: wire.Version, Vision: c.Vision,
		Memory: c.Memory}})
	if err == nil {
		err = e.await(ctx)
	}
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case !errors.Is(err, ErrBroken):
		return p, nil
	}
	p.retire()
	return nil, err
}

// usable reports whether the process may be copied once more.
func (p *loading) usable() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.spent
}

// retire ends the process once its eyes have ended: its end would end them. It may be stopped, and
// is killed.
func (p *loading) retire() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spent {
		return
	}
	p.spent = true
	go func() {
		p.eyes.Wait()
		p.control.Close()
		p.kill()
	}()
}

// hold keeps the process until p.eyes is told that a copy has ended; false if there is to be none.
func (p *loading) hold() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.spent {
		p.eyes.Add(1)
	}
	return !p.spent
}

// copy returns a copy of the process, with a socket to it.
func (p *loading) copy(ctx context.Context, kind byte) (_ net.Conn, _ *child, err error) {
	if !p.hold() {
		return nil, nil, errors.New("copying the process: one of its copies has just broken")
	}
	defer func() {
		if err != nil {
			p.eyes.Done()
		}
	}()
	s, err := newEnds()
	if err != nil {
		return nil, nil, err
	}
	defer s.given()
	end, tells, err := os.Pipe()
	if err != nil {
		s.close()
		return nil, nil, err
	}
	defer tells.Close()
	number, handle, err := p.ask(ctx, kind, s.theirs, s.theirLine, tells)
	if err != nil {
		s.close()
		end.Close()
		return nil, nil, err
	}
	ch := &child{pid: number, ended: make(chan struct{}), broken: p.retire, relay: newRelay(s.line)}
	raw, err := handle.SyscallConn()
	if err != nil {
		panic("eye: " + err.Error()) // only a file that is closed has none
	}
	ch.signal = func(s syscall.Signal) {
		raw.Control(func(fd uintptr) { unix.PidfdSendSignal(int(fd), s, nil, 0) })
	}
	go func() {
		defer p.eyes.Done()
		gone(raw)
		ch.state, ch.untold = told(end)
		end.Close()
		handle.Close()
		close(ch.ended)
	}()
	return s.conn, ch, nil
}

// ask asks for a copy with these files, and returns its number and its pidfd.
func (p *loading) ask(ctx context.Context, kind byte, files ...*os.File) (int, *os.File, error) {
	stop := context.AfterFunc(ctx, func() { p.control.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var numbers []int
	for _, f := range files {
		numbers = append(numbers, int(f.Fd()))
	}
	var answer [4]byte
	var n, m int
	rights := make([]byte, unix.CmsgSpace(4))
	_, _, err := p.control.WriteMsgUnix([]byte{kind}, unix.UnixRights(numbers...), nil)
	runtime.KeepAlive(files)
	if err == nil {
		n, m, _, _, err = p.control.ReadMsgUnix(answer[:], rights)
	}
	number := int(int32(binary.NativeEndian.Uint32(answer[:])))
	switch {
	case ctx.Err() != nil:
		return 0, nil, context.Cause(ctx)
	case err != nil || n != len(answer):
		return 0, nil, fmt.Errorf("copying the process: it has ended: %w",
			cmp.Or(err, io.ErrUnexpectedEOF))
	case number < 0:
		return 0, nil, fmt.Errorf("copying the process: %w", syscall.Errno(-number))
	}
	all, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil || len(all) != 1 {
		return 0, nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	handles, err := unix.ParseUnixRights(&all[0])
	if err != nil || len(handles) != 1 {
		return 0, nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	unix.CloseOnExec(handles[0])
	unix.SetNonblock(handles[0], true) // its end is waited for without a thread
	return number, os.NewFile(uintptr(handles[0]), "eye"), nil
}

// gone waits until the process of a pidfd has ended. The process that it is a copy of may be
// stopped, and is not asked.
func gone(pidfd syscall.RawConn) {
	pidfd.Read(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
}

// tellWithin is how long a copy that has ended waits for the process to tell how.
const tellWithin = 10 * time.Second

// told returns how a copy has ended. If the process that tells it is killed, so are its copies.
func told(f *os.File) (state syscall.WaitStatus, untold bool) {
	f.SetReadDeadline(time.Now().Add(tellWithin))
	var b [4]byte
	_, err := io.ReadFull(f, b[:])
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, true
	case err != nil:
		return syscall.WaitStatus(syscall.SIGKILL), false
	}
	return syscall.WaitStatus(binary.NativeEndian.Uint32(b[:])), false
}
