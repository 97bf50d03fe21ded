// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Errors that the implementation of a [Log] wraps.
var (
	// ErrNoSnapshot is returned by [Log.Snapshot] if there is no snapshot.
	ErrNoSnapshot = errors.New("the fleet's log has no snapshot")
	// ErrTrimmed is returned by [Log.Follow] if the log no longer holds the next entry and there is a snapshot of a
	// later place. Entries that are missing only because their person was forgotten do not cause it.
	ErrTrimmed = errors.New("the fleet's log does not reach back so far; a snapshot does")
	// ErrNoAnswer is returned by [Log.AskKeys] if no device answers, or if the device that was asked is busy.
	ErrNoAnswer = errors.New("no device answers")
	// ErrRefused is returned by every method if the server refuses this device: it was revoked, or never admitted.
	ErrRefused = errors.New("the fleet does not let this device in")
	// ErrRevoked is returned by [Restorer.Rejoin] if the server has shown a revocation of this device, signed by the
	// admin key. It wraps [ErrRefused].
	ErrRevoked = fmt.Errorf("%w: it was revoked", ErrRefused)
)

// Log is the ordered log that the devices of a fleet share. Its methods may be called at once. Each method returns an
// error soon after its context ends or the connection is lost.
type Log interface {
	// Append adds an entry about a person ("-" for none). The entry is stored when Append returns nil. It is stored as
	// often as it is appended, and counts once.
	Append(ctx context.Context, person string, data []byte) error
	// Follow calls take with all entries after a place, in order and each once, and waits for more. It returns the
	// error of take, the error of ctx, or another error if the connection is lost. The numbers of entries rise and may
	// have gaps.
	Follow(ctx context.Context, after uint64, take func(seq uint64, data []byte) error) error
	// Last returns the number of the last entry that was ever added. It is 0 for an empty log.
	Last(ctx context.Context) (uint64, error)
	// AskKeys sends a request for keys to one device, or to any device if "of" is empty, and returns the answer.
	AskKeys(ctx context.Context, of string, request []byte) ([]byte, error)
	// ServeKeys answers such requests, to the device id and to any device, until ctx ends or the connection is lost.
	// Answer may be called at once by several goroutines. If answer returns nil, no answer is sent.
	ServeKeys(ctx context.Context, id string, answer func(request []byte) []byte) error
	// PutSnapshot stores a snapshot of a place in the log and replaces snapshots of earlier places. The log may later
	// be trimmed up to that place. With place 0 it stores nothing, and only tells whether devices put snapshots: the
	// error wraps [errors.ErrUnsupported] if they do not, at any place.
	PutSnapshot(ctx context.Context, seq uint64, data io.Reader) error
	// Snapshot returns the latest snapshot and its place. The caller closes it. The error wraps [ErrNoSnapshot] if
	// there is none.
	Snapshot(ctx context.Context) (seq uint64, data io.ReadCloser, err error)
}

// Restorer is a [Log] that may be put back to an earlier state with a signature of the fleet's admin key.
type Restorer interface {
	// Bind returns a context that ends with the present connection. A method that is called with this context never
	// uses a later connection, because that could lead to a log that was put back meanwhile.
	Bind(ctx context.Context) (context.Context, context.CancelFunc, error)
	// Restored returns the admin key's entry about the last restoration, or nil if the log was never put back.
	Restored(ctx context.Context) ([]byte, error)
	// Rejoin sends the server the admin key's entries that this device knows, revocations first. The server may have
	// lost the admission of this device. Rejoin does not need the connection that the other methods use.
	Rejoin(ctx context.Context, rules [][]byte) error
}
