// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package faceauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"io/fs"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/quantized"
)

// ErrNoFace is wrapped if there is no face that can be used.
var ErrNoFace = errors.New("there is no usable face")

// ErrClosed is wrapped after [Recogniser.Close].
var ErrClosed = gallery.ErrClosed

// Options of [New]. The zero value keeps people in memory.
type Options struct {
	// Gallery is the file that keeps the people, as that of the program faceauth; New makes it if
	// it is missing. Empty means that they are forgotten by Close.
	Gallery string
	// Models is the folder of the networks. The default is [models.Dir], where faceauth models
	// install puts them.
	Models string
	// Strangers is the share of strangers who may get somebody's name, above 0 and at most 0.1,
	// however many people are enrolled: all distances follow from it. Default: 1 in 1,000.
	Strangers float64
	// Frozen says that Watch learns nothing. Otherwise it learns faces of which it is sure.
	Frozen bool
}

// Recogniser enrols people and recognises them. Several goroutines may use it at once; they wait
// for each other while a face is looked at, and not while a camera is. It decodes in this process;
// to keep decoders of hostile pictures out of it, use package eye.
type Recogniser struct {
	o         Options
	mu        sync.Mutex // of all that follows
	detector  facedet.Detector
	embedding preprocess.Extractor
	gallery   *gallery.Gallery
	closed    bool
}

// Likeness says how near two faces are.
type Likeness struct {
	Distance float64 // between their vectors
	// Rate is the share of strangers' faces that come as near to one face of somebody: at most
	// 1e-2 and at least 1e-6, which is all that was measured.
	Rate   float64
	Rarity string // Rate in words: a stranger comes as near once in 700,000
}

// Face is a face in a picture.
type Face struct {
	Name string // "" for a stranger, or if the picture is too poor
	// Confirmed says that two clearly different views of a person in view matched enrolled faces.
	// Only [Recogniser.Watch] sets it: a photograph is one view. Where a mistake matters, trust
	// only confirmed names.
	Confirmed bool
	Reason    string // why there is no name, or why the picture is poor
	// Nearest is Name, or else the person with the nearest enrolled face, who is that near; "" if
	// nobody is enrolled, or for a face without a vector.
	Nearest string
	Likeness

	Box       image.Rectangle // in pixels of the file, or of a picture in memory
	Turned    int             // degrees clockwise by which the picture was turned
	Landmarks []face.Point    // 68 points in the iBUG 300-W order, in the same pixels
	Quality   face.Quality
	Vector    []float32 // nil if none can be made, as Reason says
	Picture   []byte    // JPEG of the face with a margin, of at most 224 pixels

	// the same while a person stays in view; counts from 1. 0 in photographs
	Track int
	At    time.Duration // since the beginning of the source
	Left  bool          // the person has left the view, and was seen last at At
}

// String says who it is, and how near or why not: nothing of the face itself.
func (f Face) String() string {
	words := []string{cmp.Or(f.Name, "unknown")}
	if f.Confirmed {
		words[0] += ", confirmed"
	}
	if f.Left {
		words[0] += ", has left"
	}
	if f.Name == "" && f.Reason != "" {
		words = append(words, f.Reason)
	}
	if f.Name == "" && f.Nearest != "" {
		words = append(words, "the nearest is "+f.Nearest)
	}
	if f.Rarity != "" {
		words = append(words, f.Rarity)
	}
	return strings.Join(words, "; ")
}

// New opens the networks and the gallery. Close the recogniser after use. The error wraps
// [models.ErrMissing] if the networks are not installed, or [online.ErrSettings], or comes from
// [gallery.Open].
func New(o Options) (*Recogniser, error) {
	o.Models = cmp.Or(o.Models, models.Dir())
	detector, err := facedet.NewNetwork(models.Default(models.Detector),
		models.Default(models.Landmarks), o.Models)
	if err != nil {
		return nil, err
	}
	embedding, err := preprocess.NewEmbedding(models.Default(models.Embedding), o.Models)
	if err != nil {
		detector.Close()
		return nil, err
	}
	return with(o, detector, embedding)
}

// with makes a recogniser of opened networks, which it owns.
func with(o Options, d facedet.Detector, e preprocess.Extractor) (*Recogniser, error) {
	r := &Recogniser{o: o, detector: d, embedding: e}
	space, fresh := e.Space(), online.Settings{Strangers: o.Strangers}
	err := error(fs.ErrNotExist)
	if o.Gallery != "" {
		r.gallery, err = gallery.Open(o.Gallery, space)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.gallery, err = gallery.Create(o.Gallery, space, fresh) // in memory without a file
	case err == nil && o.Strangers != 0:
		s := r.gallery.Learner().Settings()
		s.Strangers = o.Strangers
		err = r.gallery.Learner().Configure(s)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Save keeps in Options.Gallery what Watch has learned, as Close does; enrolments are kept at once.
// The error is the database's.
func (r *Recogniser) Save() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.save()
}

func (r *Recogniser) save() error {
	if r.o.Gallery == "" || r.o.Frozen {
		return nil
	}
	return r.gallery.Save()
}

// Close keeps what was learned in Options.Gallery, and closes it and the networks. The error is the
// database's: what was learned is then lost. Its methods return [ErrClosed] afterwards.
func (r *Recogniser) Close() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	if r.gallery != nil {
		err = errors.Join(r.save(), r.gallery.Close())
	}
	r.embedding.Close()
	r.detector.Close()
	return err
}

// People returns the names of the enrolled people, in the order in which they were enrolled.
func (r *Recogniser) People() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.gallery.People() {
		names = append(names, p.Name)
	}
	return names
}

// Forget forgets a person and all that was learned through this person. The error wraps
// [online.ErrUnknown], or is the database's.
func (r *Recogniser) Forget(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gallery.Forget(name)
}

// Decode returns the picture in the bytes of a file of any kind that is read (JPEG, PNG, WebP,
// HEIC, AVIF and others), turned as its EXIF data say. A JPEG of more than 64 million pixels
// becomes half as wide and high. The error comes from [facedet.DecodePicture].
func Decode(file []byte) (image.Image, error) {
	p, err := facedet.DecodePicture(file)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Image()
}

// Who says who is in a photograph, and learns nothing. A person has at most one face in it: the
// nearest. The error comes from [facedet.Open].
func (r *Recogniser) Who(ctx context.Context, file string) ([]Face, error) {
	faces, err := r.look(ctx, true, func() (facedet.Source, error) {
		return open(ctx, file, face.Photographs)
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return faces, err
}

// WhoImage is [Recogniser.Who] for a picture in memory; [Decode] makes one of a file. The error
// comes from [facedet.FromImage].
func (r *Recogniser) WhoImage(ctx context.Context, m image.Image) ([]Face, error) {
	return r.look(ctx, true, inMemory(m))
}

// WhoBytes is [Recogniser.Who] for the bytes of a file. The error comes from [Decode].
func (r *Recogniser) WhoBytes(ctx context.Context, file []byte) ([]Face, error) {
	return r.look(ctx, true, func() (facedet.Source, error) {
		return &picture{open: func() (*facedet.Picture, error) {
			return facedet.DecodePicture(file)
		}}, nil
	})
}

// Faces returns the faces in a picture, the largest first, without asking whose they are. The error
// comes from [facedet.FromImage].
func (r *Recogniser) Faces(ctx context.Context, m image.Image) ([]Face, error) {
	return r.look(ctx, false, inMemory(m))
}

// side is that of the picture of a face, in pixels.
const side = 224

// look returns the faces in a photograph, and who they are if it is asked.
func (r *Recogniser) look(ctx context.Context, who bool, open opener) ([]Face, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	frames, end, err := r.frames(open, pipeline.Options{Gate: preprocess.LearnGate, Picture: side})
	if err != nil {
		return nil, err
	}
	defer end()
	f, err := frames.Next(ctx)
	if err != nil {
		return nil, err
	}
	var verdicts []online.Verdict
	if who {
		verdicts, err = online.JudgePhotograph(r.gallery.Learner(), f.Vectors())
		if err != nil {
			return nil, err
		}
	}
	faces := make([]Face, len(f.Samples))
	for i, s := range f.Samples {
		var v *online.Verdict
		if who {
			v = &verdicts[i]
		}
		faces[i] = r.face(f, s, v)
	}
	return faces, nil
}

// face says what was found of a sample of a frame.
func (r *Recogniser) face(f face.Frame, s face.Sample, v *online.Verdict) Face {
	x := Face{Reason: string(s.Reason), Box: s.Box, Turned: f.Turned, Landmarks: s.Landmarks,
		Quality: s.Quality, Vector: s.Vector, Picture: s.JPEG, At: f.Time}
	if s.Vector == nil || v == nil {
		return x
	}
	person, distance := v.Person, v.Distance
	x.Name, x.Reason = r.gallery.Name(person), cmp.Or(string(v.Reason), x.Reason)
	if person == 0 {
		person, distance = r.gallery.Learner().Closest(s.Vector, math.Inf(1))
	}
	if person != 0 {
		x.Nearest, x.Likeness = r.gallery.Name(person), r.likeness(distance)
	}
	return x
}

func (r *Recogniser) likeness(distance float64) Likeness {
	m := r.gallery.Learner().Space().Stills
	return Likeness{distance, m.Rate(distance), m.Rarity(distance)}
}

// Compare says how near two faces are. Those of one person are seldom further apart than strangers
// come once in 1,000. The error wraps [ErrNoFace] if one has no vector.
func (r *Recogniser) Compare(a, b Face) (Likeness, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	space := r.gallery.Learner().Space()
	for _, f := range []Face{a, b} {
		if f.Vector == nil {
			return Likeness{}, fmt.Errorf("%w: %s", ErrNoFace, f.Reason)
		}
		if err := space.Check(f.Vector); err != nil {
			return Likeness{}, err
		}
	}
	return r.likeness(quantized.Distance(a.Vector, b.Vector, space.Scale)), nil
}
