// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/spf13/cobra"
)

// betweenFrames is a stream that allows changes of people while it waits for a frame.
type betweenFrames struct {
	looked
	mu sync.Mutex // held, except while the stream waits for a frame
}

// Next implements [face.Stream].
func (s *betweenFrames) Next(ctx context.Context) (face.Frame, error) {
	s.mu.Unlock()
	defer s.mu.Lock()
	return s.looked.Next(ctx)
}

// watched is a watch that takes part in a fleet.
type watched struct {
	m    *member
	c    *cobra.Command
	g    *gallery.Gallery // gallery of the watch, just updated from the fleet
	path string           // path of its file
	keep bool             // the watch saves what it learns
}

// run takes part in the fleet until end is called. The caller uses the returned stream. Failed is called if the device
// cannot take part any more.
func (w *watched) run(ctx context.Context, s looked, failed func(error)) (between face.Stream, end func(),
	err error) {
	if err := w.begin(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	frames := &betweenFrames{looked: s}
	frames.mu.Lock()
	var work sync.WaitGroup
	work.Go(func() {
		w.m.Share(ctx, func() error {
			frames.mu.Lock()
			defer frames.mu.Unlock()
			return w.exchange()
		})
	})
	work.Go(func() { w.m.mind(ctx, w.c, failed) })
	return frames, func() {
		cancel()
		frames.mu.Unlock()
		work.Wait()
	}, nil
}

// begin notes the people that the watch and the fleet have in common.
func (w *watched) begin() error {
	if w.keep {
		return nil
	}
	return w.m.Borrow(w.g)
}

// exchange updates the watch and the file of its gallery from the fleet.
func (w *watched) exchange() error {
	if w.keep {
		return w.m.Align(w.g.At(w.path))
	}
	return w.m.Refresh(w.g, w.path)
}

// kept exchanges the file of a gallery that a watch has saved with the fleet, and gives lessons. After Ctrl-C this
// waits only for the disk.
func (m *member) kept(c *cobra.Command, g *gallery.Gallery, path string) error {
	if _, err := m.Device.TeachLessons(g, m.People); err != nil {
		return err
	}
	if err := m.Keep(g, path); err != nil {
		return fail(badGallery, err)
	}
	if c.Context().Err() == nil {
		m.leave(c)
	}
	return nil
}
