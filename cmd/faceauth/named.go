// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/enrol"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/recordings/search"
	"github.com/faceauth/faceauth/internal/regions"
	"github.com/faceauth/faceauth/internal/table"
	"github.com/spf13/cobra"
)

// namedFace is a face that somebody has named in a photograph with another program.
type namedFace struct {
	File   footage.Name `json:"file"`
	Name   string       `json:"name"`
	Box    *[4]int      `json:"box"` // left, top, width and height in pixels; null: none is there
	Enrol  bool         `json:"enrol"`
	Reason string       `json:"reason,omitempty"` // why it is not

	doubtful bool
	sample   face.Sample
}

// named returns the people whose faces are named in the photographs of a folder, each with their
// clearest faces. It shows the faces if nobody is to be enrolled.
func (o *options) named(c *cobra.Command, v *cli.Vision, how enrolment) ([]toEnrol, error) {
	inventory, err := o.inventory(c, []string{how.regions})
	if err != nil {
		return nil, err
	}
	o.reading.n, o.reading.noun = inventory.Size(), "picture"
	var items []footage.Item
	in := map[string]regions.Named{}
	for _, item := range inventory.Items {
		var files []string
		for _, f := range item.Files {
			n, err := regions.Read(f)
			if err != nil {
				o.failed(c, f, err)
			}
			if len(n.Regions) > 0 {
				in[f], files = n, append(files, f)
			}
		}
		if len(files) > 0 {
			items = append(items, footage.Item{Path: item.Path, Files: files})
		}
	}
	if len(items) == 0 {
		return nil, cli.Fail(cli.NoFace, fmt.Errorf("no face is named in the XMP of %s in %s",
			cli.Count(inventory.Size(), "picture"), how.regions))
	}
	v.Roots = []string{how.regions}
	var all []*namedFace
	opt := eye.Options{Gate: eye.Enrol, Picture: 112, Crowd: true}
	err = o.eachPhotograph(c, v, footage.Inventory{Items: items}, 0, opt, func(p photo) error {
		n := in[p.path]
		for i, at := range n.Match(p.Frame) {
			f := &namedFace{File: footage.Name(p.path), Name: n.Regions[i].Name,
				Reason: "no face is there"}
			if at >= 0 {
				f.sample = p.Samples[at]
				f.Box = new(placed(f.sample.Box))
				doubtful := enrol.Doubtful(f.sample, v.Space)
				f.doubtful = doubtful != ""
				f.Reason = string(cmp.Or(doubtful, f.sample.Reason))
			}
			all = append(all, f)
		}
		return nil
	})
	o.reading.n = inventory.Size() // not only those with names
	if err != nil {
		return nil, err
	}
	people := chosen(all, how.want)
	if how.dry {
		return people, o.printNamed(c, all)
	}
	return people, nil
}

// chosen gathers the faces of each name, in the order of the names, and takes the clearest ones.
func chosen(all []*namedFace, want enrol.Wanted) (people []toEnrol) {
	faces := map[string][]*namedFace{}
	for _, f := range all {
		if faces[f.Name] == nil {
			people = append(people, toEnrol{name: f.Name})
		}
		faces[f.Name] = append(faces[f.Name], f)
	}
	for i, p := range people {
		own := faces[p.name]
		slices.SortStableFunc(own, func(a, b *namedFace) int {
			return cmp.Compare(b.sample.Quality.Norm, a.sample.Quality.Norm)
		})
		g := &enrol.Gathered{Frames: len(own), Refused: map[string]int{}}
		for _, f := range own {
			switch {
			case f.Reason != "" && !(f.doubtful && want.Unclear):
				g.Refused[f.Reason]++
			case len(g.Vectors) == want.Faces:
				f.Reason = "clearer ones are enough"
			default:
				f.Enrol, f.Reason = true, ""
				g.Vectors = append(g.Vectors, f.sample.Vector)
				g.Pictures = append(g.Pictures, f.sample.JPEG)
			}
		}
		people[i].found = g
	}
	return people
}

// printNamed prints the named faces.
func (o *options) printNamed(c *cobra.Command, all []*namedFace) error {
	if o.JSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(all)
	}
	w := table.New(c.OutOrStdout(), 2)
	fmt.Fprintln(w, "picture\tname\tface\t")
	for _, f := range all {
		box := "-"
		if f.Box != nil {
			box = fmt.Sprintf("%dx%d at %d,%d", f.Box[2], f.Box[3], f.Box[0], f.Box[1])
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cell(string(f.File)), cell(f.Name), box,
			cmp.Or(f.Reason, "to be enrolled"))
	}
	return w.Flush()
}

// writeRegions writes the name of the person into the files .xmp beside the photographs.
func writeRegions(c *cobra.Command, name string, hits []search.Hit) error {
	written := 0
	for _, h := range hits {
		if h.File == "" {
			continue
		}
		added, err := regions.Add(h.File, name, h.Box, h.Size, h.Turned)
		switch {
		case errors.Is(err, regions.ErrNamed):
			cli.Warn(c, err.Error())
		case err != nil:
			return fmt.Errorf("writing regions: %w", err)
		case added:
			written++
		}
	}
	cli.Note(c, fmt.Sprintf("%s written to files .xmp", cli.Count(written, "region")))
	return nil
}
