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

// config returns the configuration of a stream: the last value of each name and nothing else. Old values can be
// overwritten when it is full. Nobody needs consumers.
func config(name, subjects, now string, quota int64, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Subjects: []string{subjects}, MaxMsgsPerSubject: 1, MaxBytes: quota, Discard: jetstream.DiscardNew,
		MaxMsgSize: fleet.MaxValue, Duplicates: 100 * time.Millisecond, AllowDirect: true, MaxConsumers: 1,
		Replicas: replicas, RePublish: &jetstream.RePublish{Source: subjects, Destination: now},
	}
}

// of returns the configuration for the values of one writer at the embedded server.
func of(writer string, quota int64) jetstream.StreamConfig {
	if writer == admin {
		quota = -1 // only the owner of the admin key can fill it
	}
	return config(fleet.StreamOf(writer), fleet.SayPrefix+writer+".*", fleet.NowPrefix+writer+".{{wildcard(1)}}",
		quota, 1)
}

// shared returns the configuration for all values in a cluster.
func shared(replicas int) jetstream.StreamConfig {
	return config(fleet.SharedStream, fleet.SayPrefix+"*.*", fleet.NowPrefix+"{{wildcard(1)}}.{{wildcard(2)}}", -1,
		replicas)
}

// ensure makes a stream, or gives it its configuration. Had is the configuration that it has, or nil.
func ensure(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig,
	had *jetstream.StreamConfig) error {
	if had != nil && had.MaxBytes == want.MaxBytes && had.MaxMsgsPerSubject == 1 && had.MaxMsgSize == want.MaxMsgSize &&
		had.Discard == want.Discard && had.Duplicates == want.Duplicates && had.AllowDirect &&
		had.Replicas == want.Replicas && had.RePublish != nil && *had.RePublish == *want.RePublish &&
		len(had.Subjects) == 1 && had.Subjects[0] == want.Subjects[0] {
		return nil
	}
	_, err := js.CreateOrUpdateStream(ctx, want)
	return storing(err)
}

// storing turns an error of JetStream into a sentence.
func storing(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the server cannot store: %w; check its disk, and start it again", err)
}

// pull reads the last values of a stream below a subject. An error of each is returned as it is.
func pull(ctx context.Context, nc *nats.Conn, stream, filter string, each func(fleet.Stored) error) error {
	var failed error
	err := fleet.ReadStream(ctx, nc, stream, filter, 1, func(v fleet.Stored) error {
		failed = each(v)
		return failed
	})
	if err != nil && failed == nil {
		err = fmt.Errorf("%w: reading values: %w", ErrNoServer, err)
	}
	return err
}
