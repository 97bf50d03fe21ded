// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// slowAfter is how long a device must be slowed down until a line of the log says it.
const slowAfter = 10 * time.Second

// limiter accepts the connections of devices and passes their encrypted bytes to the NATS server, at a limited rate:
// NATS has no limit for bytes.
type limiter struct {
	listener net.Listener
	to       string
	most     int
	gate     *gate
	slowed   atomic.Int64 // number of connections that were slowed down for [slowAfter]

	mu    sync.Mutex
	pipes map[string]*pipe // by the address that the NATS server sees
}

// pipe is a connection of a device.
type pipe struct {
	in, out net.Conn
	limit   atomic.Pointer[rate.Limiter]
	slow    atomic.Bool // it was slowed down for [slowAfter], and still is
	// Device and client, the number of the connection in the NATS server, belong to the gate.
	device string
	client uint64
}

func (p *pipe) address() string { return p.in.RemoteAddr().String() }

func newLimiter(listener net.Listener, to string, most int, g *gate) *limiter {
	return &limiter{listener: listener, to: to, most: most, gate: g, pipes: make(map[string]*pipe)}
}

// of returns the connection that the NATS server sees with an address, or nil.
func (l *limiter) of(a net.Addr) *pipe {
	if a == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pipes[a.String()]
}

// run accepts connections until ctx ends. Then it closes all, and waits for their end.
func (l *limiter) run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { l.listener.Close() })
	for {
		in, err := l.listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil { // too many files, most likely: others must end first
			l.gate.log.Warn("a connection cannot be accepted", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		l.mu.Lock()
		full := len(l.pipes) >= l.most
		l.mu.Unlock()
		if full {
			l.gate.refused.Add(1)
			in.Close()
			continue
		}
		work.Go(func() { l.pass(ctx, in) })
	}
}

func (l *limiter) pass(ctx context.Context, in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer out.Close()
	p, name := &pipe{in: in, out: out}, out.LocalAddr().String()
	p.limit.Store(rate.NewLimiter(sendRate, sendBurst))
	l.mu.Lock()
	l.pipes[name] = p
	l.mu.Unlock()
	defer context.AfterFunc(ctx, func() { in.Close(); out.Close() })()
	back := make(chan struct{})
	go func() { // it ends with either connection
		defer close(back)
		io.CopyBuffer(struct{ io.Writer }{in}, struct{ io.Reader }{out}, make([]byte, 8<<10))
		in.Close()
	}()
	l.send(ctx, p)
	out.Close()
	in.Close()
	<-back
	l.mu.Lock()
	delete(l.pipes, name)
	l.mu.Unlock()
	l.gate.closed(p)
}

// send passes on what a device sends.
func (l *limiter) send(ctx context.Context, p *pipe) {
	var since time.Time // since when it is slowed down
	buffer := make([]byte, 4<<10)
	for {
		n, err := p.in.Read(buffer)
		if n > 0 {
			limit := p.limit.Load()
			if limit.Tokens() > sendBurst/2 { // waits that end a moment late do not end a flood
				since = time.Time{}
				p.slow.Store(false)
			}
			if wait := limit.ReserveN(time.Now(), n).Delay(); wait > 0 {
				if since.IsZero() {
					since = time.Now()
				}
				if time.Since(since) > slowAfter && p.slow.CompareAndSwap(false, true) {
					l.slowed.Add(1)
					l.gate.slow(p)
				}
				select {
				case <-ctx.Done():
				case <-time.After(wait):
				}
			}
			if _, err := p.out.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
