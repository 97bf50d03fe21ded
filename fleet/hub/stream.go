// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// admin is the writer of the records.
const admin = "admin"

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
	return config(fleet.StreamOf(writer), "F.say."+writer+".*", "F.now."+writer+".{{wildcard(1)}}", quota, 1)
}

// shared returns the configuration for all values in a cluster.
func shared(replicas int) jetstream.StreamConfig {
	return config(fleet.SharedStream, "F.say.*.*", "F.now.{{wildcard(1)}}.{{wildcard(2)}}", -1, replicas)
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

// said is a stored value.
type said struct {
	writer, name string
	data         []byte
	seq          uint64 // in its stream
	at           time.Time
}

// pull reads the last values of a stream below a subject, in the order of their storage, in batches and without a
// consumer. A server before 2.11 sends one value for each request.
func pull(ctx context.Context, nc *nats.Conn, stream, filter string, each func(said) error) error {
	const batch = 1000
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	for next := uint64(1); ; {
		ask, err := json.Marshal(map[string]any{"seq": next, "batch": batch, "max_bytes": 8 << 20,
			"next_by_subj": filter})
		if err != nil {
			return err
		}
		if err := nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, ask); err != nil {
			return err
		}
		for {
			m, err := sub.NextMsgWithContext(ctx)
			if errors.Is(err, nats.ErrNoResponders) { // there is no such stream
				return nil
			}
			if err != nil {
				return fmt.Errorf("%w: reading values: %w", ErrNoServer, err)
			}
			switch status := m.Header.Get("Status"); status {
			case "":
			case "404", "503": // there is nothing more, or no such stream
				return nil
			case "204":
				if m.Header.Get("Nats-Num-Pending") == "0" {
					return nil
				}
			default:
				return fmt.Errorf("the server cannot read values: %s %s", status, m.Header.Get("Description"))
			}
			if m.Header.Get("Status") == "204" {
				break
			}
			part := strings.Split(m.Header.Get("Nats-Subject"), ".")
			seq, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
			if err != nil || len(part) != 4 {
				return errors.New("the server answers with something else than a value")
			}
			at, _ := time.Parse(time.RFC3339Nano, m.Header.Get("Nats-Time-Stamp")) // zero if it is missing
			next = seq + 1
			if err := each(said{part[2], part[3], m.Data, seq, at}); err != nil {
				return err
			}
			if m.Header.Get("Nats-Num-Pending") == "" { // an old server
				break
			}
		}
	}
}
