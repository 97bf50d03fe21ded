// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"slices"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/config"
	"github.com/faceauth/faceauth/internal/drawing"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/recordings/replay"
	"github.com/faceauth/faceauth/internal/substream"
	"github.com/spf13/cobra"
)

// camera opens a camera of an office in the eye of v.
func (o *options) camera(ctx context.Context, c *cobra.Command, v *cli.Vision, n config.Camera,
	pace bool,
	fps float64, picture func() bool, hide func(error) error) (office.Stream, error) {
	recording := input.IsRecording(n.Source)
	rotate := cmp.Or(n.Rotate, o.rotate)
	if n.Mask != nil { // what the camera shows may not turn below its mask
		rotate = cmp.Or(n.Rotate, "0")
	}
	how := eye.Options{
		Gate: eye.Learn, Picture: 112, Mask: n.Mask, Timeout: o.Timeout,
		Live: pace || !recording, Pace: pace,
		Frame: picture, FPS: fps, Spare: !o.EveryFrame, Rotate: rotate,
		Turned: turned(c, n.Name),
	}
	if n.Substream != "" {
		how.Roots = []string{n.Source, n.Substream}
		open := func(ctx context.Context, name string, shape image.Point) (*eye.Stream, error) {
			how.Shape = shape
			return v.Open(ctx, name, how)
		}
		return substream.Open(ctx, n.Substream, n.Source, open, func(err error) {
			cli.Warn(c, fmt.Sprintf("%s: the large stream: %v", n.Name, hide(err)))
		})
	}
	s, err := v.Open(ctx, n.Source, how)
	if !recording {
		return s, err
	}
	if errors.Is(err, eye.ErrBroken) && ctx.Err() == nil {
		// the same recording would break a new eye, too
		o.failed(c, n.Source, err)
		return nil, io.EOF
	}
	if err != nil {
		return nil, err
	}
	return &seen{Stream: s, o: o, c: c, name: n.Source}, nil
}

// turned returns a function that says that a source is turned.
func turned(c *cobra.Command, source string) func(int) {
	return func(degrees int) {
		cli.Warn(c,
			fmt.Sprintf("%s seems to be turned: its pictures are turned by %d degrees; --rotate "+
				"0 prevents it",
				source, degrees))
	}
}

// stream opens a source in the eye of v. Its errors have exit codes.
func (o *options) stream(ctx context.Context, c *cobra.Command, v *cli.Vision, name string,
	opt eye.Options) (*seen,
	error) {
	opt.Timeout, opt.Rotate, opt.Turned = o.Timeout, o.rotate, turned(c, input.Shown(name))
	s := &seen{o: o, c: c, name: name, files: opt.Files}
	opt.Damaged = s.damaged
	s.open = func(ctx context.Context, from int) (*eye.Stream, error) {
		opt.From = from
		return v.Open(ctx, name, opt)
	}
	var err error
	s.Stream, err = v.Open(ctx, name, opt)
	if errors.Is(err, eye.ErrVision) && c.Context().Err() == nil {
		err = cli.Fail(cli.BadModel, err)
	}
	return s, cli.StreamError(c, err)
}

// draws asks for pictures of all frames, to be drawn.
func draws(o *eye.Options) { o.Frame, o.Width = func() bool { return true }, 1920 }

// annotated returns a frame with boxes and verdicts.
func annotated(names []string, f replay.Frame) (drawing.Frame, error) {
	if f.JPEG == nil {
		return drawing.Frame{}, errors.New("a frame came without its picture")
	}
	all := drawing.Frame{Size: f.Size, JPEG: f.JPEG}
	for i, e := range f.Events {
		b := drawing.Box{Rect: f.Samples[i].Box, Text: "unknown", Colour: drawing.Unknown}
		if e.Label != "" {
			b.Text = fmt.Sprintf("%s %.2f", e.Label, e.Distance)
			if n := slices.Index(names, e.Label); n >= 0 {
				b.Colour = drawing.Colours[n%len(drawing.Colours)]
			}
		}
		all.Boxes = append(all.Boxes, b)
	}
	return all, nil
}
