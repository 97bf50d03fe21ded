// SPDX-License-Identifier: Apache-2.0

// Package film makes the recordings of package demo: [Write].
package film

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/demo"
)

const (
	width, height = 640, 480
	fps           = 15
	still         = 24  // frames for which a still is shown
	fading        = 16. // of these, frames in which it fades into the next
	enrolled      = 2   // number of stills in a person's enrolment
)

// Write makes the recordings in out from the stills in dir. The same stills give the same bytes.
func Write(ctx context.Context, dir, out string) (demo.Script, error) {
	s := demo.Script{Stills: dir}
	people := []struct{ folder, name string }{{"s2", "alice"}, {"s1", ""}, {"s3", "bob"}}
	first := map[string][]*photo{}
	later := map[string][]*photo{}
	for _, p := range people {
		photos, err := load(ctx, filepath.Join(dir, p.folder))
		if err != nil {
			return s, fmt.Errorf("making the demo's recording: %w", err)
		}
		if p.name != "" {
			if len(photos) <= enrolled {
				return s, fmt.Errorf("making the demo's recording: %s has %d stills, want more than %d", p.folder,
					len(photos), enrolled)
			}
			// The recording begins with the last still of the enrolment and turns into those that follow.
			first[p.name], photos = photos[:enrolled], photos[enrolled-1:]
		}
		later[p.name] = photos
	}
	for _, name := range []string{"alice", "bob"} {
		e := demo.Enrolment{Name: name, Path: filepath.Join(out, name+".avi")}
		if _, err := film(ctx, e.Path, scene{{name, first[name], .5}}); err != nil {
			return s, err
		}
		s.Enrolment = append(s.Enrolment, e)
	}
	s.Recording = filepath.Join(out, "recording.avi")
	var err error
	s.Cast, err = film(ctx, s.Recording,
		scene{{"alice", later["alice"], .5}},
		scene{{"", later[""], .5}},
		scene{{"bob", later["bob"], .5}},
		scene{{"alice", later["alice"][:2], .27}, {"", later[""][2:], .73}},
		scene{{"bob", later["bob"][5:], .27}, {"alice", later["alice"], .73}},
	)
	s.Frames = len(s.Cast)
	return s, err
}

// A scene shows one or more people at once, each in a part of the width.
type scene []role

type role struct {
	name   string
	photos []*photo
	place  float64
}

// film shows the scenes one after another, a still of each role at a time.
func film(ctx context.Context, path string, scenes ...scene) (cast [][]demo.Actor, err error) {
	rec := facedet.NewRecorder(path, fps)
	defer func() {
		if e := rec.Close(); err == nil {
			err = e
		}
	}()
	for _, sc := range scenes {
		shots := len(sc[0].photos)
		for i := range shots * still {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			f := newCanvas()
			var actors []demo.Actor
			for _, r := range sc {
				n := i / still
				p, following := r.photos[n%len(r.photos)], r.photos[(n+1)%len(r.photos)]
				fade := max(0, float64(i%still-still+fading)/fading)
				box := f.draw(p.towards(following, fade), r.place, len(cast))
				actors = append(actors, demo.Actor{Name: r.name, Box: box})
			}
			f.light(len(cast))
			img, err := f.picture()
			if err != nil {
				return nil, err
			}
			err = rec.Write(img)
			img.Close()
			if err != nil {
				return nil, err
			}
			cast = append(cast, actors)
		}
	}
	return cast, nil
}

// load reads the stills of one person in natural order.
func load(ctx context.Context, dir string) ([]*photo, error) {
	src, err := facedet.Open(ctx, dir, facedet.Options{})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	var photos []*photo
	for {
		f, err := src.Next(ctx)
		if err != nil {
			if len(photos) > 0 && ctx.Err() == nil {
				return photos, nil
			}
			return nil, err
		}
		g := f.Image.Gray()
		photos = append(photos, newPhoto(g.Size(), g.Bytes()))
		g.Close()
		f.Close()
	}
}

// wave oscillates between -1 and 1, with a period in frames.
func wave(frame int, period, phase float64) float64 {
	return math.Sin(2 * math.Pi * (float64(frame)/period + phase))
}
