// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"errors"
	"fmt"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/eye/serve"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/replay"
	"github.com/spf13/cobra"
)

// vision finds faces and turns them into vectors. The caller closes it.
type vision struct {
	sight *sight // the eye
	space face.Space
	name  string // name of the detector

	networks  []models.Description
	detector  facedet.Detector // in this process, for commands that need pictures; else nil
	extractor preprocess.Extractor
}

func (v *vision) Close() {
	v.sight.Close()
	if v.detector != nil {
		v.detector.Close()
	}
	if v.extractor != nil {
		v.extractor.Close()
	}
}

// open opens detector and extractor in this process, for commands that need the pictures of faces. Space is the feature
// space of the gallery, or nil. Note is called with a sentence if "auto" had to choose a lesser detector or extractor.
func (o *options) open(space *face.Space, note func(string)) (*vision, error) {
	v, err := o.plan(space, note)
	if err != nil {
		return nil, err
	}
	if v.detector, v.extractor, err = serve.Open(v.sight.config.Vision); err != nil {
		return nil, fail(badModel, err)
	}
	return v, nil
}

// look is [options.open] in an eye. The eye begins at once to open its networks.
func (o *options) look(c *cobra.Command, space *face.Space, note func(string)) (*vision, error) {
	v, err := o.plan(space, note)
	if err != nil {
		return nil, err
	}
	// The eye loads its libraries while this process reads the files.
	if _, err = v.sight.ready(c.Context()); err == nil {
		err = o.verifyNetworks(v.networks)
	}
	if err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// plan decides which detector and extractor to use, and checks their files.
func (o *options) plan(space *face.Space, note func(string)) (*vision, error) {
	embedding, err := o.embedding()
	if err != nil {
		return nil, err
	}
	pixels := preprocess.NewPixels().Space()
	v := &vision{name: o.detector, space: pixels}
	features := o.features
	if features == "auto" {
		missing := embedding.Missing(o.models)
		switch {
		case space != nil && space.ID == pixels.ID:
			features = "pixels"
		case space != nil || missing == nil || o.embeddingFile != "":
			features = "embedding"
		case errors.Is(missing, models.ErrMissing):
			features = "pixels"
			note("the models are not installed, so faces are compared by their pixels, which is much weaker; run: " +
				"faceauth models install")
		default:
			return nil, fail(badModel, missing)
		}
	}
	switch features {
	case "pixels":
	case "embedding":
		v.space, v.networks = embedding.Space(), []models.Description{embedding}
	default:
		return nil, fail(badUsage, fmt.Errorf("unknown features %q; use embedding, pixels or auto", o.features))
	}
	if space != nil && space.ID != v.space.ID {
		return nil, fail(badGallery, fmt.Errorf("%w: %s; use another gallery or other features", gallery.ErrSpace,
			v.space.Mismatch(space.ID)))
	}
	if err := o.planDetector(v); err != nil {
		return nil, err
	}
	v.sight = &sight{config: eye.Config{Space: v.space, Vision: eye.Vision{
		Features: features, Detector: v.name, Models: o.models, DetectorModel: o.detectorModel,
		EmbeddingModel: o.embeddingFile,
	}}}
	return v, nil
}

func (o *options) planDetector(v *vision) error {
	boxes, points, err := o.detectors()
	if err != nil {
		return err
	}
	if v.name == "auto" {
		v.name = "network"
		if err := boxes.Missing(o.models); errors.Is(err, models.ErrMissing) && o.detectorModel == "" && !v.space.Unit {
			v.name = "haar"
		}
	}
	switch v.name {
	case "network":
		v.networks = append(v.networks, boxes, points)
	case "haar", "lbp":
		if v.space.Unit {
			return fail(badUsage, fmt.Errorf("the %s detector finds no landmarks, and embeddings need them; "+
				"use --detector network or --features pixels", v.name))
		}
	default:
		return fail(badUsage, fmt.Errorf("unknown detector %q; use network, haar, lbp or auto", o.detector))
	}
	return nil
}

// recogniser opens the gallery and its detector and extractor. Keep and freeze are the flags --learn and --freeze. With
// part, which may be nil, it first updates the gallery from the fleet.
func (o *options) recogniser(c *cobra.Command, part *member, keep, freeze bool) (g *gallery.Gallery, path string,
	v *vision, err error) {
	g, path, err = o.ownGallery(c, keep, freeze)
	if part != nil && errors.Is(err, errNoGallery) { // people may come from the fleet
		g, err = o.emptyGallery(c)
	}
	if err != nil {
		return nil, path, nil, err
	}
	if part != nil {
		if err := part.align(c, g, path); err != nil {
			return nil, path, nil, fail(badGallery, err)
		}
	}
	space := g.Space()
	v, err = o.look(c, &space, func(s string) { warn(c, s) })
	return g, path, v, err
}

// describe lists the settings for a report. Path is the file of the gallery, or empty.
func describe(v *vision, s online.Settings, path string) []replay.Setting {
	space := v.space
	add := func(name, format string, args ...any) replay.Setting {
		return replay.Setting{Name: name, Value: fmt.Sprintf(format, args...)}
	}
	all := []replay.Setting{
		add("feature space", "%s, %d values", space.ID, space.Dim),
		add("detector", "%s", v.name),
		add("centroids k", "%d", s.K),
		add("kernel width sigma", "%g", s.Sigma),
		add("regulariser gamma_g", "%g", s.Gamma),
		add("edge threshold epsilon", "%g", s.Epsilon),
		add("longest edge", "%g", s.Reach),
		add("growth of R", "%g", s.Multiplier),
		add("accept from", "%g", s.Accept),
		add("learn from", "%g", s.Learn),
		add("hops from a labelled face", "%s", limit(s.MaxHops)),
		add("learned of one person in a window", "%s in %d observations", limit(s.LearnCap), s.LearnWindow),
	}
	if path != "" {
		all = append(all, add("gallery", "%s", path))
	}
	return all
}

// limit writes a number; 0 means no limit.
func limit(n int) string {
	if n == 0 {
		return "no limit"
	}
	return fmt.Sprint(n)
}
