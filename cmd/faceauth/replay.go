// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"encoding/json"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/replay"
	"github.com/spf13/cobra"
)

func newReplay() *cobra.Command {
	var o options
	var p player
	var keep bool
	c := &cobra.Command{
		Use:   "replay SOURCE",
		Short: "say who is in a recording, and write a report",
		Long: "Replay judges every face in SOURCE and writes events.jsonl, a line for each face and frame, and\n" +
			"report.html, a page that needs no network, into a folder. The recogniser learns as it goes;\n" +
			"learned faces are forgotten at the end unless --learn is given.",
		Example: "  faceauth replay hall.mp4 --out hall-report --video",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			g, path, v, err := o.recogniser(c, keep, p.freeze)
			if err != nil {
				return err
			}
			defer v.Close()
			if keep {
				p.lessons = new(lessons)
			}
			result, err := o.play(c, v, g, path, args[0], p)
			if err != nil {
				return err
			}
			if keep {
				if err := o.keep(c.Context(), c, g, path, p.lessons); err != nil {
					return err
				}
			}
			if err := o.printResult(c, result); err != nil {
				return err
			}
			if result.Summary.Faces == 0 {
				return fail(noFace, fmt.Errorf("no face in the whole of %s", args[0]))
			}
			return nil
		},
	}
	o.visionFlags(c)
	o.spareFlag(c)
	o.learnerFlags(c)
	o.galleryFlag(c)
	c.Flags().StringVar(&p.out, "out", "faceauth-report", "folder of the report")
	c.Flags().BoolVar(&p.video, "video", false, "write an annotated recording, too")
	c.Flags().BoolVar(&keep, "learn", false, "keep learned faces in the gallery")
	c.Flags().BoolVar(&p.freeze, "freeze", false, "judge, but learn nothing")
	return c
}

// player says how a recording is replayed.
type player struct {
	out           string
	video, freeze bool
	each          func(frame int, events []replay.Event) // nil for nothing
	lessons       *lessons                               // nil where nothing is kept in the gallery
}

// result is what a replay printed and wrote.
type result struct {
	Source  string         `json:"source"`
	Count   facedet.Count  `json:"frames"`
	Summary replay.Summary `json:"summary"`
	Report  string         `json:"report"`
	Events  string         `json:"events"`
	Video   string         `json:"video,omitempty"`
}

// play replays a source through the learner of g and writes the report. An earlier report in the
// same folder stays until the new one is complete.
func (o *options) play(c *cobra.Command, v *vision, g *gallery.Gallery, path, source string, how player) (result, error) {
	r := result{
		Source: filepath.Base(facedet.Shown(source)),
		Report: filepath.Join(how.out, "report.html"),
		Events: filepath.Join(how.out, "events.jsonl"),
	}
	src, err := o.stream(c, v, source, eye.Options{Gate: eye.Learn, Picture: 112, Pixels: how.video, Spare: !o.everyFrame})
	if err != nil {
		return r, err
	}
	if err := os.MkdirAll(how.out, 0o700); err != nil {
		return r, fmt.Errorf("writing report: %w", err)
	}
	safefile.Sweep(r.Events)
	safefile.Sweep(r.Report)
	events, err := safefile.Create(r.Events)
	if err != nil {
		return r, fmt.Errorf("writing report: %w", err)
	}
	defer events.Abort()
	log := replay.NewLog(events)
	film := &film{names: g.Learner().Names()}
	if how.video {
		r.Video = filepath.Join(how.out, "annotated.avi")
		film.path = filepath.Join(how.out, ".annotated.avi") // the container is chosen by the ending
		defer film.abort()
	}
	bar := newProgress(src.Count().Declared, "replaying")
	defer bar.end()
	report := replay.NewReport()
	err = replay.Run(c.Context(), src, g.Learner(), report, replay.Options{
		Freeze: how.freeze,
		Now:    time.Now,
		Each: func(f face.Frame, es []replay.Event) error {
			bar.step()
			how.lessons.add(f)
			for _, e := range es {
				if err := log.Write(e); err != nil {
					return fail(failed, fmt.Errorf("writing %s: %w", r.Events, err))
				}
			}
			if how.each != nil {
				how.each(f.Index, es)
			}
			if how.video {
				return fail(failed, film.write(src, f, es))
			}
			return nil
		},
	})
	bar.end()
	if err != nil {
		return r, o.streamError(c, err)
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
	if err := report.WriteHTML(page, replay.Meta{
		Source: r.Source, Declared: r.Count.Declared, Read: r.Count.Read, Damaged: r.Count.Damaged,
		Settings: describe(v, g.Learner().Settings(), path), Warnings: g.Learner().Warnings(),
	}); err != nil {
		return r, fmt.Errorf("writing %s: %w", r.Report, err)
	}
	if how.video {
		if err := film.commit(r.Video); err != nil {
			return r, err
		}
	}
	if err := events.Commit(); err != nil {
		return r, fmt.Errorf("writing %s: %w", r.Events, err)
	}
	if err := page.Commit(); err != nil {
		return r, fmt.Errorf("writing %s: %w", r.Report, err)
	}
	warn(c, g.Learner().Warnings()...)
	if d := r.Count.Declared; d > r.Count.Read {
		warn(c, fmt.Sprintf("%s declares %d frames and gave %d; it may be cut off", r.Source, d, r.Count.Read))
	}
	return r, nil
}

func (o *options) printResult(c *cobra.Command, r result) error {
	w := c.OutOrStdout()
	if o.json {
		return json.NewEncoder(w).Encode(r)
	}
	fmt.Fprintf(w, "%s: ", r.Source)
	if err := r.Summary.WriteText(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "report: %s\nevents: %s\n", r.Report, r.Events)
	if r.Video != "" {
		fmt.Fprintf(w, "video:  %s\n", r.Video)
	}
	return nil
}

// film annotates the frames of a recording.
type film struct {
	names []string
	path  string
	rec   *facedet.Recorder
	size  image.Point
}

func (a *film) write(s *eye.Stream, f face.Frame, events []replay.Event) error {
	img, err := shown(s)
	if err != nil {
		return err
	}
	defer img.Close()
	if a.rec == nil {
		a.rec, a.size = facedet.NewRecorder(a.path, 25), img.Size()
	}
	annotate(img, a.names, f, events)
	if img.Size() != a.size { // pictures of a folder may differ; a video has one size
		same, err := img.Resize(a.size)
		if err != nil {
			return err
		}
		defer same.Close()
		return a.rec.Write(same)
	}
	return a.rec.Write(img)
}

func (a *film) commit(path string) error {
	if a.rec == nil {
		return nil
	}
	if err := a.rec.Close(); err != nil {
		return err
	}
	if err := os.Chmod(a.path, 0o600); err != nil {
		return fmt.Errorf("writing video: %w", err)
	}
	return os.Rename(a.path, path)
}

func (a *film) abort() {
	if a.rec != nil {
		a.rec.Close()
		os.Remove(a.path)
	}
}

// annotate draws boxes and verdicts into a picture.
func annotate(img *facedet.Picture, names []string, f face.Frame, events []replay.Event) {
	for i, e := range events {
		text, c := "unknown", facedet.Unknown
		if e.Label != "" {
			text = fmt.Sprintf("%s %.2f", e.Label, e.Confidence)
			for n, name := range names {
				if name == e.Label {
					c = facedet.Colours[n%len(facedet.Colours)]
				}
			}
		}
		img.DrawBox(f.Samples[i].Box, text, c)
	}
}
