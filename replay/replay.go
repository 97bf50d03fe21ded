// SPDX-License-Identifier: Apache-2.0

// Package replay judges a recording and reports who was in it, with a line for each face and frame, and a page for a
// person.
//
// [Run] judges a stream of samples from any source with a learner, and fills a [Report], which writes a summary and a
// page. The size of a report has a bound, also for recordings of several days.
package replay

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
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
	// Name is the person in view, as all faces of the track say; "" if this person is not known, or not yet.
	Name  string         `json:"name,omitempty"`
	Trust sighting.Trust `json:"trust,omitempty"` // evidence for the label
	// Since is set on the face with which the person became known. It is when the person came into view; earlier faces
	// of the track are this person's, too.
	Since *float64 `json:"since,omitempty"`
	// Distance is the distance to the nearest enrolled face of the person, to four places; 0 without a label.
	Distance   float64 `json:"distance,omitempty"`
	Confidence float64 `json:"confidence"` // the harmonic value of the best person, to six places
	Reason     string  `json:"reason"`     // why it is unknown, or why it was not learned; "" for neither
	Learned    bool    `json:"learned"`
	Held       bool    `json:"held,omitempty"` // it looks as in an earlier frame, and has the same verdict
	// NoRoom says that it would have been learned if the learner had room for another centroid.
	NoRoom bool `json:"no_room,omitempty"`
	// Poor says that the quality gate refused the picture. Reason says why if the face was recognised.
	Poor bool `json:"poor"`
	// Norm is [face.Quality].Norm to three places: how easy the face is to recognise. It is left out where it was not
	// measured.
	Norm float64 `json:"norm,omitempty"`
}

// Options of [Run].
type Options struct {
	Freeze bool             // judge, but learn nothing
	Now    func() time.Time // time of the present frame, for online.Learner.UndoSince; nil for unknown
	// Names tells the name of a person. Without it, reports have numbers.
	Names func(online.Person) string
	// Each, if it is not nil, is called after each frame with the events of its faces, in the order
	// of the samples.
	Each func(f face.Frame, events []Event) error
}

// Run judges all frames of s with l, which learns from them, and adds them to r. It returns nil at the end of the
// stream, and otherwise the error of the stream, of Each, or of ctx; r then holds the frames before the error.
func Run(ctx context.Context, s face.Stream, l *online.Learner, r *Report, o Options) error {
	w := sighting.NewWatcher(l, sighting.Settings{}, sighting.Rules{})
	r.stills = l.Space().Stills
	if o.Names == nil {
		o.Names = func(p online.Person) string { return strconv.FormatInt(p, 10) }
	}
	for f, err := range face.Frames(ctx, s) {
		if err != nil {
			return err
		}
		if f.Still { // a photograph continues nothing: one look names, and confirms nobody
			w = sighting.NewWatcher(l, sighting.Settings{First: w.Next()}, sighting.Rules{})
		}
		if o.Now != nil {
			l.SetTime(o.Now())
		}
		events, err := judge(w, l.Space(), f, o)
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
	}
	return nil
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
			return nil, fmt.Errorf("the face is of the space %s, and the gallery of %s", s.Space, space.ID)
		}
	}
	seen, err := w.See(f.Time, f.Samples, func(i int) bool { return o.Freeze || f.Samples[i].Reason != "" })
	if err != nil {
		return nil, err
	}
	for i, s := range f.Samples {
		events[i] = Event{
			Frame: f.Index, File: still(f), Time: math.Round(f.Time.Seconds()*1000) / 1000, Track: seen[i].Track,
			Box:    [4]int{s.Box.Min.X, s.Box.Min.Y, s.Box.Dx(), s.Box.Dy()},
			Reason: string(s.Reason), Poor: s.Reason != "", Held: s.Held,
			Norm: math.Round(s.Quality.Norm*1000) / 1000,
		}
	}
	for i, p := range seen {
		e, v := &events[i], p.Verdict
		if p.Belief.Person != 0 {
			e.Name = o.Names(p.Belief.Person)
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

// Job is a replay of a recording into a folder: events.jsonl has a line for each face and frame, and report.html is a
// page.
type Job struct {
	Folder  string
	Name    string // of the recording, for people
	Path    string // of the recording; "" if it is no file, and moments in it have no address
	Options        // of the run
	// Settings are listed on the page.
	Settings []Setting
	// Open opens the recording. The caller closes what it opens.
	Open func() (Source, error)
	// Finish, if it is not nil, is called before the report takes its place, for example to end a film.
	Finish func() error
}

// Source is a recording.
type Source interface {
	face.Stream
	Count() face.Count
}

// Result lists the outputs of a [Job].
type Result struct {
	Source  string     `json:"source"`
	Count   face.Count `json:"frames"`
	Summary Summary    `json:"summary"`
	Report  string     `json:"report"`
	Events  string     `json:"events"`
	Video   string     `json:"video,omitempty"`
}

// Run judges the recording with the learner of g, and writes the folder. An older report in it stays until the new one
// is complete.
func (j Job) Run(ctx context.Context, g *gallery.Gallery) (Result, error) {
	r := Result{
		Source: j.Name,
		Report: filepath.Join(j.Folder, "report.html"),
		Events: filepath.Join(j.Folder, "events.jsonl"),
	}
	if err := os.MkdirAll(j.Folder, 0o700); err != nil {
		return r, fmt.Errorf("writing report: %w", err)
	}
	safefile.Sweep(r.Report)
	safefile.Sweep(r.Events)
	src, err := j.Open()
	if err != nil {
		return r, err
	}
	lines, err := safefile.Create(r.Events)
	if err != nil {
		return r, fmt.Errorf("writing report: %w", err)
	}
	defer lines.Abort()
	report, each, buffer := NewReport(), j.Each, bufio.NewWriter(lines)
	log := json.NewEncoder(buffer) // the same events give the same bytes
	log.SetEscapeHTML(false)
	j.Each = func(f face.Frame, events []Event) error {
		for _, e := range events {
			if err := log.Encode(e); err != nil {
				return fmt.Errorf("writing %s: %w", r.Events, err)
			}
		}
		if each != nil {
			return each(f, events)
		}
		return nil
	}
	j.Names = g.Name
	if err := Run(ctx, src, g.Learner(), report, j.Options); err != nil {
		return r, err
	}
	r.Count, r.Summary = src.Count(), report.Summary()
	if err := buffer.Flush(); err != nil {
		return r, fmt.Errorf("writing %s: %w", r.Events, err)
	}
	page, err := safefile.Create(r.Report)
	if err != nil {
		return r, fmt.Errorf("writing report: %w", err)
	}
	defer page.Abort()
	if err := report.WriteHTML(page, Meta{
		Source: r.Source, Path: j.Path, Count: r.Count, Settings: j.Settings, Warnings: g.Learner().Warnings(),
	}); err != nil {
		return r, fmt.Errorf("writing %s: %w", r.Report, err)
	}
	if j.Finish != nil {
		if err := j.Finish(); err != nil {
			return r, err
		}
	}
	if err := lines.Commit(); err != nil {
		return r, fmt.Errorf("writing %s: %w", r.Events, err)
	}
	if err := page.Commit(); err != nil {
		return r, fmt.Errorf("writing %s: %w", r.Report, err)
	}
	return r, nil
}
