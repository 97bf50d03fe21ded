// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/wire"
	"github.com/spf13/cobra"
)

// seen is a source as a command sees it. A recording ends at its end, or before with a reason,
// which is noted ([reading]): what was seen until then counts. If an eye breaks at a photograph,
// another one looks at those after it.
type seen struct {
	*eye.Stream
	o    *options
	c    *cobra.Command
	name string
	// files are the photographs, if they are looked at one by one: then each that cannot be read is
	// noted.
	files []string
	// open opens the pictures of a folder from an index on. nil for a camera of an office.
	open func(ctx context.Context, from int) (*eye.Stream, error)

	at     int        // index of the next picture
	still  bool       // the last frame is a photograph
	before face.Count // what earlier eyes have read
	broken bool       // something of it could not be read
	futile int        // eyes in a row that broke at their first picture
	warned int
	ended  bool
	quiet  bool // the caller judges how it ended
}

// Next implements [face.Stream]. Errors have exit codes.
func (s *seen) Next(ctx context.Context) (f face.Frame, err error) {
	if s.ended {
		return f, io.EOF
	}
	f, err = s.Stream.Next(ctx)
	for ctx.Err() == nil && errors.Is(err, eye.ErrBroken) && s.photographs() &&
		s.futile <= mostFutile {
		f, err = s.after(ctx, err)
	}
	n := s.Count()
	switch {
	case err == nil:
		s.at, s.still, s.futile = f.Index+1, f.Still, 0
		if f.Still && f.Partial && s.files == nil {
			s.warn(cell(f.File) +
				" ends too early: it is used as far as it came, and nothing is learned from it")
		}
		return f, nil
	case ctx.Err() != nil:
		return f, err
	case errors.Is(err, io.EOF) || s.broken && s.photographs() && errors.Is(err, face.ErrNotVideo):
		s.ended = true
		if s.files == nil && (!s.quiet || s.broken) {
			s.o.ended(s.c, input.Shown(s.name), n)
		}
		return f, io.EOF
	case s.files == nil && n.Read > 0 && (n.Declared >= 0 || input.IsRecording(s.name)):
		s.ended, s.broken = true, true
		s.o.cut(s.c, input.Shown(s.name), n, err)
		return f, io.EOF
	case s.open == nil:
		s.ended = true
		s.o.failed(s.c, s.name, err)
		return f, io.EOF
	}
	shown := input.Shown(s.name)
	if !strings.Contains(err.Error(), shown) {
		err = fmt.Errorf("%s: %w", cell(shown), err)
	}
	return f, cli.StreamError(s.c, err)
}

// damaged is told of each picture that cannot be read.
func (s *seen) damaged(text string) {
	if s.files == nil {
		s.warn("skipped: " + text)
	} else if s.at < len(s.files) {
		why := strings.TrimPrefix(text, wire.Printable(s.files[s.at])+": ")
		s.o.failed(s.c, s.files[s.at], errors.New(why))
	}
	s.at++
}

// warn names one of the first pictures that cannot be read or used.
func (s *seen) warn(text string) {
	s.warned++
	if s.warned <= mostNamed {
		cli.Warn(s.c, text)
	}
}

// mostFutile is the number of eyes that may break in a row, each at its first picture: then it is
// not the pictures.
const mostFutile = 3

// photographs reports whether the source may be a folder of photographs.
func (s *seen) photographs() bool {
	n := s.Count() // no eye may be open
	return s.open != nil && n.Declared > 0 && (s.still || n.Read == 0) &&
		(s.files != nil || isFolder(s.name))
}

// after passes over the photograph at which an eye has broken, and returns the next one.
func (s *seen) after(ctx context.Context, why error) (f face.Frame, err error) {
	names := s.files
	if names == nil {
		names, err = footage.Pictures(s.name)
	}
	s.futile++
	if err != nil || s.at >= len(names) || s.futile > mostFutile {
		return f, why
	}
	s.before = s.Count()
	s.before.Damaged++
	s.broken = true
	s.damaged(fmt.Sprintf("%s: %v", cell(filepath.Base(names[s.at])), why))
	if s.at == len(names) {
		s.Stream = nil
		return f, io.EOF
	}
	s.Stream, err = s.open(ctx, s.at)
	if err != nil {
		return f, err
	}
	f, err = s.Stream.Next(ctx)
	if err == nil && !f.Still { // it goes on elsewhere than the eye before has ended
		return f, why
	}
	return f, err
}

// Count returns the numbers of frames that all eyes have read.
func (s *seen) Count() face.Count {
	n := s.before
	if s.Stream == nil {
		return n
	}
	more := s.Stream.Count()
	more.Read, more.Damaged, more.Partial = more.Read+n.Read, more.Damaged+n.Damaged,
		more.Partial+n.Partial
	return more
}
