// SPDX-License-Identifier: Apache-2.0

// Package backoff waits before the next attempt, but no longer than a context lasts.
package backoff

import (
	"context"
	"time"
)

// Wait waits for d. It returns false if ctx ends before.
func Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Pause is a pause between attempts. Each pause is twice as long as the one before, from First to
// Longest.
type Pause struct {
	First, Longest time.Duration

	next time.Duration
}

// Wait waits for the next pause. It returns false if ctx ends before.
func (p *Pause) Wait(ctx context.Context) bool {
	p.next = min(max(p.next, p.First), p.Longest)
	if !Wait(ctx, p.next) {
		return false
	}
	p.next *= 2
	return true
}

// Reset makes the next pause the first again. Call it after a success.
func (p *Pause) Reset() { p.next = 0 }
