// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/fleet/hub/embedded"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// house is an embedded server with a log but without the service.
type house struct {
	hub.Server
	fleet  string
	names  hub.Names
	folder string
	js     jetstream.JetStream
	bucket jetstream.ObjectStore
	admin  nkeys.KeyPair

	mu      sync.Mutex
	devices []string
}

func fleetKey(t testing.TB) (nkeys.KeyPair, string) {
	t.Helper()
	return newKey(t, nkeys.CreateAccount)
}

func deviceKey(t testing.TB) (nkeys.KeyPair, string) {
	t.Helper()
	return newKey(t, nkeys.CreateUser)
}

// newKey makes a key, and returns it with its public key.
func newKey(t testing.TB, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
	t.Helper()
	k, err := create()
	if err != nil {
		t.Fatal(err)
	}
	id, err := k.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return k, id
}

func newHouse(t testing.TB, limits hub.Limits) *house {
	t.Helper()
	admin, id := fleetKey(t)
	return openHouse(t, t.TempDir(), "127.0.0.1:0", id, admin, limits)
}

func openHouse(t testing.TB, folder, address, fleet string, admin nkeys.KeyPair, limits hub.Limits) *house {
	t.Helper()
	e, err := embedded.Start(hub.ServerOptions{
		Folder: folder, Listen: address, Fleet: fleet, Limits: hub.LimitsOf(limits), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	h := &house{Server: e, fleet: fleet, names: hub.NamesOf(fleet), folder: folder, admin: admin}
	public, err := e.Key().PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	nc, err := hub.Dial(t.Context(), "", nats.InProcessServer(e), nats.Nkey(public, e.Key().Sign))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if h.js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	if _, err = hub.OpenStream(t.Context(), h.js, fleet, limits, 1); err != nil {
		t.Fatal(err)
	}
	if h.bucket, err = hub.OpenBucket(t.Context(), h.js, fleet, limits, 1); err != nil {
		t.Fatal(err)
	}
	if err := e.Listen(); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) url() string { return "tls://" + h.Address() }

// device returns the connection of an admitted device.
func (h *house) device(t testing.TB) *hub.Conn {
	t.Helper()
	key, id := deviceKey(t)
	h.mu.Lock()
	h.devices = append(h.devices, id)
	h.Admit(h.devices)
	h.mu.Unlock()
	return h.connect(t, h.url(), key)
}

// raw returns the plain NATS connection of an admitted device, without the checks of [hub.Conn].
func (h *house) raw(t testing.TB) *nats.Conn {
	t.Helper()
	key, id := deviceKey(t)
	h.mu.Lock()
	h.devices = append(h.devices, id)
	h.Admit(h.devices)
	h.mu.Unlock()
	nc, err := hub.Dial(within(t, 10*time.Second), h.url(), nats.Nkey(id, key.Sign), nats.Secure(hub.Pinned(h.Pin())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func (h *house) connect(t testing.TB, url string, key nkeys.KeyPair) *hub.Conn {
	t.Helper()
	c, err := hub.Connect(hub.Settings{URL: url, Fleet: h.fleet, Pin: h.Pin(), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func isUp(t testing.TB, c *hub.Conn) {
	t.Helper()
	if err := c.Wait(within(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// eventually fails the test if a condition does not come true in time.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// reader follows the log as a device does, and continues after each end of its connection. Like a ledger it passes over
// an entry that was stored twice.
type reader struct {
	mu   sync.Mutex
	at   uint64
	had  map[string]bool
	read []string
	errs []error
}

func follow(t testing.TB, c *hub.Conn) *reader {
	r := &reader{had: make(map[string]bool)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			err := c.Follow(ctx, r.place(), r.take)
			r.mu.Lock()
			r.errs = append(r.errs, err)
			r.mu.Unlock()
			time.Sleep(20 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

func (r *reader) take(seq uint64, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seq <= r.at {
		return fmt.Errorf("entry %d after %d", seq, r.at)
	}
	r.at = seq
	if r.had[string(data)] {
		return nil
	}
	r.had[string(data)] = true
	r.read = append(r.read, fmt.Sprint(seq, " ", string(data[:min(len(data), 20)])))
	return nil
}

func (r *reader) place() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

func (r *reader) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.read...)
}

// proxy is a connection that the test can cut.
type proxy struct {
	l      net.Listener
	target string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
	bytes int64
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: target}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			cut := p.cut
			p.mu.Unlock()
			if cut {
				c.Close()
				continue
			}
			to, err := net.Dial("tcp", p.target)
			if err != nil {
				c.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, c, to)
			p.mu.Unlock()
			work.Go(func() { p.copy(c, to) })
			work.Go(func() { p.copy(to, c) })
		}
	})
	t.Cleanup(func() { l.Close(); p.set(true); work.Wait() })
	return p
}

func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			p.mu.Lock()
			p.bytes += int64(n)
			p.mu.Unlock()
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// set cuts the connection, or restores it.
func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	if cut {
		for _, c := range p.conns {
			c.Close()
		}
		p.conns = nil
	}
}

func (p *proxy) url() string { return "tls://" + p.l.Addr().String() }
