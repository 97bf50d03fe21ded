// Package office watches rooms: several cameras, the people in view of each, and what happens.
//
// [Run] reads all cameras at once until its context ends, and tells of events and of the cameras' health. The packages
// below hold the parts: track ties faces over time and says who they are, presence says who has come and gone.
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
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/office/track"
	"github.com/faceauth/faceauth/online"
)

// Stream gives the frames of a camera. Next gives up when its context ends.
type Stream interface {
	Next(ctx context.Context) (face.Frame, error)
	Close() error
}

// Camera is one of several. Names differ.
type Camera struct {
	Name string
	Open func(ctx context.Context) (Stream, error)
	Ends bool // as a recording does: its end is no fault, and a fault ends the run
}

// Health says how a camera is.
type Health struct {
	Camera string    `json:"camera"`
	Up     bool      `json:"up"`
	Since  time.Time `json:"since"`
	Error  string    `json:"error,omitempty"` // why it is not
	Frames int       `json:"frames"`          // since the beginning
}

// Options of [Run]. The zero value of each field stands for its default.
type Options struct {
	Presence presence.Settings
	Rules    track.Rules
	Track    track.Settings
	Freeze   bool // judge, but learn nothing

	Backoff    time.Duration // before a camera that has failed is opened again; each failure doubles it. Default 1 s
	MaxBackoff time.Duration // that it grows to. Default 1 min

	// Clock returns the time of a frame. Default: when it was read.
	Clock func(f face.Frame) time.Time
	Now   func() time.Time // default time.Now

	Event  func(presence.Event) // told of what happens, in order
	Health func(Health)         // told when a camera fails, or is back
	Room   func(presence.State) // told what is known of the room after events, every minute, and at the end
}

func (o Options) defaults() Options {
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = func(face.Frame) time.Time { return o.Now() }
	}
	if o.Event == nil {
		o.Event = func(presence.Event) {}
	}
	if o.Health == nil {
		o.Health = func(Health) {}
	}
	if o.Room == nil {
		o.Room = func(presence.State) {}
	}
	return o
}

// watch is one run.
type watch struct {
	o Options

	mu      sync.Mutex // guards what the cameras share, and what is told
	learner *online.Learner
	room    *presence.Room
}

// Run watches cameras with a learner, which nobody else uses meanwhile, until ctx ends or all of them have ended. It
// returns what is known of the room then, from which a later run goes on. Where all cameras have ended, whoever was there
// is said to have left. The error is that of the learner, or of a camera that ends.
func Run(ctx context.Context, l *online.Learner, cameras []Camera, from presence.State, o Options) (presence.State, error) {
	o = o.defaults()
	w := &watch{o: o, learner: l, room: presence.New(o.Presence, from)}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, c := range cameras {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := w.camera(ctx, c); err != nil {
				cancel(err)
			}
		}()
	}
	ended := make(chan struct{})
	go func() {
		all.Wait()
		close(ended)
	}()
	tick, minute := time.NewTicker(time.Second), time.NewTicker(time.Minute)
	defer tick.Stop()
	defer minute.Stop()
	for {
		select {
		case <-ended:
			w.mu.Lock()
			defer w.mu.Unlock()
			if ctx.Err() == nil {
				w.tell(w.room.Empty())
			}
			o.Room(w.room.State())
			var failed *failure
			if errors.As(context.Cause(ctx), &failed) {
				return w.room.State(), failed.err
			}
			return w.room.State(), nil
		case <-tick.C: // a camera that gives nothing says of nobody that they have left
			w.mu.Lock()
			w.tell(w.room.Tick(o.Now()))
			w.mu.Unlock()
		case <-minute.C: // when people were seen last, for a program that ends without a word
			w.mu.Lock()
			o.Room(w.room.State())
			w.mu.Unlock()
		}
	}
}

// failure ends all cameras.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }

func (w *watch) tell(events []presence.Event) {
	for _, e := range events {
		w.o.Event(e)
	}
	if len(events) > 0 {
		w.o.Room(w.room.State())
	}
}

// camera reads a camera until ctx or the camera ends, and opens it again, after a while, where it fails. The error is a
// *failure.
func (w *watch) camera(ctx context.Context, c Camera) error {
	h := Health{Camera: c.Name}
	v := &view{camera: c.Name, tracker: track.New(w.learner.Space(), w.o.Track), who: track.NewIdentities(w.o.Rules)}
	wait := w.o.Backoff
	for {
		before := h.Frames
		err := w.read(ctx, c, v, &h)
		var failed *failure
		switch {
		case errors.As(err, &failed):
			return err
		case ctx.Err() != nil || c.Ends && errors.Is(err, io.EOF):
			return nil
		case c.Ends:
			return &failure{fmt.Errorf("%s: %w", c.Name, err)}
		case errors.Is(err, io.EOF):
			err = errors.New("it has ended")
		}
		if h.Frames > before {
			wait = w.o.Backoff
		}
		w.health(&h, false, err.Error())
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		wait = min(2*wait, w.o.MaxBackoff)
	}
}

// health notes how a camera is, and tells of it where that is news.
func (w *watch) health(h *Health, up bool, why string) {
	if !h.Since.IsZero() && h.Up == up && h.Error == why {
		return
	}
	h.Up, h.Error, h.Since = up, why, w.o.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.o.Health(*h)
}

// read opens a camera and takes in its frames until it fails.
func (w *watch) read(ctx context.Context, c Camera, v *view, h *Health) error {
	s, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		f, err := s.Next(ctx)
		if err != nil {
			return err
		}
		h.Frames++
		w.health(h, true, "")
		if err := w.frame(v, f); err != nil {
			return &failure{err}
		}
	}
}

// view is what one camera sees. It outlives a camera that fails: who was in view before may be so afterwards.
type view struct {
	camera  string
	begun   time.Time
	tracker *track.Tracker
	who     *track.Identities
}

// frame takes in a frame of a camera.
func (w *watch) frame(v *view, f face.Frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.o.Clock(f)
	if v.begun.IsZero() {
		v.begun = at
	}
	ids := v.tracker.Update(at.Sub(v.begun), f.Samples)
	var observed []online.Observation
	var of []int
	for i, x := range f.Samples {
		if x.Vector != nil {
			observed, of = append(observed, online.Observation{Vector: x.Vector, Hold: x.Reason != "" || w.o.Freeze}), append(of, ids[i])
		}
	}
	w.learner.SetTime(at)
	verdicts, err := w.learner.ObserveFrame(observed)
	if err != nil {
		return err
	}
	for i, verdict := range verdicts {
		v.who.Add(of[i], verdict)
	}
	v.who.Keep(v.tracker.Live())
	seen := make([]presence.Seen, len(ids))
	for i, b := range v.who.Who(ids) {
		seen[i] = presence.Seen{Track: ids[i], Belief: b}
	}
	w.tell(w.room.See(v.camera, at, seen))
	return nil
}
