// SPDX-License-Identifier: Apache-2.0

// Package film makes the recordings of package demo: [Write].
package film

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"math"
	"path/filepath"
	"sync"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/demo"
	"golang.org/x/image/draw"
	"golang.org/x/image/math/f64"
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
	first := map[string][]*image.RGBA{}
	later := map[string][]*image.RGBA{}
	for _, p := range people {
		photos, err := load(ctx, filepath.Join(dir, p.folder))
		if err != nil {
			return s, fmt.Errorf("making the demo's recording: %w", err)
		}
		if p.name != "" {
			if len(photos) <= enrolled {
				return s, fmt.Errorf(
					"making the demo's recording: %s has %d stills, want more than %d", p.folder,
					len(photos), enrolled)
			}
			// The recording begins with the last still of the enrolment and turns into those that
			// follow.
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
	photos []*image.RGBA
	place  float64
}

// film shows the scenes one after another, a still of each role at a time.
func film(ctx context.Context, path string, scenes ...scene) (cast [][]demo.Actor, err error) {
	rec := cv.NewVideoWriter(path, "MJPG", fps)
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
			f := image.NewRGBA(wall().Rect)
			copy(f.Pix, wall().Pix)
			var actors []demo.Actor
			for _, r := range sc {
				n := i / still
				p, following := r.photos[n%len(r.photos)], r.photos[(n+1)%len(r.photos)]
				fade := max(0, float64(i%still-still+fading)/fading)
				box := show(f, towards(p, following, fade), r.place, len(cast))
				actors = append(actors, demo.Actor{Name: r.name, Box: box})
			}
			img, err := picture(f, len(cast))
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
func load(ctx context.Context, dir string) ([]*image.RGBA, error) {
	src, err := facedet.Open(ctx, dir, facedet.Options{})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	var photos []*image.RGBA
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

// newPhoto returns a grey still whose edges fade into the background.
func newPhoto(size image.Point, pix []byte) *image.RGBA {
	p := image.NewRGBA(image.Rectangle{Max: size})
	for i, v := range pix {
		x, y := i%size.X, i/size.X
		edge := min(x, y, size.X-1-x, size.Y-1-y, 6)
		v = uint8(int(v) * edge / 6)
		p.SetRGBA(x, y, color.RGBA{v, v, v, uint8(255 * edge / 6)})
	}
	return p
}

// towards returns a still with that part of another one mixed in.
func towards(p, following *image.RGBA, part float64) *image.RGBA {
	m := image.NewRGBA(p.Rect)
	copy(m.Pix, p.Pix)
	mask := image.NewUniform(color.Alpha{uint8(255 * part)})
	draw.DrawMask(m, m.Rect, following, image.Point{}, mask, image.Point{}, draw.Over)
	return m
}

// wall is the background of all frames: a gradient with a soft weave.
var wall = sync.OnceValue(func() *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			v := uint8(118 + 30*float64(x)/width - 20*float64(y)/height +
				3*math.Sin(float64(x)/9)*math.Sin(float64(y)/11))
			m.SetRGBA(x, y, color.RGBA{v, v, v, 255})
		}
	}
	return m
})

// show draws a still and returns its box. The number of the frame decides how it is panned, zoomed,
// tilted and blurred.
func show(frame *image.RGBA, p *image.RGBA, place float64, number int) image.Rectangle {
	zoom := 2.3 + .35*wave(number, 97, place)
	if place != .5 {
		zoom *= .8
	}
	cx := place*width + 28*wave(number, 73, place)
	cy := .5*height + 18*wave(number, 53, .6)
	w, h := zoom*float64(p.Rect.Dx()), zoom*float64(p.Rect.Dy())
	// what is made smaller, and larger again, is blurred
	blur := 1.3 + max(0, .5*wave(number, 113, .1))
	small := image.NewRGBA(image.Rect(0, 0, int(float64(p.Rect.Dx())/blur),
		int(float64(p.Rect.Dy())/blur)))
	draw.BiLinear.Scale(small, small.Rect, p, p.Rect, draw.Src, nil)
	size := small.Rect.Max
	sin, cos := math.Sincos(.09 * wave(number, 61, .3+place))
	x, y := w/float64(size.X), h/float64(size.Y) // pixels of the frame for one of the still
	draw.ApproxBiLinear.Transform(frame, f64.Aff3{
		cos * x, -sin * y, cx - (cos*w-sin*h)/2,
		sin * x, cos * y, cy - (sin*w+cos*h)/2,
	}, small, small.Rect, draw.Over, nil)
	return image.Rect(int(cx-w/2), int(cy-h/2), int(cx+w/2), int(cy+h/2)).Intersect(frame.Rect)
}

// picture returns a frame as a picture, darker or brighter with its number.
func picture(frame *image.RGBA, number int) (*facedet.Picture, error) {
	gain := 1 + .25*wave(number, 151, .25)
	var pix []byte
	for i := 0; i < len(frame.Pix); i += 4 {
		grey := uint8(min(gain*float64(frame.Pix[i])+.5, 255))
		pix = append(pix, grey, grey, grey)
	}
	return facedet.FromBGR(image.Pt(width, height), pix)
}
