// SPDX-License-Identifier: Apache-2.0

package still_test

import (
	"bytes"
	"image"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/still"
)

var size = image.Pt(160, 120)

// film makes grey pictures of a room with noise.
type film struct {
	rnd   *rand.Rand
	noise float64
	light float64
	n     int
	face  image.Rectangle // brighter than the wall
	shift float64         // of the face to the right
}

func newFilm(noise float64) *film { return &film{rnd: rand.New(rand.NewPCG(1, 2)), noise: noise} }

func (f *film) next() (at time.Duration, pix []uint8) {
	pix = make([]uint8, size.X*size.Y)
	for y := range size.Y {
		for x := range size.X {
			v := 90 + 40*math.Sin(float64(x)/7)*math.Cos(float64(y)/9) + f.light
			// If the edge of a face moves by a part of a pixel, the pixel changes by the same part.
			in := min(1, max(0, float64(x)+1-float64(f.face.Min.X)-f.shift)) * min(1,
				max(0, float64(f.face.Max.X)+f.shift-float64(x)))
			if y >= f.face.Min.Y && y < f.face.Max.Y {
				v += 45 * in
			}
			pix[y*size.X+x] = uint8(max(0, min(255, v+f.rnd.NormFloat64()*f.noise+.5)))
		}
	}
	f.n++
	return time.Duration(f.n) * 100 * time.Millisecond, pix
}

// watch shows frames to a scene, looks if something moved, and returns the number of looks.
func (f *film) watch(s *still.Scene, frames int, each func()) (looks int) {
	for range frames {
		if each != nil {
			each()
		}
		at, pix := f.next()
		s.See(at, size, pix)
		if s.Moved() {
			looks++
			s.Nothing(nil, size)
			s.Looked(image.Rectangle{Max: size}, size)
		}
	}
	return looks
}

// Noise is not movement, after a scene has learned the noise. A face that appears is movement.
func TestNoise(t *testing.T) {
	for _, noise := range []float64{0, .5, 1, 2, 3} {
		f, s := newFilm(noise), new(still.Scene)
		f.watch(s, 100, nil)
		if n := f.watch(s, 600, nil); n > 0 {
			t.Errorf("noise %g: %d looks in a minute in which nothing moved", noise, n)
		}
		f.face = image.Rect(70, 50, 75, 56) // the smallest face that is found in any picture
		at, pix := f.next()
		s.See(at, size, pix)
		if !s.Moved() || !s.MovedIn(image.Rect(280, 200, 300, 224), image.Pt(640, 480)) {
			t.Errorf("noise %g: a face came, and no movement was reported there", noise)
		}
		if s.MovedIn(image.Rect(0, 0, 200, 480), image.Pt(640, 480)) ||
			s.MovedIn(image.Rect(0, 300, 640, 480), image.Pt(640, 480)) {
			t.Errorf("noise %g: movement was reported where nothing moved", noise)
		}
	}
}

// Slow movement adds up: a tenth of a pixel in each frame is noticed within a few pixels.
func TestSlow(t *testing.T) {
	f, s := newFilm(1), new(still.Scene)
	f.face = image.Rect(60, 40, 80, 64)
	f.watch(s, 100, nil)
	before := 0.
	for range 10 {
		for !s.Moved() {
			f.shift += .1
			at, pix := f.next()
			s.See(at, size, pix)
			if f.shift-before > 4 {
				t.Fatalf("a face moved by %.1f pixels, and nothing was seen", f.shift-before)
			}
		}
		s.Looked(image.Rectangle{Max: size}, size)
		before = f.shift
		at, pix := f.next()
		s.See(at, size, pix)
	}
}

// Light that changes by a grey value in ten seconds causes only a few looks; a lamp causes one.
func TestLight(t *testing.T) {
	f, s := newFilm(1), new(still.Scene)
	f.watch(s, 100, nil)
	if n := f.watch(s, 600, func() { f.light += .01 }); n > 12 {
		t.Errorf("%d looks in a minute of dusk", n)
	}
	f.light = 60
	if n := f.watch(s, 50, nil); n != 1 {
		t.Errorf("%d looks after a lamp was switched on", n)
	}
}

// The pulse of compressed video is ignored after some looks without a result, and a face is still
// noticed then. Near a face nothing is ignored.
func TestPulse(t *testing.T) {
	f, s := newFilm(.5), new(still.Scene)
	f.watch(s, 50, nil)
	pulse := func() {
		if f.light = 0; f.n%10 == 0 {
			f.light = 5
		}
	}
	f.watch(s, 300, pulse)
	if n := f.watch(s, 300, pulse); n > 15 {
		t.Errorf("%d looks at 30 pulses", n)
	}
	f.light, f.face = 0, image.Rect(70, 50, 82, 64)
	at, pix := f.next()
	if s.See(at, size, pix); !s.Moved() {
		t.Error("a face came between pulses, and no movement was reported")
	}

	f, s = newFilm(.5), new(still.Scene)
	f.watch(s, 50, nil)
	near, looks := []image.Rectangle{image.Rect(40, 30, 60, 55)}, 0
	for range 300 {
		pulse()
		at, pix := f.next()
		if s.See(at, size, pix); s.MovedIn(near[0], size) {
			looks++
		}
		if s.Moved() {
			s.Nothing(near, size)
			s.Looked(image.Rectangle{Max: size}, size)
		}
	}
	if looks < 50 { // each pulse is two movements, up and down
		t.Errorf("%d movements near a face at 30 pulses", looks)
	}
}

// In the first picture, and in a picture of another size, everything counts as moved.
func TestFirst(t *testing.T) {
	s := new(still.Scene)
	for _, size := range []image.Point{{160, 120}, {120, 160}, {1, 1}, {7, 3}} {
		s.See(0, size, make([]uint8, size.X*size.Y))
		if !s.Moved() || !s.MovedIn(image.Rect(0, 0, 1, 1), size) {
			t.Errorf("%v: nothing moved", size)
		}
		s.Looked(image.Rectangle{Max: size}, size)
		s.See(0, size, make([]uint8, size.X*size.Y))
		if s.Moved() || s.MovedIn(image.Rectangle{Max: size}, size) {
			t.Errorf("%v: the same picture moved", size)
		}
		if s.MovedIn(image.Rect(-5, -5, 0, 0), size) ||
			s.MovedIn(image.Rect(0, 0, 1, 1), image.Point{}) {
			t.Errorf("%v: something moved outside of the picture", size)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("See accepted a picture of another length")
		}
	}()
	s.See(0, size, nil)
}

func TestShrunk(t *testing.T) {
	for _, c := range []struct{ from, want image.Point }{
		{image.Pt(640, 480), image.Pt(160, 120)}, {image.Pt(480, 640), image.Pt(120, 160)},
		{image.Pt(1920, 1080), image.Pt(160, 90)},
		{image.Pt(160, 120), image.Pt(160, 120)}, {image.Pt(92, 112), image.Pt(92, 112)},
		{image.Pt(60000, 2), image.Pt(160, 1)}, {image.Pt(1, 1), image.Pt(1, 1)},
	} {
		if got := still.Shrunk(c.from); got != c.want {
			t.Errorf("%v: %v, want %v", c.from, got, c.want)
		}
	}
}

// slow is the obvious scene: it follows the package's documentation cell by cell, without regard to
// speed.
type slow struct {
	now, looked   []uint8
	noise, waived map[image.Point]float64
	moved         map[image.Point]bool
	diff          map[image.Point]float64
	at            time.Duration
}

func (s *slow) see(at time.Duration, pix []uint8) {
	threshold := func(c image.Point) float64 { return 2 + 2*s.noise[c] + s.waived[c] }
	mean := func(c image.Point, other []uint8) float64 {
		sum, n := 0., 0.
		for y := range size.Y {
			for x := range size.X {
				if x/4 == c.X && y/4 == c.Y {
					sum += math.Abs(float64(pix[y*size.X+x]) - float64(other[y*size.X+x]))
					n++
				}
			}
		}
		return sum / n
	}
	before := map[image.Point]float64{}
	for c := range s.noise {
		s.waived[c] /= 1 + (at-s.at).Seconds()/300
		s.diff[c], before[c] = mean(c, s.looked), mean(c, s.now)
	}
	for c := range s.noise {
		beside := false
		for d := range s.noise {
			if d != c && d.X >= c.X-1 && d.X <= c.X+1 && d.Y >= c.Y-1 && d.Y <= c.Y+1 {
				beside = beside || s.was(d, threshold(d))
			}
		}
		s.moved[c] = s.was(c, threshold(c)) && (beside || s.diff[c] > 2*threshold(c))
	}
	next := map[image.Point]float64{}
	for c, n := range s.noise {
		switch b := before[c]; {
		case b <= n:
			next[c] = n + .1*(b-n)
		case b < threshold(c):
			next[c] = min(6, n+.02*(b-n))
		default:
			next[c] = n
		}
	}
	s.noise, s.now, s.at = next, pix, at
}

func (s *slow) was(c image.Point, threshold float64) bool { return s.diff[c] > threshold }

// A scene reports movement wherever the obvious scene does.
func TestSceneAgainstObvious(t *testing.T) {
	defer func(old image.Point) { size = old }(size)
	size = image.Pt(30, 22) // cells at two edges are cut off
	f, s := newFilm(1.5), new(still.Scene)
	f.face = image.Rect(8, 6, 16, 14)
	at, pix := f.next()
	s.See(at, size, pix)
	o := &slow{now: pix, looked: bytes.Clone(pix), at: at, noise: map[image.Point]float64{},
		waived: map[image.Point]float64{}, moved: map[image.Point]bool{},
		diff: map[image.Point]float64{}}
	for y := range 6 {
		for x := range 8 {
			o.noise[image.Pt(x, y)] = 1
		}
	}
	moved := 0
	for i := range 300 {
		if i%20 > 12 {
			f.shift += .4
		}
		at, pix := f.next()
		s.See(at, size, pix)
		o.see(at, pix)
		any := false
		for c := range o.noise {
			r := image.Rectangle{Min: c.Mul(4),
				Max: c.Mul(4).Add(image.Pt(4, 4))}.Intersect(image.Rectangle{Max: size})
			if got := s.MovedIn(r, size); got != o.moved[c] {
				t.Fatalf("frame %d, cell %v: moved %t, want %t (%g)", i, c, got, o.moved[c],
					o.diff[c])
			}
			any = any || o.moved[c]
		}
		if s.Moved() != any {
			t.Fatalf("frame %d: moved %t, want %t", i, s.Moved(), any)
		}
		if any {
			moved++
			s.Looked(image.Rectangle{Max: size}, size)
			o.looked = bytes.Clone(pix)
		}
	}
	if moved < 10 || moved > 200 {
		t.Errorf("%d frames moved: the test shows nothing", moved)
	}
}
