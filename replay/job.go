// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/safefile"
)

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
