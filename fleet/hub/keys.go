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
// [fleet.ErrNoAnswer] if no device answers.
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
	return answer.Data, nil
}

// waiting is the number of questions for keys that may wait. Further questions are dropped and asked again.
const waiting = 256

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
	own, err := c.nc.ChanSubscribe(c.names.keys(id), questions)
	if err != nil {
		return plain(err)
	}
	defer own.Unsubscribe()
	all, err := c.nc.ChanQueueSubscribe(c.names.keys(""), keysGroup, questions)
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
