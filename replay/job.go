// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/safefile"
)

// Job is a replay of a recording into a folder: events.jsonl has a line for each face and frame, and report.html is a
// page.
type Job struct {
	Folder  string
	Name    string // of the recording, for people
	Path    string // of the recording
	Options        // without Pause and From
	// Settings are listed on the page.
	Settings []Setting
	// Open opens the recording after a frame that an earlier run has seen; nil means the beginning. The caller closes
	// what it opens.
	Open func(after *int) (Source, error)
	// Finish, if it is not nil, is called before the report takes its place, for example to end a film.
	Finish func() error

	// Depends says on what the result depends beside the recording, the gallery and the options. With the same text an
	// interrupted run goes on at the last [Point]. "" means that it begins anew.
	Depends string
	Anew    bool // do not go on with an earlier run
	// Resumed, if it is not nil, is called if an earlier run goes on at that time, and Warn if this one could not go
	// on after an interruption.
	Resumed func(at time.Duration)
	Warn    func(text string)
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
// is complete. The state of an interrupted run lies in the cache of the gallery for 30 days.
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
	run, earlier, err := j.begin(g)
	if err != nil {
		return r, err
	}
	finished := false
	defer func() {
		if !finished {
			run.abandon()
		}
	}()
	report, each := NewReport(), j.Each
	var after *int
	if earlier != nil {
		if err := earlier.resume(g, report); err != nil {
			return r, fmt.Errorf("going on with the replay in %s: %w; give --anew to begin anew", j.Folder, err)
		}
		j.From, after = earlier.Point, &earlier.Point.Frame
		if j.Resumed != nil {
			j.Resumed(j.From.Time)
		}
	}
	src, err := j.Open(after)
	if err != nil {
		return r, err
	}
	log := NewLog(run.log)
	j.Pause = func(p Point) error { return run.save(p, g, report, log.Flush) }
	j.Each = func(f face.Frame, events []Event) error {
		for _, e := range events {
			if err := log.Write(e); err != nil {
				return fmt.Errorf("writing %s: %w", r.Events, err)
			}
		}
		if each != nil {
			return each(f, events)
		}
		return nil
	}
	if err := Run(ctx, src, g.Learner(), report, j.Options); err != nil {
		return r, err
	}
	r.Count, r.Summary = src.Count(), report.Summary()
	if err := log.Flush(); err != nil {
		return r, fmt.Errorf("writing %s: %w", r.Events, err)
	}
	page, err := safefile.Create(r.Report)
	if err != nil {
		return r, fmt.Errorf("writing report: %w", err)
	}
	defer page.Abort()
	if err := report.WriteHTML(page, Meta{
		Source: r.Source, Declared: r.Count.Declared, Read: r.Count.Read, Damaged: r.Count.Damaged,
		Settings: j.Settings, Warnings: g.Learner().Warnings(),
	}); err != nil {
		return r, fmt.Errorf("writing %s: %w", r.Report, err)
	}
	if j.Finish != nil {
		if err := j.Finish(); err != nil {
			return r, err
		}
	}
	finished = true
	if err := run.finish(r.Events); err != nil {
		return r, fmt.Errorf("writing %s: %w", r.Events, err)
	}
	if err := page.Commit(); err != nil {
		return r, fmt.Errorf("writing %s: %w", r.Report, err)
	}
	return r, nil
}
