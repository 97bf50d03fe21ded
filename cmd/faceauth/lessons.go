// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/replay"
	"github.com/spf13/cobra"
)

// mostLessons bounds the faces in [lessons]: 40 MB of vectors, and some 80 MB of pictures.
const mostLessons = 20000

// lessons holds the newest frames from which a run has learned. If another program has changed the gallery meanwhile,
// the run learns from them again, so that no change is lost.
type lessons struct {
	frames []face.Frame
	faces  int // in frames
	left   int // faces of frames that were dropped because there were too many
}

// add keeps the faces of a frame. It does nothing if k is nil.
func (k *lessons) add(f face.Frame) {
	if k == nil || len(f.Samples) == 0 {
		return
	}
	f.Samples = slices.Clone(f.Samples)
	k.frames = append(k.frames, f)
	for k.faces += len(f.Samples); k.faces > mostLessons; k.frames = k.frames[1:] {
		k.faces, k.left = k.faces-len(k.frames[0].Samples), k.left+len(k.frames[0].Samples)
	}
}

// Next implements [face.Stream].
func (k *lessons) Next(ctx context.Context) (face.Frame, error) {
	if len(k.frames) == 0 {
		return face.Frame{}, io.EOF
	}
	f := k.frames[0]
	k.frames = k.frames[1:]
	return f, ctx.Err()
}

// keep saves a gallery at the end of a run that learned from k. If another program has changed the gallery meanwhile,
// keep reads the new one and learns from k again.
func (o *options) keep(ctx context.Context, c *cobra.Command, g *gallery.Gallery, path string, k *lessons) error {
	for try := 1; ; try++ {
		err := g.Save(path)
		if !errors.Is(err, gallery.ErrChanged) || try == tries {
			return saved(err)
		}
		space := g.Space()
		if g, err = o.openGallery(c, path); err != nil {
			return fmt.Errorf("%w; nothing of this run was kept", err)
		}
		if g.Space().ID != space.ID {
			return fail(badGallery, fmt.Errorf("%w: another program began it with %s meanwhile; nothing of this run "+
				"was kept",
				gallery.ErrSpace, g.Space().ID))
		}
		again := *k
		if err := replay.Run(ctx, &again, g.Learner(), replay.NewReport(), replay.Options{Now: time.Now}); err != nil {
			return fmt.Errorf("learning once more: %w; nothing of this run was kept", err)
		}
		if try > 1 {
			continue
		}
		text := "another program changed the gallery meanwhile; its changes stay, " +
			"and the faces of this run are learned on top of it"
		if k.left > 0 {
			text += fmt.Sprintf(", except the first %s", count(k.left, "face"))
		}
		warn(c, text)
	}
}
