// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// Errors of [Conn.Follow].
var (
	// ErrRewound is returned if the log ends before the place up to which this device has read.
	ErrRewound = fmt.Errorf("%w: the server was restored from a backup, or its folder is new", fleet.ErrRewound)
	// ErrNoLog is returned if the server has no log of this fleet.
	ErrNoLog = errors.New("the server has no log of this fleet; check its address, and whether faceauth fleet serve runs there")
	// errLost ends Follow after a missed entry; the next call of Follow reads it.
	errLost = errors.New("an entry was lost on the way; reading it again")
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

// Append adds an entry about a person at the end of the log; an empty number means no person. It returns when the entry
// is stored. Within [Window] the server stores one id only once; after that time, devices recognise a repeated entry by
// its counter.
func (c *Conn) Append(ctx context.Context, about, id string, data []byte) error {
	p, err := person(about)
	if err != nil {
		return err
	}
	if id == "" || len(id) > 200 {
		return fmt.Errorf("the id of an entry has %d bytes; it must have 1 to 200", len(id))
	}
	ctx, cancel, err := c.ready(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := ctx.Err(); err != nil { // send nothing: the connection may be a new one by now
		return cause(ctx, err)
	}
	m := nats.NewMsg(c.names.log(p))
	m.Data = data
	_, err = c.js.PublishMsg(ctx, m, jetstream.WithMsgID(id), jetstream.WithExpectStream(c.names.stream()), jetstream.WithRetryAttempts(0))
	return stored(ctx, err)
}

// stored turns an error of a publication into a sentence.
func stored(ctx context.Context, err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: its log does not answer at present", ErrOffline)
	case errors.As(err, &api):
		switch api.ErrorCode {
		case 10077, 10047, 10023: // the stream, the account or the server is full
			return ErrFull
		case 10054:
			return ErrTooLarge
		case 10060:
			return ErrNoLog
		}
		return fmt.Errorf("the server of the fleet has not stored the entry: %s", api.Description)
	}
	return cause(ctx, err)
}

// pull is the number of entries that are sent at once: at most 64 MiB.
const pull = 64

// heartbeat is the time after which the server reports that there is nothing new.
const heartbeat = 10 * time.Second

// reportEvery is the time between two reports of this device's position, if it has changed.
const reportEvery = 5 * time.Second

// Follow calls take with each entry after a sequence number, in the order of the log, and waits for more. It ends with
// ctx, with the error of take, or when the connection ends; call it again with the last sequence number. A missing
// sequence number belongs to a forgotten person. The error wraps [ErrOffline], [fleet.ErrTrimmed], [ErrRewound] or
// [ErrNoLog].
func (c *Conn) Follow(ctx context.Context, after uint64, take func(seq uint64, data []byte) error) error {
	outer := ctx
	ctx, cancel, err := c.ready(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	ended := func(err error) error {
		if outer.Err() != nil {
			return outer.Err()
		}
		return cause(ctx, err)
	}
	stream, err := c.js.Stream(ctx, c.names.stream())
	if err != nil {
		return c.noLog(ended(err))
	}
	// Each device has one consumer with its own name: the rights of a device allow no other.
	if err := stream.DeleteConsumer(ctx, c.id); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return ended(err)
	}
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Name: c.id, AckPolicy: jetstream.AckNonePolicy, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: 2 * time.Minute, MaxWaiting: 8,
	})
	if err != nil {
		return ended(err)
	}
	// The consumer exists before this check, so trimming after it shows as a gap.
	info, err := stream.Info(ctx)
	switch {
	case err != nil:
		return ended(err)
	case info.State.LastSeq < after:
		return ErrRewound
	}
	if err := c.reaches(ctx, info, after); err != nil {
		return ended(err)
	}
	entries, err := consumer.Messages(jetstream.PullMaxMessages(pull), jetstream.PullHeartbeat(heartbeat), jetstream.PullExpiry(3*heartbeat))
	if err != nil {
		return ended(err)
	}
	defer entries.Stop()
	c.at.Store(after)
	go c.report(ctx)
	number := uint64(0)
	for {
		m, err := entries.Next(jetstream.NextContext(ctx))
		if err != nil {
			if errors.Is(err, jetstream.ErrNoHeartbeat) {
				err = fmt.Errorf("%w: the server sends nothing any more", ErrOffline)
			}
			return ended(err)
		}
		at, err := m.Metadata()
		if err != nil {
			return err
		}
		number++
		if at.Sequence.Consumer != number || at.Sequence.Stream <= after {
			return errLost
		}
		if at.Sequence.Stream != after+1 {
			if info, err = stream.Info(ctx); err != nil {
				return ended(err)
			}
			if err := c.reaches(ctx, info, after); err != nil {
				return ended(err)
			}
		}
		if err := take(at.Sequence.Stream, m.Data()); err != nil {
			return err
		}
		after = at.Sequence.Stream
		c.at.Store(after)
	}
}

// reaches returns nil if the log still holds all entries after a sequence number, except those of forgotten people. If
// the log begins later, it may have been trimmed; then there is a snapshot of a later place.
func (c *Conn) reaches(ctx context.Context, info *jetstream.StreamInfo, after uint64) error {
	if info.State.FirstSeq <= after+1 {
		return nil
	}
	bucket, err := c.js.ObjectStore(ctx, c.names.bucket())
	if err != nil {
		return err
	}
	object, err := bucket.GetInfo(ctx, snapshotName)
	switch {
	case errors.Is(err, jetstream.ErrObjectNotFound):
		return nil // the log was never trimmed
	case err != nil:
		return err
	}
	seq, err := strconv.ParseUint(object.Metadata[snapshotSeq], 10, 64)
	if err != nil {
		return ErrSnapshot
	}
	if seq > after {
		return fleet.ErrTrimmed
	}
	return nil
}

// Last returns the sequence number of the last entry that was ever stored, or 0.
func (c *Conn) Last(ctx context.Context) (uint64, error) {
	ctx, cancel, err := c.ready(ctx)
	if err != nil {
		return 0, err
	}
	defer cancel()
	stream, err := c.js.Stream(ctx, c.names.stream())
	if err != nil {
		return 0, c.noLog(cause(ctx, err))
	}
	return stream.CachedInfo().State.LastSeq, nil
}

// noLog turns the error about a missing stream into [ErrNoLog].
func (c *Conn) noLog(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return ErrNoLog
	}
	return err
}

// report reports this device's position in the log until ctx ends.
func (c *Conn) report(ctx context.Context) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for quiet := 0; ; quiet++ {
		if at := c.at.Load(); at != c.reported.Load() || quiet >= 12 {
			if c.nc.Publish(c.names.at(c.id), binary.BigEndian.AppendUint64(nil, at)) == nil {
				c.reported.Store(at)
				quiet = 0
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// AskKeys asks a device for keys of people, or any device if "of" is empty, and returns the answer. The error wraps
// [fleet.ErrNoAnswer] if no device answers.
func (c *Conn) AskKeys(ctx context.Context, of string, request []byte) ([]byte, error) {
	if of != "" && !nkeys.IsValidPublicUserKey(of) {
		return nil, fmt.Errorf("%q is not the id of a device", of)
	}
	ctx, cancel, err := c.ready(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	answer, err := c.nc.RequestWithContext(ctx, c.names.keys(of), request)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, fmt.Errorf("%w: the key comes when a device that has it is connected", fleet.ErrNoAnswer)
	}
	if err != nil {
		return nil, cause(ctx, err)
	}
	return answer.Data, nil
}

// waiting is the number of questions for keys that may wait. Further questions are dropped and asked again.
const waiting = 256

// ServeKeys answers questions for keys until ctx or the connection ends. It calls answer for one question at a time. If
// answer returns nil, no answer is sent.
func (c *Conn) ServeKeys(ctx context.Context, id string, answer func(request []byte) []byte) error {
	if id != c.id {
		return fmt.Errorf("%q is not the id of this device", id)
	}
	outer := ctx
	ctx, cancel, err := c.ready(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	questions := make(chan *nats.Msg, waiting)
	own, err := c.nc.ChanSubscribe(c.names.keys(id), questions)
	if err != nil {
		return plain(err)
	}
	defer own.Unsubscribe()
	all, err := c.nc.ChanQueueSubscribe(c.names.keys(""), keysGroup, questions)
	if err != nil {
		return plain(err)
	}
	defer all.Unsubscribe()
	for {
		select {
		case m := <-questions:
			if reply := answer(m.Data); reply != nil && m.Reply != "" {
				m.Respond(reply) // if the answer is lost, the other device asks again
			}
		case <-ctx.Done():
			if outer.Err() != nil {
				return outer.Err()
			}
			return context.Cause(ctx)
		}
	}
}
