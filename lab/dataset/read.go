// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/enrol"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// Reader reads recordings. One goroutine at a time may use it. It does not close its parts.
type Reader struct {
	Detector  facedet.Detector
	Extractor preprocess.Extractor
	Source    facedet.Options // of each recording

	// Open, if it is not nil, opens a recording in another process, as an eye does, and calls
	// damaged for each skipped file. Then Detector, Extractor and Source are not used, and methods
	// that need pictures of faces do not work.
	Open func(ctx context.Context, path string, o pipeline.Options, damaged func(text string)) (
		Stream, error)

	// Warn, if it is not nil, gets a sentence for each file that is skipped or truncated.
	Warn func(string)
	// Begin, if it is not nil, is called for each recording, with its name and the number of frames
	// in its header, or -1. It returns functions that are called after each frame and at the end.
	Begin func(name string, frames int) (step, end func())
}

// Stream gives the frames of a recording.
type Stream interface {
	face.Stream
	Count() face.Count
	Close() error
}

// here is a recording that is read in this process.
type here struct {
	*pipeline.Pipeline
	source facedet.Source
}

func (h here) Count() face.Count { return h.source.Count() }
func (h here) Close() error      { return h.source.Close() }

// open opens a recording.
func (r *Reader) open(ctx context.Context, path string, o pipeline.Options,
	damaged func(string)) (Stream, error) {
	if r.Open != nil {
		return r.Open(ctx, path, o, damaged)
	}
	options := r.Source
	options.Damaged = func(_ string, err error) { damaged(err.Error()) }
	src, err := facedet.Open(ctx, path, options)
	if err != nil {
		return nil, err
	}
	return here{pipeline.New(src, r.Detector, r.Extractor, o), src}, nil
}

// most is the number of warnings of one data set that are printed one by one.
const most = 10

// limited returns a function that passes on the first warnings, and a function that reports the
// number of the others.
func (r *Reader) limited() (warn func(string), end func()) {
	n := 0
	tell := r.warn
	return func(s string) {
			if n++; n <= most {
				tell(s)
			}
		}, func() {
			if n > most {
				tell(fmt.Sprintf("%d more files were passed over or cut off", n-most))
			}
		}
}

func (r *Reader) warn(s string) {
	if r.Warn != nil {
		r.Warn(s)
	}
}

func (r *Reader) begin(name string, frames int) (step, end func()) {
	if r.Begin == nil {
		return func() {}, func() {}
	}
	return r.Begin(name, frames)
}

// Identities reads the faces of all identities in dir, without attacks. How gives the options for
// each name; nil means defaults. The error comes from the folder, a recording or the context.
func (r *Reader) Identities(
	ctx context.Context, dir string, how func(name string) pipeline.Options,
) ([]evaluate.Identity, error) {
	paths, err := entries(dir)
	if err != nil {
		return nil, fmt.Errorf(
			"%w; it should hold one folder of images or one video for each identity", err)
	}
	warn, end := r.limited()
	defer end()
	var ids []evaluate.Identity
	for _, path := range paths {
		name := NameOf(path)
		all, err := sessions(path, warn)
		if err != nil {
			return nil, err
		}
		if len(all) > 1 {
			all = slices.DeleteFunc(all, func(p string) bool {
				if IsAttack(p) {
					warn(p + " is an attack by its name, and is passed over; see attack --attack " +
						"replay")
				}
				return IsAttack(p)
			})
		}
		var opt pipeline.Options
		if how != nil {
			opt = how(name)
		}
		id, err := r.identity(ctx, name, all, opt, warn)
		if notRecording(path, err) {
			warn(path + " is neither a recording nor a folder of images, and is passed over")
			continue
		}
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(ids, func(other evaluate.Identity) bool {
			return other.Name == name
		}) {
			return nil, fmt.Errorf("%s has two recordings of %q", dir, name)
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s holds neither folders of images nor videos", dir)
	}
	return ids, nil
}

// Identity reads the faces of one person from recordings, one after the other.
func (r *Reader) Identity(
	ctx context.Context, name string, recordings []string, o pipeline.Options,
) (evaluate.Identity, error) {
	return r.identity(ctx, name, recordings, o, r.warn)
}

func (r *Reader) identity(
	ctx context.Context, name string, recordings []string, o pipeline.Options, warn func(string),
) (evaluate.Identity, error) {
	id := evaluate.Identity{Name: name, Refused: make(map[face.Reason]int)}
	for take, path := range recordings {
		part, err := r.session(ctx, name, path, o, warn)
		if errors.Is(err, eye.ErrBroken) { // perhaps by no fault of the recording
			warn(fmt.Sprintf("%s is read again: %v", path, err))
			part, err = r.session(ctx, name, path, o, warn)
		}
		if errors.Is(err, eye.ErrBroken) { // figures without it would be others
			err = fmt.Errorf("reading %s: %w", path, err)
		}
		if err != nil {
			return id, err
		}
		for i := range part.Faces {
			part.Faces[i].Take = take
		}
		id.Faces, id.Undetected = append(id.Faces, part.Faces...), id.Undetected+part.Undetected
		id.NoVector, id.Several = id.NoVector+part.NoVector, id.Several+part.Several
		for reason, n := range part.Refused {
			id.Refused[reason] += n
		}
	}
	return id, nil
}

// session reads the faces of one recording of a person.
func (r *Reader) session(
	ctx context.Context, name, path string, o pipeline.Options, warn func(string),
) (evaluate.Identity, error) {
	o.Gate = preprocess.LearnGate
	src, err := r.open(ctx, path, o, func(text string) { warn("passed over: " + text) })
	if err != nil {
		return evaluate.Identity{}, err
	}
	defer src.Close()
	step, end := r.begin(name, src.Count().Declared)
	defer end()
	frames := stepped{src, step}
	refused := make(map[face.Reason]int)
	id, err := evaluate.Read(ctx, name, frames, func(q face.Quality) bool {
		reason := preprocess.EnrolGate.Check(q)
		if reason != "" {
			refused[reason]++
		}
		return reason == ""
	})
	id.Refused = refused
	if err != nil {
		return id, err
	}
	if n := src.Count(); n.Cut() || n.Damaged > 0 {
		warn(fmt.Sprintf("%s is cut off, or a part of it cannot be read: %d of %d frames", path,
			n.Read, n.Declared))
	}
	return id, nil
}

// Refused returns why an enrolment would refuse a face that was read to be learned, or "": the
// faces that the program labels are [preprocess.EnrolGate]'s, and not doubtful.
func Refused(x face.Sample, space face.Space) face.Reason {
	gate := preprocess.EnrolGate
	gate.MinNorm = space.LearnNorm
	x.Reason = cmp.Or(gate.Check(x.Quality), x.Reason)
	return cmp.Or(enrol.Doubtful(x, space), x.Reason)
}

// stepped calls a function after each frame.
type stepped struct {
	face.Stream
	step func()
}

func (s stepped) Next(ctx context.Context) (face.Frame, error) {
	f, err := s.Stream.Next(ctx)
	if err == nil {
		s.step()
	}
	return f, err
}

// Each calls do with each recording of each identity in dir. Attack says whether its name marks an
// attack. If do finds that a file is not a video, Each skips it, unless its name says that it is
// one. Each ends with any other error of do.
func (r *Reader) Each(dir string, do func(person, path string, attack bool) error) error {
	paths, err := entries(dir)
	if err != nil {
		return err
	}
	warn, end := r.limited()
	defer end()
	for _, path := range paths {
		all, err := sessions(path, warn)
		if err != nil {
			return err
		}
		for _, p := range all {
			err := do(NameOf(path), p, IsAttack(p))
			switch {
			case notRecording(p, err):
				warn(p + " is neither a recording nor a folder of images, and is passed over")
			case errors.Is(err, eye.ErrBroken):
				return fmt.Errorf("reading %s: %w", p, err)
			case err != nil:
				return err
			}
		}
	}
	return nil
}

// EachFrame calls do with each frame of the recording at path.
func (r *Reader) EachFrame(ctx context.Context, name, path string, o pipeline.Options,
	do func(face.Frame)) error {
	src, err := r.open(ctx, path, o, func(text string) { r.warn("passed over: " + text) })
	if err != nil {
		return err
	}
	defer src.Close()
	return r.eachFrame(ctx, src, name, do)
}

func (r *Reader) eachFrame(ctx context.Context, src Stream, name string,
	do func(face.Frame)) error {
	step, end := r.begin(name, src.Count().Declared)
	defer end()
	for {
		frame, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		do(frame)
		step()
	}
}

// Frames returns all frames of the recording at path.
func (r *Reader) Frames(ctx context.Context, name, path string,
	o pipeline.Options) (all []face.Frame, err error) {
	err = r.EachFrame(ctx, name, path, o, func(f face.Frame) { all = append(all, f) })
	return all, err
}

// FramesOf returns all frames of a source. The caller keeps the source.
func (r *Reader) FramesOf(
	ctx context.Context, src facedet.Source, name string, o pipeline.Options,
) (all []face.Frame, err error) {
	err = r.eachFrame(ctx, here{pipeline.New(src, r.Detector, r.Extractor, o), src}, name,
		func(f face.Frame) { all = append(all, f) })
	return all, err
}
