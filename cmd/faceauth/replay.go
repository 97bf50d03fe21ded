// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"github.com/faceauth/faceauth/internal/input"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/drawing"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/replay"
	"github.com/spf13/cobra"
)

func newReplay() *cobra.Command {
	var o options
	var p player
	var keep bool
	var jobs int
	c := &cobra.Command{
		Use:   "replay SOURCE...",
		Short: "say who is in a recording, and write a report",
		Long: "Replay judges every face in SOURCE. It writes a folder with events.jsonl, a line for each face and\n" +
			"frame, and report.html, a page that needs no network. It learns while it runs; learned faces are\n" +
			"forgotten at the end unless --learn is given.\n\n" +
			"With several recordings, or a folder of recordings, each recording is judged separately with the\n" +
			"gallery, on all cores at once, and gets its own folder below --out. With --learn they are judged\n" +
			"one after the other, each with the faces learned from those before it.\n\n" +
			"An interrupted replay of a video continues at the last moment when nobody was in view, if you\n" +
			"repeat it with the same gallery, settings and folder. With --video it begins again, because the\n" +
			"video needs all frames.",
		Example: "  faceauth replay hall.mp4 --out hall-report --video\n  faceauth replay ~/recordings --out reports",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			sources := args
			if len(args) > 1 || input.IsRecording(args[0]) {
				found, err := footage.Find(args)
				if err != nil && len(args) > 1 {
					return fail(badSource, err)
				}
				if err == nil { // opening a missing name gives the error
					sources = found
				}
			}
			jobs, err := jobsOf(jobs, len(sources))
			if err != nil {
				return err
			}
			if len(sources) > 1 {
				return o.playAll(c, sources, jobs, keep, p)
			}
			result, err := o.playOne(c.Context(), c, sources[0], keep, p)
			if err != nil {
				return err
			}
			if err := o.printResult(c, result); err != nil {
				return err
			}
			if result.Summary.Faces == 0 {
				return fail(noFace, fmt.Errorf("no face in the whole of %s", sources[0]))
			}
			return nil
		},
	}
	cli.Again(c, "run the same command again to go on")
	o.VisionFlags(c)
	o.rotateFlag(c)
	o.SpareFlag(c)
	o.LearnerFlags(c)
	o.picturesFlag(c)
	o.galleryFlag(c)
	c.Flags().StringVar(&p.out, "out", "faceauth-report", "folder of the report")
	c.Flags().BoolVar(&p.video, "video", false, "write an annotated recording, too")
	c.Flags().BoolVar(&keep, "learn", false, "keep learned faces in the gallery")
	c.Flags().BoolVar(&p.freeze, "freeze", false, "judge, but learn nothing")
	c.Flags().BoolVar(&p.anew, "anew", false, "begin again, and do not continue an interrupted replay")
	jobsFlag(c, &jobs)
	return c
}

// playOne replays a recording with the gallery, and saves the learned faces if keep is set.
func (o *options) playOne(ctx context.Context, c *cobra.Command, source string, keep bool, how player) (result, error) {
	g, path, v, err := o.recogniser(c, nil, keep, how.freeze)
	if err != nil {
		return result{}, err
	}
	defer v.Close()
	defer g.Close()
	r, err := o.play(ctx, c, v, g, path, source, how)
	if err == nil && keep {
		err = keepLearned(c, g, path)
	}
	return r, err
}

// keepLearned saves what a run has learned.
func keepLearned(c *cobra.Command, g *gallery.Gallery, path string) error {
	g.News()
	if err := g.Save(path); err != nil {
		return fail(badGallery, err)
	}
	if g.News().Changed {
		warn(c, "another program changed the gallery meanwhile; its changes stay, and the faces of this run are "+
			"learned on top of it")
	}
	return nil
}

// playAll replays several recordings, each into its own folder.
func (o *options) playAll(c *cobra.Command, sources []string, jobs int, keep bool, how player) error {
	if keep {
		jobs = 1 // each recording is judged with the lessons of those before it
	}
	folders := reportFolders(how.out, sources)
	type played struct {
		result
		err error
	}
	bar := cli.NewProgress(len(sources), "recordings")
	defer bar.End()
	unread, faces := 0, 0
	err := inOrder(c.Context(), len(sources), jobs, func(ctx context.Context, i int) played {
		how := how
		how.out, how.quiet = folders[i], true
		r, err := o.playOne(ctx, c, sources[i], keep, how)
		return played{r, err}
	}, func(i int, p played) error {
		bar.Step()
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
		if cli.Code(p.err) == badSource {
			unread++
			warn(c, fmt.Sprintf("%s: %v", sources[i], p.err))
			return nil
		}
		if p.err != nil {
			return p.err
		}
		faces += p.Summary.Faces
		return o.printResult(c, p.result)
	})
	switch {
	case err != nil:
		return err
	case unread > 0:
		return fail(badSource, fmt.Errorf("%s of %d could not be read", count(unread, "recording"), len(sources)))
	case faces == 0:
		return fail(noFace, fmt.Errorf("no face in any of %s", count(len(sources), "recording")))
	}
	return nil
}

// reportFolders returns a folder below out for each recording: its name, with a number if several have the same.
func reportFolders(out string, sources []string) []string {
	folders, taken := make([]string, len(sources)), make(map[string]bool)
	for i, s := range sources {
		base := filepath.Base(input.Shown(s))
		name := base
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		taken[name] = true
		folders[i] = filepath.Join(out, name)
	}
	return folders
}

// player holds the options of a replay.
type player struct {
	out           string
	video, freeze bool
	anew          bool                                   // do not continue an interrupted run
	quiet         bool                                   // show no progress
	each          func(frame int, events []replay.Event) // may be nil
}

// result lists the outputs of a replay.
type result struct {
	Source  string         `json:"source"`
	Count   face.Count     `json:"frames"`
	Summary replay.Summary `json:"summary"`
	Report  string         `json:"report"`
	Events  string         `json:"events"`
	Video   string         `json:"video,omitempty"`
}

// play replays a source with the learner of g and writes the report. An older report in the same folder stays until the
// new one is complete.
func (o *options) play(ctx context.Context, c *cobra.Command, v *vision, g *gallery.Gallery, path, source string,
	how player) (result, error) {
	r := result{
		Source: filepath.Base(input.Shown(source)),
		Report: filepath.Join(how.out, "report.html"),
		Events: filepath.Join(how.out, "events.jsonl"),
	}
	if err := os.MkdirAll(how.out, 0o700); err != nil {
		return r, fmt.Errorf("writing report: %w", err)
	}
	safefile.Sweep(r.Report)
	safefile.Sweep(r.Events)
	run, earlier, err := o.unfinishedIn(c, source, v, g, how)
	if err != nil {
		return r, err
	}
	finished := false
	defer func() {
		if !finished {
			run.abandon()
		}
	}()
	opt := eye.Options{Gate: eye.Learn, Picture: 112, Pixels: how.video, Spare: !o.EveryFrame}
	report, from := replay.NewReport(), replay.Point{}
	if earlier != nil {
		if err := earlier.resume(g, report); err != nil {
			return r, fmt.Errorf("going on with the replay in %s: %w; give --anew to begin anew", how.out, err)
		}
		from = earlier.Point
		opt.After = &from.Frame
		fmt.Fprintf(c.ErrOrStderr(), "%s: going on at %s, where an earlier replay was interrupted\n", r.Source,
			stamp(from.Time))
	}
	src, err := o.streamIn(ctx, c, v, source, opt)
	if err != nil {
		return r, err
	}
	log := replay.NewLog(run.log)
	var film *drawing.Process
	unfinished := filepath.Join(how.out, ".annotated.avi") // the ending decides the container format
	if how.video {
		r.Video = filepath.Join(how.out, "annotated.avi")
		if film, err = drawing.Start(ctx, cli.EyeCommand("film", unfinished)...); err != nil {
			return r, err
		}
		defer os.Remove(unfinished)
		defer film.Close()
	}
	var bar progress
	if !how.quiet {
		bar = cli.NewProgress(src.Count().Declared, "replaying")
		defer bar.End()
	}
	err = replay.Run(ctx, src, g.Learner(), report, replay.Options{
		Freeze: how.freeze,
		Now:    time.Now,
		From:   from,
		Pause:  func(p replay.Point) error { return run.save(p, g, report, log.Flush) },
		Each: func(f face.Frame, es []replay.Event) error {
			bar.To(f.Index + 1)
			for _, e := range es {
				if err := log.Write(e); err != nil {
					return fail(failed, fmt.Errorf("writing %s: %w", r.Events, err))
				}
			}
			if how.each != nil {
				how.each(f.Index, es)
			}
			if how.video {
				picture, err := annotated(src, g.Learner().Names(), f, es)
				if err == nil {
					err = film.Draw(picture)
				}
				return fail(failed, err)
			}
			return nil
		},
	})
	bar.End()
	if err != nil {
		return r, cli.StreamError(c, err)
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
		Settings: cli.Describe(v, g.Learner().Settings(), path), Warnings: g.Learner().Warnings(),
	}); err != nil {
		return r, fmt.Errorf("writing %s: %w", r.Report, err)
	}
	if how.video {
		if err := film.Close(); err != nil {
			return r, err
		}
		if err := os.Rename(unfinished, r.Video); err != nil && r.Count.Read > 0 {
			return r, fmt.Errorf("writing video: %w", err)
		}
	}
	finished = true
	if err := run.finish(r.Events); err != nil {
		return r, fmt.Errorf("writing %s: %w", r.Events, err)
	}
	if err := page.Commit(); err != nil {
		return r, fmt.Errorf("writing %s: %w", r.Report, err)
	}
	warn(c, g.Learner().Warnings()...)
	if d := r.Count.Declared; d > r.Count.Read+r.Count.Damaged {
		warn(c, fmt.Sprintf("%s declares %d frames and gave %d; it may be cut off", r.Source, d, r.Count.Read))
	}
	return r, nil
}

func (o *options) printResult(c *cobra.Command, r result) error {
	w := c.OutOrStdout()
	if o.JSON {
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
