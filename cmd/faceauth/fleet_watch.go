// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"context"
	"sync"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/spf13/cobra"
)

// betweenFrames is a stream during which people can be changed: while a frame is waited for.
type betweenFrames struct {
	face.Stream
	mu sync.Mutex // held but while a frame is waited for
}

// Next implements [face.Stream].
func (s *betweenFrames) Next(ctx context.Context) (face.Frame, error) {
	s.mu.Unlock()
	defer s.mu.Lock()
	return s.Stream.Next(ctx)
}

// Look implements [face.Looker].
func (s *betweenFrames) Look() {
	if l, ok := s.Stream.(face.Looker); ok {
		l.Look()
	}
}

// Sure implements [face.Looker].
func (s *betweenFrames) Sure() {
	if l, ok := s.Stream.(face.Looker); ok {
		l.Sure()
	}
}

var _ face.Looker = (*betweenFrames)(nil)

// watched is a watch that follows a fleet.
type watched struct {
	m    *member
	c    *cobra.Command
	g    *gallery.Gallery // of the watch, which was brought in line a moment ago
	path string           // of its file
	keep bool             // what the watch learns is kept in the file
}

// run follows the fleet until end is called. What is to be watched goes through the stream that it returns. Failed is
// told where the device cannot take part any more.
func (w *watched) run(ctx context.Context, s face.Stream, failed func(error)) (between face.Stream, end func(), err error) {
	if err := w.begin(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	frames := &betweenFrames{Stream: s}
	frames.mu.Lock()
	var work sync.WaitGroup
	work.Go(func() {
		w.m.share(ctx, w.c, func() error {
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

// memory names the gallery of a watch that keeps nothing: what it learns is not in the file.
const memory = "watch"

// begin notes whom the watch and the fleet have in common. Who was forgotten since the gallery was read is forgotten.
func (w *watched) begin() error {
	if w.keep {
		return nil
	}
	before := w.m.people
	r, err := w.m.device.Reconcile(w.g, fleet.Reconciling{Gallery: memory})
	if err != nil {
		return err
	}
	for name := range before {
		if _, there := r.People[name]; !there && w.g.Learner().Knows(name) {
			if err := w.g.Remove(name); err != nil {
				return err
			}
		}
	}
	return r.Done()
}

// exchange brings the watch and the file of its gallery in line with the fleet.
func (w *watched) exchange() error {
	if w.keep {
		r, err := w.m.exchange(w.c, w.g, nil)
		if err == nil {
			err = w.m.teach(w.g)
		}
		if err != nil || !r.Changed {
			return err
		}
		if err := w.g.Save(w.path); err != nil {
			return err
		}
		return r.Done()
	}
	r, err := w.m.device.Reconcile(w.g, fleet.Reconciling{Gallery: memory})
	if err != nil {
		return err
	}
	r.TakeLessons(w.g)
	w.m.tellRefused(w.c, r.Refused)
	if err := r.Done(); err != nil {
		return err
	}
	return w.m.keep(w.c, w.g, w.path)
}

// kept brings the file of a gallery that a watch has saved in line with the fleet, and gives the others what the watch
// has learned. After Ctrl-C this waits on the disk.
func (m *member) kept(c *cobra.Command, g *gallery.Gallery, path string) error {
	if _, err := m.device.TeachLessons(g, m.people); err != nil {
		return err
	}
	if err := m.keep(c, g, path); err != nil {
		return fail(badGallery, err)
	}
	if c.Context().Err() == nil {
		m.leave(c)
	}
	return nil
}
