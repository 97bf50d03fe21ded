// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package faceauth

import (
	"context"
	"fmt"
	"image"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/sighting"
)

// Watch yields a face whenever the verdict on a person in view changes, and when the person leaves,
// until a recording ends, a camera fails, ctx ends or the loop does; then the source is closed. It
// learns, unless Options.Frozen says otherwise. An error is yielded last, with no face.
func (r *Recogniser) Watch(ctx context.Context, source string) iter.Seq2[Face, error] {
	return func(yield func(Face, error) bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		tell := func(f Face, err error) bool {
			r.mu.Unlock()
			defer r.mu.Lock()
			return yield(f, err)
		}
		err := r.watch(ctx, source, func(f Face) bool { return tell(f, nil) })
		if err != nil {
			tell(Face{}, fmt.Errorf("%s: %w", source, err))
		}
	}
}

// watch follows a source until it ends or tell returns false.
func (r *Recogniser) watch(ctx context.Context, source string, tell func(Face) bool) error {
	frames, end, err := r.frames(func() (facedet.Source, error) {
		return open(ctx, source, face.Followed)
	}, pipeline.Options{Gate: preprocess.LearnGate, Picture: side})
	if err != nil {
		return err
	}
	defer end()
	learner := r.gallery.Learner()
	w := sighting.NewWatcher(learner)
	type sight struct {
		last  Face
		leave Face // as whom they will have left
	}
	sights := map[int]sight{} // by track
	left := func(here ...int) bool {
		for _, track := range slices.Sorted(maps.Keys(sights)) {
			if slices.Contains(here, track) {
				continue
			}
			x := sights[track].leave
			x.Left = true
			delete(sights, track)
			if !tell(x) {
				return false
			}
		}
		return true
	}
	for f, err := range face.Frames(ctx, frames) {
		if err != nil {
			return err
		}
		if f.Still { // a photograph continues nothing
			w.Restart()
			clear(sights)
		}
		learner.SetTime(time.Now())
		seen, err := w.See(f.Time, f.Samples, func(i int) bool {
			return r.o.Frozen || f.Samples[i].Reason != ""
		})
		if err != nil {
			return err
		}
		for i, p := range seen {
			x := r.face(f, f.Samples[i], p.Verdict)
			x.Confirmed, x.Track = p.Trust == sighting.Confirmed, p.Track
			s, known := sights[x.Track]
			was := s.last
			if (!known || was.Name != x.Name || was.Confirmed != x.Confirmed) && !tell(x) {
				return nil
			}
			s.last, s.leave = x, x
			s.leave.Name = r.gallery.Name(p.Belief.Person)
			s.leave.Confirmed = p.Belief.Trust == sighting.Confirmed
			sights[x.Track] = s
		}
		if !f.Still && !left(w.Live()...) {
			return nil
		}
	}
	left()
	return nil
}

// open opens a source. A camera gives the present frame, and not one from while the program was
// busy.
func open(ctx context.Context, name string, s face.Series) (facedet.Source, error) {
	src, err := facedet.Open(ctx, name, facedet.Options{Series: s})
	if err == nil && !input.IsRecording(name) {
		src = facedet.Newest(src)
	}
	return src, err
}

// frames returns the samples of an opened source, and what closes it.
func (r *Recogniser) frames(open opener, o pipeline.Options) (*pipeline.Pipeline, func(), error) {
	src, err := (&unlocked{of: r}).open(open)
	if err != nil {
		return nil, nil, err
	}
	src = pipeline.Upright(src, r.detector, r.embedding, face.Auto)
	o.Righted = true
	return pipeline.New(src, r.detector, r.embedding, o), func() { src.Close() }, nil
}

// unlocked lets go of the mutex while a source is waited for.
type unlocked struct {
	facedet.Source
	of *Recogniser
}

func (u *unlocked) open(open opener) (_ facedet.Source, err error) {
	u.of.mu.Unlock()
	u.Source, err = open()
	u.of.mu.Lock()
	if err == nil && u.of.closed {
		u.Source.Close()
		err = ErrClosed
	}
	return u, err
}

func (u *unlocked) Next(ctx context.Context) (*facedet.Frame, error) {
	u.of.mu.Unlock()
	f, err := u.Source.Next(ctx)
	u.of.mu.Lock()
	if err == nil && u.of.closed {
		f.Close()
		return nil, ErrClosed
	}
	return f, err
}

// picture is a source of one photograph in memory.
type picture struct {
	open func() (*facedet.Picture, error)
	read int
}

func inMemory(m image.Image) opener {
	return func() (facedet.Source, error) {
		return &picture{open: func() (*facedet.Picture, error) { return facedet.FromImage(m) }}, nil
	}
}

func (p *picture) Next(context.Context) (*facedet.Frame, error) {
	if p.read > 0 {
		return nil, io.EOF
	}
	m, err := p.open()
	if err != nil {
		return nil, err
	}
	p.read = 1
	return &facedet.Frame{Image: m, Still: true, Full: m.Full()}, nil
}

func (p *picture) Count() face.Count { return face.Count{Declared: 1, Read: p.read} }

func (p *picture) Close() error { return nil }
