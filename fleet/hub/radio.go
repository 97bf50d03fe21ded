// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"

	"github.com/faceauth/faceauth/fleet"
	"github.com/nats-io/nats.go"
)

var _ fleet.Radio = (*Conn)(nil)

// room is the subject for the people at a device.
func (s subjects) room(device string) string { return s.base() + ".room." + device }

// Broadcast sends data to all devices that listen. It is not stored.
func (c *Conn) Broadcast(ctx context.Context, data []byte) error {
	_, cancel, err := c.ready(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	return plain(c.nc.Publish(c.names.room(c.id), data))
}

// Listen calls take with the messages of other devices, one at a time, until ctx or the connection ends.
func (c *Conn) Listen(ctx context.Context, take func(data []byte)) error {
	outer := ctx
	ctx, cancel, err := c.ready(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	told := make(chan *nats.Msg, waiting)
	s, err := c.nc.ChanSubscribe(c.names.room("*"), told)
	if err != nil {
		return plain(err)
	}
	defer s.Unsubscribe()
	for {
		select {
		case m := <-told:
			if m.Subject != c.names.room(c.id) {
				take(m.Data)
			}
		case <-ctx.Done():
			if outer.Err() != nil {
				return outer.Err()
			}
			return context.Cause(ctx)
		}
	}
}
