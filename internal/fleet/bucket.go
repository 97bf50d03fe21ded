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
	"github.com/faceauth/faceauth/internal/fleet/protocol"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// bucket is a connection to the values of a fleet.
type bucket struct {
	nc *nats.Conn
	js jetstream.JetStream
	s  jetstream.Stream
}

// Only an administrator's device may write these.
const (
	keysName    = "all.keys"
	membersName = "all.members"
)

// What is taken or given at once, so that each value arrives in time on a line of 250 kbit/s.
const (
	portion = 512 << 10 // bytes
	atOnce  = 256       // values
)

// open connects to the server, and opens the bucket. At a cluster of others it makes it if there is
// none.
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
	b := &bucket{nc: nc}
	b.js, b.s, err = protocol.OpenBucket(ctx, nc, copies)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return b, nil
}

// get returns the value of a subject with its header, or one of nothing if there is none. It waits
// for the node of a cluster that has it: a write with the number rev, or a later one.
func (b *bucket) get(ctx context.Context, subject string,
	rev uint64) (*jetstream.RawStreamMsg, error) {
	for {
		m, err := b.s.GetLastMsgForSubject(ctx, subject)
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
func message(subject string, value []byte) *nats.Msg {
	return &nats.Msg{Subject: subject, Header: nats.Header{"Write": {nuid.Next()}}, Data: value}
}

// put writes a value, over whatever is there.
func (b *bucket) put(ctx context.Context, subject string, value []byte) error {
	_, err := b.js.PublishMsg(ctx, message(subject, value))
	if err != nil {
		return fmt.Errorf("giving %s to the fleet: %w", subject, err)
	}
	return nil
}

// wasFaster reports whether a value was not written because it is not the one that its writer has
// read.
func wasFaster(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// note says that a value was written.
type note struct {
	name, write string
	rev         uint64
	size        int       // of the value in bytes
	at          time.Time // by the clock of the server
	last        bool      // the list of all ends here
}

// listen returns the names of all values, and then of those that are written. Nobody hears of
// introductions.
func (b *bucket) listen(ctx context.Context) (<-chan note, func(), error) {
	c, err := b.s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true,
		FilterSubjects:    []string{protocol.Values + ">"},
		InactiveThreshold: time.Minute, // a server holds few consumers of devices that come and go
	})
	if err != nil {
		return nil, nil, fmt.Errorf("listing the values of the fleet: %w", err)
	}
	notes := make(chan note, 4096)
	if c.CachedInfo().NumPending == 0 {
		notes <- note{last: true} // there is no value
	}
	heartbeat := 15 * time.Second / time.Duration(max(b.s.CachedInfo().Config.Replicas, 1))
	listening, err := c.Consume(func(m jetstream.Msg) {
		info, err := m.Metadata()
		if err != nil {
			return // it is no value
		}
		name := strings.TrimPrefix(m.Subject(), protocol.Values)
		size, _ := strconv.Atoi(m.Headers().Get(nats.MsgSize))
		n := note{name, m.Headers().Get("Write"), info.Sequence.Stream, size, info.Timestamp,
			info.NumPending == 0}
		select {
		case notes <- n:
		case <-ctx.Done():
		}
	}, jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return nil, nil, fmt.Errorf("listing the values of the fleet: %w", err)
	}
	return notes, listening.Stop, nil
}

// all calls do with each value below a prefix.
func (b *bucket) all(ctx context.Context, prefix string, do func(name string, value []byte)) error {
	c, err := b.s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy:     jetstream.DeliverLastPerSubjectPolicy,
		FilterSubjects:    []string{prefix + ">"},
		InactiveThreshold: time.Minute,
	})
	if err != nil {
		return err
	}
	left := c.CachedInfo().NumPending
	if left == 0 {
		return nil
	}
	values, err := c.Messages()
	if err != nil {
		return err
	}
	defer values.Stop()
	for left > 0 {
		m, err := values.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		info, err := m.Metadata()
		if err != nil {
			return err
		}
		left = info.NumPending
		do(strings.TrimPrefix(m.Subject(), prefix), m.Data())
	}
	return nil
}
