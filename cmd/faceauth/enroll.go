// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	var want wanted
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
			return o.enroll(c, args[0], name, want, how)
		},
	}
	cli.Again(c, "nobody was enrolled; run the same command again")
	o.VisionFlags(c)
	o.rotateFlag(c)
	o.LearnerFlags(c)
	o.picturesFlag(c)
	o.galleryFlag(c)
	o.member.flags(c, false)
	c.Flags().StringVar(&name, "name", "", "the person's name (required)")
	o.namesFlag(c)
	c.Flags().IntVar(&want.faces, "frames", 4, "faces to label")
	c.Flags().BoolVar(&want.fewer, "all-usable", false, "if SOURCE has fewer usable faces than --frames, label all "+
		"of them and warn; without it, label none")
	c.Flags().BoolVar(&want.unclear, "unclear", false, "also label faces that are hard to recognise, covered (as by "+
		"tinted glasses) or blurred by a movement; without it, enroll waits for clearer pictures")
	c.Flags().BoolVar(&how.Add, "add", false, "add faces to an enrolled person")
	c.Flags().BoolVar(&how.Force, "force", false, "enrol even if the faces do not look like one person")
	return c
}

// wanted says how many faces to label.
type wanted struct {
	faces int
	fewer bool // one face is enough
	// unclear takes doubtful faces, too.
	unclear bool
}

func (o *options) enroll(c *cobra.Command, source, name string, want wanted, how gallery.Enrolment) (err error) {
	if err := online.CheckName(name); err != nil {
		return fail(badUsage, fmt.Errorf("%w; give one with --name", err))
	}
	if want.faces < 1 {
		return fail(badUsage, fmt.Errorf("--frames %d: at least one face is needed", want.faces))
	}
	path, err := o.galleryPath()
	if err != nil {
		return err
	}
	part, err := o.member.join(c)
	if err != nil {
		return err
	}
	if part != nil {
		defer func() { err = errors.Join(err, part.close()) }()
		part.arrive(c)
	}
	g, err := o.readGallery(path)
	defer func() {
		if g != nil {
			err = errors.Join(err, fail(badGallery, g.Close()))
		}
	}()
	if err == nil && part != nil {
		err = part.Align(g.At(path))
	}
	var space *face.Space
	switch {
	case errors.Is(err, errNoGallery):
		g = nil
	case err != nil:
		return fail(badGallery, err)
	default:
		s := g.Space()
		space = &s
		if slices.Contains(g.Learner().Names(), name) && !how.Add {
			return fail(badGallery, fmt.Errorf("enrolling %s: %w; give --add to add faces to them, or another name",
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
	found, err := o.usable(c, v, source, want)
	if err != nil {
		return err
	}
	if err := found.turns.Check(found.turned); err != nil {
		return fail(noFace, fmt.Errorf("%w; nothing was enrolled", err))
	}
	how.Upright = found.checked == len(found.vectors)
	var resembles string
	err = g.Change(func() (err error) { // another program may have enrolled people meanwhile
		resembles, err = g.Enroll(name, found.vectors, time.Now(), how)
		return err
	})
	if errors.Is(err, gallery.ErrMixed) || errors.Is(err, gallery.ErrMismatch) || errors.Is(err, gallery.ErrAlike) {
		err = fmt.Errorf("%w, or give --force", err)
	}
	if err != nil {
		return fail(badGallery, err)
	}
	if part != nil {
		if err := part.Keep(g, path); err != nil {
			return fail(badGallery, err)
		}
		part.leave(c)
	}
	if resembles != "" {
		warn(c, fmt.Sprintf("these faces look like %s, who is enrolled already; one person under two names is "+
			"recognised as either, or neither", resembles))
	}
	warn(c, g.Learner().Warnings()...)
	if o.JSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(struct {
			Name      string         `json:"name"`
			Faces     int            `json:"faces"`
			Frames    int            `json:"frames"`
			Refused   map[string]int `json:"refused"`
			Resembles string         `json:"resembles"`
			Gallery   string         `json:"gallery"`
		}{name, len(found.vectors), found.frames, found.refused, resembles, path})
	}
	fmt.Fprintf(c.OutOrStdout(), "%s: %s labelled, from %s%s\ngallery: %s\n",
		name, count(len(found.vectors), "face"), count(found.frames, "frame"), found.why(), path)
	return nil
}

// harvest is the result of a search for usable faces.
type harvest struct {
	vectors [][]float32
	frames  int
	refused map[string]int
	unclear int        // of refused: doubtful faces, which --unclear takes
	doubt   face.Turns // sums over the refused faces that are hard to recognise
	doubts  int        // their number
	turns   face.Turns // sums over the faces
	checked int        // faces whose turns were measured
	turned  int        // turn of the frames
}

func (h harvest) why() string {
	if len(h.refused) == 0 {
		return ""
	}
	var parts []string
	for _, r := range slices.Sorted(maps.Keys(h.refused)) {
		parts = append(parts, fmt.Sprintf("%s: %d", r, h.refused[r]))
	}
	return " (passed over: " + strings.Join(parts, ", ") + ")"
}

// turnedLead is the ratio by which the norms of unclear faces must be greater at another turn before an enrolment is
// refused for it: that of --rotate auto (docs/results.md).
const turnedLead = 1.15

// doubtful returns the reason why a face is labelled only with --unclear, or "".
func doubtful(x face.Sample, space face.Space) face.Reason {
	switch {
	case (x.Reason == face.Covered || x.Reason == face.Moved) && x.Vector != nil && x.Quality.Norm >= space.LearnNorm:
		return x.Reason
	case x.Reason == "" && x.Quality.Norm < space.ClearNorm:
		return face.Unclear
	}
	return ""
}

// refuse adds the norms of a single face that is hard to recognise: the camera may be turned. It reports whether it is
// such a face.
func (h *harvest) refuse(f face.Frame, w wanted, space face.Space) bool {
	if len(f.Samples) != 1 || f.Samples[0].Turns == nil ||
		f.Samples[0].Reason == "" && (w.unclear || doubtful(f.Samples[0], space) == "") {
		return false
	}
	h.doubt.Add(*f.Samples[0].Turns)
	h.doubts++
	return true
}

// usable returns the first faces of a source that may be labelled.
func (o *options) usable(c *cobra.Command, v *vision, source string, want wanted) (harvest, error) {
	n := want.faces
	h := harvest{refused: map[string]int{}}
	src, err := o.stream(c, v, source, eye.Options{Gate: eye.Enrol})
	if err != nil {
		return h, err
	}
	bar := cli.NewProgress(n, "enrolling")
	defer bar.End()
	for len(h.vectors) < n {
		f, err := src.Next(c.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return h, cli.StreamError(c, err)
		}
		h.frames++
		if h.refuse(f, want, v.Space) && h.doubts >= n && h.doubt.Best(turnedLead) != 0 {
			return h, fail(noFace, fmt.Errorf("%w; nothing was enrolled", h.doubt.Check(f.Turned)))
		}
		doubt := face.Reason("")
		if len(f.Samples) == 1 {
			doubt = doubtful(f.Samples[0], v.Space)
		}
		switch {
		case len(f.Samples) == 0:
			h.refused["no face"]++
		case len(f.Samples) > 1:
			h.refused["several faces"]++
		case doubt != "" && !want.unclear:
			h.refused[string(doubt)]++
			h.unclear++
		case doubt == "" && f.Samples[0].Reason != "":
			h.refused[string(f.Samples[0].Reason)]++
		default:
			h.vectors = append(h.vectors, f.Samples[0].Vector)
			if t := f.Samples[0].Turns; t != nil {
				h.turns.Add(*t)
				h.checked, h.turned = h.checked+1, f.Turned
			}
			bar.Step()
		}
	}
	short := fmt.Sprintf("only %d of %d usable faces in %s%s", len(h.vectors), n, count(h.frames, "frame"), h.why())
	if h.unclear > 0 && len(h.vectors) < n {
		short += fmt.Sprintf("; give clearer pictures, or --unclear labels %s, too", count(h.unclear, "face"))
	}
	switch {
	case len(h.vectors) == n:
	case len(h.vectors) == 0:
		return h, fail(noFace, fmt.Errorf("%s; nothing was enrolled", short))
	case !want.fewer:
		return h, fail(noFace, fmt.Errorf("%s; nothing was enrolled; --all-usable makes do with fewer", short))
	default:
		warn(c, short+": the fewer faces are labelled, the more often a person is not recognised")
	}
	return h, nil
}
