// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/drawing"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/recordings/replay"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

func newWatch() *cobra.Command {
	var o options
	var show bool
	c := &cobra.Command{
		Use:   "watch SOURCE",
		Short: "say who is in front of a camera, live: a line when a verdict changes",
		Long: "Judges every face until the source ends or you press Ctrl-C, and prints a line\n" +
			"when the verdict on somebody in view changes. It learns from people whom it has\n" +
			"confirmed, and keeps that in the gallery, unless you give --no-learn or SOURCE\n" +
			"is a recording; faceauth people undo takes it back.",
		Example: "  faceauth watch 0 --show",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: cli.Cameras,
		SuggestFor: []string{"live", "camera", "show"},
		RunE: func(c *cobra.Command, args []string) error {
			source, err := o.single(c, args[0])
			if err != nil {
				return err
			}
			o.learns(c, source)
			g, v, err := o.recogniser(c)
			if err != nil {
				return err
			}
			defer v.Close()
			defer g.Close()
			w := &watcher{c: c, json: o.JSON, people: g, said: map[int]said{},
				room: g.Learner().Room(), detector: v.Looks}
			look := eye.Options{Gate: eye.Learn, Live: true}
			if o.keep {
				look.Picture = 112
			}
			if show {
				draws(&look)
				if err := drawing.Answers(); err != nil {
					return err
				}
				w.window, err = drawing.Start(c.Context(), cli.EyeCommand("show")...)
				if err != nil {
					return err
				}
				defer w.window.Close()
			}
			s, err := o.stream(c.Context(), c, v, source, look)
			if err != nil {
				return err
			}
			cli.Warn(c, g.Learner().Warnings()...)
			how := replay.Options{Freeze: o.freeze, Now: time.Now, Names: g.Name}
			err = w.watch(replay.Judge(c.Context(), s, g.Learner(), how))
			// Ctrl-C, or closing the window, is the normal end of a watch; everything learned until
			// then is complete.
			if err != nil && !errors.Is(err, drawing.ErrEnded) && c.Context().Err() == nil {
				return err
			}
			if o.keep {
				if err := keepLearned(c, g); err != nil {
					return err
				}
			}
			return o.reading.end(nil, 1, "")
		},
	}
	o.liveFlags(c)
	c.Flags().BoolVar(&show, "show", false, "show the picture in a window")
	return c
}

type watcher struct {
	c      *cobra.Command
	json   bool
	people *gallery.Gallery
	said   map[int]said // by track, for tracks that were lately in view
	window *drawing.Process

	detector models.Description
	sized    bool        // the size of the frames was said
	room     online.Room // of which the user knows
}

// said is the last printed verdict of a track, and the frame in which the track was last seen.
type said struct {
	label string
	frame int
}

// missing is longer, in frames, than the tracker waits for a missed face.
const missing = 50

// watch says what is in frames.
func (w *watcher) watch(frames iter.Seq2[replay.Frame, error]) error {
	for f, err := range frames {
		if err == nil {
			err = w.each(f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) each(f replay.Frame) error {
	if now := w.people.Learner().Room(); now.Changed(w.room) {
		w.room = now
		if now.Warning() != "" {
			cli.Warn(w.c, now.Warning())
		}
	}
	if !w.sized {
		w.sized = true
		fmt.Fprintf(w.c.ErrOrStderr(), "%dx%d: faces from %d pixels\n", f.Size.X, f.Size.Y,
			w.detector.LeastSeen(f.Size))
	}
	for _, e := range f.Events {
		last, ok := w.said[e.Track]
		w.said[e.Track] = said{e.Label, f.Index}
		if ok && last.label == e.Label {
			continue
		}
		if err := w.say(f.Time, e); err != nil {
			return err
		}
	}
	maps.DeleteFunc(w.said, func(_ int, s said) bool { return f.Index-s.frame > missing })
	if w.window != nil {
		picture, err := annotated(w.people.Names(), f)
		if err != nil {
			return err
		}
		return w.window.Draw(picture)
	}
	return nil
}

func (w *watcher) say(at time.Duration, e replay.Event) error {
	if w.json {
		return json.NewEncoder(w.c.OutOrStdout()).Encode(e)
	}
	who := "unknown (" + e.Reason + ")"
	if e.Label != "" {
		who = fmt.Sprintf("%s  at a distance of %.2f", e.Label, e.Distance)
	}
	_, err := fmt.Fprintf(w.c.OutOrStdout(), "%8.1f s  face %d  %s\n", at.Seconds(), e.Track, who)
	return err
}
