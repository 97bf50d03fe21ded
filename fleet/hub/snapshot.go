// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// Errors of [Conn.Snapshot].
var (
	// ErrSnapshot is returned for a damaged snapshot, or one that the fleet's admin key has not signed.
	ErrSnapshot = errors.New(
		"the snapshot on the server is damaged, or of another fleet; restart faceauth fleet serve to make a new one")
	// ErrReadOnly is returned by [Conn.PutSnapshot]: only the service of the fleet stores snapshots.
	ErrReadOnly = fmt.Errorf("snapshots are made by the server of the fleet: %w", errors.ErrUnsupported)
)

// snapshotName is the object with the newest snapshot. It is replaced as a whole.
const snapshotName = "snapshot"

// largestSnapshot is a limit in bytes, above the size for 100,000 people.
const largestSnapshot = 2 << 30

// Keys of a snapshot's metadata.
const (
	snapshotSeq = "seq"
	snapshotSig = "sig"
)

// signedSnapshot returns the bytes that the admin key signs.
func signedSnapshot(id string, seq uint64, data []byte) []byte {
	sum := sha256.Sum256(data)
	text := append([]byte("faceauth fleet snapshot 1\n"+id+"\n"), binary.BigEndian.AppendUint64(nil, seq)...)
	return append(text, sum[:]...)
}

// putSnapshot replaces the snapshot. Seq is the place of its last entry.
func putSnapshot(
	ctx context.Context,
	bucket jetstream.ObjectStore,
	admin nkeys.KeyPair,
	id string,
	seq uint64,
	data []byte,
) error {
	sig, err := admin.Sign(signedSnapshot(id, seq, data))
	if err != nil {
		return err
	}
	_, err = bucket.Put(ctx, jetstream.ObjectMeta{Name: snapshotName, Metadata: map[string]string{
		snapshotSeq: strconv.FormatUint(seq, 10), snapshotSig: base64.RawURLEncoding.EncodeToString(sig),
	}}, bytes.NewReader(data))
	return stored(ctx, err)
}

// getSnapshot returns the newest snapshot and checks its signature. It reads without a consumer: devices then need no
// right to make consumers, whose messages the server sends to any subject.
func getSnapshot(ctx context.Context, js jetstream.JetStream, names subjects) (seq uint64, data []byte, err error) {
	bucket, err := js.ObjectStore(ctx, names.bucket())
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil, fleet.ErrNoSnapshot
	}
	if err != nil {
		return 0, nil, cause(ctx, err)
	}
	stream, err := js.Stream(ctx, names.objects())
	if err != nil {
		return 0, nil, cause(ctx, err)
	}
	info, err := bucket.GetInfo(ctx, snapshotName)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return 0, nil, fleet.ErrNoSnapshot
	}
	if err != nil {
		return 0, nil, cause(ctx, err)
	}
	chunks, at := jetstream.WithGetMsgSubject("$O."+names.bucket()+".C."+info.NUID), uint64(0)
	for range info.Chunks {
		m, err := stream.GetMsg(ctx, at+1, chunks)
		if errors.Is(err, jetstream.ErrMsgNotFound) { // a newer snapshot replaces it
			return 0, nil, ErrSnapshot
		}
		if err != nil {
			return 0, nil, cause(ctx, err)
		}
		if at, data = m.Sequence, append(data, m.Data...); len(data) > largestSnapshot {
			return 0, nil, fmt.Errorf("%w (it has more than %d bytes)", ErrSnapshot, largestSnapshot)
		}
	}
	if seq, err = checkSnapshot(info, names.fleet, data); err != nil {
		return 0, nil, err
	}
	return seq, data, nil
}

// checkSnapshot returns the place of a snapshot if the admin key has signed it.
func checkSnapshot(info *jetstream.ObjectInfo, id string, data []byte) (uint64, error) {
	seq, err := strconv.ParseUint(info.Metadata[snapshotSeq], 10, 64)
	sig, err2 := base64.RawURLEncoding.DecodeString(info.Metadata[snapshotSig])
	key, err3 := nkeys.FromPublicKey(id)
	if errors.Join(err, err2, err3) != nil || key.Verify(signedSnapshot(id, seq, data), sig) != nil {
		return 0, ErrSnapshot
	}
	return seq, nil
}

// snapshotTries is the number of tries to read a snapshot that is replaced meanwhile.
const snapshotTries = 3

// Snapshot returns the newest snapshot and the sequence number of its last entry. The service has signed it. The error
// wraps [fleet.ErrNoSnapshot], [ErrSnapshot] or [ErrOffline].
func (c *Conn) Snapshot(ctx context.Context) (seq uint64, data io.ReadCloser, err error) {
	ctx, cancel, err := c.ready(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer cancel()
	if _, limited := ctx.Deadline(); !limited {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, 5*time.Minute) // the default of the library is 5 s for the whole snapshot
		defer end()
	}
	for try := 1; ; try++ {
		var b []byte
		seq, b, err = getSnapshot(ctx, c.js, c.names)
		if err == nil {
			return seq, io.NopCloser(bytes.NewReader(b)), nil
		}
		if try == snapshotTries || !errors.Is(err, ErrSnapshot) || ctx.Err() != nil {
			return 0, nil, err
		}
	}
}

// PutSnapshot implements fleet.Log. It returns [ErrReadOnly]: the service of the fleet reads the same log and makes the
// snapshots, so no device can store a false one.
func (c *Conn) PutSnapshot(context.Context, uint64, io.Reader) error { return ErrReadOnly }
