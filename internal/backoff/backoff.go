// SPDX-License-Identifier: Apache-2.0

// Package backoff waits before something that failed is tried again, and no longer than a context lasts.
package backoff

import (
	"context"
	"time"
)

// Wait waits that long and reports whether ctx lasted until then.
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

// Pause is a pause between tries. Each is twice as long as the one before, from First to Longest.
type Pause struct {
	First, Longest time.Duration

	next time.Duration
}

// Wait waits for the next pause and reports whether ctx lasted until its end.
func (p *Pause) Wait(ctx context.Context) bool {
	p.next = min(max(p.next, p.First), p.Longest)
	if !Wait(ctx, p.next) {
		return false
	}
	p.next *= 2
	return true
}

// Reset makes the next pause the first one again. Call it when a try succeeds.
func (p *Pause) Reset() { p.next = 0 }
