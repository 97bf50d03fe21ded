// SPDX-License-Identifier: Apache-2.0

// Package replay judges a recording and reports who was in it: a line for each face and frame, and
// one page for a person.
//
// [Run] takes a stream of samples, wherever it comes from, through a learner; the [Report] that it
// fills writes a summary and a page. A recording may last for days: what is kept of it is bounded.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Event is one face in one frame and what was made of it.
type Event struct {
	Frame int     `json:"frame"`
	Time  float64 `json:"time"` // seconds since the beginning, to the millisecond
	Track int     `json:"track"`
	Box   [4]int  `json:"box"`   // left, top, width and height in pixels
	Label string  `json:"label"` // "" for unknown
	// Of the person in view, as all faces of the track say; "" for nobody known, or not yet.
	Name  string         `json:"name,omitempty"`
	Trust sighting.Trust `json:"trust,omitempty"` // on what the label rests
	// On the face with which the person became known: when they came into view; earlier faces of the track are theirs,
	// too.
	Since      *float64 `json:"since,omitempty"`
	Confidence float64  `json:"confidence"` // of the best person, to six places
	Reason     string   `json:"reason"`     // why it is unknown, or else why it was not learned; "" for neither
	Learned    bool     `json:"learned"`
	Held       bool     `json:"held,omitempty"` // it looks as in an earlier frame: the verdict is that one
	// It would have been learned if the learner had had room for another centroid.
	NoRoom bool `json:"no_room,omitempty"`
	// The picture was refused by the quality gate: Reason says why where the face was recognised.
	Poor bool `json:"poor"`
}

// Options of [Run].
type Options struct {
	Freeze bool             // judge, but learn nothing
	Now    func() time.Time // when the frame at hand is seen, for online.Learner.UndoSince; nil for unknown
	// Each, if it is not nil, is called after each frame with the events of its faces, in the order
	// of the samples.
	Each func(f face.Frame, events []Event) error
	// Pause, if it is not nil, is called now and then where nobody is in view, if the stream is a [face.Renewer]. A run
	// with the learner and the report as they are then, over a stream that begins after that frame, and with From, comes
	// to the same as one that was not interrupted.
	Pause func(p Point) error
	From  Point // where an earlier run was interrupted; the zero value for the beginning
}

// Run judges all frames of s with l, which learns from them, and adds them to r. It ends with nil at
// the end of the stream, and otherwise with the error of the stream, of Each, or of ctx; r then
// holds what came before.
func Run(ctx context.Context, s face.Stream, l *online.Learner, r *Report, o Options) error {
	w := sighting.NewWatcher(l, sighting.Settings{First: o.From.Tracks}, sighting.Rules{})
	paused := o.From.Time
	for {
		f, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if o.Now != nil {
			l.SetTime(o.Now())
		}
		events, err := judge(w, l.Space(), f, o.Freeze)
		if err != nil {
			return fmt.Errorf("frame %d: %w", f.Index, err)
		}
		w.Ask(s)
		r.add(f, events)
		if o.Each != nil {
			if err := o.Each(f, events); err != nil {
				return err
			}
		}
		if o.Pause == nil {
			continue
		}
		if at, ok := r.pause(s, f, paused, w.Live(), w.Next()); ok {
			paused = f.Time
			if err := o.Pause(at); err != nil {
				return err
			}
		}
	}
}

// noRoom is the reason of a face that was recognised and not learned for want of room.
const noRoom = "no room for another centroid"

// judge returns what is made of the faces of a frame.
func judge(w *sighting.Watcher, space face.Space, f face.Frame, freeze bool) ([]Event, error) {
	events := make([]Event, len(f.Samples))
	for _, s := range f.Samples {
		if s.Vector != nil && s.Space != space.ID {
			return nil, fmt.Errorf("the face is of the space %s, and the gallery of %s", s.Space, space.ID)
		}
	}
	seen, err := w.See(f.Time, f.Samples, func(i int) bool { return freeze || f.Samples[i].Reason != "" })
	if err != nil {
		return nil, err
	}
	for i, s := range f.Samples {
		events[i] = Event{
			Frame: f.Index, Time: math.Round(f.Time.Seconds()*1000) / 1000, Track: seen[i].Track,
			Box:    [4]int{s.Box.Min.X, s.Box.Min.Y, s.Box.Dx(), s.Box.Dy()},
			Reason: string(s.Reason), Poor: s.Reason != "", Held: s.Held,
		}
	}
	for i, p := range seen {
		e, v := &events[i], p.Verdict
		if e.Name = p.Belief.Name; p.Known {
			since := math.Round(p.Since.Seconds()*1000) / 1000
			e.Since = &since
		}
		if v == nil {
			continue
		}
		e.Trust = p.Trust
		e.Label, e.Learned, e.NoRoom = v.Label, v.Learned, v.NoRoom
		e.Confidence = math.Round(v.Confidence*1e6) / 1e6
		switch {
		case v.Reason != "":
			e.Reason = string(v.Reason)
		case v.NoRoom:
			e.Reason = noRoom
		}
	}
	return events, nil
}
