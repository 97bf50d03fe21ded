// SPDX-License-Identifier: Apache-2.0

// Package evaluate measures recognisers on labelled recordings: some people are enrolled from their
// first faces, all other faces are streamed, and every verdict is counted.
//
// [Run] runs a [Protocol] on a set of identities and returns a [Result] for each [Method], for the
// same faces in the same order. [RunAll] does so for every choice of strangers.
//
// # Protocols
//
// In an office several people are enrolled, and some are strangers: [Protocol].Strangers, or all
// [Choices] of them. In an authentication each person in turn is the only one enrolled, and all
// others are impostors: [OneUser]. Environment adaptation is an authentication with the order
// [Mixed], for a user whose faces come from several places: the user's faces keep their order, and
// faces of others come at random among them. In each, [Protocol].Apart keeps the last part of
// everybody's faces as a test from which nothing is learned.
//
// [Identify] measures an open-set [Identification]: a person with enough faces is enrolled, and the
// others are strangers. The rates of names for probes of enrolled people are reported at bounds on
// the rate of names for strangers.
//
// [Withstand] runs an [Attack] on a method that learns, with blends or with the attacker's own
// faces.
//
// # Figures of merit
//
// Precision is the share of accepted faces with the right name; an accepted stranger counts as
// wrong. Recall is the share of the streamed faces of enrolled people that got the right name. FAR,
// the false accept rate, is the share of the strangers' faces that got a name. A rate without
// trials is not a number, and null in JSON.
//
// FMR and FNMR are the false match and false non-match rates of ISO/IEC 19795-1, where one person
// is enrolled: the share of the strangers' faces that were accepted, and the share of the user's
// faces that were not accepted. If several people are enrolled, the same shares are the FPIR and
// FNIR, the false positive and false negative identification rates. Each judged face is an attempt,
// and the attempts of all runs are added up. All rates leave out frames without a face, failures to
// acquire, which [Counts] counts.
//
// # Caveats
//
// Consecutive frames of one person are not independent trials. A rate over ten thousand frames of
// six people says little about the seventh: the interval of an [ErrorRate] treats people as the
// trials, and it counts people, too.
package evaluate

import (
	"context"
	"errors"
	"fmt"
	"image"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
)

// Errors of [Run].
var (
	ErrProtocol = errors.New("unusable protocol")
	ErrTooFew   = errors.New("too few usable faces")
)

// Face is one streamed face.
type Face struct {
	Vector []float32
	Usable bool // good enough to enrol from
	Hold   bool // too poor to learn from
	// Quality is that of the picture; the zero value counts as a frontal head.
	Quality face.Quality
	// Landmarks tell a still from a person (sighting.NewLook); nil if they are unknown.
	Landmarks []face.Point
	Aligned   []byte // the same
	// Liveness is the probability in [0,1] that the face is live, or nil if it was not measured.
	Liveness *float32

	Box  image.Rectangle // in its frame
	At   time.Duration   // since the beginning of its recording
	Take int             // number of the recording among the person's recordings
}

// Sample returns the face as a stream gives it.
func (f Face) Sample() face.Sample {
	return face.Sample{Box: f.Box, Vector: f.Vector, Quality: f.Quality, Landmarks: f.Landmarks,
		Aligned: f.Aligned}
}

// Identity is one person and the faces of their recording in the order of time.
type Identity struct {
	Name       string
	Faces      []Face
	Undetected int // frames without a usable face
	NoVector   int // of these, frames with a face but without a vector
	Several    int // frames with several faces; only the first face is used
	// Refused counts unusable faces by reason, if the reason is known.
	Refused map[face.Reason]int
}

// Divide returns the indices of the labelled faces, which are the first usable ones, and of the
// others. The error wraps [ErrTooFew].
func (id Identity) Divide(enroll int) (labelled, rest []int, err error) {
	for i, f := range id.Faces {
		if f.Usable && len(labelled) < enroll {
			labelled = append(labelled, i)
		} else {
			rest = append(rest, i)
		}
	}
	if len(labelled) < enroll {
		err = fmt.Errorf("%w: %s has %d of the %d faces to enrol", ErrTooFew, id.Name,
			len(labelled), enroll)
	}
	return labelled, rest, err
}

// Method is a recogniser under test. Each run makes a new one.
type Method interface {
	// Enroll adds a labelled face. All labelled faces come before the first call of Judge.
	Enroll(x []float32, name string) error
	// Judge returns the name for a face, and a score; a larger score is surer, on the method's own
	// scale. The method may learn from the face unless hold is set. An empty name is a refusal at
	// any threshold.
	Judge(x []float32, hold bool) (claim string, score float64, err error)
	// Accepts reports whether the method accepts a claim with this score. A method without its own
	// threshold gets the best threshold afterwards.
	Accepts(score float64) bool
}

// Watching is a method that also uses the earlier faces of the same recording. Each recording has
// its own number.
type Watching interface {
	See(f Face, recording int, hold bool) (claim string, score float64, err error)
}

// Entry names a method and makes a new one. Hindsight marks a method without its own threshold: its
// operating point is the best threshold, chosen afterwards, at the first method's FAR.
type Entry struct {
	Name      string
	New       func() (Method, error)
	Hindsight bool
}

// Foreseer is a method that gets all faces of the stream, without names, before anything else. This
// is possible only in an experiment.
type Foreseer interface {
	Foresee(stream [][]float32) error
}

// Bounded is a method with limited memory.
type Bounded interface {
	PassedOver() int64 // faces that were not learned for lack of room
}

// Counts counts the faces of a run.
type Counts struct {
	Enrolled   int `json:"enrolled"`   // labelled faces
	Adaptation int `json:"adaptation"` // streamed faces before the test, with Protocol.Apart
	Known      int `json:"known"`      // counted faces of enrolled people
	Strangers  int `json:"strangers"`  // counted faces of strangers
	Undetected int `json:"undetected"` // frames without a usable face
}

// Run runs p on the identities for each method, and returns the results in the order of the
// methods. The error wraps [ErrProtocol] if a stranger is not among the identities or nobody is
// left to enrol. It wraps [ErrTooFew] if an enrolled person has no usable faces beyond the labelled
// ones.
func Run(ids []Identity, p Protocol, methods []Entry) (Counts, []Result, error) {
	return run(context.Background(), ids, p, methods)
}

func run(ctx context.Context, ids []Identity, p Protocol,
	methods []Entry) (Counts, []Result, error) {
	labelled, stream, counts, err := p.split(ids)
	if err != nil {
		return counts, nil, err
	}
	var results []Result
	for _, e := range methods {
		r, err := runOne(ctx, e, labelled, stream)
		if err != nil {
			return counts, nil, fmt.Errorf("method %s: %w", e.Name, err)
		}
		results = append(results, r)
	}
	for i := range results {
		results[i].conclude(methods[i].Hindsight, results[0])
	}
	return counts, results, nil
}

func runOne(ctx context.Context, e Entry, labelled, stream []streamed) (Result, error) {
	m, err := e.New()
	if err != nil {
		return Result{}, err
	}
	if f, ok := m.(Foreseer); ok {
		faces := make([][]float32, len(stream))
		for i, s := range stream {
			faces[i] = s.Vector
		}
		if err := f.Foresee(faces); err != nil {
			return Result{}, err
		}
	}
	for _, f := range labelled {
		if err := m.Enroll(f.Vector, f.name); err != nil {
			return Result{}, err
		}
	}
	r := Result{Name: e.Name, steps: len(stream), trials: make([]trial, 0, len(stream))}
	user := labelled[0].name
	if slices.ContainsFunc(labelled, func(f streamed) bool { return f.name != user }) {
		user = ""
	}
	start := time.Now()
	for _, f := range stream {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		claim, score, err := f.judge(m)
		if err != nil {
			return Result{}, err
		}
		if f.test {
			t := trial{person: f.name, user: user, after: f.after, known: f.known, claim: claim,
				score: score}
			t.accepted = claim != "" && m.Accepts(score)
			r.trials = append(r.trials, t)
		}
	}
	r.elapsed = time.Since(start)
	if b, ok := m.(Bounded); ok {
		r.PassedOver = b.PassedOver()
	}
	return r, nil
}
