// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package faceauth

import (
	"context"
	"fmt"
	"image"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/enrol"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/quantized"
)

// Enrolment is what an enrolment took.
type Enrolment struct {
	Faces   int     // labelled now
	Sources []Taken // by source
	// Resembles is another enrolled person whom the faces look like, or "". If one person has two
	// names, neither is recognised well.
	Resembles string
}

// Taken is what an enrolment took of one source.
type Taken struct {
	Faces  int    // labelled now
	Known  int    // labelled before: a face that is shown again changes nothing
	Reason string // why it has no more; "" if others were enough
}

// enough is the number of faces that an enrolment takes.
const enough = 4

// Enroll labels the first four usable faces in sources, which are named as for [facedet.Open], with
// a person's name; one is enough to begin. Only this person may be in view. If the person is
// enrolled already, the faces are added. The error wraps [ErrNoFace], or comes from [facedet.Open]
// or [gallery.Gallery.Enroll]. What was found is returned with it.
func (r *Recogniser) Enroll(ctx context.Context, name string, sources ...string) (Enrolment,
	error) {
	all := make([]opener, len(sources))
	for i, source := range sources {
		all[i] = func() (facedet.Source, error) { return open(ctx, source, face.Photographs) }
	}
	return r.enroll(ctx, name, all)
}

// EnrollImage is [Recogniser.Enroll] for pictures in memory; [Decode] makes them of files.
func (r *Recogniser) EnrollImage(ctx context.Context, name string,
	pictures ...image.Image) (Enrolment, error) {
	all := make([]opener, len(pictures))
	for i, m := range pictures {
		all[i] = inMemory(m)
	}
	return r.enroll(ctx, name, all)
}

// EnrollBytes is [Recogniser.Enroll] for the bytes of files. The error may come from [Decode].
func (r *Recogniser) EnrollBytes(ctx context.Context, name string, files ...[]byte) (Enrolment,
	error) {
	pictures := make([]image.Image, len(files))
	for i, file := range files {
		m, err := Decode(file)
		if err != nil {
			return Enrolment{}, fmt.Errorf("enrolling %.100q: %w", name, err)
		}
		pictures[i] = m
	}
	return r.EnrollImage(ctx, name, pictures...)
}

type opener func() (facedet.Source, error)

func (r *Recogniser) enroll(ctx context.Context, name string, sources []opener) (e Enrolment,
	err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("enrolling %.100q: %w", name, err)
		}
	}()
	var faces [][]float32
	how := gallery.Enrolment{Add: r.gallery.Number(name) != 0}
	e.Sources = make([]Taken, len(sources))
	total := 0
	for i, open := range sources {
		if total == enough {
			break
		}
		frames, end, err := r.frames(open, pipeline.Options{Gate: preprocess.EnrolGate,
			Picture: 112})
		if err != nil {
			return e, err
		}
		found, err := enrol.Gather(face.Frames(ctx, frames), r.gallery.Learner().Space(),
			enrol.Wanted{Faces: enough - total}, func() {})
		end()
		if err != nil {
			return e, err
		}
		total += len(found.Vectors)
		taken := &e.Sources[i]
		if total < enough {
			taken.Reason = mostly(found.Refused)
		}
		for j, x := range found.Vectors {
			if r.known(name, x, faces) {
				taken.Known++
				continue
			}
			taken.Faces++
			faces, how.Pictures = append(faces, x), append(how.Pictures, found.Pictures[j])
		}
	}
	if total == 0 {
		return e, fmt.Errorf("%w (%s): show one face, sharp and from the front", ErrNoFace,
			reasons(e.Sources))
	}
	if len(faces) == 0 {
		return e, nil
	}
	e.Resembles, err = r.gallery.Enroll(name, faces, time.Now(), how)
	if err == nil {
		e.Faces = len(faces)
	}
	return e, err
}

// same is the distance within which two faces are of one picture: rounding by another engine for
// the networks is below it, and a picture that was only saved again above it.
const same = .01

// known reports whether a face is labelled with a name already, or is one of more.
func (r *Recogniser) known(name string, x []float32, more [][]float32) bool {
	person := r.gallery.Number(name)
	if person != 0 {
		d, err := r.gallery.Learner().Nearest(x, person)
		if err == nil && d < same {
			return true
		}
	}
	scale := r.gallery.Learner().Space().Scale
	return slices.ContainsFunc(more, func(y []float32) bool {
		return quantized.Distance(x, y, scale) < same
	})
}

// mostly returns the commonest reason.
func mostly(refused map[string]int) (reason string) {
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		if refused[why] > refused[reason] {
			reason = why
		}
	}
	return reason
}

// reasons lists the reasons of sources, each once.
func reasons(all []Taken) string {
	var words []string
	for _, t := range all {
		if t.Reason != "" && !slices.Contains(words, t.Reason) {
			words = append(words, t.Reason)
		}
	}
	return strings.Join(words, ", ")
}
