// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"time"

	"github.com/faceauth/faceauth/internal/backoff"
)

// live plays a recording at its own speed.
type live struct {
	Source
	now     func() time.Time
	start   time.Time
	dropped int
}

// Live returns a source that plays a recording at its own speed. No frame comes before its time. Frames that the caller
// did not take in time are skipped, except the last frame. For a camera use [Newest].
func Live(s Source) Source { return &live{Source: s, now: time.Now} }

// Count implements [Source].
func (l *live) Count() Count {
	n := l.Source.Count()
	n.Dropped = l.dropped
	return n
}

// late is the greatest delay of a frame that is not skipped.
const late = 50 * time.Millisecond

// Next implements [Source].
func (l *live) Next(ctx context.Context) (*Frame, error) {
	if l.start.IsZero() {
		l.start = l.now()
	}
	for {
		f, err := l.Source.Next(ctx)
		if err != nil {
			return nil, err
		}
		early := f.Time - l.now().Sub(l.start)
		if n := l.Count(); early < -late && n.Read < n.Declared {
			f.Close()
			l.dropped++
			continue
		}
		if early <= 0 {
			return f, nil
		}
		if !backoff.Wait(ctx, early) {
			f.Close()
			return nil, ctx.Err()
		}
		return f, nil
	}
}
