// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/recordings/search"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/table"
	"github.com/spf13/cobra"
)

// result is what a search has found.
type result struct {
	name          string
	space         face.Space
	films, stills int // that were looked at
	moving        int // stills that hold films
	hits          []search.Hit
	closest       *search.Hit // nearest face

	// of the hits that are not marked as perhaps the person
	sightings, pictures int
	with                int // films
}

// add adds the result for a recording.
func (x *result) add(q *search.Query, r search.Recording) error {
	hits, nearest, err := q.Find(r)
	if err != nil {
		return err
	}
	x.hits = append(x.hits, hits...)
	if r.Film {
		x.moving++
	}
	sure := len(found(hits))
	if x.stills += r.Stills; r.Stills > 0 {
		x.pictures += sure
	} else {
		x.films++
		x.sightings += sure
		x.with += min(sure, 1)
	}
	if x.closest == nil || nearest != nil && nearest.Distance < x.closest.Distance {
		x.closest = nearest
	}
	return nil
}

// found returns the hits that are not marked as perhaps the person.
func found(hits []search.Hit) []search.Hit {
	return slices.DeleteFunc(slices.Clone(hits), func(h search.Hit) bool { return h.Perhaps })
}

// perhaps returns the number of hits that are marked so.
func (x *result) perhaps() int { return len(x.hits) - x.sightings - x.pictures }

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
	films := fmt.Sprintf("%s in %d of %s", cli.Count(x.sightings, "sighting"), x.with,
		cli.Count(x.films, "recording"))
	stills := fmt.Sprintf("%d of %s", x.pictures, cli.Count(x.stills, "picture"))
	more := ""
	if n := x.perhaps(); n > 0 {
		more = fmt.Sprintf("; perhaps %d more", n)
	}
	switch {
	case x.stills == 0:
		return films + more
	case x.films == 0:
		return x.name + " is in " + stills + more
	}
	return films + ", and in " + stills + more
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

// linkFrom returns an address that opens a hit from the page at path: relative if the file is in
// the folder of the page or below it, so that both can be moved.
func linkFrom(page string, h search.Hit) template.URL {
	all := link(source(h), h.From)
	folder := strings.TrimSuffix(link(filepath.Dir(page), 0), "/") + "/"
	below, ok := strings.CutPrefix(all, folder)
	if ok {
		all = "./" + below
	}
	return template.URL(all)
}

// near says how near the face of a hit is to an enrolled one.
func (x *result) near(h search.Hit) string {
	words := cmp.Or(x.space.Stills.Rarity(h.Distance), fmt.Sprintf("distance %.2f", h.Distance))
	if h.Perhaps {
		return "perhaps: " + words
	}
	return words
}

func inPhotograph(h search.Hit) bool { return h.File != "" }
func inFilm(h search.Hit) bool       { return !inPhotograph(h) }

// source returns the file of a hit: the photograph or the film.
func source(h search.Hit) string { return cmp.Or(h.File, h.Recording) }

// show prints the result, and writes what else is wanted.
func (o *options) show(c *cobra.Command, v *cli.Vision, h searchFlags, x result) error {
	show := o.table
	if o.JSON {
		show = o.showJSON
	}
	if err := show(c, x); err != nil {
		return err
	}
	if h.sheet != "" {
		whole, err := o.whole(c, v, h, x.hits)
		if err == nil {
			err = writeSheet(h.sheet, "search", struct {
				Name, Headline string
				Hits           []search.Hit
				Whole          map[string][]byte
				Films          bool
				Missing        []footage.Left
				Left           string
				Near           func(search.Hit) string
				Link           func(search.Hit) template.URL
			}{x.name, x.headline(), x.hits, whole, slices.ContainsFunc(x.hits, inFilm),
				o.reading.missing(), footage.Inventory{Left: o.reading.left}.String(), x.near,
				func(hit search.Hit) template.URL { return linkFrom(h.sheet, hit) }})
		}
		if err != nil {
			return err
		}
	}
	if h.out != "" {
		if err := collect(h.out, found(x.hits)); err != nil {
			return fmt.Errorf("making links in %s: %w", h.out, err)
		}
	}
	if h.regions {
		return writeRegions(c, x.name, found(x.hits))
	}
	return nil
}

// whole returns a small picture of each photograph of the hits, by its path.
func (o *options) whole(c *cobra.Command, v *cli.Vision, h searchFlags,
	hits []search.Hit) (map[string][]byte, error) {
	var photographs footage.Inventory
	for _, x := range hits {
		if inPhotograph(x) {
			item := footage.Item{Path: x.File, Files: []string{x.File}}
			photographs.Items = append(photographs.Items, item)
		}
	}
	all := map[string][]byte{}
	opt := eye.Options{Gate: eye.Learn, Rotate: o.rotate, NoFaces: true, Width: 320,
		Frame: func() bool { return true }}
	return all, o.each(c, v, photographs.Parts(mostPictures), h.jobs, opt, func(p photo) error {
		all[p.path] = p.JPEG
		return nil
	})
}

// mark is the style that puts the frame of a hit's face over its photograph.
func mark(h search.Hit) template.CSS {
	part := func(x, of int) float64 { return 100 * float64(x) / float64(max(1, of)) }
	return template.CSS(fmt.Sprintf("left:%.1f%%;top:%.1f%%;width:%.1f%%;height:%.1f%%",
		part(h.Box.Min.X, h.Size.X), part(h.Box.Min.Y, h.Size.Y),
		part(h.Box.Dx(), h.Size.X), part(h.Box.Dy(), h.Size.Y)))
}

// table prints the hits as tables.
func (o *options) table(c *cobra.Command, x result) error {
	if len(x.hits) == 0 {
		return nil
	}
	near := x.near
	if cli.Verbose(c) {
		near = func(h search.Hit) string {
			return fmt.Sprintf("%s; distance %.2f", x.near(h), h.Distance)
		}
	}
	w := table.New(c.OutOrStdout(), 2)
	if slices.ContainsFunc(x.hits, inPhotograph) {
		fmt.Fprintln(w, "picture\thow near")
	}
	for _, hit := range x.hits {
		if inPhotograph(hit) {
			fmt.Fprintf(w, "%s\t%s\n", cell(hit.File), near(hit))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if slices.ContainsFunc(x.hits, inFilm) {
		fmt.Fprintln(w, "recording\tfrom\tto\tframes\tshare\thow near")
	}
	for _, hit := range x.hits {
		if inFilm(hit) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.2f\t%s\n", cell(hit.Recording), stamp(hit.From),
				stamp(hit.To), hit.Frames, hit.Share, near(hit))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.OutOrStdout(), x.headline())
	return err
}

func (o *options) showJSON(c *cobra.Command, x result) error {
	type hit struct {
		Recording footage.Name `json:"recording"`
		File      footage.Name `json:"file,omitempty"` // the photograph
		// the face in it: left, top, width and height in pixels
		Box      *[4]int `json:"box,omitempty"`
		Link     string  `json:"link"`
		From     float64 `json:"from"` // seconds
		To       float64 `json:"to"`
		Frames   int     `json:"frames"`
		Share    float64 `json:"share"`
		Distance float64 `json:"distance"`
		Perhaps  bool    `json:"perhaps,omitempty"` // only a generous rate of strangers finds it
	}
	hits := []hit{}
	for _, h := range x.hits {
		var box *[4]int
		if !h.Box.Empty() {
			box = new(placed(h.Box))
		}
		hits = append(hits, hit{footage.Name(h.Recording), footage.Name(h.File), box,
			link(source(h), h.From),
			h.From.Seconds(), h.To.Seconds(), h.Frames, h.Share, h.Distance, h.Perhaps})
	}
	return json.NewEncoder(c.OutOrStdout()).Encode(struct {
		Name     string `json:"name"`
		Searched int    `json:"searched"` // films and photographs
		// motion photographs, of which the films were not looked at
		Moving int `json:"motion_photographs,omitempty"`
		// What could not be read, or not to its end, and what was left out.
		Unread []footage.Left `json:"unread"`
		Left   []footage.Left `json:"left_out"`
		Hits   []hit          `json:"hits"`
	}{x.name, x.films + x.stills, x.moving, o.reading.missing(),
		append([]footage.Left{}, o.reading.left...), hits})
}

// stamp writes a time from the beginning of a recording.
func stamp(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// collect puts the files with hits into a folder, which it makes.
func collect(folder string, hits []search.Hit) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for _, h := range hits {
		info, err := os.Stat(source(h))
		if err == nil && !info.IsDir() { // a series has no file of its own
			err = collected(folder, source(h), os.Link)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// collected puts a file into a folder under its own name, or with a number if another file has it:
// linked, or copied where no link can be made, as on another disk. What an earlier search has put
// there stays.
func collected(folder, path string, link func(from, to string) error) error {
	base, end := filepath.Base(path), filepath.Ext(path)
	// A link gives the copy its name, and the file that it leads to gives the content.
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	to := filepath.Join(folder, base)
	for n := 2; ; n++ {
		same, err := sameFile(path, to)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil || same {
			return err
		}
		to = filepath.Join(folder, fmt.Sprintf("%s-%d%s", strings.TrimSuffix(base, end), n, end))
	}
	if link(path, to) == nil {
		return nil
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	f, err := safefile.Create(to)
	if err != nil {
		return err
	}
	defer f.Abort()
	_, err = io.Copy(f, from)
	if err != nil {
		return err
	}
	return f.Commit()
}

// sameFile reports whether two names lead to one file, or to files with one content.
func sameFile(a, b string) (bool, error) {
	about, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	other, err := os.Stat(b)
	if err != nil || os.SameFile(about, other) {
		return err == nil, err
	}
	if about.Size() != other.Size() {
		return false, nil
	}
	var sums [2][]byte
	for i, path := range []string{a, b} {
		f, err := os.Open(path)
		if err != nil {
			return false, err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return false, err
		}
		sums[i] = h.Sum(nil)
	}
	return bytes.Equal(sums[0], sums[1]), nil
}
