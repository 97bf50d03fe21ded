// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/backoff"
	"golang.org/x/time/rate"
)

// follow applies the log until ctx ends.
func (s *service) follow(ctx context.Context, cancel context.CancelCauseFunc) {
	pause := backoff.Pause{First: 100 * time.Millisecond, Longest: 10 * time.Second}
	for {
		at := s.seq()
		err := s.conn.Follow(ctx, at, s.take)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ledger.ErrFuture), errors.Is(err, ErrRewound), errors.Is(err, fleet.ErrTrimmed):
			cancel(fmt.Errorf("the log of the fleet cannot be followed: %w", err))
			return
		}
		s.Log.Warn("the log is read again", "error", err)
		if s.seq() > at {
			pause.Reset()
		}
		if !pause.Wait(ctx) {
			return
		}
	}
}

func (s *service) seq() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.Seq()
}

// take applies an entry of the log.
func (s *service) take(seq uint64, data []byte) error {
	s.mu.Lock()
	o, err := s.ledger.Apply(seq, data)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	if o.Entry.Device == s.names.fleet && s.spoken[o.Entry.N] == nil && o.Entry.Verify(s.names.fleet) == nil {
		s.spoken[o.Entry.N] = data
	}
	for _, id := range o.Forgotten {
		s.purges = append(s.purges, purge{id, seq})
	}
	close(s.applied)
	s.applied = make(chan struct{})
	s.mu.Unlock()
	if !o.Accepted {
		s.passed.Do(func() { s.Log.Warn("an entry of the log does not count", "reason", o.Reason) })
	}
	if k := o.Entry.Kind; o.Accepted && (k == ledger.Admit || k == ledger.Revoke) {
		s.refresh()
	}
	return nil
}

// flowPause is how long the server refuses entries of a device that sends too much.
const flowPause = time.Minute

// flowSeconds is the time in which a device regains its full allowance.
const flowSeconds = 128

// watchFlow pauses devices that send more than a working device does, until ctx ends. All bytes of a connection count:
// garbage in the log has no author.
func (s *service) watchFlow(ctx context.Context) {
	flows, paused := make(map[string]*rate.Limiter), make(map[string]time.Time)
	burst := s.Limits.defaults().Burst
	for s.server != nil && backoff.Wait(ctx, time.Second) {
		now := time.Now()
		for device, bytes := range s.server.Received() {
			f := flows[device]
			if f == nil {
				f = rate.NewLimiter(rate.Limit(burst/flowSeconds), burst)
				flows[device] = f
			}
			if !f.AllowN(now, bytes) && now.After(paused[device]) { // some bytes may still be on their way
				paused[device] = now.Add(flowPause)
				s.Log.Warn("a device sends too much and is paused; revoke it if it is broken", "id", device,
					"bytes", bytes, "for", flowPause)
				s.server.Pause(device, paused[device])
			}
		}
	}
}
