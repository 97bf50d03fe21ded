// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// bucket is a connection to the values of a fleet: a JetStream key-value bucket with one value for each
// person, and one for each name below.
type bucket struct {
	nc *nats.Conn
	js jetstream.JetStream
	s  jetstream.Stream
}

const (
	stream = "KV_people"
	place  = "$KV.people."
	// Only an administrator's device may write the keys, and a member of what begins with here what has its key.
	keyName    = "all.keys"
	herePrefix = "here."
)

// What is taken or given at once, so that each value arrives in time on a line of 250 kbit/s.
const (
	portion  = 512 << 10 // bytes
	atOnce   = 256       // values
	patience = 20 * time.Second
)

// open connects to the server, and opens the bucket. At a cluster of others it makes it if there is none.
func (m Membership) open(ctx context.Context, more ...nats.Option) (*bucket, error) {
	nc, err := m.dial(more...)
	if err != nil {
		return nil, err
	}
	copies := 0
	switch {
	case m.foreign() && len(m.URLs) > 2:
		copies = 3
	case m.foreign():
		copies = 1
	}
	b, err := openBucket(ctx, nc, copies)
	if err != nil {
		nc.Close()
	}
	return b, err
}

// openBucket opens the bucket; for a number of copies above 0 it makes it if there is none. Its sequence numbers begin
// with the time, so those of a later bucket, after the first was lost, are never those of an earlier one.
func openBucket(ctx context.Context, nc *nats.Conn, copies int) (b *bucket, err error) {
	b = &bucket{nc: nc}
	b.js, err = jetstream.New(nc)
	if err == nil {
		b.s, err = b.js.Stream(ctx, stream)
	}
	if copies > 0 && errors.Is(err, jetstream.ErrStreamNotFound) {
		b.s, err = b.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: stream, Subjects: []string{place + ">"}, MaxMsgsPerSubject: 1, MaxMsgSize: 1 << 20,
			Discard: jetstream.DiscardNew, DenyDelete: true, DenyPurge: true, AllowDirect: true,
			Storage: jetstream.FileStorage, Replicas: copies, Duplicates: 100 * time.Millisecond,
			FirstSeq: uint64(time.Now().UnixMilli()), MaxBytes: 4 << 30, MaxConsumers: 1 << 16,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("opening the bucket of the fleet: %w", err)
	}
	return b, nil
}

// get returns a value with its header, or one of nothing if there is none. It waits for the node of a cluster that has
// it: a write with the number rev, or a later one.
func (b *bucket) get(ctx context.Context, name string, rev uint64) (*jetstream.RawStreamMsg, error) {
	for {
		m, err := b.s.GetLastMsgForSubject(ctx, place+name)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			m, err = new(jetstream.RawStreamMsg), nil
		}
		if err == nil && m.Sequence < rev && backoff.Wait(ctx, 100*time.Millisecond) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading from the fleet: %w", err)
		}
		return m, nil
	}
}

// message is a value to be written. Its header tells which write it is.
func message(name string, value []byte) *nats.Msg {
	return &nats.Msg{Subject: place + name, Header: nats.Header{"Write": {nuid.Next()}}, Data: value}
}

// put writes a value, over whatever is there.
func (b *bucket) put(ctx context.Context, name string, value []byte) error {
	_, err := b.js.PublishMsg(ctx, message(name, value))
	if err != nil {
		return fmt.Errorf("giving %s to the fleet: %w", name, err)
	}
	return nil
}

// note says that a value was written.
type note struct {
	name, write string
	rev         uint64
	size        int       // of the value in bytes
	at          time.Time // by the clock of the server
	last        bool      // the list of all ends here
}

// listen returns the names of all values, and then of those that are written.
func (b *bucket) listen(ctx context.Context) (<-chan note, func(), error) {
	c, err := b.s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true, FilterSubjects: []string{place + ">"},
		InactiveThreshold: time.Minute, // a server holds few consumers of devices that come and go
	})
	notes := make(chan note, 4096)
	var listening jetstream.ConsumeContext
	if err == nil {
		listening, err = c.Consume(func(m jetstream.Msg) {
			info, err := m.Metadata()
			if err != nil {
				return // it is no value
			}
			name := strings.TrimPrefix(m.Subject(), place)
			size, _ := strconv.Atoi(m.Headers().Get(nats.MsgSize))
			n := note{name, m.Headers().Get("Write"), info.Sequence.Stream, size, info.Timestamp, info.NumPending == 0}
			select {
			case notes <- n:
			case <-ctx.Done():
			}
		}, jetstream.PullHeartbeat(15*time.Second/time.Duration(max(b.s.CachedInfo().Config.Replicas, 1))))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("listing the values of the fleet: %w", err)
	}
	return notes, listening.Stop, nil
}
