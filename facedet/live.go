// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"time"

	"github.com/faceauth/faceauth/internal/backoff"
)

// live plays a recording as a camera would give it.
type live struct {
	Source
	now     func() time.Time
	start   time.Time
	dropped int
}

// Live returns a source that plays a recording at its own pace: no frame comes before its time, and those that nobody
// took in time are passed over, all but the last. For a camera there is [Newest].
func Live(s Source) Source { return &live{Source: s, now: time.Now} }

// Count implements [Source].
func (l *live) Count() Count {
	n := l.Source.Count()
	n.Dropped = l.dropped
	return n
}

// late is how far behind its time a frame may come.
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
