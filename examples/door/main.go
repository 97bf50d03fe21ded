// SPDX-License-Identifier: Apache-2.0

// Command door opens a door for people whom it recognises.
//
//	go run ./examples/door alice=alice.avi bob=bob.avi 0
//
// It takes four good faces of each person from a recording, and then watches the last source, which may be a camera, a
// recording or a URL. It prints a line when the door opens.
//
// A door must not be misled by faces that it has seen, so it learns nothing: every verdict rests on the enrolled faces.
// One frame is not enough to open it: several verdicts on a person who stays in view must agree, see package sighting.
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

// door knows the people who may come in.
type door struct {
	detector  facedet.Detector
	embedding preprocess.Extractor
	learner   *online.Learner
	people    []string // the first is person 1
	out       io.Writer
}

// enrol labels the first four good faces of a recording that shows only this person.
func (d *door) enrol(ctx context.Context, name, recording string) error {
	src, err := facedet.Open(ctx, recording, facedet.Options{})
	if err != nil {
		return err
	}
	defer src.Close()
	frames := pipeline.New(src, d.detector, d.embedding, pipeline.Options{Gate: preprocess.EnrolGate})
	d.people = append(d.people, name)
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
		if err := d.learner.Label(f.Samples[0].Vector, online.Person(len(d.people))); err != nil {
			return err
		}
		labelled++
	}
	return nil
}

// shut is the time without a person in view after which the door can open for this person again.
const shut = 5 * time.Second

// watch opens the door for people in a source until it ends.
func (d *door) watch(ctx context.Context, name string) error {
	src, err := facedet.Open(ctx, name, facedet.Options{})
	if err != nil {
		return err
	}
	if !facedet.IsRecording(name) {
		src = facedet.Newest(src) // the present frame, and not a frame from while the program was busy
	}
	defer src.Close()
	frames := pipeline.New(src, d.detector, d.embedding, pipeline.Options{Gate: preprocess.LoginGate})
	people := sighting.NewWatcher(d.learner, sighting.Settings{}, sighting.Rules{})
	seen := map[online.Person]time.Duration{} // time at which each person was last recognised
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
			if s.Trust != sighting.Confirmed { // learned faces, or a track alone, do not open a door
				continue
			}
			if at, ok := seen[b.Person]; !ok || f.Time-at > shut {
				fmt.Fprintf(d.out, "%6.1f s  the door opens for %s\n", f.Time.Seconds(), d.people[b.Person-1])
			}
			seen[b.Person] = f.Time
		}
	}
}
