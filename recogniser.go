// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package faceauth

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io/fs"
	"iter"
	"maps"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/recordings/replay"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/sighting"
)

// ErrNoFace is wrapped if there is no face that can be used.
var ErrNoFace = errors.New("there is no usable face")

// Options of [New]. The zero value keeps people in memory.
type Options struct {
	// Gallery is the file that keeps the people, as that of the program faceauth; New makes it if
	// it is missing. Empty means that they are forgotten by Close.
	Gallery string
	// Models is the folder of the networks. The default is [models.Dir], where faceauth models
	// install puts them.
	Models string
	// Frozen says that Watch learns nothing. Otherwise it learns faces of which it is sure.
	Frozen bool
}

// Recogniser enrols people and recognises them. It decodes in this process; to keep decoders of
// hostile pictures out of it, use package eye. One goroutine may use it at a time.
type Recogniser struct {
	o         Options
	detector  *facedet.Network
	embedding *preprocess.Embedding
	gallery   *gallery.Gallery
}

// Face is a face that was judged.
type Face struct {
	Name string // "" for a stranger, or if the picture is too poor
	// Confirmed says that two clearly different views of a person in view matched enrolled faces.
	// It is never set by [Recogniser.Who], which sees one view. Where a mistake matters, trust only
	// confirmed names.
	Confirmed bool
	Distance  float64         // to the nearest enrolled face of Name; 0 without a name
	Reason    string          // why there is no name
	Box       image.Rectangle // in pixels of the picture
	// the same while a person stays in view; counts from 1. 0 in photographs
	Track int
	At    time.Duration // since the beginning of the source
}

// New opens the networks and the gallery. Close the recogniser after use. The error wraps
// [models.ErrMissing] if the networks are not installed, or comes from [gallery.Open].
func New(o Options) (_ *Recogniser, err error) {
	if o.Models == "" {
		o.Models = models.Dir()
	}
	r := &Recogniser{o: o}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	r.detector, err = facedet.NewNetwork(models.Default(models.Detector),
		models.Default(models.Landmarks), o.Models)
	if err != nil {
		return nil, err
	}
	r.embedding, err = preprocess.NewEmbedding(models.Default(models.Embedding), o.Models)
	if err != nil {
		return nil, err
	}
	space := r.embedding.Space()
	if o.Gallery == "" {
		r.gallery, err = gallery.New(space, online.Settings{})
		return r, err
	}
	r.gallery, err = gallery.Open(o.Gallery, space)
	if errors.Is(err, fs.ErrNotExist) {
		r.gallery, err = gallery.Create(o.Gallery, space, online.Settings{})
	}
	return r, err
}

// Close keeps what was learned in Options.Gallery, and closes it and the networks. The error is the
// database's.
func (r *Recogniser) Close() (err error) {
	if r.gallery != nil {
		if r.o.Gallery != "" && !r.o.Frozen {
			err = r.gallery.Save()
		}
		err = errors.Join(err, r.gallery.Close())
	}
	if r.embedding != nil {
		r.embedding.Close()
	}
	if r.detector != nil {
		r.detector.Close()
	}
	return err
}

// Gallery returns the people and what was learned of them.
func (r *Recogniser) Gallery() *gallery.Gallery { return r.gallery }

// Enroll labels the first four usable faces in sources, which are named as for [facedet.Open], with
// a person's name; one is enough to begin. Only this person may be in view. If the person is
// enrolled already, the faces are added. The error wraps [ErrNoFace], or comes from [facedet.Open]
// or [gallery.Gallery.Enroll].
func (r *Recogniser) Enroll(ctx context.Context, name string, sources ...string) error {
	how := gallery.Enrolment{Add: r.gallery.Number(name) != 0}
	var faces [][]float32
	for _, source := range sources {
		const enough = 4
		if len(faces) == enough {
			break
		}
		frames, end, err := r.open(ctx, source, face.Photographs,
			pipeline.Options{Gate: preprocess.EnrolGate})
		if err != nil {
			return err
		}
		found, err := face.Gather(face.Frames(ctx, frames), r.gallery.Space(),
			face.Wanted{Faces: enough - len(faces)}, func() {})
		end()
		if err != nil {
			return fmt.Errorf("enrolling %s: %s: %w", name, source, err)
		}
		faces = append(faces, found.Vectors...)
	}
	if len(faces) == 0 {
		return fmt.Errorf("enrolling %s: %w: show one face, sharp and from the front", name,
			ErrNoFace)
	}
	_, err := r.gallery.Enroll(name, faces, time.Now(), how)
	return err
}

// Who says who is in a photograph, and learns nothing. A person has at most one face in it: the
// nearest. The error comes from [facedet.Open].
func (r *Recogniser) Who(ctx context.Context, picture string) ([]Face, error) {
	frames, end, err := r.open(ctx, picture, face.Photographs,
		pipeline.Options{Gate: preprocess.LearnGate})
	if err != nil {
		return nil, err
	}
	defer end()
	f, err := frames.Next(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", picture, err)
	}
	verdicts, err := online.JudgePhotograph(r.gallery.Learner(), f.Vectors())
	if err != nil {
		return nil, err
	}
	faces := make([]Face, len(f.Samples))
	for i, s := range f.Samples {
		faces[i] = Face{Box: s.Box, Reason: string(s.Reason)}
		if v := verdicts[i]; s.Vector != nil {
			faces[i].Name, faces[i].Distance, faces[i].Reason = r.gallery.Name(v.Person),
				v.Distance, string(v.Reason)
		}
	}
	return faces, nil
}

// Watch yields a face whenever the verdict on a person in view changes, until a recording ends, a
// camera fails, ctx ends or the loop does. It learns, unless Options.Frozen says otherwise. An
// error is yielded last, with no face.
func (r *Recogniser) Watch(ctx context.Context, source string) iter.Seq2[Face, error] {
	return func(yield func(Face, error) bool) {
		frames, end, err := r.open(ctx, source, face.Followed,
			pipeline.Options{Gate: preprocess.LearnGate})
		if err != nil {
			yield(Face{}, err)
			return
		}
		defer end()
		last := map[int]Face{} // by track
		how := replay.Options{Freeze: r.o.Frozen, Now: time.Now, Names: r.gallery.Name}
		for f, err := range replay.Judge(ctx, frames, r.gallery.Learner(), how) {
			if err != nil {
				yield(Face{}, fmt.Errorf("%s: %w", source, err))
				return
			}
			for i, e := range f.Events {
				x := Face{Name: e.Label, Confirmed: e.Trust == sighting.Confirmed,
					Distance: e.Distance, Reason: e.Reason,
					Box: f.Samples[i].Box, Track: e.Track, At: f.Time}
				was, known := last[e.Track]
				last[e.Track] = x
				if (!known || was.Name != x.Name || was.Confirmed != x.Confirmed) &&
					!yield(x, nil) {
					return
				}
			}
			maps.DeleteFunc(last, func(_ int, x Face) bool { return f.Time-x.At > 10*time.Second })
		}
	}
}

// open opens a source. A camera gives the present frame, and not one from while the program was
// busy.
func (r *Recogniser) open(ctx context.Context, name string, s face.Series,
	o pipeline.Options) (*pipeline.Pipeline, func(), error) {
	src, err := facedet.Open(ctx, name, facedet.Options{Series: s})
	if err != nil {
		return nil, nil, err
	}
	if !input.IsRecording(name) {
		src = facedet.Newest(src)
	}
	src = pipeline.Upright(src, r.detector, r.embedding, face.Auto)
	o.Righted = true
	return pipeline.New(src, r.detector, r.embedding, o), func() { src.Close() }, nil
}
