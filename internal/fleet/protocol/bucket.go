// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The stream of a fleet, and the subjects of its values. Each device hears of every value below
// Values: one for each person, one of each device that sees somebody, and those of administrators.
// What a device says of itself is below Introductions, where no other device listens: so a device
// that joins costs the others nothing.
const (
	Stream        = "KV_people"
	Values        = "$KV.people."
	Introductions = "$KV.members."
	Here          = "here." // and the key of a device: whom it sees
)

// Patience is how long a value may take that is on its way.
const Patience = 20 * time.Second

// MostBytes is the size of the longest value.
const MostBytes = 1 << 20

// Rights returns where a member may publish, beside its requests.
func Rights(key string, admin bool) []string {
	values := Values + "*" // of people
	if admin {
		values = Values + ">"
	}
	const api = "$JS.API."
	return []string{
		values, Values + Here + key, Introductions + key,
		api + "STREAM.INFO." + Stream, api + "STREAM.MSG.GET." + Stream, api + "DIRECT.GET." +
			Stream + ".>",
		api + "CONSUMER.*." + Stream + ".>", api + "CONSUMER.MSG.NEXT." + Stream + ".>",
	}
}

// OpenBucket opens the stream of the values; for a number of copies above 0 it makes it if there is
// none. Its sequence numbers begin with the time, so those of a later stream, after the first was
// lost, are never those of an earlier one.
func OpenBucket(ctx context.Context, nc *nats.Conn,
	copies int) (jetstream.JetStream, jetstream.Stream, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the bucket of the fleet: %w", err)
	}
	s, err := js.Stream(ctx, Stream)
	if copies > 0 && errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name: Stream, Subjects: []string{Values + ">", Introductions + "*"},
			MaxMsgsPerSubject: 1, MaxMsgSize: MostBytes, MaxBytes: 4 << 30, MaxConsumers: 1 << 16,
			Discard: jetstream.DiscardNew, DenyDelete: true, DenyPurge: true, AllowDirect: true,
			Storage: jetstream.FileStorage, Replicas: copies, Duplicates: 100 * time.Millisecond,
			FirstSeq: uint64(time.Now().UnixMilli()),
		})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("opening the bucket of the fleet: %w", err)
	}
	return js, s, nil
}
