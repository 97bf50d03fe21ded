// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// admin is the writer of the records.
const admin = fleet.AdminWriter

// streams returns the streams that exist, by name.
func (s *service) streams(ctx context.Context) (map[string]*jetstream.StreamInfo, error) {
	all := make(map[string]*jetstream.StreamInfo)
	list := s.js.ListStreams(ctx)
	for info := range list.Info() {
		all[info.Config.Name] = info
	}
	return all, storing(list.Err())
}

// ensure makes the stream of a writer, or gives it its configuration: the last value of each name and nothing else. Old
// values can be overwritten when it is full. Nobody needs consumers. Known are streams that exist, by name.
func (s *service) ensure(ctx context.Context, writer string, known map[string]*jetstream.StreamInfo) error {
	subjects := fleet.SayPrefix + writer + ".*"
	want := jetstream.StreamConfig{
		Name: fleet.StreamOf(writer), Subjects: []string{subjects}, MaxMsgsPerSubject: 1, MaxBytes: s.Quota,
		Discard: jetstream.DiscardNew, MaxMsgSize: fleet.MaxValue, Duplicates: 100 * time.Millisecond,
		AllowDirect: true, MaxConsumers: 1, Replicas: s.Replicas,
		RePublish: &jetstream.RePublish{Source: subjects, Destination: fleet.NowPrefix + writer + ".{{wildcard(1)}}"},
	}
	if writer == admin {
		want.MaxBytes = -1 // only the owner of the admin key can fill it
	}
	var had jetstream.StreamConfig
	if info := known[want.Name]; info != nil {
		had = info.Config
	}
	if had.MaxBytes == want.MaxBytes && had.MaxMsgsPerSubject == 1 && had.MaxMsgSize == want.MaxMsgSize &&
		had.Discard == want.Discard && had.Duplicates == want.Duplicates && had.AllowDirect &&
		had.Replicas == want.Replicas && had.RePublish != nil && *had.RePublish == *want.RePublish &&
		len(had.Subjects) == 1 && had.Subjects[0] == want.Subjects[0] {
		return nil
	}
	return storing(patiently(ctx, func(ctx context.Context) error {
		_, err := s.js.CreateOrUpdateStream(ctx, want)
		return err
	}))
}

// patiently repeats a request to JetStream until ctx ends: a cluster drops requests while it chooses a leader.
func patiently(ctx context.Context, ask func(context.Context) error) error {
	for {
		try, cancel := context.WithTimeout(ctx, tryTime)
		err := ask(try)
		cancel()
		if err == nil || try.Err() == nil || ctx.Err() != nil {
			return err
		}
	}
}

// storing turns an error of JetStream into a sentence.
func storing(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the server cannot store: %w; check its disk, and start it again", err)
}

// pull reads the last values of a writer. An error of each is returned as it is.
func pull(ctx context.Context, nc *nats.Conn, writer string, each func(fleet.Stored) error) error {
	var failed error
	err := fleet.ReadStream(ctx, nc, writer, 1, func(v fleet.Stored) error {
		failed = each(v)
		return failed
	})
	if err != nil && failed == nil {
		err = fmt.Errorf("%w: reading values: %w", ErrNoServer, err)
	}
	return err
}
