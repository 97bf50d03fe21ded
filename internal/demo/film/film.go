// SPDX-License-Identifier: Apache-2.0

// Package film makes the recordings of package demo: [Write].
package film

import (
	"context"
	"fmt"
	"image"
	"math"
	"path/filepath"
	"slices"
	"sync"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
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

// photo is a grey still. Its last row and column are there twice, so that a value between pixels always has four
// neighbours.
type photo struct {
	size image.Point // without the doubles
	pix  []float64   // rows of size.X+1 values, one more row than size.Y
}

func newPhoto(size image.Point, pix []byte) *photo {
	p := &photo{size: size}
	for y := range size.Y + 1 {
		row := pix[min(y, size.Y-1)*size.X:][:size.X]
		for _, v := range row {
			p.pix = append(p.pix, float64(v))
		}
		p.pix = append(p.pix, float64(row[size.X-1]))
	}
	return p
}

// towards returns the still with that part of another one mixed in.
func (p *photo) towards(following *photo, part float64) *photo {
	if part == 0 {
		return p
	}
	m := &photo{p.size, make([]float64, len(p.pix))}
	for y := range p.size.Y + 1 {
		for x := range p.size.X + 1 {
			i, next := y*(p.size.X+1)+x, 0.
			if x <= following.size.X && y <= following.size.Y {
				next = following.pix[y*(following.size.X+1)+x]
			}
			m.pix[i] = (1-part)*p.pix[i] + part*next
		}
	}
	return m
}

// at returns the grey value between pixels, and 0 for its weight outside.
func (p *photo) at(x, y float64) (value, weight float64) {
	right, bottom := float64(p.size.X-1), float64(p.size.Y-1)
	if x < 0 || y < 0 || x > right || y > bottom {
		return 0, 0
	}
	i, j := int(x), int(y)
	u, v := x-float64(i), y-float64(j)
	stride := p.size.X + 1
	above, below := p.pix[j*stride+i:][:2], p.pix[(j+1)*stride+i:][:2]
	value = (1-u)*(1-v)*above[0] + u*(1-v)*above[1] + (1-u)*v*below[0] + u*v*below[1]
	// The edge of the still fades into the background.
	edge := min(x, y, right-x, bottom-y)
	if edge >= 6 {
		return value, 1
	}
	return value, edge / 6
}

// canvas is a grey frame that is being drawn.
type canvas struct{ pix []float64 }

// wall is the background of all frames: a gradient with a soft weave. Its sines cost more than the rest of a frame, so
// they are computed once.
var wall = sync.OnceValue(func() []float64 {
	pix := make([]float64, width*height)
	for y := range height {
		for x := range width {
			pix[y*width+x] = 118 + 30*float64(x)/width - 20*float64(y)/height +
				3*math.Sin(float64(x)/9)*math.Sin(float64(y)/11)
		}
	}
	return pix
})

func newCanvas() *canvas { return &canvas{slices.Clone(wall())} }

// draw puts a still on the canvas and returns its box. The number of the frame decides how it is panned, zoomed, tilted
// and blurred.
func (c *canvas) draw(p *photo, place float64, frame int) image.Rectangle {
	zoom := 2.3 + .35*wave(frame, 97, place)
	if place != .5 {
		zoom *= .8
	}
	tilt := .09 * wave(frame, 61, .3+place)
	cx := place*width + 28*wave(frame, 73, place)
	cy := .5*height + 18*wave(frame, 53, .6)
	w, h := zoom*float64(p.size.X), zoom*float64(p.size.Y)
	box := image.Rect(int(cx-w/2), int(cy-h/2), int(cx+w/2), int(cy+h/2)).Intersect(image.Rect(0, 0, width, height))
	reach := image.Rect(box.Min.X-20, box.Min.Y-20, box.Max.X+20,
		box.Max.Y+20).Intersect(image.Rect(0, 0, width, height))
	sin, cos := math.Sincos(tilt)
	blur := .5 + max(0, wave(frame, 113, .1)) // in pixels of the still
	for y := reach.Min.Y; y < reach.Max.Y; y++ {
		for x := reach.Min.X; x < reach.Max.X; x++ {
			dx, dy := (float64(x)-cx)/zoom, (float64(y)-cy)/zoom
			sx := cos*dx + sin*dy + float64(p.size.X)/2
			sy := -sin*dx + cos*dy + float64(p.size.Y)/2
			v, middle := p.at(sx, sy)
			if middle == 0 {
				continue
			}
			sum, weight := v*middle, middle
			for _, d := range [...][2]float64{{-blur, 0}, {blur, 0}, {0, -blur}, {0, blur}} {
				v, a := p.at(sx+d[0], sy+d[1])
				sum, weight = sum+v*a, weight+a
			}
			i := y*width + x
			c.pix[i] = (1-middle)*c.pix[i] + middle*sum/weight
		}
	}
	return box
}

// light changes the brightness of the whole frame over time.
func (c *canvas) light(frame int) {
	gain := 1 + .25*wave(frame, 151, .25)
	for i := range c.pix {
		c.pix[i] *= gain
	}
}

// picture returns the canvas as an image.
func (c *canvas) picture() (*facedet.Picture, error) {
	pix := make([]byte, len(c.pix))
	for i, v := range c.pix {
		pix[i] = uint8(min(max(v+.5, 0), 255))
	}
	g, err := cv.GrayFromBytes(image.Pt(width, height), pix)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	return g.BGR(), nil
}
