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
	"strings"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/config"
	"github.com/faceauth/faceauth/internal/drawing"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/recordings/replay"
	"github.com/spf13/cobra"
)

// camera opens a camera of an office in the eye of v.
func (o *options) camera(ctx context.Context, c *cobra.Command, v *cli.Vision, n config.Camera, pace bool,
	fps float64, picture func() bool, hide func(error) error) (office.Stream, error) {
	recording := input.IsRecording(n.Source)
	how := eye.Options{
		Gate: eye.Learn, Picture: 112, Timeout: o.Timeout, Live: pace || !recording, Pace: pace, Frame: picture,
		FPS: fps, Spare: !o.EveryFrame, Rotate: cmp.Or(n.Rotate, o.rotate), Turned: turned(c, n.Name),
	}
	if n.Substream != "" {
		how.Roots = []string{n.Source, n.Substream}
		open := func(ctx context.Context, name string, shape image.Point) (*eye.Stream, error) {
			how.Shape = shape
			return v.Open(ctx, name, how)
		}
		return eye.OpenSubstream(ctx, n.Substream, n.Source, open, func(err error) {
			cli.Warn(c, fmt.Sprintf("%s: the large stream: %v", n.Name, hide(err)))
		})
	}
	s, err := v.Open(ctx, n.Source, how)
	broken := func(err error) error {
		if recording && eye.Broken(err) { // the same recording would break a new eye, too
			// the name of a recording contains no secrets
			cli.Warn(c, fmt.Sprintf("%s: %v; the recording ends here", n.Name, err))
			return io.EOF
		}
		return err
	}
	if err != nil {
		return nil, broken(err)
	}
	return seen{s, broken, nil, func(count face.Count) {
		if recording {
			o.ended(c, n.Source, count)
		}
	}}, nil
}

// seen is the stream of an eye for one source.
type seen struct {
	*eye.Stream
	wrong func(error) error // changes an error, except the end
	short func(face.Frame)  // is called for a photograph that ends too early; may be nil
	end   func(face.Count)  // is called at the end; may be nil
}

func (s seen) Next(ctx context.Context) (face.Frame, error) {
	f, err := s.Stream.Next(ctx)
	if err == nil && f.Still && f.Partial && s.short != nil {
		s.short(f)
	}
	if errors.Is(err, io.EOF) && s.end != nil {
		s.end(s.Count())
	}
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		err = s.wrong(err)
	}
	return f, err
}

// turned returns a function that says that a source is turned.
func turned(c *cobra.Command, source string) func(int) {
	return func(degrees int) {
		cli.Warn(c,
			fmt.Sprintf("%s seems to be turned: its pictures are turned by %d degrees; --rotate 0 prevents it",
				source, degrees))
	}
}

// stream opens a source in the eye of v. Its errors have exit codes.
func (o *options) stream(ctx context.Context, c *cobra.Command, v *cli.Vision, name string, opt eye.Options) (seen,
	error) {
	opt.Timeout, opt.Rotate, opt.Turned = o.Timeout, o.rotate, turned(c, input.Shown(name))
	damaged := 0
	warn := func(text string) {
		damaged++
		if damaged <= 10 {
			cli.Warn(c, text)
		}
	}
	opt.Damaged = func(text string) { warn("passed over: " + text) }
	short := func(f face.Frame) {
		warn(cell(f.File) + " ends too early: it is used as far as it came, and nothing is learned from it")
	}
	s, err := v.Open(ctx, name, opt)
	if errors.Is(err, eye.ErrVision) && c.Context().Err() == nil {
		err = cli.Fail(cli.BadModel, err)
	}
	coded := func(err error) error { return cli.StreamError(c, err) }
	return seen{s, func(err error) error {
		if shown := input.Shown(name); err != nil && !strings.Contains(err.Error(), shown) {
			err = fmt.Errorf("%s: %w", cell(shown), err)
		}
		return coded(err)
	}, short, func(n face.Count) { o.ended(c, input.Shown(name), n) }}, coded(err)
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
