// SPDX-License-Identifier: Apache-2.0

// Package sink sends the events of a room to other programs: to a webhook or an MQTT broker.
//
// [Deliver] sends the events of a queue to a [Sink], each at least once and in order. After a failure it tries again,
// with growing pauses, as long as the queue keeps the event. A failing sink delays nothing else. [NewWebhook] and
// [NewMQTT] make sinks.
package sink

import (
	"cmp"
	"context"
	"time"

	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/office"
)

// Sink receives events. Send returns when its context ends. The same event may come twice, with the same number.
type Sink interface {
	Send(ctx context.Context, e office.Event) error
}

// Options of [Deliver]. A zero field means the default.
type Options struct {
	Timeout    time.Duration // time limit of one try. Default 10 s
	Backoff    time.Duration // pause before the next try; each failure doubles it. Default 1 s
	MaxBackoff time.Duration // longest pause. Default 5 min

	// Failed is called with the error of each failed try, and with nil after the next success.
	Failed func(error)
}

// Deliver sends events from q to s until ctx ends.
func Deliver(ctx context.Context, q *office.Queue, s Sink, o Options) {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 5*time.Minute)
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	pause, down := backoff.Pause{First: o.Backoff, Longest: o.MaxBackoff}, false
	for {
		e, ok := q.Next()
		if !ok {
			select {
			case <-q.More():
				continue
			case <-ctx.Done():
				return
			}
		}
		if err := send(ctx, s, e, o.Timeout); err == nil {
			q.Done(e.ID)
			if down {
				o.Failed(nil)
			}
			pause.Reset()
			down = false
			continue
		} else if ctx.Err() == nil {
			o.Failed(err)
			down = true
		}
		if !pause.Wait(ctx) {
			return
		}
	}
}

func send(ctx context.Context, s Sink, e office.Event, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Send(ctx, e)
}
