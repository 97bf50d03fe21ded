// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"

	"github.com/faceauth/faceauth/fleet"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// AskKeys asks a device for keys of people, or any device if "of" is empty, and returns the answer. The error wraps
// [fleet.ErrNoAnswer] if no device answers, or if it is busy.
func (c *Conn) AskKeys(ctx context.Context, of string, request []byte) ([]byte, error) {
	if of != "" && !nkeys.IsValidPublicUserKey(of) {
		return nil, fmt.Errorf("%q is not the id of a device", of)
	}
	ctx, cancel, err := c.ready(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	answer, err := c.nc.RequestWithContext(ctx, c.names.keys(of), request)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, fmt.Errorf("%w: the key comes when a device that has it is connected", fleet.ErrNoAnswer)
	}
	if err != nil {
		return nil, cause(ctx, err)
	}
	if len(answer.Data) == 0 {
		return nil, fmt.Errorf("%w: the device that was asked is busy", fleet.ErrNoAnswer)
	}
	return answer.Data, nil
}

// waiting is the number of questions for keys that may wait. All devices of a large fleet ask at the same time for the
// key of a new person. If more wait, the device answers at once, with no data, that it is busy: the other device asks a
// third one, which may have the key by then.
const waiting = 1024

// ServeKeys answers questions for keys until ctx or the connection ends. It calls answer for one question at a time. If
// answer returns nil, no answer is sent.
func (c *Conn) ServeKeys(ctx context.Context, id string, answer func(request []byte) []byte) error {
	if id != c.id {
		return fmt.Errorf("%q is not the id of this device", id)
	}
	outer := ctx
	ctx, cancel, err := c.ready(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	questions := make(chan *nats.Msg, waiting)
	wait := func(m *nats.Msg) {
		select {
		case questions <- m:
		default:
			m.Respond(nil)
		}
	}
	own, err := c.nc.Subscribe(c.names.keys(id), wait)
	if err != nil {
		return plain(err)
	}
	defer own.Unsubscribe()
	all, err := c.nc.QueueSubscribe(c.names.keys(""), keysGroup, wait)
	if err != nil {
		return plain(err)
	}
	defer all.Unsubscribe()
	for {
		select {
		case m := <-questions:
			if reply := answer(m.Data); reply != nil && m.Reply != "" {
				m.Respond(reply) // if the answer is lost, the other device asks again
			}
		case <-ctx.Done():
			if outer.Err() != nil {
				return outer.Err()
			}
			return context.Cause(ctx)
		}
	}
}
