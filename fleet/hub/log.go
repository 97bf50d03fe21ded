// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Errors of [Conn.Follow].
var (
	// ErrRewound is returned if the log ends before the place up to which this device has read.
	ErrRewound = fmt.Errorf("%w: the server was restored from a backup, or its folder is new", fleet.ErrRewound)
	// ErrNoLog is returned if the server has no log of this fleet.
	ErrNoLog = errors.New(
		"the server has no log of this fleet; check its address, and whether faceauth fleet serve runs there",
	)
	// errLost ends Follow after a missed entry; the next call of Follow reads it.
	errLost = errors.New("an entry was lost on the way; reading it again")
)

// Append adds an entry about a person at the end of the log; an empty number means no person. It returns when the entry
// is stored. It sends no message id, because any member could use the ids of others first.
func (c *Conn) Append(ctx context.Context, about string, data []byte) error {
	p, err := person(about)
	if err != nil {
		return err
	}
	ctx, cancel, err := c.ready(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := ctx.Err(); err != nil { // send nothing: the connection may be a new one by now
		return cause(ctx, err)
	}
	_, err = c.js.Publish(
		ctx,
		c.names.log(p),
		data,
		jetstream.WithExpectStream(c.names.stream()),
		jetstream.WithRetryAttempts(0),
	)
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
		Name: c.id, AckPolicy: jetstream.AckNonePolicy, DeliverPolicy: jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:   after + 1,
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
	entries, err := consumer.Messages(
		jetstream.PullMaxMessages(pull),
		jetstream.PullHeartbeat(heartbeat),
		jetstream.PullExpiry(3*heartbeat),
	)
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
