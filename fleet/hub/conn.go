// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

var _ fleet.Log = (*Conn)(nil)

// Settings of [Connect].
type Settings struct {
	URL   string // of the server; several URLs of one cluster with commas between
	Fleet string
	Pin   []byte // SHA-256 of the server's certificate; empty if an authority has signed it
	Key   nkeys.KeyPair
	// Creds is a file with the login for a cluster. Empty: log in with Key.
	Creds string
	// Changed is called by a goroutine of the connection: with an error when the connection ends, and with nil when
	// there is a connection again. May be nil.
	Changed func(error)

	dial func(network, address string) (net.Conn, error) // for tests
}

// dialer opens network connections in tests.
type dialer func(network, address string) (net.Conn, error)

// Dial implements [nats.CustomDialer].
func (d dialer) Dial(network, address string) (net.Conn, error) { return d(network, address) }

// Conn is a device's connection to the server of its fleet. It reconnects by itself. It is a [fleet.Log]. All methods
// can be called at once. [Connect] makes one; close it.
type Conn struct {
	names subjects
	id    string
	nc    *nats.Conn
	js    jetstream.JetStream

	mu      sync.Mutex
	changed func(error)
	last    error         // the reason why there is no connection; nil if there is one
	lost    chan struct{} // closed when the connection ends

	dialAgain func(context.Context) (*nats.Conn, error) // makes the connection for [Conn.Rejoin]; nil in the service

	at, reported atomic.Uint64 // last entry that this device has read, and last one that it has reported
}

// Connect returns a connection and does not wait for the server: a device works without it. The error is about the
// settings.
func Connect(s Settings) (*Conn, error) {
	if err := CheckURL(s.URL); err != nil {
		return nil, err
	}
	if !nkeys.IsValidPublicAccountKey(s.Fleet) {
		return nil, errors.New("the id of the fleet is invalid; join the fleet again: faceauth fleet join")
	}
	id, err := s.Key.PublicKey()
	if err != nil {
		return nil, err
	}
	login := nats.Nkey(id, s.Key.Sign)
	if s.Creds != "" {
		if login, err = Creds(s.Creds); err != nil {
			return nil, err
		}
	}
	c := newConn(subjects{s.Fleet}, id, s.Changed)
	options := append(c.options(), login, nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort())
	if len(s.Pin) > 0 {
		// A server may report addresses that are not reachable from here; the given address is reachable.
		options = append(options, nats.Secure(pinned(s.Pin)), nats.IgnoreDiscoveredServers())
	}
	again := []nats.Option{login, nats.NoReconnect(), nats.CustomInboxPrefix(inbox(id))}
	if s.Creds == "" {
		again = append(again, nats.Token(RejoinToken))
	}
	if len(s.Pin) > 0 {
		again = append(again, nats.Secure(pinned(s.Pin)))
	}
	if s.dial != nil {
		again = append(again, nats.SetCustomDialer(dialer(s.dial)))
		options = append(options, nats.SetCustomDialer(dialer(s.dial)))
	}
	c.dialAgain = func(ctx context.Context) (*nats.Conn, error) { return dial(ctx, s.URL, again...) }
	if c.nc, err = nats.Connect(s.URL, options...); err != nil {
		return nil, plain(err)
	}
	return c, c.open()
}

func newConn(names subjects, id string, changed func(error)) *Conn {
	if changed == nil {
		changed = func(error) {}
	}
	return &Conn{names: names, id: id, changed: changed, last: ErrOffline, lost: make(chan struct{})}
}

// options returns the options of a lasting connection.
func (c *Conn) options() []nats.Option {
	return []nats.Option{
		nats.Name("faceauth " + c.id), nats.Timeout(connectTime), nats.CustomInboxPrefix(inbox(c.id)),
		nats.MaxReconnects(-1), nats.CustomReconnectDelay(reconnectDelay),
		// Nothing is buffered without a connection: the caller repeats it.
		nats.ReconnectBufSize(-1), nats.PingInterval(20 * time.Second), nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(func(*nats.Conn) { c.up() }), nats.ReconnectHandler(func(*nats.Conn) { c.up() }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { c.down(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { c.down(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			switch {
			case errors.Is(err, nats.ErrAuthorization):
				c.down(err)
			case errors.Is(err, nats.ErrPermissionViolation):
				c.changed(fmt.Errorf("the server refuses an operation: %w", err))
			}
		}),
	}
}

// open starts JetStream on the connection.
func (c *Conn) open() (err error) {
	if c.nc.IsConnected() {
		c.up()
	}
	c.js, err = jetstream.New(c.nc)
	return err
}

func (c *Conn) up() {
	c.mu.Lock()
	news := c.last != nil
	c.last = nil
	c.mu.Unlock()
	c.reported.Store(0)
	if news {
		c.changed(nil)
	}
}

// down records that the connection has ended, and ends the calls that use it.
func (c *Conn) down(err error) {
	if err == nil || errors.Is(err, nats.ErrConnectionClosed) {
		err = ErrOffline
	}
	err = plain(err)
	if !errors.Is(err, ErrOffline) && !errors.Is(err, ErrPin) && !errors.Is(err, ErrRefused) {
		err = fmt.Errorf("%w: %v", ErrOffline, err)
	}
	c.mu.Lock()
	if errors.Is(c.last, ErrRefused) && errors.Is(err, ErrOffline) {
		c.mu.Unlock()
		return // the server closes the connection after a refusal
	}
	news := c.last == nil || c.last.Error() != err.Error()
	if c.last == nil {
		close(c.lost)
		c.lost = make(chan struct{})
	}
	c.last = err
	c.mu.Unlock()
	if news {
		c.changed(err)
	}
}

// ready returns a context that ends with the connection, or the reason why there is no connection.
func (c *Conn) ready(ctx context.Context) (context.Context, context.CancelFunc, error) {
	c.mu.Lock()
	last, lost := c.last, c.lost
	c.mu.Unlock()
	if last != nil {
		return nil, nil, last
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := make(chan struct{})
	go func() {
		select {
		case <-lost:
			cancel(ErrOffline)
		case <-stop:
		}
	}()
	var once sync.Once
	return ctx, func() { once.Do(func() { close(stop) }); cancel(context.Canceled) }, nil
}

// cause returns the reason why ctx ended, for example the lost connection, or else err.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && ctx.Err() != nil {
		return why
	}
	return plain(err)
}

// ID returns the id of the device.
func (c *Conn) ID() string { return c.id }

// Err returns the reason why there is no connection, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// Wait waits for a connection, until ctx ends or the server refuses this device.
func (c *Conn) Wait(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.Err()
		if err == nil || errors.Is(err, ErrRefused) || errors.Is(err, ErrPin) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// Close ends the connection.
func (c *Conn) Close() error {
	c.nc.Close()
	return nil
}
