// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"iter"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/table"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

func newWho() *cobra.Command {
	var o options
	var jobs uint
	c := &cobra.Command{
		Use:   "who PICTURE...",
		Short: "say who is in photographs",
		Long: "Says who is in photographs, or in folders of them: for each face its place,\n" +
			"its name, or why it has none, and how rarely a stranger comes as near to an\n" +
			"enrolled face. With -v it also prints the distance.\n" +
			"Nothing is written or learned. If nobody is recognised, the exit code is 7; if\n" +
			"a file could not be read, it is 9.",
		Example:    "  faceauth who party.jpg\n  faceauth who album --json",
		Args:       cobra.MinimumNArgs(1),
		Aliases:    []string{"recognise", "recognize", "identify"},
		SuggestFor: []string{"predict", "verify", "compare", "detect"},
		RunE:       func(c *cobra.Command, args []string) error { return o.who(c, args, jobs) },
	}
	o.VisionFlags(c)
	o.rotateFlag(c)
	o.LearnerFlags(c)
	o.StrangersFlag(c, "strangers", cameraStrangers)
	o.galleryFlags(c.Flags())
	cli.JobsFlag(c, &jobs)
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
	Rarity  string     `json:"rarity,omitempty"` // how seldom a stranger is as near as Near[0]
	Near    []likeness `json:"near"`             // the nearest people, at most three
	Reason  string     `json:"reason,omitempty"` // why it is unknown
	Picture string     `json:"picture,omitempty"`
}

// photograph is a picture that was judged.
type photograph struct {
	File  footage.Name `json:"file"`
	Faces []judged     `json:"faces"`
	// of a motion photograph, at which nobody has looked
	Film bool `json:"film,omitempty"`
}

func (o *options) who(c *cobra.Command, args []string, jobs uint) error {
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
	var all []photograph
	err = o.eachPhotograph(c, v, inventory, jobs, eye.Options{Gate: eye.Learn},
		func(p photo) error {
			one, err := judgedPhotograph(g, p)
			all = append(all, one)
			return cli.Fail(cli.BadGallery, err)
		})
	if err != nil {
		return err
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
	return o.reading.end(err, inventory.Size(), "")
}

// eachPhotograph calls do with each photograph of an inventory, as [options.each] does, and tells
// what of it is not looked at.
func (o *options) eachPhotograph(c *cobra.Command, v *cli.Vision, inventory footage.Inventory,
	jobs uint, opt eye.Options, do func(photo) error) error {
	films := 0
	err := o.each(c, v, o.parts(inventory, jobs), jobs, opt, func(p photo) error {
		if p.Film {
			films++
		}
		if p.Partial {
			o.ended(c, p.path, face.Count{Read: 1, Partial: 1})
		}
		return do(p)
	})
	moving(c, films)
	return err
}

// each calls do with each photograph of pieces of work, in order, as soon as it was looked at, so
// many pieces at once.
func (o *options) each(c *cobra.Command, v *cli.Vision, parts []footage.Item, jobs uint,
	opt eye.Options, do func(photo) error) error {
	type seen struct {
		all []photo
		err error
	}
	bar := cli.NewProgress(footage.Inventory{Items: parts}.Size(), "looking")
	defer bar.Finish()
	look := func(ctx context.Context, i int) (s seen) {
		own := v // the first piece has the eye that is there
		if i > 0 {
			own = v.Another()
		}
		if len(parts) > 1 {
			defer own.Close()
		}
		for p, err := range o.stills(ctx, c, own, parts[i], opt) {
			if err != nil {
				s.err = err
				break
			}
			bar.Add(1)
			s.all = append(s.all, p)
		}
		return s
	}
	return cli.InOrder(c.Context(), len(parts), cli.Jobs(jobs, len(parts)), look,
		func(i int, s seen) error {
			for _, p := range s.all {
				err := do(p)
				if err != nil {
					return err
				}
			}
			if s.err == nil || cli.Code(s.err) != cli.BadSource {
				return s.err
			}
			o.failed(c, parts[i].Path, s.err)
			return nil
		})
}

// stills yields the photographs of an item. A file of which its name does not say that it is a
// picture may be one.
func (o *options) stills(ctx context.Context, c *cobra.Command, v *cli.Vision,
	item footage.Item, opt eye.Options) iter.Seq2[photo, error] {
	if item.Files != nil {
		return o.photographs(ctx, c, v, item.Files, opt)
	}
	return func(yield func(photo, error) bool) {
		src, err := o.stream(ctx, c, v, item.Path, opt)
		if err != nil {
			yield(photo{}, err)
			return
		}
		for f, err := range face.Frames(ctx, src) {
			if err == nil && !f.Still {
				err = cli.Fail(cli.BadSource, errors.New(
					"it is a film; faceauth replay says who is in it"))
			}
			if !yield(photo{f, item.Path}, err) || err != nil {
				return
			}
		}
	}
}

// judgedPhotograph says who is in a photograph.
func judgedPhotograph(g *gallery.Gallery, p photo) (photograph, error) {
	one := photograph{File: footage.Name(p.path), Faces: []judged{}, Film: p.Film}
	verdicts, err := online.JudgePhotograph(g.Learner(), p.Vectors())
	if err != nil {
		return one, err
	}
	for i, s := range p.Samples {
		f, err := judgedFace(g, s, verdicts[i])
		if err != nil {
			return one, err
		}
		one.Faces = append(one.Faces, f)
	}
	return one, nil
}

// judgedFace says what was found of a face, and whom it is near.
func judgedFace(g *gallery.Gallery, s face.Sample, v online.Verdict) (judged, error) {
	j := judged{Box: placed(s.Box), Near: []likeness{},
		Picture: string(s.Reason)}
	if s.Vector == nil {
		j.Reason = string(s.Reason)
		return j, nil
	}
	l := g.Learner()
	j.Name, j.Reason = g.Name(v.Person), string(v.Reason)
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
	if len(j.Near) > 0 {
		j.Rarity = l.Space().Stills.Rarity(j.Near[0].Distance)
	}
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
	fmt.Fprintln(w, "picture\tface\tname\t")
	for _, p := range all {
		if len(p.Faces) == 0 {
			fmt.Fprintf(w, "%s\t-\tno face\t\n", cell(string(p.File)))
		}
		for _, f := range p.Faces {
			fmt.Fprintf(w, "%s\t%dx%d at %d,%d\t%s\t%s\n", cell(string(p.File)), f.Box[2],
				f.Box[3], f.Box[0], f.Box[1], cmp.Or(f.Name, "unknown"), f.why(cli.Verbose(c)))
		}
	}
	return w.Flush()
}

// why says how near a face is to whom, and why it is unknown.
func (j judged) why(verbose bool) string {
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, text)
		}
	}
	if j.Name == "" {
		add(j.Reason)
	}
	if len(j.Near) > 0 {
		if j.Name == "" {
			add("the nearest is " + cell(j.Near[0].Name))
		}
		add(j.Rarity)
		if verbose || j.Rarity == "" {
			add(fmt.Sprintf("distance %.2f", j.Near[0].Distance))
		}
	}
	if j.Name == "" && j.Picture != "" && j.Picture != j.Reason {
		add(fmt.Sprintf("the picture is poor (%s)", j.Picture))
	}
	return strings.Join(parts, "; ")
}

// placed returns a box as left, top, width and height, as JSON has it.
func placed(b image.Rectangle) [4]int { return [4]int{b.Min.X, b.Min.Y, b.Dx(), b.Dy()} }
