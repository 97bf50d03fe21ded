// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/spf13/cobra"
)

type (
	vision   = cli.Vision
	progress = cli.Progress
)

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
		if err := part.Align(g.At(path)); err != nil {
			return nil, path, nil, fail(badGallery, err)
		}
	}
	space := g.Space()
	v, err = o.Look(c, &space)
	return g, path, v, err
}
