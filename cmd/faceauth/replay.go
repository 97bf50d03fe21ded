// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/drawing"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/replay"
	"github.com/spf13/cobra"
)

func newReplay() *cobra.Command {
	var o options
	var p player
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
					return cli.Fail(cli.BadSource, err)
				}
				if err == nil { // opening a missing name gives the error
					sources = found
				}
			}
			jobs, err := cli.Jobs(jobs, len(sources))
			if err != nil {
				return err
			}
			if len(sources) > 1 {
				return o.playAll(c, sources, jobs, p)
			}
			result, err := o.playOne(c.Context(), c, sources[0], p)
			if err != nil {
				return err
			}
			if err := o.printResult(c, result); err != nil {
				return err
			}
			if result.Summary.Faces == 0 {
				return cli.Fail(cli.NoFace, fmt.Errorf("no face in the whole of %s", sources[0]))
			}
			return nil
		},
	}
	cli.Again(c, "run the same command again to go on")
	o.recogniserFlags(c)
	o.SpareFlag(c)
	c.Flags().StringVar(&p.out, "out", "faceauth-report", "folder of the report")
	c.Flags().BoolVar(&p.video, "video", false, "write an annotated recording, too")
	c.Flags().BoolVar(&p.anew, "anew", false, "begin again, and do not continue an interrupted replay")
	cli.JobsFlag(c, &jobs)
	return c
}

// playOne replays a recording with the gallery, and saves the learned faces with --learn.
func (o *options) playOne(ctx context.Context, c *cobra.Command, source string, how player) (replay.Result, error) {
	g, path, v, err := o.recogniser(c)
	if err != nil {
		return replay.Result{}, err
	}
	defer v.Close()
	defer g.Close()
	r, err := o.play(ctx, c, v, g, path, source, how)
	if err == nil && o.keep {
		err = keepLearned(c, g, path)
	}
	return r, err
}

// keepLearned saves what a run has learned.
func keepLearned(c *cobra.Command, g *gallery.Gallery, path string) error {
	g.News()
	if err := g.Save(path); err != nil {
		return cli.Fail(cli.BadGallery, err)
	}
	if g.News().Changed {
		cli.Warn(c, "another program changed the gallery meanwhile; its changes stay, and the faces of this run are "+
			"learned on top of it")
	}
	daily(c, path)
	return nil
}

// playAll replays several recordings, each into its own folder.
func (o *options) playAll(c *cobra.Command, sources []string, jobs int, how player) error {
	if o.keep {
		jobs = 1 // each recording is judged with the lessons of those before it
	}
	folders := reportFolders(how.out, sources)
	type played struct {
		replay.Result
		err error
	}
	bar := cli.NewProgress(len(sources), "recordings")
	defer bar.End()
	unread, faces := 0, 0
	err := cli.InOrder(c.Context(), len(sources), jobs, func(ctx context.Context, i int) played {
		how := how
		how.out, how.quiet = folders[i], true
		r, err := o.playOne(ctx, c, sources[i], how)
		return played{r, err}
	}, func(i int, p played) error {
		bar.Step()
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
		if cli.Code(p.err) == cli.BadSource {
			unread++
			cli.Warn(c, fmt.Sprintf("%s: %v", sources[i], p.err))
			return nil
		}
		if p.err != nil {
			return p.err
		}
		faces += p.Summary.Faces
		return o.printResult(c, p.Result)
	})
	switch {
	case err != nil:
		return err
	case unread > 0:
		return cli.Fail(cli.BadSource, fmt.Errorf("%s of %d could not be read", cli.Count(unread, "recording"),
			len(sources)))
	case faces == 0:
		return cli.Fail(cli.NoFace, fmt.Errorf("no face in any of %s", cli.Count(len(sources), "recording")))
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
	out   string
	video bool
	anew  bool                                   // do not continue an interrupted run
	quiet bool                                   // show no progress
	each  func(frame int, events []replay.Event) // may be nil
}

// play replays a source with the learner of g and writes the report.
func (o *options) play(ctx context.Context, c *cobra.Command, v *vision, g *gallery.Gallery, path, source string,
	how player) (replay.Result, error) {
	opt := eye.Options{Gate: eye.Learn, Picture: 112, Pixels: how.video, Spare: !o.EveryFrame}
	var src seen
	var bar progress
	var film *drawing.Process
	unfinished := filepath.Join(how.out, ".annotated.avi") // the ending decides the container format
	video := filepath.Join(how.out, "annotated.avi")
	job := replay.Job{
		Folder: how.out, Name: filepath.Base(input.Shown(source)), Path: source, Anew: how.anew,
		Settings: cli.Describe(v, g.Learner().Settings(), path),
		Warn:     func(text string) { cli.Warn(c, text) },
	}
	job.Freeze, job.Now = o.freeze, time.Now
	if how.each == nil && !how.video { // these must see all frames
		job.Depends = fmt.Sprintf("%+v %t", v.Config.Vision, o.EveryFrame)
	}
	job.Resumed = func(at time.Duration) {
		fmt.Fprintf(c.ErrOrStderr(), "%s: going on at %s, where an earlier replay was interrupted\n", job.Name,
			stamp(at))
	}
	job.Open = func(after *int) (_ replay.Source, err error) {
		opt.After = after
		if src, err = o.streamIn(ctx, c, v, source, opt); err != nil {
			return nil, err
		}
		if how.video {
			if film, err = drawing.Start(ctx, cli.EyeCommand("film", unfinished)...); err != nil {
				return nil, err
			}
		}
		if !how.quiet {
			bar = cli.NewProgress(src.Count().Declared, "replaying")
		}
		return src, nil
	}
	job.Each = func(f face.Frame, events []replay.Event) error {
		bar.To(f.Index + 1)
		if how.each != nil {
			how.each(f.Index, events)
		}
		if !how.video {
			return nil
		}
		picture, err := annotated(src.Stream, g.Learner().Names(), f, events)
		if err != nil {
			return err
		}
		return film.Draw(picture)
	}
	job.Finish = func() error {
		if !how.video {
			return nil
		}
		if err := film.Close(); err != nil {
			return err
		}
		if err := os.Rename(unfinished, video); err != nil && src.Count().Read > 0 {
			return fmt.Errorf("writing video: %w", err)
		}
		return nil
	}
	r, err := job.Run(ctx, g)
	bar.End()
	if film != nil {
		film.Close()
		os.Remove(unfinished)
	}
	if err != nil {
		return r, err
	}
	if how.video {
		r.Video = video
	}
	cli.Warn(c, g.Learner().Warnings()...)
	if d := r.Count.Declared; d > r.Count.Read+r.Count.Damaged {
		cli.Warn(c, fmt.Sprintf("%s declares %d frames and gave %d; it may be cut off", r.Source, d, r.Count.Read))
	}
	return r, nil
}

func (o *options) printResult(c *cobra.Command, r replay.Result) error {
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
