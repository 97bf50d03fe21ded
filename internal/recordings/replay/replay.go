// SPDX-License-Identifier: Apache-2.0

// Package replay judges a recording and reports who was in it, with a line for each face and frame,
// and a page for a person.
//
// [Judge] judges a stream of samples from any source with a learner. A [Report] of its frames
// writes a summary and a page, and a [Folder] keeps them. The size of a report has a bound, even
// for recordings of several days.
package replay

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Event is the verdict on one face in one frame.
type Event struct {
	Frame int     `json:"frame"`
	File  string  `json:"file,omitempty"` // of a photograph, without its folder
	Time  float64 `json:"time"`           // seconds since the beginning, to the millisecond
	Track int     `json:"track"`
	Box   [4]int  `json:"box"`   // left, top, width and height in pixels
	Label string  `json:"label"` // "" for unknown
	// Name is the person in view, as all faces of the track say; "" if this person is not known, or
	// not yet.
	Name  string         `json:"name,omitempty"`
	Trust sighting.Trust `json:"trust,omitempty"` // evidence for the label
	// NameTrust is the evidence for Name: a turned head is likely, and the person in view may be
	// confirmed.
	NameTrust sighting.Trust `json:"name_trust,omitempty"`
	// Double is the person in view whom this track shows a second time: a mirror image, a video
	// call or a photograph.
	Double string `json:"double,omitempty"`
	// Since is set on the face with which the person became known. It is when the person came into
	// view; earlier faces of the track are this person's, too.
	Since *float64 `json:"since,omitempty"`
	// Distance is the distance to the nearest enrolled face of the person, to four places; 0
	// without a label.
	Distance   float64 `json:"distance,omitempty"`
	Confidence float64 `json:"confidence"` // the harmonic value of the best person, to six places
	// why it is unknown, or why it was not learned; "" for neither
	Reason  string `json:"reason"`
	Learned bool   `json:"learned"`
	// it looks as in an earlier frame, and has the same verdict
	Held bool `json:"held,omitempty"`
	// NoRoom says that it would have been learned if the learner had room for another centroid.
	NoRoom bool `json:"no_room,omitempty"`
	// Poor says that the quality gate refused the picture. Reason says why if the face was
	// recognised.
	Poor bool `json:"poor"`
	// Norm is [face.Quality].Norm to three places: how easy the face is to recognise. It is left
	// out where it was not measured.
	Norm float64 `json:"norm,omitempty"`
}

// Frame is a frame with the events of its faces, in the order of the samples.
type Frame struct {
	face.Frame
	Events []Event
}

// Options of [Judge].
type Options struct {
	Freeze bool // judge, but learn nothing
	// time of the present frame, for online.Learner.UndoSince; nil for unknown
	Now func() time.Time
	// Names tells the name of a person. Without it, events have numbers.
	Names func(online.Person) string
}

// Judge judges all frames of s with l, which learns from them, and yields them. An error is yielded
// last, with no frame: that of the stream, or of ctx.
func Judge(ctx context.Context, s face.Stream, l *online.Learner,
	o Options) iter.Seq2[Frame, error] {
	if o.Names == nil {
		o.Names = func(p online.Person) string { return strconv.FormatInt(p, 10) }
	}
	return func(yield func(Frame, error) bool) {
		w := sighting.NewWatcher(l)
		for f, err := range face.Frames(ctx, s) {
			if err != nil {
				yield(Frame{}, err)
				return
			}
			if f.Still { // a photograph continues nothing: one look names, and confirms nobody
				w.Restart()
			}
			if o.Now != nil {
				l.SetTime(o.Now())
			}
			events, err := judge(w, l.Space(), f, o)
			if err != nil {
				yield(Frame{}, fmt.Errorf("frame %d: %w", f.Index, err))
				return
			}
			w.Ask(s)
			if !yield(Frame{f, events}, nil) {
				return
			}
		}
	}
}

// still returns the name of the file of a photograph.
func still(f face.Frame) string {
	if f.Still {
		return f.File
	}
	return ""
}

// noRoom is the reason of a face that was recognised but not learned for lack of room.
const noRoom = "no room for another centroid"

// judge returns the events of the faces of a frame.
func judge(w *sighting.Watcher, space face.Space, f face.Frame, o Options) ([]Event, error) {
	events := make([]Event, len(f.Samples))
	for _, s := range f.Samples {
		if s.Vector != nil && s.Space != space.ID {
			return nil, fmt.Errorf("the face is of the space %s, and the gallery of %s", s.Space,
				space.ID)
		}
	}
	seen, err := w.See(f.Time, f.Samples, func(i int) bool {
		return o.Freeze || f.Samples[i].Reason != ""
	})
	if err != nil {
		return nil, err
	}
	for i, s := range f.Samples {
		events[i] = Event{
			Frame: f.Index, File: still(f), Time: math.Round(f.Time.Seconds()*1000) / 1000,
			Track: seen[i].Track, Box: [4]int{s.Box.Min.X, s.Box.Min.Y, s.Box.Dx(), s.Box.Dy()},
			Reason: string(s.Reason), Poor: s.Reason != "", Held: s.Held,
			Norm: math.Round(s.Quality.Norm*1000) / 1000,
		}
	}
	for i, p := range seen {
		e, v := &events[i], p.Verdict
		if p.Belief.Person != 0 {
			e.Name, e.NameTrust = o.Names(p.Belief.Person), p.Belief.Trust
		}
		if p.Belief.Double != 0 {
			e.Double = o.Names(p.Belief.Double)
		}
		if p.Known {
			since := math.Round(p.Since.Seconds()*1000) / 1000
			e.Since = &since
		}
		if v == nil {
			continue
		}
		e.Trust = p.Trust
		e.Learned, e.NoRoom = v.Learned, v.NoRoom
		e.Confidence = math.Round(v.Confidence*1e6) / 1e6
		if v.Person != 0 {
			e.Label = o.Names(v.Person)
			e.Distance = math.Round(v.Distance*1e4) / 1e4
		}
		switch {
		case v.Reason != "":
			e.Reason = string(v.Reason)
		case v.NoRoom:
			e.Reason = noRoom
		}
	}
	return events, nil
}

// Result lists the outputs of a [Folder].
type Result struct {
	Source  string     `json:"source"`
	Count   face.Count `json:"frames"`
	Summary Summary    `json:"summary"`
	Report  string     `json:"report"`
	Events  string     `json:"events"`
	Video   string     `json:"video,omitempty"`
}

// Folder is the folder of a replay while it is written: events.jsonl has a line for each face and
// frame, and report.html is a page. Older ones in it stay until the new ones are complete. Abort it
// after use.
type Folder struct {
	result Result
	report *Report
	lines  *safefile.File
	buffer *bufio.Writer
	log    *json.Encoder
}

// Create makes the folder, for a recording with this name and faces of a space.
func Create(folder, name string, space face.Space) (*Folder, error) {
	w := &Folder{report: NewReport(space),
		result: Result{Source: name, Report: filepath.Join(folder, "report.html"),
			Events: filepath.Join(folder, "events.jsonl")}}
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		w.lines, err = safefile.Create(w.result.Events)
	}
	if err != nil {
		return nil, fmt.Errorf("writing report: %w", err)
	}
	w.buffer = bufio.NewWriter(w.lines)
	w.log = json.NewEncoder(w.buffer) // the same events give the same bytes
	w.log.SetEscapeHTML(false)
	return w, nil
}

// Add adds a frame.
func (w *Folder) Add(f Frame) error {
	w.report.Add(f)
	for _, e := range f.Events {
		if err := w.log.Encode(e); err != nil {
			return fmt.Errorf("writing %s: %w", w.result.Events, err)
		}
	}
	return nil
}

// Commit writes the page about the recording, and puts both files in their place.
func (w *Folder) Commit(m Meta) (Result, error) {
	m.Source = w.result.Source
	w.result.Count, w.result.Summary = m.Count, w.report.Summary()
	page, err := safefile.Create(w.result.Report)
	if err != nil {
		return w.result, fmt.Errorf("writing report: %w", err)
	}
	defer page.Abort()
	err = w.report.WriteHTML(page, m)
	if err == nil {
		err = w.buffer.Flush()
	}
	if err == nil {
		err = w.lines.Commit()
	}
	if err == nil {
		err = page.Commit()
	}
	if err != nil {
		err = fmt.Errorf("writing the report into %s: %w", filepath.Dir(w.result.Report), err)
	}
	return w.result, err
}

// Abort removes what was written, unless it is committed.
func (w *Folder) Abort() { w.lines.Abort() }
