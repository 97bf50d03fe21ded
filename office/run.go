// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/sighting"
)

// Stream gives the frames of a camera. Next gives up when its context ends.
type Stream interface {
	face.Stream
	Dropped() int // frames that were passed over, as they came faster than they were taken
	Close() error
}

// Camera is one of several. Names differ.
type Camera struct {
	Name string
	// Open opens it. Picture says of the frame that comes next whether its own picture is wanted, and not only the pictures
	// of the faces.
	Open func(ctx context.Context, picture func() bool) (Stream, error)
	Ends bool // as a recording does: its end is no fault, and a fault ends the run
}

// Health says how a camera is.
type Health struct {
	Camera  string    `json:"camera"`
	Up      bool      `json:"up"`
	Since   time.Time `json:"since"`
	Error   string    `json:"error,omitempty"` // why it is not
	Frames  int       `json:"frames"`          // looked at since the beginning
	Dropped int       `json:"dropped"`         // passed over since then, as the machine was not fast enough, or was told not to
	Rate    float64   `json:"rate"`            // frames looked at a second, of late
}

// Run watches cameras until ctx ends or all of them have ended, and is called once. When all cameras have ended,
// everybody who was there is said to have left. The error is that of the learner, of a camera that ends, or of what could
// not be written to the end. What cannot be written meanwhile ends nothing: see [Disk].
func (w *Office) Run(ctx context.Context, cameras []Camera) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.mu.Lock()
	for _, c := range cameras {
		w.views = append(w.views, &view{
			camera: c, health: Health{Camera: c.Name}, sightings: make(map[int]*visit),
			people: sighting.NewWatcher(w.gallery.Learner(), w.o.Track, w.o.Rules),
		})
		w.room.Watch(c.Name)
	}
	views := w.views
	w.record(nil)
	w.tellDisk()
	broken := w.broken
	w.mu.Unlock()
	if broken != nil {
		return broken
	}
	var all sync.WaitGroup
	for _, v := range views {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := w.watch(ctx, v); err != nil {
				cancel(err)
			}
		}()
	}
	ended := make(chan struct{})
	go func() {
		all.Wait()
		close(ended)
	}()
	tick, look, minute := time.NewTicker(time.Second), time.NewTicker(lookEvery), time.NewTicker(time.Minute)
	defer tick.Stop()
	defer look.Stop()
	defer minute.Stop()
	for {
		select {
		case <-ended:
			return w.finish(ctx)
		case <-tick.C: // a camera that gives nothing says of nobody that they have left
			w.mu.Lock()
			w.tell(w.room.Tick(w.o.Now()))
			broken = w.broken
			w.mu.Unlock()
		case <-look.C: // when people were seen last, for a program that is killed
			w.mu.Lock()
			w.note()
			w.mu.Unlock()
		case <-minute.C: // the same, for a machine that loses its power
			w.mu.Lock()
			w.record(nil)
			w.unknown.Expire(w.o.Now())
			w.keepPast()
			w.keepUnknown()
			broken = w.broken
			w.mu.Unlock()
		}
		if broken != nil {
			cancel(&failure{broken})
		}
	}
}

// lookEvery is how often it is noted when people were seen last: by so much a time is wrong after a crash.
const lookEvery = 2 * time.Second

// finish says what there is to say at the end.
func (w *Office) finish(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil {
		w.tell(w.room.Empty())
	}
	w.record(nil)
	w.keepUnknown()
	w.saveAgain()
	var failed *failure
	if errors.As(context.Cause(ctx), &failed) {
		return failed.err
	}
	return cmp.Or(w.broken, w.unsaved())
}

// failure ends all cameras.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }

// watch reads a camera until ctx or the camera ends, and opens it again, after a while, where it fails. The error is a
// *failure.
func (w *Office) watch(ctx context.Context, v *view) error {
	pause := backoff.Pause{First: w.o.Backoff, Longest: w.o.MaxBackoff}
	for {
		begun := v.health.Frames
		err := w.read(ctx, v)
		var failed *failure
		switch {
		case errors.As(err, &failed):
			return err
		case ctx.Err() != nil:
			w.blank(v)
			return nil
		case v.camera.Ends && errors.Is(err, io.EOF):
			w.blank(v)
			w.mu.Lock()
			w.room.End(v.camera.Name)
			w.mu.Unlock()
			return nil
		case v.camera.Ends:
			return &failure{fmt.Errorf("%s: %w", v.camera.Name, err)}
		case errors.Is(err, io.EOF):
			err = errors.New("it has ended")
		}
		if v.health.Frames > begun {
			pause.Reset()
		}
		w.report(v, false, err.Error())
		if !pause.Wait(ctx) {
			return nil
		}
	}
}

// report notes how a camera is, and tells of it where that is news.
func (w *Office) report(v *view, up bool, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := &v.health
	if !up {
		v.seen, v.picture = nil, nil
		w.room.Down(v.camera.Name)
	}
	if !h.Since.IsZero() && h.Up == up && h.Error == why {
		return
	}
	h.Up, h.Error, h.Since, h.Rate = up, why, w.o.Now(), 0
	w.o.Health(*h)
}

// blank says that a camera shows nothing any more.
func (w *Office) blank(v *view) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v.seen, v.picture, v.health.Up, v.health.Rate = nil, nil, false, 0
	w.end(v, nil)
}

// read opens a camera and takes in its frames until it fails.
func (w *Office) read(ctx context.Context, v *view) error {
	s, err := v.camera.Open(ctx, func() bool { return w.watched(v) })
	if err != nil {
		return err
	}
	defer s.Close()
	before, due := v.health.Dropped, time.Now()
	for {
		f, err := s.Next(ctx)
		if err != nil {
			return err
		}
		w.report(v, true, "")
		w.mu.Lock()
		v.health.Frames++
		v.health.Dropped = before + s.Dropped()
		v.health.Rate = v.pace.rate(w.o.Now())
		w.mu.Unlock()
		if err := w.frame(v, f); err != nil {
			return &failure{err}
		}
		v.people.Ask(s)
		if w.o.Rate > 0 {
			due = due.Add(time.Duration(float64(time.Second) / w.o.Rate))
			if late := time.Since(due); late > 0 {
				due = due.Add(late)
			}
			if !backoff.Wait(ctx, time.Until(due)) {
				return ctx.Err()
			}
		}
	}
}

// pace measures how many frames come in a second.
type pace struct {
	since  time.Time
	frames int
	last   float64
}

// rate takes in a frame and returns what there were a second in the last few.
func (p *pace) rate(now time.Time) float64 {
	if p.since.IsZero() {
		p.since = now
		return 0
	}
	p.frames++
	if d := now.Sub(p.since); d >= 2*time.Second {
		p.last = float64(p.frames) / d.Seconds()
		p.since, p.frames = now, 0
	}
	return p.last
}
