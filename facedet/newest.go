// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"sync"
)

// newest reads a camera as fast as the camera gives frames.
type newest struct {
	source Source
	cancel context.CancelFunc
	wake   chan struct{}
	ended  chan struct{}

	mu    sync.Mutex
	frame *Frame // the newest frame, if nobody has taken it
	err   error  // the error that ended the source
	count Count
}

// Newest returns a source that always gives the newest frame of a camera or stream. It skips older frames that the
// caller did not take, so that a slow caller sees the present. It owns s.
func Newest(s Source) Source {
	ctx, cancel := context.WithCancel(context.Background())
	n := &newest{source: s, cancel: cancel, wake: make(chan struct{}, 1), ended: make(chan struct{}), count: s.Count()}
	go n.pump(ctx)
	return n
}

// pump reads until the source ends, or ctx does.
func (n *newest) pump(ctx context.Context) {
	defer close(n.ended)
	for {
		f, err := n.source.Next(ctx)
		n.mu.Lock()
		if err == nil && n.frame != nil {
			n.frame.Close()
			n.count.Dropped++
		}
		if err == nil {
			n.frame = f
		}
		n.err = err
		dropped := n.count.Dropped
		n.count = n.source.Count()
		n.count.Dropped = dropped
		n.mu.Unlock()
		select {
		case n.wake <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// Next implements [Source]. A frame that is ready is returned before the error that ended the source. If ctx ends, the
// source is finished.
func (n *newest) Next(ctx context.Context) (*Frame, error) {
	for {
		n.mu.Lock()
		f, err := n.frame, n.err
		n.frame = nil
		n.mu.Unlock()
		switch {
		case f != nil:
			return f, nil
		case err != nil && ctx.Err() == nil:
			return nil, err
		}
		select {
		case <-n.wake:
		case <-ctx.Done():
			n.cancel()
			return nil, ctx.Err()
		}
	}
}

// Count implements [Source].
func (n *newest) Count() Count {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count
}

// Close implements [Source].
func (n *newest) Close() error {
	n.cancel()
	<-n.ended
	if n.frame != nil {
		n.frame.Close()
		n.frame = nil
	}
	return n.source.Close()
}
