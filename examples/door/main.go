// SPDX-License-Identifier: Apache-2.0

// Command door opens a door for people whom it recognises.
//
//	go run ./examples/door alice=alice.avi bob=bob.avi 0
//
// It takes four good faces of each person from a recording, and then watches the last source, which may be a camera, a
// recording or a URL. It prints a line when the door opens.
//
// A door must not be led astray by what it sees, so it learns nothing: every verdict rests on the enrolled faces. Nor
// does one frame open it: several verdicts on one person who stays in view must agree, see package sighting.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/sighting"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "door:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: door NAME=RECORDING... SOURCE")
	}
	detector, err := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks), models.Dir())
	if err != nil {
		return err
	}
	defer detector.Close()
	embedding, err := preprocess.NewEmbedding(models.Default(models.Embedding), models.Dir())
	if err != nil {
		return err
	}
	defer embedding.Close()
	d := &door{detector: detector, embedding: embedding, out: out}
	if d.learner, err = online.New(embedding.Space(), online.Settings{}); err != nil {
		return err
	}
	last := len(args) - 1
	for _, arg := range args[:last] {
		name, recording, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q: write NAME=RECORDING", arg)
		}
		if err := d.enrol(ctx, name, recording); err != nil {
			return err
		}
	}
	return d.watch(ctx, args[last])
}

// door knows who may come in.
type door struct {
	detector  facedet.Detector
	embedding preprocess.Extractor
	learner   *online.Learner
	out       io.Writer
}

// enrol labels the first four good faces of a recording in which nobody else is to be seen.
func (d *door) enrol(ctx context.Context, name, recording string) error {
	src, err := facedet.Open(ctx, recording, facedet.Options{})
	if err != nil {
		return err
	}
	defer src.Close()
	frames := pipeline.New(src, d.detector, d.embedding, pipeline.Options{Gate: preprocess.EnrolGate})
	for labelled := 0; labelled < 4; {
		f, err := frames.Next(ctx)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s has %d good faces; four are needed", recording, labelled)
		}
		if err != nil {
			return err
		}
		if len(f.Samples) != 1 || f.Samples[0].Reason != "" {
			continue
		}
		if err := d.learner.Label(f.Samples[0].Vector, name); err != nil {
			return err
		}
		labelled++
	}
	return nil
}

// shut is how long nobody is seen until the door, once it was opened for them, opens for the same person again.
const shut = 5 * time.Second

// watch opens the door for people in a source until it ends.
func (d *door) watch(ctx context.Context, name string) error {
	src, err := facedet.Open(ctx, name, facedet.Options{})
	if err != nil {
		return err
	}
	if !facedet.IsRecording(name) {
		src = facedet.Newest(src) // what a camera sees now, and not what it saw while the program was busy
	}
	defer src.Close()
	frames := pipeline.New(src, d.detector, d.embedding, pipeline.Options{Gate: preprocess.LoginGate})
	people := sighting.NewWatcher(d.learner, sighting.Settings{}, sighting.Rules{})
	seen := map[string]time.Duration{} // when each person was recognised last
	for {
		f, err := frames.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		faces, err := people.See(f.Time, f.Samples, func(int) bool { return true }) // learn nothing
		if err != nil {
			return err
		}
		for _, s := range faces {
			b := s.Belief
			if s.Trust != sighting.Confirmed { // a door opens for no face that is known by what was learned, or by its track
				continue
			}
			if at, ok := seen[b.Name]; !ok || f.Time-at > shut {
				fmt.Fprintf(d.out, "%6.1f s  the door opens for %s\n", f.Time.Seconds(), b.Name)
			}
			seen[b.Name] = f.Time
		}
	}
}
