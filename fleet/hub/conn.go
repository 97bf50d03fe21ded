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
	// ErrRewound is returned where the log ends before what this device has read.
	ErrRewound = fmt.Errorf("%w: the server was put back from a backup, or its folder was made anew", fleet.ErrRewound)
	// ErrNoLog is returned where the server has no log of this fleet.
	ErrNoLog = errors.New("the server has no log of this fleet; is it the right server, and was faceauth fleet serve started there?")
	// errLost ends a following that has missed an entry; the next one finds it.
	errLost = errors.New("an entry was lost on the way; it is read again")
)

var _ fleet.Log = (*Conn)(nil)

// Settings say to which fleet a connection is made, and as whom.
type Settings struct {
	URL   string // of the server, or of several of one cluster with commas between
	Fleet string
	Pin   []byte // of the server's certificate; empty where an authority has signed it
	Key   nkeys.KeyPair
	// Creds, where it is not empty, is a file with which a cluster of somebody else lets this device in.
	Creds string
	// Changed is told by a goroutine of the connection when it ends, and with nil when it is there again. May be nil.
	Changed func(error)

	dial func(network, address string) (net.Conn, error) // for tests
}

// dialer is a way to the server.
type dialer func(network, address string) (net.Conn, error)

// Dial implements [nats.CustomDialer].
func (d dialer) Dial(network, address string) (net.Conn, error) { return d(network, address) }

// Conn is a connection of a device to the server of its fleet, which is made anew whenever it ends. It is a [fleet.Log].
// All methods can be called at once. Get one from [Connect], and close it.
type Conn struct {
	names subjects
	id    string
	nc    *nats.Conn
	js    jetstream.JetStream

	mu      sync.Mutex
	changed func(error)
	last    error         // why there is no connection
	lost    chan struct{} // closed when the connection ends

	dialAgain func(context.Context) (*nats.Conn, error) // another connection for [Conn.Rejoin]; nil for the service

	at, said atomic.Uint64 // how far this device has read, and has said that it has
}

// Connect returns a connection, which is not waited for: a device works without it. The error is about the settings.
func Connect(s Settings) (*Conn, error) {
	if err := CheckURL(s.URL); err != nil {
		return nil, err
	}
	if !nkeys.IsValidPublicAccountKey(s.Fleet) {
		return nil, errors.New("the id of the fleet is none; join it anew: faceauth fleet join")
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
		// The addresses that a server thinks it has may lead nowhere from here; the one that was given does not.
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

// options are those of a connection that lasts.
func (c *Conn) options() []nats.Option {
	return []nats.Option{
		nats.Name("faceauth " + c.id), nats.Timeout(connectTime), nats.CustomInboxPrefix(inbox(c.id)),
		nats.MaxReconnects(-1), nats.CustomReconnectDelay(reconnectDelay),
		// What is said while there is no connection is said again by whoever said it.
		nats.ReconnectBufSize(-1), nats.PingInterval(20 * time.Second), nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(func(*nats.Conn) { c.up() }), nats.ReconnectHandler(func(*nats.Conn) { c.up() }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { c.down(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { c.down(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			switch {
			case errors.Is(err, nats.ErrAuthorization):
				c.down(err)
			case errors.Is(err, nats.ErrPermissionViolation):
				c.changed(fmt.Errorf("the server does not allow it: %w", err))
			}
		}),
	}
}

// open begins with JetStream.
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
	c.said.Store(0)
	if news {
		c.changed(nil)
	}
}

// down notes that there is no connection, and ends what waits for one.
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
		return // the server ends the connection of whom it refuses
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

// ready returns a context that ends with the connection, or why there is none.
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

// cause returns why something ended: the connection rather than the context that was made of it.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && ctx.Err() != nil {
		return why
	}
	return plain(err)
}

// ID returns the id of the device.
func (c *Conn) ID() string { return c.id }

// Err returns why there is no connection, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// Wait waits until there is a connection or ctx ends, or until the server is known to refuse this device.
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

// Append puts an entry about a person, or none where that is empty, at the end of the log, and returns when it is stored.
// It stores nothing twice under one id within [Window]; after that the entry's own number shows that it is there already.
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
	if err := ctx.Err(); err != nil { // nothing may be sent then: the connection may be another one by now
		return cause(ctx, err)
	}
	m := nats.NewMsg(c.names.log(p))
	m.Data = data
	_, err = c.js.PublishMsg(ctx, m, jetstream.WithMsgID(id), jetstream.WithExpectStream(c.names.stream()), jetstream.WithRetryAttempts(0))
	return stored(ctx, err)
}

// stored returns an error of a publication as a sentence.
func stored(ctx context.Context, err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: its log does not answer just now", ErrOffline)
	case errors.As(err, &api):
		switch api.ErrorCode {
		case 10077, 10047, 10023: // the stream, the account or the server has reached its bound
			return ErrFull
		case 10054:
			return ErrTooLarge
		case 10060:
			return ErrNoLog
		}
		return fmt.Errorf("the server of the fleet has not stored it: %s", api.Description)
	}
	return cause(ctx, err)
}

// pull is how many entries are on their way at once. The largest entries make it 64 MiB.
const pull = 64

// heartbeat is how often the server says that there is nothing new.
const heartbeat = 10 * time.Second

// reportEvery is how often a device says how far it has read, where that has changed.
const reportEvery = 5 * time.Second

// Follow gives each entry after a sequence to take, in the order of the log, and waits for more. It ends with ctx, with
// the error of take, or when the connection ends; following again after the last sequence goes on. A sequence that is
// left out was of a person who is forgotten. The error wraps [ErrOffline], [fleet.ErrTrimmed], [ErrRewound] or [ErrNoLog].
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
	// One consumer of each device, under its name: it may make and remove no other.
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
	// The consumer is there first: what is trimmed from now on is seen as a gap.
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
				err = fmt.Errorf("%w: the log has fallen silent", ErrOffline)
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

// reaches returns nil where the log holds all entries after a sequence but those of people who are forgotten. Where the
// log begins later it may have been trimmed; then a snapshot of a later place is there.
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
		return nil // nothing was ever trimmed
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

// Last returns the sequence of the last entry that was ever stored, or 0.
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

// noLog returns an error about a stream that is not there as a sentence.
func (c *Conn) noLog(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return ErrNoLog
	}
	return err
}

// report says how far this device has read until ctx ends.
func (c *Conn) report(ctx context.Context) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for quiet := 0; ; quiet++ {
		if at := c.at.Load(); at != c.said.Load() || quiet >= 12 {
			if c.nc.Publish(c.names.at(c.id), binary.BigEndian.AppendUint64(nil, at)) == nil {
				c.said.Store(at)
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

// AskKeys asks a device for keys of people, or any device where of is empty, and returns its answer. The error wraps
// [fleet.ErrNoAnswer] where none answers.
func (c *Conn) AskKeys(ctx context.Context, of string, request []byte) ([]byte, error) {
	if of != "" && !nkeys.IsValidPublicUserKey(of) {
		return nil, fmt.Errorf("%q is no id of a device", of)
	}
	ctx, cancel, err := c.ready(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	answer, err := c.nc.RequestWithContext(ctx, c.names.keys(of), request)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, fmt.Errorf("%w: it comes when a device that has the key is connected", fleet.ErrNoAnswer)
	}
	if err != nil {
		return nil, cause(ctx, err)
	}
	if len(answer.Data) == 0 {
		return nil, fmt.Errorf("%w: the device that was asked is busy", fleet.ErrNoAnswer)
	}
	return answer.Data, nil
}

// waiting is how many questions for keys may wait. All devices of a large fleet ask at the same time for the key of somebody
// new. To more of them the device says at once that it is busy: they ask another one, which may have the key by then.
const waiting = 1024

// busy is the answer of a device where too many questions wait.
var busy = []byte(nil)

// ServeKeys answers questions for keys until ctx or the connection ends. Answer is called for one question at a time; nil
// is no answer.
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
	wait := func(m *nats.Msg) {
		select {
		case questions <- m:
		default:
			m.Respond(busy)
		}
	}
	own, err := c.nc.Subscribe(c.names.keys(id), wait)
	if err != nil {
		return plain(err)
	}
	defer own.Unsubscribe()
	all, err := c.nc.QueueSubscribe(c.names.keys(""), keysGroup, wait)
	if err != nil {
		return plain(err)
	}
	defer all.Unsubscribe()
	for {
		select {
		case m := <-questions:
			if reply := answer(m.Data); reply != nil && m.Reply != "" {
				m.Respond(reply) // where it does not arrive, the other device asks again
			}
		case <-ctx.Done():
			if outer.Err() != nil {
				return outer.Err()
			}
			return context.Cause(ctx)
		}
	}
}
