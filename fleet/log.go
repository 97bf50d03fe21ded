// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Errors of a [Log], which its implementation wraps.
var (
	// ErrNoSnapshot is returned by [Log.Snapshot] where there is none.
	ErrNoSnapshot = errors.New("the fleet's log has no snapshot")
	// ErrTrimmed is returned by [Log.Follow] where the log no longer holds what comes next, and there is a snapshot of
	// a later place. Messages that are missing because their person was forgotten are no reason for it.
	ErrTrimmed = errors.New("the fleet's log does not reach back so far; a snapshot does")
	// ErrNoAnswer is returned by [Log.AskKeys] where no device is there to answer, or the one that was
	// asked is busy.
	ErrNoAnswer = errors.New("no device answers")
	// ErrRefused is returned by any method where the server does not let this device in: it was revoked, or never
	// admitted.
	ErrRefused = errors.New("the fleet does not let this device in")
	// ErrRevoked is returned by [Restorer.Rejoin] with the word of the admin key that this device was revoked. It wraps
	// [ErrRefused].
	ErrRevoked = fmt.Errorf("%w: it was revoked", ErrRefused)
)

// Log is the ordered log that the devices of a fleet share. Its methods may be called at once. Every one ends with an
// error soon after its context does, or after the connection is lost.
type Log interface {
	// Append adds an entry about a person ("-" for none). An id that the log was given lately is not added again. When
	// it returns nil, the entry is stored.
	Append(ctx context.Context, person, id string, data []byte) error
	// Follow gives take all entries after a place, in order, each once, and waits for more. It ends with the error of
	// take, that of ctx, or another where the connection is lost. Numbers go up, and may leave some out.
	Follow(ctx context.Context, after uint64, take func(seq uint64, data []byte) error) error
	// Last returns the number of the last entry that was ever added, or 0.
	Last(ctx context.Context) (uint64, error)
	// AskKeys asks a device, or any device for "", for keys, and returns the answer.
	AskKeys(ctx context.Context, of string, request []byte) ([]byte, error)
	// ServeKeys answers such requests, to the device id and to any, until ctx ends or the connection is lost. Answer
	// may be called at once by several goroutines; where it returns nothing, nothing is sent.
	ServeKeys(ctx context.Context, id string, answer func(request []byte) []byte) error
	// PutSnapshot stores a snapshot at a place in the log, in place of those at earlier places. What the log holds up
	// to there may be trimmed some time later. At place 0 there is none, and nothing is stored. The error wraps
	// [errors.ErrUnsupported], at place 0, too, where devices put no snapshots.
	PutSnapshot(ctx context.Context, seq uint64, data io.Reader) error
	// Snapshot returns the latest snapshot, to be closed, and its place. The error wraps [ErrNoSnapshot] where there is
	// none.
	Snapshot(ctx context.Context) (seq uint64, data io.ReadCloser, err error)
}

// Restorer is a [Log] that may be put back to an earlier state, by the word of the fleet's admin key.
type Restorer interface {
	// Bind returns a context that ends with the connection that there is now. No method that is called with it reaches
	// the server over a later one: that may be of a log that was put back.
	Bind(ctx context.Context) (context.Context, context.CancelFunc, error)
	// Restored returns the entry of the admin key that says so, or nil for a log that never was put back.
	Restored(ctx context.Context) ([]byte, error)
	// Rejoin gives the server the entries of the admin key that this device knows, revocations first: the server may
	// have lost that it admitted this device. It does not need the connection that the other methods need.
	Rejoin(ctx context.Context, rules [][]byte) error
}
