// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/search"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

// searchFlags holds the flags of search.
type searchFlags struct {
	name, like, index, sheet, out string
	fps                           float64
	jobs                          int
	noIndex                       bool
}

func newSearch() *cobra.Command {
	var o options
	var h searchFlags
	c := &cobra.Command{
		Use:   "search RECORDING|FOLDER... (--name NAME | --like IMAGE)",
		Short: "find a person in old recordings and photographs",
		Long: "Search says which photographs show a person, and in which recordings the person is, and when. The\n" +
			"person is enrolled, or is in a picture. Search looks into folders and their subfolders. It looks\n" +
			"through each recording once, which takes a while, and through several at once, on all cores. It\n" +
			"keeps the faces in an index, so the next search is quick, and an interrupted search continues,\n" +
			"also within a long recording. What replay has looked at is in the index, too. Only its owner can\n" +
			"read the index. If the person is nowhere, the exit code is 7; if something could not be looked at,\n" +
			"it is 9.",
		Example: "  faceauth search album --name sam --out found\n" +
			"  faceauth search ~/recordings --name alice\n" +
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
	f.StringVar(&h.out, "out", "", "link or copy the films and photographs that show the person into this folder")
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
	inventory, err := o.inventory(c, args)
	if err != nil {
		return err
	}
	items := inventory.Items
	q, v, poor, err := o.query(c, h)
	if err != nil {
		return err
	}
	defer v.Close()
	index, err := o.index(v, h.index, h.noIndex)
	if err != nil {
		return err
	}
	defer index.Close()
	jobs, err := cli.Jobs(h.jobs, len(items))
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
			what = fmt.Sprintf("%s (%d of %d)", filepath.Base(items[i].Path), i+1, len(items))
		}
		r, err := o.scanned(ctx, c, own, index, items[i], h.fps, what)
		return scanned{r, err}
	}
	var bar progress
	if jobs > 1 {
		bar = cli.NewProgress(len(items), "recordings")
		defer bar.End()
	}
	all := result{name: q.Name}
	err = cli.InOrder(c.Context(), len(items), jobs, scan, func(i int, r scanned) error {
		bar.Step()
		if errors.Is(r.err, search.ErrIndex) {
			return fmt.Errorf("%w; make room, or give --no-index", r.err)
		}
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
		if r.err != nil {
			o.failed(c, items[i].Path, r.err)
			return nil
		}
		kept++
		o.ended(c, items[i].Path, r.Count)
		return cli.Fail(cli.BadSource, all.add(q, r.Recording))
	})
	bar.End()
	if c.Context().Err() != nil {
		if !h.noIndex {
			cli.Warn(c, fmt.Sprintf("interrupted; at least %d of %d recordings are in the index: run it again to go on",
				kept, len(items)))
		}
		return c.Context().Err()
	}
	if err != nil {
		return err
	}
	if kept > 0 {
		if err := o.show(c, h, all); err != nil {
			return err
		}
	}
	if len(all.found) == 0 {
		err = cli.Fail(cli.Refused, fmt.Errorf("%s is in none of %s: %s", q.Name, all.searched(),
			whyNot(all.closest, v.Space.Reach, poor)))
	}
	return o.reading.end(err, len(items), q.Name)
}

// result is what a search has found.
type result struct {
	name           string
	films, stills  int // that were looked at
	found          []found
	pictures, hits int         // photographs with the person, and sightings in films
	closest        *search.Hit // nearest face, while nobody is found
}

// add adds the result for a recording.
func (x *result) add(q *search.Query, r search.Recording) error {
	if x.stills += r.Stills; r.Stills == 0 {
		x.films++
	}
	hits, err := q.Find(r)
	if err != nil {
		return err
	}
	for _, h := range hits {
		if h.File == "" {
			x.hits++
		} else {
			x.pictures++
		}
	}
	if len(hits) > 0 {
		x.found = append(x.found, found{r.Path, hits})
		return nil
	}
	near, ok, err := q.Closest(r)
	if ok && (x.closest == nil || near.Distance < x.closest.Distance) {
		x.closest = &near
	}
	return err
}

// searched says how much was looked at.
func (x *result) searched() string {
	switch {
	case x.stills == 0:
		return cli.Count(x.films, "recording")
	case x.films == 0:
		return cli.Count(x.stills, "picture")
	}
	return cli.Count(x.films, "recording") + " and " + cli.Count(x.stills, "picture")
}

// headline says how often the person was found, and where.
func (x *result) headline() string {
	var parts []string
	if x.films > 0 {
		with := 0
		for _, f := range x.found {
			if f.Hits[0].File == "" {
				with++
			}
		}
		parts = append(parts, fmt.Sprintf("%s in %d of %s", cli.Count(x.hits, "sighting"), with,
			cli.Count(x.films, "recording")))
	}
	if x.stills > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s", x.pictures, cli.Count(x.stills, "picture")))
	}
	if x.films == 0 {
		return x.name + " is in " + parts[0]
	}
	return strings.Join(parts, ", and in ")
}

// whyNot says why nobody was found. Closest is the nearest face of all, or nil. Reach is the greatest distance between
// two faces of one person. Poor is the defect of the given picture, if it is known.
func whyNot(closest *search.Hit, reach float64, poor face.Reason) string {
	if closest == nil {
		return "no face in them can be used; they may be too small, blurred or turned away"
	}
	where := fmt.Sprintf("the nearest face, in %s, is at distance %.2f", place(*closest), closest.Distance)
	if reach > 0 && closest.Distance > reach {
		where += fmt.Sprintf(", and faces of one person are within %.2f", reach)
	} else if closest.File != "" {
		where += ", but not near enough for a name"
	} else {
		where += fmt.Sprintf(", but too few of the %s of that sighting look like it", cli.Count(closest.Frames,
			"frame"))
	}
	if poor != "" {
		where += fmt.Sprintf("; the picture is poor (%s), try another one", poor)
	}
	return where
}

// place names a recording and the time in it, or a picture.
func place(h search.Hit) string {
	if h.File != "" {
		return cell(h.File)
	}
	return cell(h.Recording) + " at " + stamp(h.From)
}

// index opens the index in a file; "" is the default. None keeps nothing.
func (o *options) index(v *vision, file string, none bool) (*search.Index, error) {
	x := &search.Index{Space: v.Space, Vision: v.Config.Vision}
	if none {
		return x, nil
	}
	if file == "" {
		path, err := o.galleryPath()
		if err == nil {
			file, err = store.CachePath(path)
		}
		if err != nil {
			return nil, fmt.Errorf("%w; give the file of the index with --index, or --no-index", err)
		}
	}
	if err := x.Open(file); err != nil {
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
	l, err := online.New(v.Space, o.settings(c, online.Settings{}))
	if err != nil {
		return nil, "", cli.Fail(cli.BadUsage, err)
	}
	name := filepath.Base(path)
	if err := l.Label(x, name); err != nil {
		return nil, "", cli.Fail(cli.BadUsage, err)
	}
	q, err := search.NewQuery(l, name)
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

// sought are the options with which a search looks at a recording.
func (o *options) sought(fps float64) eye.Options {
	return eye.Options{Gate: eye.Learn, Picture: 112, FPS: fps, Spare: !o.EveryFrame, Timeout: o.Timeout,
		Rotate: face.Rotation(o.rotate)}
}

// scanned returns the sightings of a recording, from the index if they are there. What, if it is not empty, is shown
// with the progress.
func (o *options) scanned(ctx context.Context, c *cobra.Command, v *vision, index *search.Index, item footage.Item,
	fps float64, what string) (search.Recording, error) {
	opt := o.sought(fps)
	return index.Recording(item, opt, func(from search.Part, keep func(search.Part) error) (search.Recording, error) {
		// Each recording has its own eye, so a malicious recording cannot change the result of another.
		defer v.Drop()
		var bar progress
		opt.Step = func(n face.Count) { bar.To(n.Read) }
		if from.Tracks > 0 {
			opt.After = &from.Frame
		}
		src, err := o.streamIn(ctx, c, v, item.Path, opt)
		if err != nil {
			return search.Recording{}, err
		}
		src.end = nil // the index knows how it ended
		if what != "" {
			bar = cli.NewProgress(src.Count().Declared, what)
			defer bar.End()
		}
		found, err := search.Scan(ctx, src, index.Space, from, keep)
		if err != nil {
			return found, fmt.Errorf("searching %s: %w", item.Path, err)
		}
		return found, nil
	})
}

// link returns an address that opens a photograph, or a film at a time.
func link(path string, at time.Duration) string {
	whole, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	u := url.URL{Scheme: "file", Path: whole}
	if at > 0 {
		u.Fragment = fmt.Sprintf("t=%g", math.Floor(at.Seconds()))
	}
	return u.String()
}

// source returns the file of a hit: the photograph or the film.
func source(h search.Hit) string { return cmp.Or(h.File, h.Recording) }

// show prints the result.
func (o *options) show(c *cobra.Command, h searchFlags, x result) error {
	if h.sheet != "" {
		if err := writeSheet(h.sheet, "search", struct {
			Name, Headline string
			Recordings     []found
		}{x.name, x.headline(), x.found}); err != nil {
			return cli.Fail(cli.BadUsage, err)
		}
	}
	if h.out != "" {
		if err := gather(h.out, x.found); err != nil {
			return cli.Fail(cli.BadUsage, err)
		}
	}
	if o.JSON {
		return o.showJSON(c, x)
	}
	if len(x.found) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	if x.pictures > 0 {
		fmt.Fprintln(w, "picture\tdistance")
	}
	each := func(still bool, line func(search.Hit)) {
		for _, f := range x.found {
			for _, hit := range f.Hits {
				if (hit.File != "") == still {
					line(hit)
				}
			}
		}
	}
	each(true, func(hit search.Hit) { fmt.Fprintf(w, "%s\t%.2f\n", cell(hit.File), hit.Distance) })
	if err := w.Flush(); err != nil {
		return err
	}
	if x.hits > 0 {
		fmt.Fprintln(w, "recording\tfrom\tto\tframes\tshare\tdistance")
	}
	each(false, func(hit search.Hit) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.2f\t%.2f\n", cell(hit.Recording), stamp(hit.From), stamp(hit.To), hit.Frames,
			hit.Share, hit.Distance)
	})
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.OutOrStdout(), x.headline())
	return err
}

func (o *options) showJSON(c *cobra.Command, x result) error {
	type hit struct {
		Recording name    `json:"recording"`
		File      name    `json:"file,omitempty"` // the photograph
		Link      string  `json:"link"`
		From      float64 `json:"from"` // seconds
		To        float64 `json:"to"`
		Frames    int     `json:"frames"`
		Share     float64 `json:"share"`
		Distance  float64 `json:"distance"`
	}
	hits := []hit{}
	for _, f := range x.found {
		for _, h := range f.Hits {
			hits = append(hits, hit{name(h.Recording), name(h.File), link(source(h), h.From), h.From.Seconds(),
				h.To.Seconds(), h.Frames, h.Share, h.Distance})
		}
	}
	left := []unreadable{}
	for _, l := range o.reading.left {
		left = append(left, unreadable{name(l.Path), l.Why})
	}
	return json.NewEncoder(c.OutOrStdout()).Encode(struct {
		Name     string `json:"name"`
		Searched int    `json:"searched"` // films and photographs
		// What could not be read, or not to its end, and what was left out.
		Unread []unreadable `json:"unread"`
		Left   []unreadable `json:"left_out"`
		Hits   []hit        `json:"hits"`
	}{x.name, x.films + x.stills, o.reading.missing(), left, hits})
}

// gather puts the files with hits into a folder, which it makes: as links to the same content, or else as copies.
func gather(folder string, all []found) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	done := map[string]bool{}
	for _, f := range all {
		for _, h := range f.Hits {
			from := source(h)
			info, err := os.Stat(from)
			if err != nil {
				return err
			}
			if done[from] || info.IsDir() { // a series has no file of its own
				continue
			}
			done[from] = true
			if err := put(folder, from, info); err != nil {
				return err
			}
		}
	}
	return nil
}

// put links or copies a file into a folder, under its name, or with a number if another file has it there.
func put(folder, from string, info os.FileInfo) error {
	base := filepath.Base(from)
	end := filepath.Ext(base)
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		to := filepath.Join(folder, base)
		if n > 1 {
			to = filepath.Join(folder, fmt.Sprintf("%s-%d%s", strings.TrimSuffix(base, end), n, end))
		}
		there, err := os.Lstat(to)
		if err == nil {
			if os.SameFile(there, info) || there.Size() == info.Size() && there.ModTime().Equal(info.ModTime()) {
				return nil // from an earlier search
			}
			continue
		}
		if os.Link(real, to) == nil {
			return nil
		}
		return copied(real, to, info)
	}
}

func copied(from, to string, info os.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := safefile.Create(to)
	if err != nil {
		return err
	}
	defer out.Abort()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// stamp writes a time from the beginning of a recording.
func stamp(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
