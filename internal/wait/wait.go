// Package wait waits for a while, and no longer than a context lasts.
package wait

import (
	"context"
	"time"
)

// For waits that long and reports whether ctx lasted until then.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
