// SPDX-License-Identifier: Apache-2.0

// Package sink tells other programs what happens in a room: a webhook, or an MQTT broker.
//
// [Deliver] takes the events of a queue to a [Sink], each at least once and in their order: one that fails is tried
// again, with pauses that grow, for as long as the queue keeps it. A sink that is down holds up nothing else.
// [NewWebhook] and [NewMQTT] make sinks.
package sink

import (
	"cmp"
	"context"
	"time"

	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/office/logbook"
	"github.com/faceauth/faceauth/office/presence"
)

// Sink takes events. Send gives up when its context ends. The same event may come twice, with the same number.
type Sink interface {
	Send(ctx context.Context, e presence.Event) error
}

// Options of [Deliver]. The zero value of each field stands for its default.
type Options struct {
	Timeout    time.Duration // of one try. Default 10 s
	Backoff    time.Duration // before an event is tried again; each failure doubles it. Default 1 s
	MaxBackoff time.Duration // that it grows to. Default 5 min

	// Failed is told of each try that fails, and with nil of the first that succeeds after that.
	Failed func(error)
}

// Deliver takes events from q to s until ctx ends. The error is that of [logbook.Queue.Done].
func Deliver(ctx context.Context, q *logbook.Queue, s Sink, o Options) error {
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
				return nil
			}
		}
		if err := send(ctx, s, e, o.Timeout); err == nil {
			if err := q.Done(e.ID); err != nil {
				return err
			}
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
			return nil
		}
	}
}

func send(ctx context.Context, s Sink, e presence.Event, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Send(ctx, e)
}
