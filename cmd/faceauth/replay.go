// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/drawing"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/recordings/replay"
	"github.com/faceauth/faceauth/internal/recordings/search"
	"github.com/spf13/cobra"
)

func newReplay() *cobra.Command {
	var o options
	p := player{progress: "replaying"}
	var jobs uint
	var photographs bool
	c := &cobra.Command{
		Use:   "replay SOURCE...",
		Short: "say who is in a recording, and write a report",
		Long: "Judges every face in SOURCE and writes a folder with events.jsonl, a line for\n" +
			"each face and frame, and report.html, a page that works offline. It learns as\n" +
			"it goes, and forgets what it learned at the end unless you give --learn.\n\n" +
			"Several recordings, or a folder of them, are judged separately, on all cores\n" +
			"at once, and each gets a folder of its own below --out; index.html there leads\n" +
			"to all of them. With --learn they are judged one after the other, each with\n" +
			"the faces learned from those before.\n\n" +
			"Photographs are judged one by one: a single look can name a person but not\n" +
			"confirm one. The pictures of a folder are taken for a film if there are at\n" +
			"least 25, numbered, alike, and written in equal steps; --series and\n" +
			"--photographs decide it. If a recording could not be read to its end, or\n" +
			"something in a folder was left out, the exit code is 9.",
		Example: "  faceauth replay hall.mp4 --out hall-report --video\n" +
			"  faceauth replay ~/recordings --out reports",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case o.series && photographs:
				return cli.Fail(cli.BadUsage,
					errors.New("--series and --photographs contradict each other"))
			case o.series || photographs:
				p.series = o.pictures()
			}
			found := footage.Inventory{Items: []footage.Item{{Path: args[0]}}}
			if len(args) > 1 || input.IsRecording(args[0]) {
				var err error
				found, err = o.inventory(c, args)
				if err != nil {
					return err
				}
			}
			all := found.Items
			if len(all) > 1 {
				return o.reading.end(o.playAll(c, all, cli.Jobs(jobs, len(all)), p), len(all), "")
			}
			result, err := o.playOne(c.Context(), c, all[0], p)
			if err != nil {
				return err
			}
			if err := o.printResult(c, result); err != nil {
				return err
			}
			if result.Summary.Faces == 0 {
				err = cli.Fail(cli.NoFace, fmt.Errorf("no face in the whole of %s", all[0].Path))
			}
			return o.reading.end(err, 1, "")
		},
	}
	o.recogniserFlags(c)
	o.SpareFlag(c)
	c.Flags().StringVar(&p.out, "out", "faceauth-report", "folder of the report")
	c.Flags().BoolVar(&p.video, "video", false, "also write an annotated recording: "+
		"H.264 in MP4, or Motion JPEG where OpenCV cannot write that")
	o.seriesFlag(c)
	c.Flags().BoolVar(&photographs, "photographs", false, "the pictures of each folder are no film")
	cli.JobsFlag(c, &jobs)
	return c
}

// playOne replays a recording with the gallery, and saves the learned faces with --learn.
func (o *options) playOne(ctx context.Context, c *cobra.Command, source footage.Item,
	how player) (replay.Result, error) {
	g, v, err := o.recogniser(c)
	if err != nil {
		return replay.Result{}, err
	}
	defer v.Close()
	defer g.Close()
	r, err := o.play(ctx, c, v, g, source, how)
	if err == nil && o.keep {
		err = keepLearned(c, g)
	}
	return r, err
}

// keepLearned saves what a run has learned.
func keepLearned(c *cobra.Command, g *gallery.Gallery) error {
	before := g.Rows().Turn()
	if err := g.Save(); err != nil {
		return cli.Fail(cli.BadGallery, err)
	}
	if g.Rows().Turn() != before {
		cli.Warn(c, "another program changed the gallery meanwhile; its changes stay, and the "+
			"faces of this run are learned on top of it")
	}
	daily(c, g.Path())
	return nil
}

// playAll replays several recordings, each into its own folder.
func (o *options) playAll(c *cobra.Command, sources []footage.Item, jobs int, how player) error {
	if o.keep {
		jobs = 1 // each recording is judged with the lessons of those before it
	}
	folders := reportFolders(how.out, sources)
	type played struct {
		replay.Result
		err error
	}
	bar := cli.NewProgress(len(sources), "recordings")
	defer bar.Finish()
	faces := 0
	var reports []replay.Result
	err := cli.InOrder(c.Context(), len(sources), jobs, func(ctx context.Context, i int) played {
		how := how
		how.out, how.progress = folders[i], ""
		r, err := o.playOne(ctx, c, sources[i], how)
		return played{r, err}
	}, func(i int, p played) error {
		bar.Add(1)
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
		if cli.Code(p.err) == cli.BadSource {
			o.failed(c, sources[i].Path, p.err)
			return nil
		}
		if p.err != nil {
			return p.err
		}
		faces += p.Summary.Faces
		reports = append(reports, p.Result)
		return o.printResult(c, p.Result)
	})
	if err == nil && len(reports) > 0 {
		err = o.writeIndex(c, filepath.Join(how.out, "index.html"), len(sources), reports)
	}
	switch {
	case err != nil:
		return err
	case faces == 0 && len(o.reading.unread) < len(sources):
		return cli.Fail(cli.NoFace, fmt.Errorf("no face in any of %s",
			cli.Count(len(sources), "recording")))
	}
	return nil
}

// writeIndex writes a page with links to all reports.
func (o *options) writeIndex(c *cobra.Command, path string, all int,
	reports []replay.Result) error {
	err := writeSheet(path, "replays", struct {
		All     string
		Reports []replay.Result
		Missing []footage.Left
		Left    string
	}{cli.Count(all, "recording"), reports, o.reading.missing(),
		footage.Inventory{Left: o.reading.left}.String()})
	if err == nil && !o.JSON {
		fmt.Fprintf(c.OutOrStdout(), "all of them: %s\n", cell(path))
	}
	return err
}

// beside returns the address of a file in a folder beside a page.
func beside(path string) template.URL {
	folder, file := filepath.Split(path)
	u := url.URL{Path: filepath.Base(folder) + "/" + file}
	return template.URL(u.String())
}

// reportFolders returns a folder below out for each recording: its name, with a number if several
// have the same.
func reportFolders(out string, sources []footage.Item) []string {
	folders, taken := make([]string, len(sources)), make(map[string]bool)
	for i, s := range sources {
		base := filepath.Base(input.Shown(s.Path))
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
	out      string
	video    bool
	series   face.Series
	progress string             // what the bar says; "" for no bar
	each     func(replay.Frame) // may be nil
}

// play replays a source with the learner of g and writes the report.
func (o *options) play(ctx context.Context, c *cobra.Command, v *cli.Vision, g *gallery.Gallery,
	item footage.Item,
	how player) (replay.Result, error) {
	source := item.Path
	name := filepath.Base(input.Shown(source))
	out, err := replay.Create(how.out, name, v.Space)
	if err != nil {
		return replay.Result{}, err
	}
	defer out.Abort()
	opt := o.sought(0)
	opt.Series = how.series
	if how.video {
		draws(&opt)
	}
	src, err := o.stream(ctx, c, v, source, opt)
	if err != nil {
		return replay.Result{}, err
	}
	bar := cli.NewProgress(src.Count().Declared, how.progress)
	defer bar.Finish()
	unfinished := filepath.Join(how.out, ".annotated") // and an ending
	var film *drawing.Process
	if how.video {
		film, err = drawing.Start(ctx, cli.EyeCommand("film", unfinished)...)
		if err != nil {
			return replay.Result{}, err
		}
		defer func() {
			film.Close()
			for _, end := range videoEndings {
				os.Remove(unfinished + end)
			}
		}()
	}
	collector := search.NewCollector(v.Space)
	var stills []search.Recording
	folder := isFolder(item.Path)
	options := replay.Options{Freeze: o.freeze, Now: time.Now, Names: g.Name}
	for f, err := range replay.Judge(ctx, src, g.Learner(), options) {
		if err == nil {
			err = out.Add(f)
		}
		if err == nil && how.video {
			var picture drawing.Frame
			picture, err = annotated(g.Names(), f)
			if err == nil {
				err = film.Draw(picture)
			}
		}
		if err != nil {
			return replay.Result{}, err
		}
		bar.Set(f.Index + 1)
		if film := !f.Still && len(item.Files) > 1; film && opt.Series == face.Followed {
			cli.Note(c, fmt.Sprintf("%s is read as a film of %s; --photographs judges each alone",
				cell(source), cli.Count(len(item.Files), "frame")))
			opt.Series = face.Filmed
		}
		if f.Still && item.Files != nil {
			path := item.Path
			if folder {
				path = filepath.Join(path, f.File)
			}
			stills = append(stills, search.Photograph(v.Space, path, f.Frame))
		} else {
			collector.Add(f.Frame)
		}
		if how.each != nil {
			how.each(f)
		}
	}
	video := ""
	if how.video {
		if err := film.Close(); err != nil {
			return replay.Result{}, err
		}
		video, err = finished(how.out)
		if err != nil && src.Count().Read > 0 {
			return replay.Result{}, fmt.Errorf("writing video: %w", err)
		}
	}
	about := replay.Meta{Count: src.Count(),
		Settings: cli.Describe(v, g.Learner().Settings(), g.Path()),
		Warnings: g.Learner().Warnings()}
	if input.IsRecording(source) {
		if whole, err := filepath.Abs(source); err == nil {
			about.Path = whole
		}
	}
	r, err := out.Commit(about)
	if err != nil {
		return r, err
	}
	r.Video = video
	if filepath.Ext(video) == videoEndings[1] {
		cli.Note(c, "this OpenCV writes no H.264 in MP4: the video is Motion JPEG in AVI, which "+
			"telephones do not play")
	}
	cli.Warn(c, about.Warnings...)
	// and not for the demo, whose gallery goes
	if input.IsRecording(source) && how.each == nil && !src.broken {
		o.remember(c, v, item, opt.Series, collector.End(src.Count()), stills)
	}
	return r, nil
}

// videoEndings are those of a video of H.264, and of one of motion JPEG.
var videoEndings = []string{".mp4", ".avi"}

// finished gives the video in a folder its name, in place of an earlier one.
func finished(folder string) (video string, err error) {
	for i, end := range videoEndings {
		video = filepath.Join(folder, "annotated"+end)
		err = os.Rename(filepath.Join(folder, ".annotated"+end), video)
		if err == nil {
			os.Remove(filepath.Join(folder, "annotated"+videoEndings[1-i]))
			return video, nil
		}
	}
	return "", err
}

// remember keeps in the index of search what a replay has seen: a film, or photographs.
func (o *options) remember(c *cobra.Command, v *cli.Vision, item footage.Item, s face.Series,
	r search.Recording, stills []search.Recording) {
	how := o.sought(0)
	index, err := o.index(v, "", false)
	if err == nil {
		defer index.Close()
		switch {
		case item.Files != nil && s == face.Filmed:
			how.Series = s
			fallthrough
		case item.Files == nil:
			err = index.Keep(item, how, r)
		default:
			var p search.Photographs
			p, err = index.Photographs(item.Files, how)
			err = errors.Join(err, p.Keep(stills))
		}
	}
	if err != nil {
		cli.Warn(c, fmt.Sprintf("search must look at %s again: %v", item.Path, err))
	}
}

func (o *options) printResult(c *cobra.Command, r replay.Result) error {
	w := c.OutOrStdout()
	if o.JSON {
		return json.NewEncoder(w).Encode(r)
	}
	fmt.Fprintf(w, "%s: ", cell(r.Source))
	if err := r.Summary.WriteText(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "report: %s\nevents: %s\n", cell(r.Report), cell(r.Events))
	if r.Video != "" {
		fmt.Fprintf(w, "video:  %s\n", cell(r.Video))
	}
	return nil
}
