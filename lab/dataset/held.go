// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"fmt"
	"image"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
)

// Species of held pictures.
const (
	Photo  = "photo"  // the picture itself, far turned, without paper or screen
	Print  = "print"  // on paper, by one of three dot screens
	Screen = "screen" // on a display
)

// Held returns a source of twelve seconds that shows a picture of a species as if a person held it
// before a camera. A photo moves evenly, and is foreshortened as if turned away: up to 60 degrees
// to either side and 40 up and down. The others move as a hand does, at random by the seed; so is
// the dot screen, of seed modulo 3. The caller keeps the picture.
func Held(picture *facedet.Picture, species string, seed uint64) (facedet.Source, error) {
	h := &held{picture: picture, size: picture.Size()}
	if species == Photo {
		return h, nil
	}
	if err := h.reproduce(species, seed); err != nil {
		return nil, err
	}
	h.random = rand.New(rand.NewPCG(seed, 0))
	for i := range h.hand {
		for k := range h.hand[i] {
			h.hand[i][k] = wave{.1 + h.random.Float64(), 2 * math.Pi * h.random.Float64()}
		}
	}
	return h, nil
}

type held struct {
	picture *facedet.Picture
	size    image.Point
	n       int

	surface []float32 // light of the paper or display, blue, green and red; nil for a photo
	hand    [6][3]wave
	random  *rand.Rand
}

const (
	heldFrames = 300 // 25 a second
	fine       = 4   // points of a surface for each pixel of the picture, in each direction
	gamma      = 2.2 // of cameras and displays
)

// wave is a movement of a frequency in Hz from a phase on.
type wave struct{ frequency, phase float64 }

// reproduce prints or displays the picture.
func (h *held) reproduce(species string, seed uint64) error {
	big, err := h.picture.Resize(h.size.Mul(fine))
	if err != nil {
		return err
	}
	defer big.Close()
	pix, err := big.BGR()
	if err != nil {
		return err
	}
	lines := []float64{.8, 1.3, 2}[seed%3] // between lines of dots, in pixels of the picture
	var lights [256]float64
	for i := range lights {
		lights[i] = math.Pow(float64(i)/255, gamma)
	}
	h.surface = make([]float32, len(pix))
	for i := 0; i < len(pix); i += 3 {
		x, y := i/3%(h.size.X*fine), i/3/(h.size.X*fine)
		var c [3]float64
		for k := range c {
			c[k] = lights[pix[i+k]]
		}
		grey := (c[0] + c[1] + c[2]) / 3
		for k, v := range c {
			if species == Print { // inks have less colour than light, and paper is never black
				v = dotted(1-grey-.8*(v-grey), float64(x)/fine/lines, float64(y)/fine/lines, k)
			} else {
				v = displayed(v, x, y, k)
			}
			h.surface[i+k] = float32(v)
		}
	}
	return nil
}

// dotted returns the light of paper at a place, in lines of dots, of which an ink covers a share:
// yellow, magenta and cyan take blue, green and red out, and their screens are turned against each
// other. Dots are diamonds whose edges bleed.
func dotted(share, x, y float64, ink int) float64 {
	sin, cos := math.Sincos([]float64{0, 75, 15}[ink] * math.Pi / 180)
	triangle := func(x float64) float64 { return math.Abs(2*(x-math.Floor(x)) - 1) }
	spot := (triangle(x*cos+y*sin) + triangle(y*cos-x*sin)) / 2
	least := math.Sqrt(max(share, 0) / 2) // the spots below it cover the share
	if share > .5 {
		least = 1 - math.Sqrt(max(1-share, 0)/2)
	}
	covered := min(max((least-spot)*3+.5, 0), 1)
	return .8 - .75*covered
}

// displayed returns the light of a display, whose pixels are stripes of red, green and blue with a
// dark line below, and whose black and white are bluish.
func displayed(light float64, x, y, colour int) float64 {
	light = (.02 + .95*light) * []float64{1.12, 1, .94}[colour]
	if x%3 != 2-colour || y%3 == 2 {
		return .2 * light
	}
	return 3.4 * light
}

func (h *held) Next(ctx context.Context) (*facedet.Frame, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if h.n == heldFrames {
		return nil, io.EOF
	}
	at := float64(h.n) / 25
	show := h.photo
	if h.surface != nil {
		show = h.film
	}
	img, err := show(at)
	if err != nil {
		return nil, fmt.Errorf("holding a picture: %w", err)
	}
	h.n++
	return &facedet.Frame{Index: h.n - 1, Time: time.Duration(h.n-1) * 40 * time.Millisecond,
		Image: img}, nil
}

// photo returns the picture, bent, so many seconds after the beginning.
func (h *held) photo(s float64) (*facedet.Picture, error) {
	wide, high := math.Cos(math.Pi/3*math.Sin(1.1*s)), math.Cos(math.Pi/4.5*math.Sin(.7*s))
	sin, cos := math.Sincos(.2 * math.Sin(1.7*s))
	x, y := float64(h.size.X)/2, float64(h.size.Y)/2
	a := [6]float64{wide * cos, -high * sin, 0, wide * sin, high * cos, 0}
	a[2] = x - a[0]*x - a[1]*y + 20*math.Sin(.9*s)
	a[5] = y - a[3]*x - a[4]*y + 15*math.Sin(1.3*s)
	return h.picture.Warp(a, h.size)
}

// film returns what a camera sees of the surface then, before a grey wall: nine points for each
// pixel, half a pixel apart, as a lens is about that sharp, so that dots and stripes interfere with
// pixels; a lamp that the surface reflects, noise, and compression.
func (h *held) film(s float64) (*facedet.Picture, error) {
	var hand [6]float64 // standard deviation about 1
	for i, waves := range h.hand {
		for _, w := range waves {
			hand[i] += math.Sin(2*math.Pi*w.frequency*s+w.phase) / math.Sqrt(1.5)
		}
	}
	wide, high := float64(h.size.X), float64(h.size.Y)
	siny, cosy := math.Sincos(.2 * hand[0]) // tilted to the side, and up or down, by radians
	sinx, cosx := math.Sincos(.12 * hand[1])
	sinz, cosz := math.Sincos(.05 * hand[2])
	across := [3]float64{cosz * cosy, sinz * cosy, -siny} // axes of the surface
	down := [3]float64{cosz*siny*sinx - sinz*cosx, sinz*siny*sinx + cosz*cosx, cosy * sinx}
	normal := [3]float64{cosz*siny*cosx + sinz*sinx, sinz*siny*cosx - cosz*sinx, cosy * cosx}
	middle := [3]float64{.02 * hand[3], .02 * hand[4], 1 + .04*hand[5]}
	dot := func(a, b [3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }
	focal := 1.2 * wide
	lampX, lampY := wide*(.7+siny), high*(.25+sinx)
	var tones [4096]float64
	for i := range tones {
		tones[i] = 255 * math.Pow(float64(i)/4095, 1/gamma)
	}
	pix := make([]byte, 3*h.size.X*h.size.Y)
	for i := 0; i < len(pix); i += 3 {
		x, y := float64(i/3%h.size.X), float64(i/3/h.size.X)
		var light [3]float64
		for sub := range 9 {
			ray := [3]float64{(x + .5*float64(sub%3) - wide/2) / focal,
				(y + .5*float64(sub/3) - high/2) / focal, 1}
			far := dot(normal, middle) / dot(normal, ray)
			u := int(math.Floor(fine * (dot(across, ray)*far - dot(across, middle)) * focal))
			v := int(math.Floor(fine * (dot(down, ray)*far - dot(down, middle)) * focal))
			u, v = u+fine*h.size.X/2, v+fine*h.size.Y/2
			if u < 0 || v < 0 || u >= fine*h.size.X || v >= fine*h.size.Y {
				light[0], light[1], light[2] = light[0]+.2/9, light[1]+.2/9, light[2]+.2/9
				continue
			}
			for k := range light {
				light[k] += float64(h.surface[3*(v*fine*h.size.X+u)+k]) / 9
			}
		}
		dx, dy := (x-lampX)/wide*6, (y-lampY)/high*5
		glare := .12 * math.Exp(-dx*dx-dy*dy)
		for k, v := range light {
			v = tones[int(4095*min(v+glare, 1))] + 1.2*h.random.NormFloat64()
			pix[i+k] = uint8(min(max(v, 0), 255))
		}
	}
	img, err := facedet.FromBGR(h.size, pix)
	if err != nil {
		return nil, err
	}
	defer img.Close()
	jpeg, err := img.JPEG(88)
	if err != nil {
		return nil, err
	}
	return facedet.DecodePicture(jpeg)
}

func (h *held) Count() face.Count { return face.Count{Declared: heldFrames, Read: h.n} }
func (h *held) Close() error      { return nil }
