// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"image"
	"math"
	"slices"
	"sync"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
)

// photo is a grey still.
type photo struct {
	size image.Point
	pix  []byte
}

// at returns the grey value between pixels, and 0 for its weight outside.
func (p *photo) at(x, y float64) (value, weight float64) {
	if x < 0 || y < 0 || x > float64(p.size.X-1) || y > float64(p.size.Y-1) {
		return 0, 0
	}
	i, j := int(x), int(y)
	u, v := x-float64(i), y-float64(j)
	get := func(i, j int) float64 { return float64(p.pix[min(j, p.size.Y-1)*p.size.X+min(i, p.size.X-1)]) }
	value = (1-u)*(1-v)*get(i, j) + u*(1-v)*get(i+1, j) + (1-u)*v*get(i, j+1) + u*v*get(i+1, j+1)
	// The edge of the still fades into the background.
	edge := min(x, y, float64(p.size.X-1)-x, float64(p.size.Y-1)-y)
	return value, min(1, edge/6)
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
// and blurred. Fade is the weight of the following still, which shows through.
func (c *canvas) draw(p, following *photo, fade, place float64, frame int) image.Rectangle {
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
			var sum, weight float64
			for _, d := range [...][2]float64{{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}} {
				v, a := p.at(sx+blur*d[0], sy+blur*d[1])
				if fade > 0 {
					next, _ := following.at(sx+blur*d[0], sy+blur*d[1])
					v = (1-fade)*v + fade*next
				}
				sum, weight = sum+v*a, weight+a
			}
			if weight > 0 {
				_, a := p.at(sx, sy)
				i := y*width + x
				c.pix[i] = (1-a)*c.pix[i] + a*sum/weight
			}
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
	return (*facedet.Picture)(g.BGR()), nil
}
