// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/enrol"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/install"
	"github.com/faceauth/faceauth/internal/recordings/replay"
	"github.com/faceauth/faceauth/models"
	"github.com/spf13/cobra"
)

func newDemo() *cobra.Command {
	o := options{reading: &reading{}}
	var out string
	var noVideo bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "try the program on real faces without a camera",
		Long: "Makes short films of three people from photographs, enrols two of them from\n" +
			"their first faces, replays a film of all three, and prints who was recognised.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.reading = &reading{}
			usual := models.Default(models.Detector).Name
			if models.Best(o.Models).Name != usual { // the same result on all machines
				o.DetectorModel = cmp.Or(o.DetectorModel, usual)
			}
			v, err := o.Look(c, nil)
			if err != nil {
				return err
			}
			defer v.Close()
			v.Roots = []string{out}
			if err := os.MkdirAll(out, 0o700); err != nil {
				return fmt.Errorf("making the demo: %w", err)
			}
			var script demo.Script
			if err := cli.AskEye(c.Context(), &script, "demo", out); err != nil {
				return cli.Fail(cli.BadSource, err)
			}
			w := c.OutOrStdout()
			if !o.JSON {
				fmt.Fprintf(w, "made %s of the stills in %s\n", script.Recording, script.Stills)
			}
			o.gallery = filepath.Join(out, "faceauth.db")
			if err := os.Remove(o.gallery); err != nil && !os.IsNotExist(err) {
				return cli.Fail(cli.BadGallery, err)
			}
			g, err := o.newGallery(c, v.Space)
			if err != nil {
				return err
			}
			defer g.Close()
			for _, e := range script.Enrolment {
				h, short, err := o.gather(c, v, []string{e.Path}, enrol.Wanted{Faces: 4})
				if err != nil {
					return err
				}
				if short != "" {
					cli.Warn(c, short)
				}
				if _, err := g.Enroll(e.Name, h.Vectors, time.Now(),
					gallery.Enrolment{}); err != nil {
					return cli.Fail(cli.BadGallery, err)
				}
				if !o.JSON {
					fmt.Fprintf(w, "enrolled %s from the first %s of %s\n", e.Name,
						cli.Count(len(h.Vectors), "usable face"), e.Path)
				}
			}
			var score demo.Score
			o.EveryFrame = true // the score counts the faces of every frame
			r, err := o.play(c.Context(), c, v, g, footage.Item{Path: script.Recording}, player{
				out: out, video: !noVideo, progress: "replaying",
				each: func(f replay.Frame) { script.Score(&score, f.Index, f.Events) },
			})
			if err != nil {
				return err
			}
			if err := o.printResult(c, r); err != nil {
				return err
			}
			if !o.JSON {
				fmt.Fprintf(w, "against the script: of %d faces of alice and bob %d were named "+
					"rightly and %d wrongly; of "+
					"%d faces of the stranger %d were accepted\n",
					score.Known, score.Right, score.Wrong, score.Strangers, score.Accepted)
			}
			_, err = install.Library(o.Models)
			if errors.Is(err, install.ErrNoRuntime) {
				cli.Note(c, "ONNX Runtime makes it 2.7 times faster: "+os.Args[0]+
					" models install (113 MB)")
			}
			return nil
		},
	}
	o.VisionFlags(c)
	o.LearnerFlags(c)
	c.Flags().StringVar(&out, "out", "faceauth-demo", "folder of the recordings and the report")
	c.Flags().BoolVar(&noVideo, "no-video", false, "write no annotated recording")
	return c
}
