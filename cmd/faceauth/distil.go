// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/faceauth/faceauth/distil"
	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

func newDistil() *cobra.Command {
	var o options
	var name, out string
	var s distil.Settings
	c := &cobra.Command{
		Use:   "distil --name NAME",
		Short: "turn the learned faces of a person into one small verifier",
		Long: "Distil learns a classifier with a large margin from the labelled and the learned faces of a\n" +
			"person, and writes it to a file, the verifier. faceauth verify uses it to say whether somebody is\n" +
			"this person. A verifier needs no gallery and does not learn. The file contains faces; only its\n" +
			"owner can read it.",
		Example: "  faceauth distil --name alice --out alice.face\n  faceauth verify alice.face 0",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return o.distil(c, name, out, s) },
	}
	o.galleryFlag(c)
	c.Flags().BoolVar(&o.json, "json", false, "print JSON for programs")
	c.Flags().StringVar(&name, "name", "", "the person's name (required)")
	c.Flags().StringVar(&out, "out", "", "file of the verifier (default: NAME.face)")
	c.Flags().Float64Var(&s.Threshold, "threshold", 0,
		"least value of an accepted face (default 0.5); higher is stricter")
	return c
}

func (o *options) distil(c *cobra.Command, name, out string, s distil.Settings) error {
	if err := online.CheckName(name); err != nil {
		return fail(badUsage, fmt.Errorf("%w; give one with --name", err))
	}
	if c.Flags().Changed("threshold") && !(s.Threshold > 0 && !math.IsInf(s.Threshold, 1)) {
		return fail(badUsage, fmt.Errorf("--threshold %g: it must be positive, as a stranger's face has about 0",
			s.Threshold))
	}
	if out == "" {
		if out = name + ".face"; filepath.Base(out) != out || strings.HasPrefix(out, ".") ||
			strings.HasPrefix(out, "-") {
			return fail(badUsage, fmt.Errorf("no file can be named after %s; give one with --out", name))
		}
	}
	g, _, err := o.ownGallery(c, false, false)
	if err != nil {
		return err
	}
	defer g.Close()
	v, err := distil.New(g.Learner(), name, s)
	switch {
	case errors.Is(err, online.ErrUnknown):
		return fail(refused, fmt.Errorf("%w; see faceauth people", err))
	case err != nil:
		return fail(badGallery, err)
	}
	// Only an older verifier is replaced: a gallery under this name was certainly not meant.
	if _, err := distil.Load(out); err != nil && !errors.Is(err, fs.ErrNotExist) {
		if _, there := os.Lstat(out); there == nil {
			return fail(badUsage, fmt.Errorf("%s exists and is not a verifier file; name another file with --out", out))
		}
	}
	size, err := v.Save(out)
	if err != nil {
		return fmt.Errorf("writing the verifier: %w", err)
	}
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(struct {
			Name    string `json:"name"`
			File    string `json:"file"`
			Stored  int    `json:"stored"`
			Support int    `json:"support_vectors"`
			Bytes   int    `json:"bytes"`
		}{name, out, g.Learner().Graph().Len(), v.Support(), size})
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s, of %s in the gallery; %.0f KB\n", out,
		count(v.Support(), "support vector"), count(g.Learner().Graph().Len(), "face"), math.Ceil(float64(size)/1000))
	return err
}

func newVerify() *cobra.Command {
	var o options
	frames, within := 10, 30*time.Second
	c := &cobra.Command{
		Use:   "verify VERIFIER SOURCE",
		Short: "say whether a person is the person of a verifier",
		Long: "Verify judges the first faces in SOURCE with a file from faceauth distil. It uses the largest face\n" +
			"of each frame, and accepts if more than half of the faces are this person. Otherwise the exit code\n" +
			"is 7. After the time of --within it decides with the faces found until then.",
		Example: "  faceauth verify alice.face 0",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if frames < 1 {
				return fail(badUsage, fmt.Errorf("--faces %d: at least one face is needed", frames))
			}
			if within <= 0 {
				return fail(badUsage, fmt.Errorf("--within must be positive, got %v", within))
			}
			return o.verify(c, args[0], args[1], frames, within)
		},
	}
	o.visionFlags(c)
	o.rotateFlag(c)
	c.Flags().IntVar(&frames, "judge", frames, "faces to judge")
	c.Flags().DurationVar(&within, "within", within, "how long to look for faces")
	return c
}

func (o *options) verify(c *cobra.Command, file, source string, faces int, within time.Duration) error {
	verifier, err := distil.Load(file)
	if err != nil {
		return fail(badGallery, err)
	}
	space := verifier.Space()
	v, err := o.look(c, &space, func(s string) { warn(c, s) })
	if err != nil {
		return err
	}
	defer v.Close()
	p, err := o.stream(c, v, source, eye.Options{Gate: eye.Learn})
	if err != nil {
		return err
	}
	look, stop := context.WithTimeout(c.Context(), within)
	defer stop()
	d, err := verifier.Judge(look, p, faces)
	if err != nil {
		return o.streamError(c, err)
	}
	if d.Faces == 0 {
		return fail(noFace, fmt.Errorf("no usable face in %s, within %v", source, within))
	}
	if o.json {
		if err := json.NewEncoder(c.OutOrStdout()).Encode(struct {
			Name     string  `json:"name"`
			Accepted bool    `json:"accepted"`
			Faces    int     `json:"faces"`
			Own      int     `json:"faces_accepted"`
			Best     float64 `json:"best"`
		}{verifier.Name(), d.Yes(), d.Faces, d.Accepted, d.Best}); err != nil {
			return err
		}
	} else if d.Yes() {
		fmt.Fprintf(c.OutOrStdout(), "%s: accepted, by %d of %s\n", verifier.Name(), d.Accepted, count(d.Faces, "face"))
	}
	if !d.Yes() {
		return fail(refused, fmt.Errorf("that is not %s: %d of %s accepted", verifier.Name(), d.Accepted,
			count(d.Faces, "face")))
	}
	return nil
}
