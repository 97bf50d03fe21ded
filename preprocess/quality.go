// SPDX-License-Identifier: Apache-2.0

package preprocess

import (
	"image"
	"math"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/models"
)

// Measure returns the quality of the picture of a face in a box: see [face.Quality]. Landmarks may
// be nil.
func Measure(img *facedet.Picture, box image.Rectangle,
	landmarks []face.Point) (face.Quality, error) {
	crop, err := img.Crop(box)
	if err != nil {
		return face.Quality{}, err
	}
	defer crop.Close()
	small, err := scaled(crop, models.PixelSide)
	if err != nil {
		return face.Quality{}, err
	}
	defer small.Close()
	q := face.Quality{Size: min(box.Dx(), box.Dy()), Sharpness: small.Sharpness(),
		Turn: turn(landmarks), Partial: !img.Whole()}
	q.Brightness, q.Contrast = small.Stats()
	if b, g, r := crop.Mean(); q.Brightness > 0 {
		q.Colour = (max(b, g, r) - min(b, g, r)) / q.Brightness
	}
	grey, size := small.Bytes(), small.Size()
	q.Streak = streak(grey, size)
	q.Cut, err = cut(img, box, grey, size)
	if err != nil {
		return face.Quality{}, err
	}
	q.Eyes, q.Mouth, err = contrasts(img, box, landmarks)
	if err != nil {
		return face.Quality{}, err
	}
	if five, ok := face.FivePoints(landmarks); ok {
		q.Roll = 180 / math.Pi * math.Atan2(five[1][1]-five[0][1], five[1][0]-five[0][0])
	}
	return q, nil
}

// turn returns [face.Pose].Turn. It returns 0 without landmarks, and 1 for landmarks that fit no
// face.
func turn(landmarks []face.Point) float64 {
	if len(landmarks) == 0 {
		return 0
	}
	p, ok := face.PoseOf(landmarks)
	if !ok {
		return 1
	}
	return p.Turn
}

// streaked is the Quality.Streak from which a picture counts as smeared by a movement, if it is not
// sharp either.
const streaked = .5

// Gate says which pictures of faces may be labelled or learned.
type Gate struct {
	MinSize       int
	MinSharpness  float64
	MinBrightness float64
	MaxBrightness float64
	MinContrast   float64
	MaxTurn       float64 // limit of the absolute value of Quality.Turn
	MinStill      float64 // least sharpness of a picture whose Streak is above .5
	MaxRoll       float64 // limit of the absolute value of Quality.Roll, in degrees; 0 for none
	MaxCut        float64 // limit of Quality.Cut; 0 for none
	MinEyes       float64
	MinMouth      float64
	MaxGain       float64 // limit of Quality.Gain; 0 refuses all faces of brightened frames
	MaxNoise      float64 // limit of Quality.Noise; 0 for none
	// of a measured Quality.Norm; package pipeline sets it to the space's LearnNorm
	MinNorm float64
}

// LearnGate accepts faces that may be learned. It accepts a turned head: the graph learns it from
// the frames before. It refuses a profile, because its landmarks are guesses: embeddings of two
// people in profile come as near as .54, and in accepted faces never nearer than .84 (umist;
// lab/NOTES.md).
var LearnGate = Gate{MinSize: face.LeastSide, MinSharpness: 15, MinBrightness: 25,
	MaxBrightness: 235, MinContrast: 12,
	MaxTurn: 1.5, MinStill: 45, MaxRoll: 40, MaxCut: .25, MinEyes: .08, MinMouth: .06, MaxGain: 16}

// LoginGate accepts faces for a login: faces that may be learned, are not turned away, and need no
// brighter frame. Above its noise in colour, replays pass the liveness check (lab/NOTES.md).
var LoginGate = Gate{MinSize: face.LeastSide, MinSharpness: 15, MinBrightness: 25,
	MaxBrightness: 235, MinContrast: 12, MaxTurn: .6, MaxNoise: 2.5}

// EnrolGate accepts faces that may be labelled: good pictures that are not turned away. It needs no
// more light than LearnGate: a bound of 40 refused all pictures of one person of faces94_subset, so
// this person could not be enrolled.
var EnrolGate = Gate{MinSize: 48, MinSharpness: 25, MinBrightness: 25, MaxBrightness: 220,
	MinContrast: 18, MaxTurn: .6,
	MinStill: 45, MaxRoll: 40, MaxCut: .25, MinEyes: .08, MinMouth: .06, MaxGain: 4}

// Check returns the reason why a picture is refused, or "". A picture of which a part is missing is
// always refused: the rest may be of another frame.
func (g Gate) Check(q face.Quality) face.Reason {
	switch {
	case q.Partial:
		return face.Incomplete
	case q.Size < g.MinSize:
		return face.TooSmall
	case q.Brightness < g.MinBrightness, q.Gain > g.MaxGain, g.MaxNoise > 0 && q.Noise > g.MaxNoise:
		return face.TooDark
	case q.Brightness > g.MaxBrightness:
		return face.TooBright
	case q.Contrast < g.MinContrast:
		return face.Flat
	case g.MaxCut > 0 && q.Cut > g.MaxCut: // half a face has less detail, too
		return face.CutOff
	case q.Sharpness < g.MinSharpness:
		return face.Blurred
	case q.Streak > streaked && q.Sharpness < g.MinStill:
		return face.Moved
	case math.Abs(q.Turn) > g.MaxTurn:
		return face.TurnedAway
	case g.MaxRoll > 0 && math.Abs(q.Roll) > g.MaxRoll:
		return face.Tilted
	case q.Eyes < g.MinEyes, q.Mouth < g.MinMouth:
		return face.Covered
	case q.Norm > 0 && q.Norm < g.MinNorm:
		return face.Unclear
	}
	return ""
}

// noiseSamples is the largest number of pixels in which noise is measured.
const noiseSamples = 4096

// ColourNoise returns [face.Quality].Noise of a face in a box: 1.4826 times the median distance of
// a colour difference from its mean over 5x5 pixels around, weighted (1, 4, 6, 4, 1)/16 in both
// directions. The median ignores the edges in the face. The colour difference is Cr or Cb,
// whichever has more noise.
func ColourNoise(img *facedet.Picture, box image.Rectangle) (float64, error) {
	crop, err := img.Crop(box)
	if err != nil {
		return 0, err
	}
	defer crop.Close()
	pix, err := crop.BGR()
	if err != nil {
		return 0, err
	}
	w, h := crop.Size().X, crop.Size().Y
	step := max(1, int(math.Ceil(math.Sqrt(float64(w*h)/noiseSamples))))
	difference := func(at, channel int) float64 {
		x := pix[3*at:]
		return float64(x[channel]) - (.114*float64(x[0]) + .587*float64(x[1]) + .299*float64(x[2]))
	}
	kernel := [5]float64{1. / 16, 4. / 16, 6. / 16, 4. / 16, 1. / 16}
	noise := 0.
	for channel, scale := range map[int]float64{0: .564, 2: .713} { // Cb, Cr
		var far []float64
		for y := 2; y < h-2; y += step {
			for x := 2; x < w-2; x += step {
				mean := 0.
				for dy, a := range kernel {
					for dx, b := range kernel {
						mean += a * b * difference((y+dy-2)*w+x+dx-2, channel)
					}
				}
				far = append(far, math.Abs(difference(y*w+x, channel)-mean))
			}
		}
		if len(far) > 0 {
			slices.Sort(far)
			noise = max(noise, 1.4826*scale*far[len(far)/2])
		}
	}
	return noise, nil
}

// whole is the usual width of a whole face's box, as a share of its height.
const whole = .74

// blackest is the brightest grey value of a black bar. Many cameras write black as 16.
const blackest = 18

// darkEyes is the share of the brightness of the cheeks below which eyes may be covered.
const darkEyes = .45

// cut returns face.Quality.Cut. A box at the left or right edge that is too narrow, or at the upper
// or lower edge too wide, shows a part of a face. A black bar is an edge, too, as of a camera's
// privacy mask or of a film of another shape. The grey values are those of the box, at some size.
func cut(img *facedet.Picture, box image.Rectangle, grey []byte,
	size image.Point) (float64, error) {
	near := min(box.Dx(), box.Dy()) * 6 / 100
	around := box.Inset(-near)
	var edge [4]bool
	for i, line := range [4]image.Rectangle{
		image.Rect(around.Min.X, box.Min.Y, around.Min.X+1, box.Max.Y),
		image.Rect(around.Max.X-1, box.Min.Y, around.Max.X, box.Max.Y),
		image.Rect(box.Min.X, around.Min.Y, box.Max.X, around.Min.Y+1),
		image.Rect(box.Min.X, around.Max.Y-1, box.Max.X, around.Max.Y),
	} {
		var err error
		edge[i], err = hidden(img, line)
		if err != nil {
			return 0, err
		}
	}
	left, right := bars(grey, size.X, size.Y, 1, size.X)
	top, bottom := bars(grey, size.Y, size.X, size.X, 1)
	width, height := float64(box.Dx())*(1-left-right), float64(box.Dy())*(1-top-bottom)
	if width <= 0 || height <= 0 {
		return 1, nil
	}
	share, aspect := 0., width/height
	if edge[0] || edge[1] || left+right > 0 {
		share = 1 - aspect/whole
	}
	if edge[2] || edge[3] || top+bottom > 0 {
		share = max(share, 1-whole/aspect)
	}
	return max(0, share), nil
}

// hidden reports whether a line of a picture is black or lies beyond its edge.
func hidden(img *facedet.Picture, line image.Rectangle) (bool, error) {
	if !line.In(img.Bounds()) {
		return true, nil
	}
	crop, err := img.Crop(line)
	if err != nil {
		return false, err
	}
	defer crop.Close()
	grey := crop.Gray()
	defer grey.Close()
	return black(grey.Bytes(), 0, line.Dx()*line.Dy(), 1), nil
}

// bars returns which share of the lines of a picture is a black bar at its beginning, and which at
// its end. A line is a row or a column: it begins next grey values after the line before it, and
// its own values are step apart.
func bars(grey []byte, lines, length, next, step int) (before, after float64) {
	first, last := 0, lines
	for first < lines && black(grey, first*next, length, step) {
		first++
	}
	for last > first && black(grey, (last-1)*next, length, step) {
		last--
	}
	return float64(first) / float64(lines), float64(lines-last) / float64(lines)
}

// black reports whether n grey values are those of a black bar. A shadow has the noise of the
// sensor.
func black(grey []byte, from, n, step int) bool {
	least, most := byte(255), byte(0)
	for i := range n {
		v := grey[from+i*step]
		least, most = min(least, v), max(most, v)
	}
	return most <= blackest && most-least <= 2
}

// streak returns face.Quality.Streak of grey values: the energies of central differences in four
// directions.
func streak(grey []byte, size image.Point) float64 {
	var e [4]float64
	for y := 1; y < size.Y-1; y++ {
		for x := 1; x < size.X-1; x++ {
			at := y*size.X + x
			for i, step := range [4]int{1, size.X + 1, size.X, size.X - 1} {
				d := float64(grey[at+step]) - float64(grey[at-step])
				e[i] += d * d
			}
		}
	}
	e[1], e[3] = e[1]/2, e[3]/2 // a diagonal step is longer by a factor of the root of 2
	most := max(e[0], e[1], e[2], e[3])
	if most == 0 {
		return 0
	}
	return 1 - min(e[0], e[1], e[2], e[3])/most
}

// contrasts returns face.Quality.Eyes and Mouth.
func contrasts(img *facedet.Picture, box image.Rectangle,
	landmarks []face.Point) (eyes, mouth float64, err error) {
	five, ok := face.FivePoints(landmarks)
	if !ok {
		return 1, 1, nil
	}
	// 48 pixels between the eyes of a face that is brought upright.
	const d, side = 48, 144
	l, r := five[0], five[1]
	ux, uy := r[0]-l[0], r[1]-l[1]
	n := (ux*ux + uy*uy) / d
	if n == 0 {
		return 1, 1, nil
	}
	a := [6]float64{ux / n, uy / n, 0, -uy / n, ux / n, 0}
	a[2], a[5] = d-a[0]*l[0]-a[1]*l[1], d-a[3]*l[0]-a[4]*l[1]
	for _, x := range a {
		if math.IsNaN(x) || math.Abs(x) > 1e6 {
			return 1, 1, nil
		}
	}
	upright, err := img.Warp(a, image.Pt(side, side))
	if err != nil {
		return 0, 0, err
	}
	defer upright.Close()
	grey, err := upright.Thumbnail(image.Pt(side, side))
	if err != nil {
		return 0, 0, err
	}
	place := func(p [2]float64) [2]float64 {
		return [2]float64{a[0]*p[0] + a[1]*p[1] + a[2], a[3]*p[0] + a[4]*p[1] + a[5]}
	}
	left, right := place(five[3]), place(five[4])
	between := func(p, q [2]float64, share float64) [2]float64 {
		return [2]float64{p[0] + share*(q[0]-p[0]), p[1] + share*(q[1]-p[1])}
	}
	stats := func(c [2]float64, rx, ry float64) (mean, deviation float64) {
		var n, sum, squares float64
		for y := math.Ceil(max(0, c[1]-ry)); y <= min(side-1, c[1]+ry); y++ {
			for x := math.Ceil(max(0, c[0]-rx)); x <= min(side-1, c[0]+rx); x++ {
				if dx, dy := (x-c[0])/rx, (y-c[1])/ry; dx*dx+dy*dy <= 1 {
					v := float64(grey[int(y)*side+int(x)])
					n, sum, squares = n+1, sum+v, squares+v*v
				}
			}
		}
		if n == 0 {
			return 0, 0
		}
		mean = sum / n
		return mean, math.Sqrt(max(0, squares/n-mean*mean))
	}
	e, f := [2]float64{d, d}, [2]float64{2 * d, d}
	m1, e1 := stats(e, .3*d, .15*d)
	m2, e2 := stats(f, .3*d, .15*d)
	c1, _ := stats(between(e, left, .55), .15*d, .12*d)
	c2, _ := stats(between(f, right, .55), .15*d, .12*d)
	m, dev := stats(between(left, right, .5), .4*d, .2*d)
	eyes = 1
	if m1+m2 < darkEyes*(c1+c2) {
		eyes = ratio(e1+e2, c1+c2)
	}
	return eyes, ratio(dev, m), nil
}

// ratio returns a / b, and 1 if b is 0: nothing was seen.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 1
	}
	return min(a/b, 100)
}
