// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/search"
	"github.com/faceauth/faceauth/internal/table"
	"github.com/spf13/cobra"
)

// result is what a search has found.
type result struct {
	name           string
	films, stills  int // that were looked at
	found          []found
	pictures, hits int         // photographs with the person, and sightings in films
	closest        *search.Hit // nearest face
}

// add adds the result for a recording.
func (x *result) add(q *search.Query, r search.Recording) error {
	if x.stills += r.Stills; r.Stills == 0 {
		x.films++
	}
	hits, nearest, err := q.Find(r)
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
	}
	if x.closest == nil || nearest != nil && nearest.Distance < x.closest.Distance {
		x.closest = nearest
	}
	return nil
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
			return err
		}
	}
	if h.out != "" {
		if err := collect(h.out, x.found); err != nil {
			return fmt.Errorf("making links in %s: %w", h.out, err)
		}
	}
	if o.JSON {
		return o.showJSON(c, x)
	}
	if len(x.found) == 0 {
		return nil
	}
	w := table.New(c.OutOrStdout(), 2)
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

// stamp writes a time from the beginning of a recording.
func stamp(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// collect links the files with hits into a folder, which it makes.
func collect(folder string, all []found) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for _, f := range all {
		for _, h := range f.Hits {
			path, err := filepath.Abs(source(h))
			if err != nil {
				return err
			}
			info, err := os.Stat(path)
			if err == nil && !info.IsDir() { // a series has no file of its own
				err = linked(folder, path)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// linked makes a link to a file in a folder, under its name, or with a number if that leads to another file.
func linked(folder, path string) error {
	base, end := filepath.Base(path), filepath.Ext(path)
	to := filepath.Join(folder, base)
	for n := 2; ; n++ {
		err := os.Symlink(path, to)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		if there, err := os.Readlink(to); err == nil && there == path {
			return nil // from an earlier hit or search
		}
		to = filepath.Join(folder, fmt.Sprintf("%s-%d%s", strings.TrimSuffix(base, end), n, end))
	}
}
