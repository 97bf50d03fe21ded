// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/search"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/spf13/cobra"
)

// searchFlags holds the flags of search.
type searchFlags struct {
	name, like, index, sheet string
	fps                      float64
	jobs                     int
	noIndex                  bool
}

func newSearch() *cobra.Command {
	var o options
	var h searchFlags
	c := &cobra.Command{
		Use:   "search RECORDING|FOLDER... (--name NAME | --like IMAGE)",
		Short: "find a person in old recordings",
		Long: "Search says in which recordings a person is, and when. The person is enrolled, or is in a picture.\n" +
			"Search looks into folders and their subfolders. It looks through each recording once, which takes\n" +
			"a while, and through several at once, on all cores. It keeps the faces in an index, so the next\n" +
			"search is quick, and an interrupted search continues, also within a long recording. Only its owner\n" +
			"can read the index. If the person is in no recording, the exit code is 7.",
		Example: "  faceauth search ~/recordings --name alice\n" +
			"  faceauth search day.mp4 --like face.jpg --sheet found.html",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.search(c, args, h) },
	}
	cli.Again(c, "the recordings looked through are in the index; run the same command again to go on")
	o.VisionFlags(c)
	o.rotateFlag(c)
	o.SpareFlag(c)
	o.LearnerFlags(c)
	o.galleryFlag(c)
	f := c.Flags()
	f.StringVar(&h.name, "name", "", "the enrolled person to search for")
	o.namesFlag(c)
	f.StringVar(&h.like, "like", "", "a picture with one face, to search for")
	f.StringVar(&h.index, "index", "", "file of the index (default: faceauth/cache.db below $XDG_CACHE_HOME or "+
		"~/.cache)")
	f.BoolVar(&h.noIndex, "no-index", false, "keep no index")
	f.StringVar(&h.sheet, "sheet", "", "write a contact sheet, an HTML page")
	cli.JobsFlag(c, &h.jobs)
	f.Float64Var(&h.fps, "fps", 5, "frames per second of a recording to look at; 0 for all")
	return c
}

// found is the result for one recording.
type found struct {
	Path string
	Hits []search.Hit
}

func (o *options) search(c *cobra.Command, args []string, h searchFlags) error {
	switch {
	case (h.name == "") == (h.like == ""):
		return cli.Fail(cli.BadUsage, errors.New("give exactly one of --name or --like"))
	case !(h.fps >= 0):
		return cli.Fail(cli.BadUsage, fmt.Errorf("--fps must not be negative, got %g", h.fps))
	case h.noIndex && h.index != "":
		return cli.Fail(cli.BadUsage, errors.New("--index and --no-index contradict each other"))
	}
	paths, err := footage.Find(args)
	if err != nil {
		return cli.Fail(cli.BadSource, err)
	}
	q, v, poor, err := o.query(c, h)
	if err != nil {
		return err
	}
	defer v.Close()
	index, err := o.index(v, h)
	if err != nil {
		return err
	}
	defer index.Close()
	var all []found
	var closest *search.Hit // nearest face, while nobody is found
	var unread []unreadable
	jobs, err := cli.Jobs(h.jobs, len(paths))
	if err != nil {
		return err
	}
	type scanned struct {
		search.Recording
		err error
	}
	kept := 0
	scan := func(ctx context.Context, i int) scanned {
		own := v.Another()
		defer own.Close()
		what := ""
		if jobs == 1 {
			what = fmt.Sprintf("%s (%d of %d)", filepath.Base(paths[i]), i+1, len(paths))
		}
		r, err := o.scanned(ctx, c, own, index, paths[i], what)
		return scanned{r, err}
	}
	var bar progress
	if jobs > 1 {
		bar = cli.NewProgress(len(paths), "recordings")
		defer bar.End()
	}
	err = cli.InOrder(c.Context(), len(paths), jobs, scan, func(i int, r scanned) error {
		bar.Step()
		if errors.Is(r.err, search.ErrIndex) {
			return fmt.Errorf("%w; make room, or give --no-index", r.err)
		}
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
		if r.err != nil {
			unread = append(unread, unreadable{paths[i], why(r.err, paths[i])})
			cli.Warn(c, fmt.Sprintf("%s is not searched: %s", paths[i], unread[len(unread)-1].Why))
			return nil
		}
		kept++
		hits, err := q.Find(r.Recording)
		if err != nil {
			return cli.Fail(cli.BadSource, err)
		}
		if len(hits) > 0 {
			all = append(all, found{paths[i], hits})
		}
		if len(all) == 0 {
			near, ok, err := q.Closest(r.Recording)
			if err != nil {
				return cli.Fail(cli.BadSource, err)
			}
			if ok && (closest == nil || near.Distance < closest.Distance) {
				closest = &near
			}
		}
		return nil
	})
	bar.End()
	if c.Context().Err() != nil {
		if !h.noIndex {
			cli.Warn(c,
				fmt.Sprintf("interrupted; at least %d of %d recordings are in the index: run it again to go on",
					kept,
					len(paths)))
		}
		return c.Context().Err()
	}
	if err != nil {
		return err
	}
	if len(unread) == len(paths) {
		return cli.Fail(cli.BadSource, errors.New("no recording could be read"))
	}
	if err := o.show(c, h, q.Name, all, len(paths)-len(unread), unread); err != nil {
		return err
	}
	var names []string
	for _, x := range unread {
		names = append(names, x.Recording)
	}
	switch {
	case len(unread) > 0:
		return cli.Fail(cli.Partly, fmt.Errorf("%d of %s could not be read, and %s may be there: %s", len(unread),
			cli.Count(len(paths), "recording"), q.Name, strings.Join(names, ", ")))
	case len(all) > 0:
		return nil
	}
	return cli.Fail(cli.Refused, fmt.Errorf("%s is in none of %s: %s", q.Name, cli.Count(len(paths), "recording"),
		whyNot(closest, v.Space.Reach, poor)))
}

// unreadable is a recording that could not be read.
type unreadable struct {
	Recording string `json:"recording"`
	Why       string `json:"why"`
}

// why returns the text of an error about a recording, without the name of the recording at its beginning.
func why(err error, path string) string {
	if _, rest, found := strings.Cut(err.Error(), path+": "); found {
		return rest
	}
	return err.Error()
}

// whyNot says why nobody was found. Closest is the nearest face of all, or nil. Reach is the greatest distance between
// two faces of one person. Poor is the defect of the given picture, if it is known.
func whyNot(closest *search.Hit, reach float64, poor face.Reason) string {
	if closest == nil {
		return "no face in them can be used; they may be too small, blurred or turned away"
	}
	where := fmt.Sprintf("the nearest face, in %s at %s, is at distance %.2f", closest.Recording, stamp(closest.From),
		closest.Distance)
	if reach > 0 && closest.Distance > reach {
		where += fmt.Sprintf(", and faces of one person are within %.2f", reach)
	} else {
		where += fmt.Sprintf(", but too few of the %s of that sighting look like it", cli.Count(closest.Frames,
			"frame"))
	}
	if poor != "" {
		where += fmt.Sprintf("; the picture is poor (%s), try another one", poor)
	}
	return where
}

// index opens the index.
func (o *options) index(v *vision, h searchFlags) (*search.Index, error) {
	x := &search.Index{Space: v.Space, FPS: h.fps, Detector: v.Name, Spare: !o.EveryFrame}
	if h.noIndex {
		return x, nil
	}
	if h.index == "" {
		path, err := o.galleryPath()
		if err == nil {
			h.index, err = store.CachePath(path)
		}
		if err != nil {
			return nil, fmt.Errorf("%w; give the file of the index with --index, or --no-index", err)
		}
	}
	if err := x.Open(h.index); err != nil {
		return nil, cli.Fail(cli.Failed,
			fmt.Errorf("%w; delete it, give another one with --index, or --no-index", err))
	}
	return x, nil
}

// query returns the query for the person, and opens the detector. Poor is the defect of the given picture, if there is
// one.
func (o *options) query(c *cobra.Command, h searchFlags) (q *search.Query, v *vision, poor face.Reason, err error) {
	if h.name != "" {
		g, _, v, err := o.recogniser(c)
		if err != nil {
			return nil, nil, "", err
		}
		defer g.Close()
		q, err := search.NewQuery(g.Learner(), h.name)
		if err != nil {
			v.Close()
			return nil, nil, "", cli.Fail(cli.Refused, err)
		}
		return q, v, "", nil
	}
	if v, err = o.Look(c, nil); err != nil {
		return nil, nil, "", err
	}
	if q, poor, err = o.likeness(c, v, h.like); err != nil {
		v.Close()
		return nil, nil, "", err
	}
	return q, v, poor, nil
}

// likeness returns a query for the person in a picture, and the defect of the picture.
func (o *options) likeness(c *cobra.Command, v *vision, path string) (*search.Query, face.Reason, error) {
	x, poor, err := o.portrait(c, v, path)
	if err != nil {
		return nil, "", err
	}
	g, err := o.newGallery(c, v.Space)
	if err != nil {
		return nil, "", err
	}
	name := filepath.Base(path)
	if err := g.Learner().Label(x, name); err != nil {
		return nil, "", cli.Fail(cli.BadUsage, err)
	}
	q, err := search.NewQuery(g.Learner(), name)
	return q, poor, err
}

// portrait returns the vector of the face in a picture, and the defect of the picture.
func (o *options) portrait(c *cobra.Command, v *vision, path string) ([]float32, face.Reason, error) {
	src, err := o.stream(c, v, path, eye.Options{Gate: eye.Learn})
	if err != nil {
		return nil, "", err
	}
	defer v.Drop()
	f, err := src.Next(c.Context())
	if err != nil {
		return nil, "", err
	}
	switch n := len(f.Samples); {
	case n == 0:
		return nil, "", cli.Fail(cli.NoFace,
			fmt.Errorf("no face was found in %s; use a sharp picture with a face that looks at the camera", path))
	case n > 1:
		return nil, "", cli.Fail(cli.NoFace,
			fmt.Errorf("there are %d faces in %s; cut out the face to search for", n, path))
	}
	s := f.Samples[0]
	if s.Vector == nil {
		return nil, "", cli.Fail(cli.NoFace,
			fmt.Errorf("the face in %s cannot be used: %s; use another picture", path,
				s.Reason))
	}
	if s.Reason != "" {
		cli.Warn(c, fmt.Sprintf("the face in %s is poor (%s), and may not be found", path, s.Reason))
	}
	return s.Vector, s.Reason, nil
}

// scanned returns the sightings of a recording, from the index if they are there. What, if it is not empty, is shown
// with the progress.
func (o *options) scanned(ctx context.Context, c *cobra.Command, v *vision, index *search.Index,
	path, what string) (search.Recording, error) {
	return index.Recording(path, func(from search.Part, keep func(search.Part) error) ([]search.Sighting, error) {
		// Each recording has its own eye, so a malicious recording cannot change the result of another.
		defer v.Drop()
		var bar progress
		opt := eye.Options{
			Gate: eye.Learn, Picture: 112, FPS: index.FPS, Spare: !o.EveryFrame,
			Step: func(n face.Count) { bar.To(n.Read) },
		}
		if from.Tracks > 0 {
			opt.After = &from.Frame
		}
		src, err := o.streamIn(ctx, c, v, path, opt)
		if err != nil {
			return nil, err
		}
		if what != "" {
			bar = cli.NewProgress(src.Count().Declared, what)
			defer bar.End()
		}
		found, err := search.Scan(ctx, src, index.Space, from, keep)
		if err != nil {
			return nil, fmt.Errorf("searching %s: %w", path, err)
		}
		return found, nil
	})
}

// show prints the result.
func (o *options) show(c *cobra.Command, h searchFlags, name string, all []found, searched int,
	unread []unreadable) error {
	n := 0
	for _, f := range all {
		n += len(f.Hits)
	}
	if h.sheet != "" {
		if err := writeSheet(h.sheet, "search", struct {
			Name, Headline string
			Recordings     []found
		}{name, fmt.Sprintf("%s of %s in %d of %s", cli.Count(n, "sighting"), name, len(all),
			cli.Count(searched, "recording")), all}); err != nil {
			return cli.Fail(cli.BadUsage, err)
		}
	}
	if o.JSON {
		type hit struct {
			Recording string  `json:"recording"`
			From      float64 `json:"from"` // seconds
			To        float64 `json:"to"`
			Frames    int     `json:"frames"`
			Share     float64 `json:"share"`
			Distance  float64 `json:"distance"`
		}
		hits := []hit{}
		for _, f := range all {
			for _, x := range f.Hits {
				hits = append(hits, hit{f.Path, x.From.Seconds(), x.To.Seconds(), x.Frames, x.Share, x.Distance})
			}
		}
		if err := json.NewEncoder(c.OutOrStdout()).Encode(struct {
			Name     string `json:"name"`
			Searched int    `json:"searched"`
			// The recordings that could not be read.
			Unread []unreadable `json:"unread"`
			Hits   []hit        `json:"hits"`
		}{name, searched, append([]unreadable{}, unread...), hits}); err != nil {
			return err
		}
	} else if n > 0 {
		w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "recording\tfrom\tto\tframes\tshare\tdistance")
		for _, f := range all {
			for _, x := range f.Hits {
				fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.2f\t%.2f\n", f.Path, stamp(x.From), stamp(x.To), x.Frames, x.Share,
					x.Distance)
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if n > 0 && !o.JSON {
		fmt.Fprintf(c.OutOrStdout(), "%s in %d of %s\n", cli.Count(n, "sighting"), len(all), cli.Count(searched,
			"recording"))
	}
	return nil
}

// stamp writes a time from the beginning of a recording.
func stamp(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
