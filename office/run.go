// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// cameras reads cameras, and judges who is in view.
type cameras struct {
	*book
	learnable online.Room // as Options.Room was told
	cancel    func()      // ends the run
}

// Stream reads the frames of a camera. Next returns when its context ends.
type Stream interface {
	face.Stream
	Dropped() int // number of skipped frames, because newer ones had come
	Close() error
}

// Camera is one of several cameras. Their names must differ.
type Camera struct {
	Name string
	// Open opens the camera. Picture reports whether the whole next frame is needed as a picture, and not only its
	// faces.
	Open func(ctx context.Context, picture func() bool) (Stream, error)
	Ends bool // a recording: its end is not a failure, and a failure ends the run
	// Hide returns an error without secrets, such as the password in a URL, before it is shown. Default: the error.
	Hide func(error) error
	// Stills says that the frames are single pictures, some seconds apart, and that the Track of their samples says
	// which faces are one person. Two of them, and not three, then give a name, if they agree. What confirms a name
	// stays: two different looks near enrolled faces.
	Stills bool
	Door   Door // whose faces it sees: "" for people in a room
}

// Health describes the state of a camera.
type Health struct {
	Camera  string    `json:"camera"`
	Up      bool      `json:"up"`
	Since   time.Time `json:"since"`
	Size    [2]int    `json:"size"`            // width and height of the frame, in pixels
	Error   string    `json:"error,omitempty"` // why it does not work
	Frames  int       `json:"frames"`          // frames processed since the start
	Dropped int       `json:"dropped"`         // frames skipped since then: the machine was too slow
	Rate    float64   `json:"rate"`            // frames processed per second at present
}

// Sentence describes the state for a person.
func (h Health) Sentence() string {
	if h.Up {
		text := h.Camera + ": camera connected"
		if least := face.LeastSeen(image.Pt(h.Size[0], h.Size[1])); least > 0 {
			text += fmt.Sprintf(", %dx%d: faces from %d pixels", h.Size[0], h.Size[1], least)
		}
		return text
	}
	return fmt.Sprintf("%s: %s; it is tried again", h.Camera, h.Error)
}

// Run watches cameras until ctx ends or all cameras have ended. Call it once. When all cameras have ended, it reports
// that all people have left, unless one is an [Entrance]. The error comes from the learner or from a camera with Ends, or
// tells that data could not be written until the end. A failure to write in between does not end Run: see [Disk].
func (w *Office) Run(ctx context.Context, cameras []Camera) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	w.cancel = cancel
	for _, c := range cameras {
		watcher := sighting.NewWatcher
		if c.Stills {
			watcher = sighting.NewStillsWatcher
		}
		w.views = append(w.views, &view{camera: c, health: Health{Camera: c.Name}, sightings: make(map[int]*sighted),
			people: watcher(w.gallery.Learner())})
		w.room.Watch(c.Name, c.Door)
	}
	w.record(nil)
	w.keep(false)
	w.mu.Unlock()
	if err := w.fail(nil); err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, v := range w.views {
		all.Go(func() { w.watch(ctx, v) })
	}
	ended := make(chan struct{})
	go func() {
		all.Wait()
		close(ended)
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ended:
			return w.finish(ctx)
		case <-tick.C:
		}
		w.mu.Lock()
		w.tell(w.room.Tick(w.o.Now())) // without frames, only the clock tells that people have left
		if n%noteEvery == 0 {          // keeps the last sightings if the program is killed
			for _, v := range w.views {
				v.health.Rate, v.counted = float64(v.health.Frames-v.counted)/noteEvery, v.health.Frames
			}
			w.latest()
		}
		if n%60 == 0 { // keeps them if the machine loses power
			w.minute()
		}
		w.mu.Unlock()
	}
}

// noteEvery is the number of seconds between two notes of the last sightings: after a crash, times are wrong by at most
// this.
const noteEvery = 2

// finish reports the last events and saves.
func (w *Office) finish(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil {
		w.tell(w.room.Empty())
	}
	w.tried = time.Time{} // the last try has no pause before it
	w.latest()
	if w.broken == nil && w.fault != nil {
		return fmt.Errorf("the latest events, corrections and faces could not be saved and are lost: %w", w.fault)
	}
	return w.broken
}

// fail ends the run with an error, unless it is nil, and returns the first one.
func (w *cameras) fail(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = cmp.Or(w.broken, err)
	if w.broken != nil {
		w.cancel()
	}
	return w.broken
}

// watch reads a camera until ctx, the run or the camera ends. After a failure it waits and opens the camera again.
func (w *cameras) watch(ctx context.Context, v *view) {
	pause := backoff.Pause{First: w.o.Backoff, Longest: time.Minute}
	for {
		begun := v.health.Frames
		err := w.read(ctx, v)
		if v.camera.Hide != nil {
			err = v.camera.Hide(err)
		}
		switch {
		case w.fail(nil) != nil:
			return
		case ctx.Err() != nil, v.camera.Ends && errors.Is(err, io.EOF):
			w.blank(v, ctx.Err() == nil)
			return
		case v.camera.Ends:
			w.fail(fmt.Errorf("%s: %w", v.camera.Name, err))
			return
		case errors.Is(err, io.EOF):
			err = errors.New("it has ended")
		}
		if v.health.Frames > begun {
			pause.Reset()
		}
		w.mu.Lock()
		w.report(v, false, err.Error())
		w.mu.Unlock()
		if !pause.Wait(ctx) {
			return
		}
	}
}

// report records the state of a camera, and calls Health if it has changed. The lock must be held.
func (w *cameras) report(v *view, up bool, why string) {
	h := &v.health
	if !up {
		v.seen, v.picture = nil, nil
		w.room.Down(v.camera.Name)
	}
	if !h.Since.IsZero() && h.Up == up && h.Error == why {
		return
	}
	h.Up, h.Error, h.Since = up, why, w.o.Now()
	call(w.o.Health, *h)
}

// blank records that a camera shows nothing any more, and that nobody waits for it if it has ended.
func (w *cameras) blank(v *view, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v.seen, v.picture, v.health.Up = nil, nil, false
	w.end(v, nil)
	if ended {
		w.room.End(v.camera.Name)
	}
}

// read opens a camera and processes its frames until it fails.
func (w *cameras) read(ctx context.Context, v *view) error {
	s, err := v.camera.Open(ctx, func() bool { return w.watched(v) })
	if err != nil {
		return err
	}
	defer s.Close()
	before := v.health.Dropped
	for {
		f, err := s.Next(ctx)
		if err != nil {
			return err
		}
		if err := w.fail(w.frame(v, f, before+s.Dropped())); err != nil {
			return err
		}
		v.people.Ask(s)
		if f, ok := s.(interface{ Faceless() []time.Time }); ok {
			w.mu.Lock()
			for _, since := range f.Faceless() {
				w.faceless(v, since)
			}
			w.mu.Unlock()
		}
	}
}
