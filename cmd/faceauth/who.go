// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/table"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

func newWho() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "who PICTURE...",
		Short: "say who is in photographs",
		Long: "Says who is in photographs, or in folders of them: for each face its place, its name, its distance\n" +
			"to the nearest enrolled face, and why it has no name. Nothing is written or learned. If nobody is\n" +
			"recognised, the exit code is 7; if a file could not be read, it is 9.",
		Example:    "  faceauth who party.jpg\n  faceauth who album --json",
		Args:       cobra.MinimumNArgs(1),
		Aliases:    []string{"recognise", "recognize", "identify"},
		SuggestFor: []string{"predict", "verify", "compare", "detect"},
		RunE:       func(c *cobra.Command, args []string) error { return o.who(c, args) },
	}
	o.VisionFlags(c)
	o.rotateFlag(c)
	o.LearnerFlags(c)
	o.StrangersFlag(c, "strangers", cameraStrangers)
	o.galleryFlags(c.Flags())
	return c
}

// likeness is a person whom a face may be.
type likeness struct {
	Name     string  `json:"name"`
	Distance float64 `json:"distance"` // to the nearest enrolled face
}

// judged is a face in a photograph.
type judged struct {
	Box     [4]int     `json:"box"`              // left, top, width and height in pixels
	Name    string     `json:"name"`             // "" for unknown
	Rarity  string     `json:"rarity,omitempty"` // how seldom a stranger comes as near, in words
	Near    []likeness `json:"near"`             // the nearest people, at most three
	Reason  string     `json:"reason,omitempty"` // why it is unknown
	Picture string     `json:"picture,omitempty"`
}

// photograph is a picture that was judged.
type photograph struct {
	File  footage.Name `json:"file"`
	Faces []judged     `json:"faces"`
}

func (o *options) who(c *cobra.Command, args []string) error {
	inventory, err := o.inventory(c, args)
	if err != nil {
		return err
	}
	g, v, err := o.recogniser(c)
	if err != nil {
		return err
	}
	defer v.Close()
	defer g.Close()
	v.Roots = inventory.Paths()
	var all []photograph
	for _, item := range inventory.Items {
		pictures, err := o.photographs(c, v, g, item)
		all = append(all, pictures...)
		switch code := cli.Code(err); {
		case err == nil:
		case code != cli.BadSource:
			return err
		default:
			o.failed(c, item.Path, err)
		}
	}
	if err := o.printWho(c, all); err != nil {
		return err
	}
	faces, named := 0, 0
	for _, p := range all {
		for _, f := range p.Faces {
			if faces++; f.Name != "" {
				named++
			}
		}
	}
	switch of := cli.Count(len(all), "picture"); {
	case faces == 0:
		err = cli.Fail(cli.NoFace, fmt.Errorf("no face was found in %s", of))
	case named == 0:
		err = cli.Fail(cli.Refused, fmt.Errorf("nobody was recognised in %s", of))
	}
	return o.reading.end(err, len(inventory.Items), "")
}

// photographs judges the pictures of an item.
func (o *options) photographs(c *cobra.Command, v *cli.Vision, g *gallery.Gallery, item footage.Item) (all []photograph,
	err error) {
	src, err := o.stream(c.Context(), c, v, item.Path, eye.Options{Gate: eye.Learn})
	if err != nil {
		return nil, err
	}
	bar := cli.NewProgress(len(item.Files), "looking")
	defer bar.Finish()
	for f, err := range face.Frames(c.Context(), src) {
		if err != nil {
			return all, err
		}
		if !f.Still && item.Files == nil {
			return all, cli.Fail(cli.BadSource, errors.New("it is a film; faceauth replay says who is in it"))
		}
		bar.Add(1)
		p := photograph{File: footage.Name(item.Path), Faces: []judged{}}
		if item.Files != nil && item.Path != item.Files[0] {
			p.File = footage.Name(filepath.Join(item.Path, f.File))
		}
		verdicts, err := online.JudgePhotograph(g.Learner(), f.Vectors())
		if err != nil {
			return all, cli.Fail(cli.BadGallery, err)
		}
		for i, s := range f.Samples {
			one, err := judgedFace(g, s, verdicts[i])
			if err != nil {
				return all, cli.Fail(cli.BadGallery, err)
			}
			p.Faces = append(p.Faces, one)
		}
		all = append(all, p)
	}
	return all, nil
}

// judgedFace says what was found of a face, and whom it is near.
func judgedFace(g *gallery.Gallery, s face.Sample, v online.Verdict) (judged, error) {
	j := judged{Box: [4]int{s.Box.Min.X, s.Box.Min.Y, s.Box.Dx(), s.Box.Dy()}, Near: []likeness{},
		Picture: string(s.Reason)}
	if s.Vector == nil {
		j.Reason = string(s.Reason)
		return j, nil
	}
	l := g.Learner()
	j.Name, j.Reason = g.Name(v.Person), string(v.Reason)
	if v.Person != 0 {
		j.Rarity = l.Space().Stills.Rarity(v.Distance)
	}
	for _, p := range l.People() {
		d, err := l.Nearest(s.Vector, p)
		if err != nil {
			return j, err
		}
		j.Near = append(j.Near, likeness{g.Name(p), d})
	}
	slices.SortStableFunc(j.Near, func(a, b likeness) int {
		switch j.Name {
		case a.Name:
			return -1
		case b.Name:
			return 1
		}
		return cmp.Compare(a.Distance, b.Distance)
	})
	j.Near = j.Near[:min(3, len(j.Near))]
	return j, nil
}

// printWho prints the faces.
func (o *options) printWho(c *cobra.Command, all []photograph) error {
	if o.JSON {
		for _, p := range all {
			if err := json.NewEncoder(c.OutOrStdout()).Encode(p); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 0 {
		return nil
	}
	w := table.New(c.OutOrStdout(), 2)
	fmt.Fprintln(w, "picture\tface\tname\tdistance\t")
	for _, p := range all {
		if len(p.Faces) == 0 {
			fmt.Fprintf(w, "%s\t-\tno face\t-\t\n", cell(string(p.File)))
		}
		for _, f := range p.Faces {
			fmt.Fprintf(w, "%s\t%dx%d at %d,%d\t%s\t%s\t%s\n", cell(string(p.File)), f.Box[2], f.Box[3], f.Box[0], f.Box[1],
				cmp.Or(f.Name, "unknown"), f.distance(), f.why())
		}
	}
	return w.Flush()
}

func (j judged) distance() string {
	if len(j.Near) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", j.Near[0].Distance)
}

// why says why a face is unknown, and to whom it is near.
func (j judged) why() string {
	if j.Name != "" {
		return ""
	}
	text := j.Reason
	if len(j.Near) > 0 {
		text += fmt.Sprintf("; the nearest is %s", cell(j.Near[0].Name))
	}
	if j.Picture != "" && j.Picture != j.Reason {
		text += fmt.Sprintf("; the picture is poor (%s)", j.Picture)
	}
	return text
}
