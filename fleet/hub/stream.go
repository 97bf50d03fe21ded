// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// idWindow is how long the server remembers message ids, the least that NATS allows. Nobody uses them: an entry that is
// appended again is stored twice, and counts once.
const idWindow = 100 * time.Millisecond

// logBytes is the size limit of the log in bytes.
func logBytes(l Limits) int64 { return int64(float64(l.Disk) * logShare) }

// openStream returns the log of a fleet, and makes it if it is missing.
func openStream(
	ctx context.Context,
	js jetstream.JetStream,
	names subjects,
	limits Limits,
	replicas int,
) (jetstream.Stream, error) {
	limits = limits.defaults()
	config := jetstream.StreamConfig{
		Name: names.stream(), Description: logText, Subjects: []string{names.log("*")},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: replicas,
		// A full log refuses new entries; it never drops old ones.
		Discard: jetstream.DiscardNew, MaxBytes: logBytes(limits), MaxMsgSize: int32(limits.Message), MaxAge: 0,
		MaxConsumers: limits.Devices, Duplicates: idWindow, DenyDelete: true, AllowRollup: false, AllowDirect: false,
	}
	stream, err := js.Stream(ctx, config.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = js.CreateStream(ctx, config)
	} else if err == nil {
		was := stream.CachedInfo().Config
		if was.MaxBytes != config.MaxBytes || was.MaxMsgSize != config.MaxMsgSize || was.Duplicates != idWindow {
			was.MaxBytes, was.MaxMsgSize, was.Duplicates = config.MaxBytes, config.MaxMsgSize, idWindow
			config = was
			stream, err = js.UpdateStream(ctx, config)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the log of the fleet: %w", storage(err))
	}
	return stream, nil
}

// openBucket returns the object store with the snapshots of a fleet, and makes it if it is missing.
func openBucket(
	ctx context.Context,
	js jetstream.JetStream,
	names subjects,
	limits Limits,
	replicas int,
) (jetstream.ObjectStore, error) {
	limits = limits.defaults()
	config := jetstream.ObjectStoreConfig{
		Bucket: names.bucket(), Description: "snapshots of a faceauth fleet", Storage: jetstream.FileStorage,
		Replicas: replicas, MaxBytes: limits.Disk - logBytes(limits),
	}
	bucket, err := js.ObjectStore(ctx, config.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		bucket, err = js.CreateObjectStore(ctx, config)
	} else if err == nil {
		var was jetstream.ObjectStoreStatus
		if was, err = bucket.Status(ctx); err == nil {
			if b, ok := was.(*jetstream.ObjectBucketStatus); ok && b.StreamInfo().Config.MaxBytes != config.MaxBytes {
				config.Replicas = was.Replicas()
				bucket, err = js.UpdateObjectStore(ctx, config)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the snapshots of the fleet: %w", storage(err))
	}
	return bucket, nil
}

// storage turns an error of JetStream into a sentence with advice.
func storage(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return errors.New("the cluster has no JetStream for this account; enable it there")
	case errors.As(err, &api) && (api.ErrorCode == 10047 || api.ErrorCode == 10028 || api.ErrorCode == 10023):
		return fmt.Errorf("%s; the disk has less room than --disk requires", api.Description)
	case errors.As(err, &api):
		return errors.New(api.Description)
	}
	return plain(err)
}
