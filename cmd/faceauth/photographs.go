// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/spf13/cobra"
)

// A piece of work is so many photographs, for one eye: an interruption may lose the most, and for
// fewer than the least it does not pay to start another eye.
const leastPictures, mostPictures = 4, 64

// photo is a photograph that was looked at.
type photo struct {
	face.Frame
	path string
}

// parts returns an inventory in pieces of work for so many jobs at once: films, series, and
// photographs.
func (o *options) parts(v footage.Inventory, jobs uint) []footage.Item {
	if o.series {
		return v.Items
	}
	n := v.Size()
	at := max(1, cli.Jobs(jobs, n))
	parts := v.Parts(min(max((n+at-1)/at, leastPictures), mostPictures))
	o.reading.n = n
	if !slices.ContainsFunc(v.Items, func(i footage.Item) bool { return i.Files == nil }) {
		o.reading.noun = "picture"
	}
	return parts
}

// photographs yields photographs that are looked at in the eye of v, one by one. Those that cannot
// be read are noted. Another error is yielded last.
func (o *options) photographs(ctx context.Context, c *cobra.Command, v *cli.Vision, files []string,
	opt eye.Options) iter.Seq2[photo, error] {
	return func(yield func(photo, error) bool) {
		opt.Files = files
		src, err := o.stream(ctx, c, v, files[0], opt)
		for err == nil {
			var f face.Frame
			f, err = src.Next(ctx)
			if err == nil && !yield(photo{f, files[f.Index]}, nil) {
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
		case ctx.Err() != nil || cli.Code(err) != cli.BadSource:
			yield(photo{}, err)
		case len(files) == 1:
			o.failed(c, files[0], err)
		default:
			for _, f := range files[src.at:] {
				o.failed(c, f, fmt.Errorf("it was not looked at: %w", err))
			}
		}
	}
}
