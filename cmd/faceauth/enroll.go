// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

func newEnroll() *cobra.Command {
	var o options
	var name string
	var want gallery.Wanted
	var fewer bool // one face is enough
	var how gallery.Enrolment
	c := &cobra.Command{
		Use:   "enroll SOURCE --name NAME",
		Short: "enrol a person: label the first usable faces in a recording",
		Long: "Enroll labels the first usable faces in SOURCE: a camera (0), a video, an image, a folder of images\n" +
			"or a URL. Only one person may be in view. Poor pictures and heads that are turned away are skipped.",
		Example: "  faceauth enroll 0 --name alice\n" +
			"  faceauth enroll alice.mp4 --name alice --frames 8\n" +
			"  faceauth enroll holiday.jpg --name alice --all-usable",
		Args: cobra.ExactArgs(1), ValidArgsFunction: cli.Cameras,
		RunE: func(c *cobra.Command, args []string) error {
			return o.enroll(c, args[0], name, want, fewer, how)
		},
	}
	cli.Again(c, "nobody was enrolled; run the same command again")
	o.VisionFlags(c)
	o.rotateFlag(c)
	o.LearnerFlags(c)
	o.picturesFlag(c)
	o.galleryFlag(c)
	c.Flags().StringVar(&name, "name", "", "the person's name (required)")
	o.namesFlag(c)
	c.Flags().IntVar(&want.Faces, "frames", 4, "faces to label")
	c.Flags().BoolVar(&fewer, "all-usable", false, "if SOURCE has fewer usable faces than --frames, label all "+
		"of them and warn; without it, label none")
	c.Flags().BoolVar(&want.Unclear, "unclear", false, "also label faces that are hard to recognise, covered (as by "+
		"tinted glasses) or blurred by a movement; without it, enroll waits for clearer pictures")
	c.Flags().BoolVar(&how.Add, "add", false, "add faces to an enrolled person")
	c.Flags().BoolVar(&how.Force, "force", false, "enrol even if the faces do not look like one person")
	return c
}

func (o *options) enroll(c *cobra.Command, source, name string, want gallery.Wanted, fewer bool,
	how gallery.Enrolment) (err error) {
	if err := online.CheckName(name); err != nil {
		return cli.Fail(cli.BadUsage, fmt.Errorf("%w; give one with --name", err))
	}
	if want.Faces < 1 {
		return cli.Fail(cli.BadUsage, fmt.Errorf("--frames %d: at least one face is needed", want.Faces))
	}
	path, err := o.galleryPath()
	if err != nil {
		return err
	}
	g, err := o.readGallery(path)
	defer func() {
		if g != nil {
			err = errors.Join(err, cli.Fail(cli.BadGallery, g.Close()))
		}
	}()
	var space *face.Space
	switch {
	case errors.Is(err, errNoGallery):
		g = nil
	case err != nil:
		return cli.Fail(cli.BadGallery, err)
	default:
		s := g.Space()
		space = &s
		if slices.Contains(g.Learner().Names(), name) && !how.Add {
			return cli.Fail(cli.BadGallery,
				fmt.Errorf("enrolling %s: %w; give --add to add faces to them, or another name",
					name, gallery.ErrExists))
		}
	}
	v, err := o.Look(c, space)
	if err != nil {
		return err
	}
	defer v.Close()
	if g == nil {
		if g, err = o.newGallery(c, v.Space); err != nil {
			return err
		}
		g.At(path)
	} else if err := o.configure(c, g); err != nil {
		return err
	}
	found, err := o.gather(c, v, source, want, fewer)
	if err != nil {
		return err
	}
	if found.Turned != nil {
		return cli.Fail(cli.NoFace, fmt.Errorf("%w; nothing was enrolled", found.Turned))
	}
	how.Upright = found.Upright
	var resembles string
	err = g.Change(func() (err error) { // another program may have enrolled people meanwhile
		resembles, err = g.Enroll(name, found.Vectors, time.Now(), how)
		return err
	})
	if errors.Is(err, gallery.ErrMixed) || errors.Is(err, gallery.ErrMismatch) || errors.Is(err, gallery.ErrAlike) {
		err = fmt.Errorf("%w, or give --force", err)
	}
	if err != nil {
		return cli.Fail(cli.BadGallery, err)
	}
	if resembles != "" {
		cli.Warn(c, fmt.Sprintf("these faces look like %s, who is enrolled already; one person under two names is "+
			"recognised as either, or neither", resembles))
	}
	cli.Warn(c, g.Learner().Warnings()...)
	daily(c, path)
	return o.Print(c, struct {
		Name      string         `json:"name"`
		Faces     int            `json:"faces"`
		Frames    int            `json:"frames"`
		Refused   map[string]int `json:"refused"`
		Resembles string         `json:"resembles"`
		Gallery   string         `json:"gallery"`
	}{name, len(found.Vectors), found.Frames, found.Refused, resembles, path},
		"%s: %s labelled, from %s%s\ngallery: %s\n",
		name, cli.Count(len(found.Vectors), "face"), cli.Count(found.Frames, "frame"),
		passedOver(found.Refused), path)
}

// passedOver lists the faces that were not labelled, by reason.
func passedOver(refused map[string]int) string {
	if len(refused) == 0 {
		return ""
	}
	var parts []string
	for _, r := range slices.Sorted(maps.Keys(refused)) {
		parts = append(parts, fmt.Sprintf("%s: %d", r, refused[r]))
	}
	return " (passed over: " + strings.Join(parts, ", ") + ")"
}

// gather returns the first faces of a source that may be labelled. With fewer, one face is enough.
func (o *options) gather(c *cobra.Command, v *vision, source string, want gallery.Wanted, fewer bool) (
	gallery.Gathered, error) {
	src, err := o.stream(c, v, source, eye.Options{Gate: eye.Enrol})
	if err != nil {
		return gallery.Gathered{}, err
	}
	bar := cli.NewProgress(want.Faces, "enrolling")
	defer bar.End()
	g, err := gallery.Gather(c.Context(), src, v.Space, want, bar.Step)
	if errors.Is(err, face.ErrTurned) {
		err = cli.Fail(cli.NoFace, fmt.Errorf("%w; nothing was enrolled", err))
	}
	if err != nil || len(g.Vectors) == want.Faces {
		return g, err
	}
	short := fmt.Sprintf("only %d of %d usable faces in %s%s", len(g.Vectors), want.Faces, cli.Count(g.Frames,
		"frame"),
		passedOver(g.Refused))
	if g.Unclear > 0 {
		short += fmt.Sprintf("; give clearer pictures, or --unclear labels %s, too", cli.Count(g.Unclear, "face"))
	}
	switch {
	case len(g.Vectors) == 0:
		return g, cli.Fail(cli.NoFace, fmt.Errorf("%s; nothing was enrolled", short))
	case !fewer:
		return g, cli.Fail(cli.NoFace, fmt.Errorf("%s; nothing was enrolled; --all-usable makes do with fewer",
			short))
	}
	cli.Warn(c, short+": the fewer faces are labelled, the more often a person is not recognised")
	return g, nil
}
