// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/recordings/search"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

// searchFlags holds the flags of search.
type searchFlags struct {
	name, like, index, sheet, out string
	fps                           float64
	jobs                          uint
	noIndex, regions              bool
}

func newSearch() *cobra.Command {
	var o options
	var h searchFlags
	c := &cobra.Command{
		Use:   "search RECORDING|FOLDER... (--name NAME | --like IMAGE)",
		Short: "find a person in old recordings and photographs",
		Long: "Finds the photographs that show a person, and the recordings the person is in,\n" +
			"with times. The person is enrolled (--name) or shown in a picture (--like).\n" +
			"Folders are searched with everything below them.\n\n" +
			"The first search looks through each recording, which takes a while, on all\n" +
			"cores. It keeps the faces in an index that only you can read, so the next\n" +
			"search looks only at what is new, and an interrupted one continues where it\n" +
			"stopped. What replay has seen is in the index as well.\n\n" +
			"Faces that only a generous rate of strangers would name are listed as perhaps\n" +
			"the person, unless --strangers is given. If the person is nowhere, or only\n" +
			"perhaps, the exit code is 7; if something could not be read, it is 9.",
		Example: "  faceauth search album --name sam --out found\n" +
			"  faceauth search ~/recordings --name alice\n" +
			"  faceauth search day.mp4 --like face.jpg --sheet found.html",
		Args: cobra.MinimumNArgs(1), SuggestFor: []string{"find"},
		RunE: func(c *cobra.Command, args []string) error { return o.search(c, args, h) },
	}
	o.VisionFlags(c)
	o.rotateFlag(c)
	o.SpareFlag(c)
	o.LearnerFlags(c)
	o.StrangersFlag(c, "strangers", cameraStrangers)
	o.galleryFlags(c.Flags())
	f := c.Flags()
	f.StringVar(&h.name, "name", "", "the person's name")
	o.namesFlag(c)
	o.seriesFlag(c)
	f.StringVar(&h.like, "like", "", "a picture with one face, to search for")
	f.StringVar(&h.index, "index", "",
		"file of the index (default: faceauth/cache.db below $XDG_CACHE_HOME or "+
			"~/.cache)")
	f.BoolVar(&h.noIndex, "no-index", false, "keep no index")
	f.StringVar(&h.sheet, "sheet", "", "write a contact sheet, an HTML page")
	f.StringVar(&h.out, "out", "",
		"put the films and photographs that show the person into this folder, as hard "+
			"links, or as copies on another disk")
	f.BoolVar(&h.regions, "write-regions", false,
		"name the face in a file .xmp beside each photograph that shows the person, as "+
			"digiKam and Lightroom do; photographs are not changed")
	cli.JobsFlag(c, &h.jobs)
	f.Float64Var(&h.fps, "fps", 5, "frames per second of a recording to look at; 0 for all")
	return c
}

func (o *options) search(c *cobra.Command, args []string, h searchFlags) error {
	switch {
	case (h.name == "") == (h.like == ""):
		return cli.Fail(cli.BadUsage, errors.New("give exactly one of --name or --like"))
	case !(h.fps >= 0):
		return cli.Fail(cli.BadUsage, fmt.Errorf("--fps must not be negative, got %g", h.fps))
	case h.regions && h.name == "":
		return cli.Fail(cli.BadUsage, errors.New("--write-regions needs the person's --name"))
	case h.noIndex && h.index != "":
		return cli.Fail(cli.BadUsage, errors.New("--index and --no-index contradict each other"))
	}
	inventory, err := o.inventory(c, args)
	if err != nil {
		return err
	}
	items, size := o.parts(inventory, h.jobs), inventory.Size()
	if o.series {
		size = len(items)
	}
	q, v, err := o.query(c, h)
	if err != nil {
		return err
	}
	defer v.Close()
	index, err := o.index(v, h.index, h.noIndex)
	if err != nil {
		return err
	}
	defer index.Close()
	jobs := cli.Jobs(h.jobs, len(items))
	alone := jobs == 1 && !slices.ContainsFunc(items, func(i footage.Item) bool {
		return i.Files != nil
	})
	progress := "looking"
	if alone {
		progress = "" // each film has a bar
	}
	bar := cli.NewProgress(size, progress)
	defer bar.Finish()
	kept := 0
	scan := func(ctx context.Context, i int) scanned {
		own := v.Another()
		defer own.Close()
		what := ""
		if alone {
			what = fmt.Sprintf("%s (%d of %d)", filepath.Base(items[i].Path), i+1, len(items))
		}
		return o.scan(ctx, c, own, index, items[i], scanning{h.fps, mostPictures / jobs, what,
			func() { bar.Add(1) }})
	}
	all := result{name: q.Name, space: v.Space}
	err = cli.InOrder(c.Context(), len(items), jobs, scan, func(i int, r scanned) error {
		if errors.Is(r.err, search.ErrIndex) {
			return fmt.Errorf("%w; make room, or give --no-index", r.err)
		}
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
		broken := errors.Is(r.err, errBroken)
		if r.err != nil && (items[i].Files != nil && !o.series || cli.Code(r.err) == cli.BadModel) {
			return r.err
		}
		if r.err != nil && !broken {
			o.failed(c, items[i].Path, r.err)
		}
		for _, x := range r.all {
			kept++
			if !broken && (x.Stills == 0 || x.Count.Partial > 0) {
				o.ended(c, x.Path, x.Count)
			}
			if err := all.add(q, x); err != nil {
				return cli.Fail(cli.BadSource, err)
			}
		}
		return nil
	})
	bar.Finish()
	if c.Context().Err() != nil {
		if !h.noIndex {
			cli.Again(c,
				fmt.Sprintf(
					"at least %d of %s are in the index; run the same command again to go on", kept,
					cli.Count(size, o.reading.noun)))
		}
		return c.Context().Err()
	}
	if err != nil {
		return err
	}
	moving(c, all.moving)
	if kept > 0 {
		if err := o.show(c, v, h, all); err != nil {
			return err
		}
	}
	switch {
	case len(all.hits) == 0:
		err = cli.Fail(cli.Refused, fmt.Errorf("%s is in none of %s: %s", q.Name, all.searched(),
			whyNot(all.closest, v.Space.Reach)))
	case all.perhaps() == len(all.hits):
		err = cli.Fail(cli.Refused, fmt.Errorf("%s is only perhaps in %s: look at what is listed; "+
			"--strangers generous takes it all", q.Name, all.searched()))
	}
	return o.reading.end(err, size, q.Name)
}

// scanning says how an item is looked at.
type scanning struct {
	fps  float64
	lost int    // of photographs an interruption loses at most so many
	what string // what is shown with the progress of a film; "" for nothing
	step func() // called for each film and photograph
}

// scanned is what was found in an item: a film, or photographs.
type scanned struct {
	all []search.Recording
	err error
}

// scan looks at an item.
func (o *options) scan(ctx context.Context, c *cobra.Command, v *cli.Vision, index *search.Index,
	item footage.Item, how scanning) scanned {
	if item.Files != nil && !o.series {
		all, err := o.lookedAt(ctx, c, v, index, item.Files, how.lost, how.step)
		return scanned{all, err}
	}
	defer how.step()
	r, err := o.scanned(ctx, c, v, index, item, how.fps, how.what)
	if err != nil && !errors.Is(err, errBroken) {
		return scanned{nil, err}
	}
	return scanned{[]search.Recording{r}, err}
}

// index opens the index in a file; "" is the default. None keeps nothing.
func (o *options) index(v *cli.Vision, file string, none bool) (*search.Index, error) {
	x := &search.Index{Space: v.Space, Vision: v.Config.Vision}
	if none {
		return x, nil
	}
	if file == "" {
		path, err := o.galleryPath()
		if err == nil {
			file, err = search.Path(path)
		}
		if err != nil {
			return nil, fmt.Errorf("%w; give the file of the index with --index, or --no-index",
				err)
		}
	}
	if err := x.Open(file); err != nil {
		return nil, cli.Fail(cli.Failed,
			fmt.Errorf("%w; give another file of the index with --index, or --no-index", err))
	}
	return x, nil
}

// errBroken comes with a recording of which a part could not be read; it is noted.
var errBroken = errors.New("a part of the recording could not be read")

// sought are the options with which a search looks at a recording.
func (o *options) sought(fps float64) eye.Options {
	return eye.Options{Gate: eye.Learn, Picture: 112, FPS: fps, Spare: !o.EveryFrame,
		Timeout: o.Timeout, Rotate: o.rotate}
}

// scanned returns the sightings of a recording, from the index if they are there. What, if it is
// not empty, is shown with the progress.
func (o *options) scanned(ctx context.Context, c *cobra.Command, v *cli.Vision, index *search.Index,
	item footage.Item,
	fps float64, what string) (search.Recording, error) {
	opt := o.sought(fps)
	if item.Files != nil {
		opt.Series = face.Filmed
	}
	return index.Recording(item, opt, func() (search.Recording, error) {
		// Each recording has its own eye, so a malicious recording cannot change the result of
		// another.
		defer v.Close()
		bar := cli.NewProgress(-1, what)
		defer bar.Finish()
		opt.Step = func(n face.Count) { bar.Set(n.Read) }
		src, err := o.stream(ctx, c, v, item.Path, opt)
		if err != nil {
			return search.Recording{}, err
		}
		src.quiet = true // the index knows how it ended
		bar.ChangeMax(src.Count().Declared)
		found, err := search.Scan(ctx, src, index.Space)
		if err != nil {
			return found, fmt.Errorf("searching %s: %w", item.Path, err)
		}
		if src.broken { // the next search looks at it again
			found.Path = item.Path
			return found, errBroken
		}
		return found, nil
	})
}

// lookedAt returns the results for photographs, from the index if they are there. An interruption
// loses at most so many of the new ones. Step is called for each.
func (o *options) lookedAt(ctx context.Context, c *cobra.Command, v *cli.Vision,
	index *search.Index, files []string,
	lost int, step func()) (all []search.Recording, err error) {
	opt := o.sought(0)
	p, err := index.Photographs(files, opt)
	if err != nil {
		return nil, err
	}
	for range p.Known {
		step()
	}
	var found []search.Recording // and not kept
	if len(p.Rest) > 0 {
		for f, failed := range o.photographs(ctx, c, v, p.Rest, opt) {
			if failed != nil {
				err = failed
				break
			}
			step()
			r := search.Photograph(index.Space, f.path, f.Frame)
			p.Known[f.path] = r
			found = append(found, r)
			if len(found) < lost {
				continue
			}
			err = p.Keep(found)
			if err != nil {
				break
			}
			found = nil
		}
	}
	err = errors.Join(err, p.Keep(found))
	for _, f := range files {
		r, there := p.Known[f]
		if there {
			all = append(all, r)
		}
	}
	return all, err
}

// whyNot says why nobody was found. Closest is the nearest face of all, or nil. Reach is the
// greatest distance between two faces of one person.
func whyNot(closest *search.Hit, reach float64) string {
	if closest == nil {
		return "no face in them can be used; they may be too small, blurred or turned away"
	}
	where := fmt.Sprintf("the nearest face, in %s, is at distance %.2f", place(*closest),
		closest.Distance)
	if reach > 0 && closest.Distance > reach {
		where += fmt.Sprintf(", and faces of one person are within %.2f", reach)
	} else if closest.File != "" {
		where += ", but not near enough for a name"
	} else {
		where += fmt.Sprintf(", but too few of the %s of that sighting look like it",
			cli.Count(closest.Frames,
				"frame"))
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

// query returns the query for the person, and the vision for what the index does not know.
func (o *options) query(c *cobra.Command,
	h searchFlags) (q *search.Query, v *cli.Vision, err error) {
	if h.name != "" {
		g, err := o.openGallery(c)
		if err != nil {
			return nil, nil, err
		}
		defer g.Close()
		space := g.Space()
		v, err := o.Later(c, &space)
		if err != nil {
			return nil, nil, err
		}
		q, err := personQuery(c, g.Learner(), g.Number(h.name), h.name)
		if errors.Is(err, online.ErrUnknown) {
			err = cli.Fail(cli.Refused, fmt.Errorf("%w; known are %q", err, g.Names()))
		}
		return q, v, err
	}
	v, err = o.Look(c, nil)
	if err != nil {
		return nil, nil, err
	}
	q, err = o.likeness(c, v, h.like)
	if err != nil {
		v.Close()
		return nil, nil, err
	}
	return q, v, nil
}

// likeness returns a query for the person in a picture.
func (o *options) likeness(c *cobra.Command, v *cli.Vision, path string) (*search.Query, error) {
	x, err := o.portrait(c, v, path)
	if err != nil {
		return nil, err
	}
	l, err := online.New(v.Space, o.settings(c, online.Settings{Strangers: cameraStrangers}))
	if err == nil {
		err = l.Label(x, 1)
	}
	if err != nil {
		return nil, cli.Fail(cli.BadUsage, err)
	}
	return personQuery(c, l, 1, filepath.Base(path))
}

// personQuery returns the query for a person that a learner knows. Where nobody has chosen a rate
// of strangers, it also finds whom the generous one finds, and marks them as perhaps the person.
func personQuery(c *cobra.Command, l *online.Learner, p online.Person,
	name string) (*search.Query, error) {
	q, err := search.NewQuery(l, p, name)
	s := l.Settings()
	if err != nil || c.Flags().Changed("strangers") || s.Strangers != cameraStrangers {
		return q, err
	}
	s.Strangers = searchStrangers
	err = l.Configure(s)
	if err != nil {
		return nil, cli.Fail(cli.BadUsage, err)
	}
	all, err := search.NewQuery(l, p, name)
	if err != nil {
		return nil, err
	}
	all.Sure = q
	return all, nil
}

// portrait returns the vector of the face in a picture.
func (o *options) portrait(c *cobra.Command, v *cli.Vision, path string) ([]float32, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, cli.Fail(cli.BadUsage,
			fmt.Errorf("%s is a folder; name one picture in it", path))
	}
	src, err := o.stream(c.Context(), c, v, path, eye.Options{Gate: eye.Learn})
	if err != nil {
		return nil, err
	}
	defer v.Close()
	f, err := src.Next(c.Context())
	if err != nil {
		return nil, err
	}
	switch n := len(f.Samples); {
	case n == 0:
		return nil, cli.Fail(cli.NoFace,
			fmt.Errorf("no face was found in %s; use a sharp picture with a face that looks at "+
				"the camera", path))
	case n > 1:
		return nil, cli.Fail(cli.NoFace,
			fmt.Errorf("there are %d faces in %s; cut out the face to search for", n, path))
	}
	s := f.Samples[0]
	if s.Vector == nil {
		return nil, cli.Fail(cli.NoFace,
			fmt.Errorf("the face in %s cannot be used: %s; use another picture", path,
				s.Reason))
	}
	if s.Reason != "" {
		cli.Warn(c, fmt.Sprintf(
			"the face in %s is poor (%s), and may not be found: try another picture", path,
			s.Reason))
	}
	return s.Vector, nil
}
