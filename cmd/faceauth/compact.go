// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

func newCompact() *cobra.Command {
	var o options
	enroll, force := 4, false
	var pull positive[float64]
	pull.n = online.DefaultPull
	c := &cobra.Command{
		Use:   "compact DIR",
		Short: "build a gallery from long recordings, all faces at once",
		Long: "Compact enrols each person from the first usable faces, and replaces all other faces by at most\n" +
			"--k centroids. It uses all faces at once, and not one after the other, as learning does. These\n" +
			"centroids have no names. The gallery must not exist yet.\n\n" + labelledRecordings,
		Example: "  faceauth compact recordings --k 300\n  faceauth compact recordings --k 100 --gallery small",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if enroll < 1 {
				return fail(badUsage, fmt.Errorf("--enroll %d: at least one face is needed", enroll))
			}
			return o.compact(c, args[0], enroll, online.Compaction{Pull: pull.n}, force)
		},
	}
	o.visionFlags(c)
	o.learnerFlags(c)
	o.galleryFlag(c)
	c.Flags().IntVar(&enroll, "enroll", enroll, enrollHelp)
	c.Flags().Var(&pull, "pull", "how strongly faces hold the centroids, against labels that push them apart")
	c.Flags().BoolVar(&force, "force", false, "enrol even if the faces do not look like one person")
	return c
}

func (o *options) compact(c *cobra.Command, dir string, enroll int, how online.Compaction, force bool) error {
	path, err := o.galleryPath()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fail(badGallery, fmt.Errorf("there is a gallery at %s already; name another one with --gallery, or "+
			"remove it",
			path))
	}
	v, _, settings, err := o.prepare(c, false)
	if err != nil {
		return err
	}
	defer v.Close()
	ids, _, err := o.recordings(c, v, dir)
	if err != nil {
		return err
	}
	var labelled []online.Example
	var faces [][]float32
	for _, id := range ids {
		some, rest, err := id.Divide(enroll)
		if err != nil {
			return fail(noFace, err)
		}
		for _, i := range some {
			labelled = append(labelled, online.Example{Vector: id.Faces[i].Vector, Name: id.Name})
		}
		for _, i := range rest {
			if f := id.Faces[i]; !f.Hold && f.Vector != nil {
				faces = append(faces, f.Vector)
			}
		}
	}
	g, report, err := gallery.Compact(c.Context(), v.space, settings, labelled, faces, how, time.Now(), force)
	switch {
	case errors.Is(err, gallery.ErrMixed):
		return fail(badGallery, fmt.Errorf("%w, or give --force", err))
	case errors.Is(err, online.ErrFull):
		return fail(badUsage, fmt.Errorf("%w; label fewer with --enroll", err))
	case err != nil && c.Context().Err() == nil:
		return fail(badUsage, err)
	case err != nil:
		return err
	}
	if err := errors.Join(g.Save(path), g.Close()); err != nil {
		return fail(badGallery, err)
	}
	warn(c, g.Learner().Warnings()...)
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(struct {
			People   int    `json:"people"`
			Labelled int    `json:"labelled"`
			Gallery  string `json:"gallery"`
			online.Compacted
		}{len(g.People()), len(labelled), path, report})
	}
	fmt.Fprintf(c.OutOrStdout(), "%s, %s labelled; %s kept as %s\n", count(len(g.People()), "person"),
		count(len(labelled), "face"),
		fmt.Sprintf("%d of %s", report.Kept, count(report.Faces, "other face")), count(report.Centroids, "centroid"))
	if rest := report.Faces - report.Kept; rest > 0 {
		fmt.Fprintf(c.OutOrStdout(), "left out: %s, next to a labelled one or with no way to one\n",
			count(rest, "face"))
	}
	fmt.Fprintf(c.OutOrStdout(), "gallery: %s\n", path)
	return nil
}
