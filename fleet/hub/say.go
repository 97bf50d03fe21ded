// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/backoff"
)

// unsaid is an entry of the admin key that may not be stored.
type unsaid struct {
	entry ledger.Entry
	data  []byte
}

// sayTime is the time limit for storing an entry of the admin key.
const sayTime = 20 * time.Second

// say adds an entry of the admin key to the log and waits until it is applied.
func (s *service) say(ctx context.Context, kind ledger.Kind, content any) ([]byte, error) {
	s.saying.Lock()
	defer s.saying.Unlock()
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	if s.unsaid != nil { // the log may have it already, so its counter is used
		if err := s.store(ctx, s.unsaid); err != nil {
			return nil, err
		}
		s.unsaid = nil
	}
	s.mu.Lock()
	n := s.ledger.Last(s.names.fleet) + 1
	s.mu.Unlock()
	e := ledger.Entry{N: n, Time: time.Now(), Kind: kind}
	e.Put(content)
	if err := e.Sign(s.names.fleet, s.admin); err != nil {
		return nil, err
	}
	u := &unsaid{e, e.Encode()}
	if err := s.store(ctx, u); err != nil {
		s.unsaid = u
		return nil, err
	}
	return u.data, nil
}

// store appends an entry, with repetitions, and waits until it is applied.
func (s *service) store(ctx context.Context, u *unsaid) error {
	pause := backoff.Pause{First: 50 * time.Millisecond, Longest: 2 * time.Second}
	for {
		err := s.conn.Append(ctx, "", u.data)
		if err == nil {
			break
		}
		if errors.Is(err, ErrFull) || errors.Is(err, ErrTooLarge) || !pause.Wait(ctx) {
			return fmt.Errorf("the entry could not be stored: %w", err)
		}
	}
	for {
		s.mu.Lock()
		found, applied := s.spoken[u.entry.N], s.applied
		s.mu.Unlock()
		if found != nil && bytes.Equal(found, u.data) {
			return nil
		}
		if found != nil {
			return errors.New(
				"another service uses this fleet's admin key at the same time; run faceauth fleet serve only once")
		}
		select {
		case <-applied:
		case <-ctx.Done():
			return fmt.Errorf("%w: the entry was sent and has not come back in the log yet; try again", ErrOffline)
		}
	}
}
