// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/spf13/cobra"
)

// mostPictures is the greatest number of photographs that one eye looks at: a piece of work, of which an interruption
// loses at most one.
const mostPictures = 64

// photo is a photograph that was looked at.
type photo struct {
	face.Frame
	path string
}

// seriesFlag adds the flag for pictures that are frames.
func (o *options) seriesFlag(c *cobra.Command) {
	c.Flags().BoolVar(&o.series, "series", false, "the pictures of each folder are the frames of a film")
}

// photographs yields photographs that are looked at in the eye of v. A picture that cannot be read, or that breaks the
// eye, is noted, and the next one is looked at. Any other error is yielded last.
func (o *options) photographs(ctx context.Context, c *cobra.Command, v *cli.Vision, files []string,
	opt eye.Options) iter.Seq2[photo, error] {
	opt.Timeout, opt.Rotate, opt.Series = o.Timeout, o.rotate, face.Photographs
	return func(yield func(photo, error) bool) {
		const inRow = 3
		for broken := 0; len(files) > 0; {
			done, err := o.album(ctx, c, v, files, opt, yield)
			switch {
			case err == nil:
				return
			case !eye.Broken(err) || ctx.Err() != nil:
				yield(photo{}, err)
				return
			}
			v.Close() // the next picture has another eye
			if done > 0 {
				broken = 0
			}
			broken++
			o.failed(c, files[done], err)
			files = files[done+1:]
			if broken == inRow {
				for _, f := range files {
					o.failed(c, f, fmt.Errorf("it was not tried: %d pictures in a row have ended like this: %w", inRow, err))
				}
				return
			}
		}
	}
}

// album looks at photographs in one eye. It returns the number of those that are done: yielded, or noted as unreadable.
func (o *options) album(ctx context.Context, c *cobra.Command, v *cli.Vision, files []string, opt eye.Options,
	yield func(photo, error) bool) (done int, err error) {
	var damaged []string // since the last frame
	opt.Damaged = func(text string) { damaged = append(damaged, text) }
	opt.Files = files
	note := func() {
		for _, text := range damaged {
			o.failed(c, files[done], errors.New(strings.TrimPrefix(text, eye.Printable(files[done])+": ")))
			done++
		}
		damaged = nil
	}
	src, err := v.Open(ctx, files[0], opt)
	for err == nil {
		var f face.Frame
		f, err = src.Next(ctx)
		note()
		if err == nil {
			done++
			if !yield(photo{f, files[f.Index]}, nil) {
				return done, nil
			}
		}
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, face.ErrNotVideo) && done == len(files):
		return done, nil
	case errors.Is(err, face.ErrNotVideo) && len(files) == 1:
		o.failed(c, files[0], err)
		return 1, nil
	case errors.Is(err, eye.ErrVision):
		return done, cli.Fail(cli.BadModel, err)
	}
	return done, cli.StreamError(c, err)
}

// nounOf is what an inventory has: recordings, or pictures alone.
func nounOf(v footage.Inventory) string {
	for _, i := range v.Items {
		if i.Files == nil {
			return "recording"
		}
	}
	return "picture"
}
