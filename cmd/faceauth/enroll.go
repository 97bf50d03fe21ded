// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/enrol"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/recordings/replay"
	"github.com/spf13/cobra"
)

// enrolment is what enroll is to do.
type enrolment struct {
	gallery.Enrolment
	want    enrol.Wanted
	regions string // the folder of photographs with named faces
	dry     bool   // show these faces
	several bool   // people: what is said names them
}

// warn warns about one of several people, by name, or about the only one.
func (how enrolment) warn(c *cobra.Command, name, text string) {
	if how.several {
		text = cell(name) + ": " + text
	}
	cli.Warn(c, text)
}

// toEnrol is a person to enrol, and where the pictures are, or the faces.
type toEnrol struct {
	name    string
	sources []string
	found   *enrol.Gathered
}

func newEnroll() *cobra.Command {
	var o options
	var name, folder string
	var how enrolment
	c := &cobra.Command{
		Use:   "enroll SOURCE... --name NAME",
		Short: "enrol a person: label the first usable faces in pictures or a recording",
		Long: "Enrols a person from the first usable faces in SOURCE: a camera (0), a video,\n" +
			"pictures, a folder of pictures or a URL. Only that person may be in view. Poor\n" +
			"pictures and heads that are turned away are skipped. One picture is enough to\n" +
			"begin; four recognise better.\n\n" +
			"--people FOLDER enrols everybody in it: every folder or picture below it is\n" +
			"named after a person. --regions FOLDER enrols everybody whose face somebody has\n" +
			"named in its photographs with another program, such as digiKam, Lightroom or\n" +
			"Picasa: the names are in the photographs, or in files .xmp beside them.\n\n" +
			"To log in to this computer by face, use faceauth login enroll.",
		Example: "  faceauth enroll 0 --name alice\n" +
			"  faceauth enroll alice.mp4 --name alice --frames 8\n" +
			"  faceauth enroll alice.jpg holiday.jpg --name alice\n" +
			"  faceauth enroll --people known/\n" +
			"  faceauth enroll --regions album/ --dry-run",
		Args: cobra.ArbitraryArgs, ValidArgsFunction: cli.Cameras,
		Aliases: []string{"enrol"}, SuggestFor: []string{"add", "register", "learn", "train",
			"new"},
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case how.dry && how.regions == "":
				return cli.Fail(cli.BadUsage, errors.New("--dry-run goes with --regions"))
			case how.regions != "" && (folder != "" || name != "" || len(args) > 0):
				return cli.Fail(cli.BadUsage, errors.New(
					"--regions names both people and pictures; give nothing else"))
			case how.regions != "":
				return o.enroll(c, nil, how)
			case folder != "" && (name != "" || len(args) > 0):
				return cli.Fail(cli.BadUsage, errors.New(
					"--people names both people and pictures; give nothing else"))
			case folder != "":
				all, aside, err := peopleIn(folder)
				if err != nil {
					return cli.Fail(cli.BadSource, err)
				}
				o.leftAside(c, footage.Inventory{Aside: aside})
				return o.enroll(c, all, how)
			case len(args) == 0:
				return cli.Fail(cli.BadUsage, fmt.Errorf("SOURCE is missing: %s; see %s --help",
					c.UseLine(), c.CommandPath()))
			}
			if err := face.CheckName(name); err != nil {
				return cli.Fail(cli.BadUsage, fmt.Errorf("%w; give one with --name", err))
			}
			return o.enroll(c, []toEnrol{{name: name, sources: args}}, how)
		},
	}
	cli.Again(c, "nobody was enrolled; run the same command again")
	o.VisionFlags(c)
	o.rotateFlag(c)
	o.LearnerFlags(c)
	o.StrangersFlag(c, "strangers", cameraStrangers)
	o.picturesFlag(c)
	o.seriesFlag(c)
	o.galleryFlags(c.Flags())
	c.Flags().StringVar(&name, "name", "", "the person's name")
	c.Flags().StringVar(&folder, "people", "",
		"enrol everybody in this folder: FOLDER/NAME/*.jpg, or FOLDER/NAME.jpg")
	c.Flags().StringVar(&how.regions, "regions", "",
		"enrol everybody whose face is named in the photographs of this folder (XMP)")
	c.Flags().BoolVar(&how.dry, "dry-run", false,
		"show the named faces of --regions and which would be enrolled, and enrol nobody")
	o.namesFlag(c)
	c.Flags().IntVar(&how.want.Faces, "frames", 4, "faces to label; fewer will do")
	c.Flags().BoolVar(&how.want.Unclear, "unclear", false,
		"also label faces that are hard to recognise, covered (as by "+
			"tinted glasses) or blurred by a movement; without it, enroll waits for clearer "+
			"pictures")
	c.Flags().BoolVar(&how.Add, "add", false, "add faces to an enrolled person")
	c.Flags().BoolVar(&how.Force, "force", false,
		"enrol even if the faces do not look like one person")
	return c
}

// peopleIn returns the people of a folder: each visible folder in it, and each picture or film, is
// a person's, but for the folders that are set aside.
func peopleIn(folder string) (all []toEnrol, aside []footage.Left, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, input.Unopened(folder, err)
	}
	at := map[string]int{}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		info, err := os.Stat(path)
		if err != nil || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		name := e.Name()
		if why := footage.Aside(path); info.IsDir() && why != "" {
			aside = append(aside, footage.Left{Path: footage.Name(path), Why: why})
			continue
		}
		if !info.IsDir() {
			if !footage.IsPicture(path) && !footage.IsFilm(path) {
				continue
			}
			name = strings.TrimSuffix(name, filepath.Ext(name))
		}
		if i, there := at[name]; there {
			all[i].sources = append(all[i].sources, path)
			continue
		}
		at[name] = len(all)
		all = append(all, toEnrol{name: name, sources: []string{path}})
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("%s holds neither folders nor pictures of people", folder)
	}
	return all, aside, nil
}

// enroll enrols people. If one of several cannot be enrolled, the others are.
func (o *options) enroll(c *cobra.Command, people []toEnrol, how enrolment) (err error) {
	if how.want.Faces < 1 {
		return cli.Fail(cli.BadUsage, fmt.Errorf("--frames %d: at least one face is needed",
			how.want.Faces))
	}
	g, err := o.openGallery(c)
	if err != nil && !errors.Is(err, errNoGallery) {
		return err
	}
	defer func() {
		if g != nil {
			err = errors.Join(err, cli.Fail(cli.BadGallery, g.Close()))
		}
	}()
	var space *face.Space
	if g != nil {
		s := g.Space()
		space = &s
	}
	if len(people) == 1 {
		if err := taken(g, people[0].name, how); err != nil {
			return err
		}
	}
	v, err := o.Look(c, space)
	if err != nil {
		return err
	}
	defer v.Close()
	for _, p := range people {
		v.Roots = append(v.Roots, p.sources...)
	}
	if how.regions != "" {
		people, err = o.named(c, v, how)
		if err != nil || how.dry {
			return o.reading.end(err, o.reading.n, "")
		}
	} else if len(people) == 1 {
		n, err := o.enrollOne(c, &g, v, people[0], how)
		return o.reading.end(err, n, "")
	}
	var not []string
	recordings, done, why := 0, 0, 0
	how.several = true
	for _, p := range people {
		err := face.CheckName(p.name)
		if err == nil {
			var n int
			n, err = o.enrollOne(c, &g, v, p, how)
			recordings += n
		}
		if err == nil {
			done++
		}
		if c.Context().Err() != nil {
			if done > 0 {
				cli.Again(c, soFar(done, len(people)))
			}
			return c.Context().Err()
		}
		if cli.Code(err) == cli.BadGallery && !errors.Is(err, gallery.ErrExists) {
			return fmt.Errorf("%w; %s", err, soFar(done, len(people))) // so would the others
		}
		if err != nil {
			code := cmp.Or(cli.Code(err), cli.NoFace)
			if len(not) > 0 && code != why { // they have no reason in common
				code = cli.NoFace
			}
			why = code
			how.warn(c, p.name, strings.TrimPrefix(err.Error(), "enrolling "+p.name+": "))
			not = append(not, cell(p.name))
		}
	}
	if done > 0 && !o.JSON {
		fmt.Fprintf(c.OutOrStdout(), "gallery: %s\n", g.Path())
	}
	if how.regions != "" {
		recordings = o.reading.n
	}
	err = nil
	switch {
	case len(not) == len(people):
		err = cli.Fail(why, errors.New("nobody was enrolled"))
	case len(not) > 0:
		return cli.Fail(cli.Partly, fmt.Errorf("%d of %d people were not enrolled: %s", len(not),
			len(people), strings.Join(not, ", ")))
	}
	return o.reading.end(err, recordings, "")
}

// soFar says how many of several people were.
func soFar(done, of int) string {
	return fmt.Sprintf("%d of %d people were enrolled; the same command enrols the others", done,
		of)
}

// taken returns an error if somebody is enrolled under a name, and is not to get more faces.
func taken(g *gallery.Gallery, name string, how enrolment) error {
	if g == nil || g.Number(name) == 0 || how.Add {
		return nil
	}
	return cli.Fail(cli.BadGallery,
		fmt.Errorf("enrolling %s: %w; give --add to add faces to them, or another name",
			name, gallery.ErrExists))
}

// enrollOne enrols a person in a gallery, which it makes if there is none, and returns the number
// of recordings.
func (o *options) enrollOne(c *cobra.Command, to **gallery.Gallery, v *cli.Vision, p toEnrol,
	how enrolment) (n int, err error) {
	if err := taken(*to, p.name, how); err != nil {
		return 0, err
	}
	if p.found != nil {
		return p.found.Frames, o.label(c, to, v.Space, p.name, *p.found, how)
	}
	sources := p.sources
	if len(sources) > 1 || input.IsRecording(sources[0]) {
		found, err := o.inventory(c, sources)
		if err != nil {
			return 0, err
		}
		sources = found.Paths()
	}
	n = len(sources)
	found, short, err := o.gather(c, v, sources, how.want)
	if err != nil {
		return n, err
	}
	if short != "" {
		how.warn(c, p.name, short)
	}
	return n, o.label(c, to, v.Space, p.name, found, how)
}

// label enrols faces in a gallery, which it makes if there is none.
func (o *options) label(c *cobra.Command, to **gallery.Gallery, space face.Space, name string,
	found enrol.Gathered, how enrolment) (err error) {
	if len(found.Vectors) == 0 {
		return cli.Fail(cli.NoFace, fmt.Errorf("no usable face%s", unused(found.Refused)))
	}
	if *to == nil { // a gallery is made when there is somebody for it
		*to, err = o.newGallery(c, space)
		if err != nil {
			return err
		}
	}
	g := *to
	how.Pictures = found.Pictures
	resembles, err := g.Enroll(name, found.Vectors, time.Now(), how.Enrolment)
	if errors.Is(err, gallery.ErrMixed) || errors.Is(err, gallery.ErrMismatch) ||
		errors.Is(err, gallery.ErrAlike) {
		err = fmt.Errorf("%w, or give --force", err)
	}
	if err != nil {
		return cli.Fail(cli.BadGallery, err)
	}
	if resembles != "" {
		how.warn(c, name, fmt.Sprintf(
			"these faces look like %s, who is enrolled already; one person under two names is "+
				"recognised as either, or neither", resembles))
	}
	cli.Warn(c, g.Learner().Warnings()...)
	daily(c, g.Path())
	where := "gallery: " + g.Path() + "\n"
	if how.several {
		where = "" // once, at the end
	}
	return o.Print(c, struct {
		Name      string         `json:"name"`
		Faces     int            `json:"faces"`
		Frames    int            `json:"frames"`
		Refused   map[string]int `json:"refused"`
		Resembles string         `json:"resembles"`
		Gallery   string         `json:"gallery"`
	}{name, len(found.Vectors), found.Frames, found.Refused, resembles, g.Path()},
		"%s: %s labelled, from %s%s\n%s",
		name, cli.Count(len(found.Vectors), "face"), cli.Count(found.Frames, "frame"),
		unused(found.Refused), where)
}

// unused lists the faces that were not labelled, by reason.
func unused(refused map[string]int) string {
	if len(refused) == 0 {
		return ""
	}
	return " (not used: " + replay.Tally(refused) + ")"
}

// gather returns the first faces of sources that may be labelled, and what is to be said if they
// are few. One face is enough.
func (o *options) gather(c *cobra.Command, v *cli.Vision, sources []string,
	want enrol.Wanted) (g enrol.Gathered, short string, err error) {
	bar := cli.NewProgress(want.Faces, "enrolling")
	defer bar.Finish()
	how := eye.Options{Gate: eye.Enrol, Picture: 112, Series: o.pictures()}
	g, err = enrol.Gather(o.frames(c, v, sources, how), v.Space, want, func() { bar.Add(1) })
	if err != nil || len(g.Vectors) == want.Faces {
		return g, "", err
	}
	short = fmt.Sprintf("only %d of %d usable faces in %s%s", len(g.Vectors), want.Faces,
		cli.Count(g.Frames, "frame"), unused(g.Refused))
	if g.Unclear > 0 {
		short += fmt.Sprintf("; give clearer pictures, or label %s anyway with --unclear",
			cli.Count(g.Unclear, "face"))
	}
	if len(g.Vectors) == 0 {
		return g, "", cli.Fail(cli.NoFace, fmt.Errorf("%s; nothing was enrolled", short))
	}
	return g, short + ": four pictures recognise better; --add adds faces", nil
}
