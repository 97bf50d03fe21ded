// SPDX-License-Identifier: Apache-2.0

package preprocess_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/preprocess"
)

// noise returns a picture of blurred noise, in which every place looks different.
func noise(t testing.TB, size image.Point) *facedet.Picture {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	small := image.NewGray(image.Rectangle{Max: size.Div(8)})
	for i := range small.Pix {
		small.Pix[i] = uint8(r.IntN(256))
	}
	p := fixture.Must(facedet.FromImage(small))(t)
	defer p.Close()
	return fixture.Must(p.Resize(size))(t)
}

// landmarks returns 68 points of a frontal face in a box.
func landmarks(box image.Rectangle) []face.Point {
	l := make([]face.Point, 68)
	set := func(from, to int, x, y float32) {
		for i := from; i < to; i++ {
			l[i] = face.Point{X: float32(box.Min.X) + x*float32(box.Dx()),
				Y: float32(box.Min.Y) + y*float32(box.Dy())}
		}
	}
	set(0, 68, .5, .5)
	set(36, 42, .3, .4)
	set(42, 48, .7, .4)
	set(30, 31, .5, .6)
	set(48, 49, .35, .8)
	set(54, 55, .65, .8)
	return l
}

func embedding(t testing.TB) preprocess.Extractor {
	t.Helper()
	e := fixture.Must(preprocess.NewEmbedding(models.Default(models.Embedding),
		fixture.Models(t)))(t)
	t.Cleanup(func() { e.Close() })
	return e
}

// The embedding of a face does not depend on its place in the frame, its size or its tilt: the
// alignment undoes them, up to the rounding of pixels.
func TestEmbeddingAligned(t *testing.T) {
	e := embedding(t)
	size := image.Pt(240, 240)
	img := noise(t, size)
	defer img.Close()
	points := landmarks(image.Rect(50, 50, 190, 190))
	x, _, err := preprocess.Extract(e, img, image.Rect(50, 50, 190, 190), points)
	fixture.Check(t, err)
	fixture.Check(t, e.Space().Check(x))
	sin, cos := math.Sincos(.3)
	for _, m := range []struct {
		name string
		a    cv.Affine
	}{
		{"moved", cv.Affine{1, 0, 37, 0, 1, 81}},
		{"enlarged", cv.Affine{1.5, 0, 10, 0, 1.5, 20}},
		{"tilted", cv.Affine{cos, -sin, 100, sin, cos, 20}},
	} {
		moved := fixture.Must(img.Warp(m.a, image.Pt(420, 420)))(t)
		there := make([]face.Point, len(points))
		for i, p := range points {
			px, py := float64(p.X), float64(p.Y)
			there[i] = face.Point{X: float32(m.a[0]*px + m.a[1]*py + m.a[2]),
				Y: float32(m.a[3]*px + m.a[4]*py + m.a[5])}
		}
		y, _, err := preprocess.Extract(e, moved, image.Rect(0, 0, 420, 420), there)
		moved.Close()
		fixture.Check(t, err)
		var sum float64
		for i := range x {
			sum += float64(x[i]-y[i]) * float64(x[i]-y[i])
		}
		// Two interpolations cost up to .2 here. Without the alignment the distance is above .8.
		if d := math.Sqrt(sum); d > .35 {
			t.Errorf("%s: distance %.3f from the same face", m.name, d)
		}
	}
}

func TestEmbeddingErrors(t *testing.T) {
	e := embedding(t)
	img := noise(t, image.Pt(120, 120))
	defer img.Close()
	box := image.Rect(0, 0, 120, 120)
	spot := make([]face.Point, 68)
	nan := landmarks(box)
	nan[36].X = float32(math.NaN())
	far := landmarks(box)
	far[36].X = float32(math.Inf(1))
	for name, landmarks := range map[string][]face.Point{
		"none": nil, "four": spot[:4], "five on one spot": spot[:5], "one spot": spot,
		"not a number": nan, "infinite": far,
	} {
		if _, _, err := preprocess.Extract(e, img, box, landmarks); !errors.Is(err,
			preprocess.ErrLandmarks) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A description that does not fit the network is an error when the network is opened, not a crash
// later.
func TestEmbeddingOfAnotherShape(t *testing.T) {
	dir := fixture.Models(t)
	landmarks := models.Default(models.Landmarks)
	for name, change := range map[string]func(d *models.Description){
		"another length":  func(d *models.Description) { d.Dim = 128 },
		"another input":   func(d *models.Description) { d.Input.Width = 37 },
		"grey for colour": func(d *models.Description) { d.Input.Colour = "gray" },
		"no such output":  func(d *models.Description) { d.Outputs = []string{"nothing"} },
		"another kind of network": func(d *models.Description) {
			d.File, d.SHA256 = landmarks.File, landmarks.SHA256
		},
		"another kind": func(d *models.Description) { d.Kind = models.Liveness },
	} {
		d := models.Default(models.Embedding)
		change(&d)
		if e, err := preprocess.NewEmbedding(d, dir); !errors.Is(err, models.ErrShape) {
			t.Errorf("%s: error %v", name, err)
			if err == nil {
				e.Close()
			}
		}
	}
}

func TestLiveness(t *testing.T) {
	l := fixture.Must(preprocess.NewLiveness(models.Default(models.Liveness), fixture.Models(t)))(t)
	defer l.Close()
	img := noise(t, image.Pt(160, 80))
	defer img.Close()
	for _, box := range []image.Rectangle{image.Rect(60, 20, 100, 60), image.Rect(0, 0, 160, 80),
		image.Rect(159, 79, 160, 80)} {
		s, err := l.Score(img, box)
		if err != nil || !(s >= 0 && s <= 1) {
			t.Errorf("box %v: %g, %v", box, s, err)
		}
	}
}

// The crop keeps its shape and lies inside the frame, for any place of the face and any size of the
// frame.
func TestSurroundings(t *testing.T) {
	for _, c := range []struct {
		name  string
		box   image.Rectangle
		crop  string
		scale float64
		frame image.Point
		want  image.Rectangle
	}{
		{"in the middle", image.Rect(300, 200, 340, 260), "square", 1.5,
			image.Pt(640, 480), image.Rect(275, 185, 365, 275)},
		{"a wide box", image.Rect(300, 200, 360, 240), "square", 1.5, image.Pt(640, 480),
			image.Rect(285, 175, 375, 265)},
		{"top left", image.Rect(0, 0, 40, 60), "square", 1.5, image.Pt(640, 480),
			image.Rect(0, 0, 90, 90)},
		{"bottom right", image.Rect(600, 420, 640, 480), "square", 1.5, image.Pt(640, 480),
			image.Rect(550, 390, 640, 480)},
		{"higher than the frame", image.Rect(100, 10, 200, 110), "square", 1.5,
			image.Pt(400, 120), image.Rect(90, 0, 210, 120)},
		{"wider than the frame", image.Rect(10, 100, 110, 200), "square", 1.5,
			image.Pt(120, 400), image.Rect(0, 90, 120, 210)},
		{"all of the frame", image.Rect(0, 0, 92, 112), "square", 1.65, image.Pt(92, 112),
			image.Rect(0, 10, 92, 102)},
		{"a box larger than the frame", image.Rect(-20, -30, 200, 300), "square", 1.65,
			image.Pt(92, 112), image.Rect(0, 20, 92, 112)},
		{"a box beside the frame", image.Rect(700, 500, 740, 560), "square", 1.5,
			image.Pt(640, 480), image.Rect(550, 390, 640, 480)},
		{"one pixel", image.Rect(5, 5, 6, 6), "square", .5, image.Pt(640, 480),
			image.Rect(5, 5, 6, 6)},
		{"a frame of one pixel", image.Rect(0, 0, 1, 1), "square", 1.65, image.Pt(1, 1),
			image.Rect(0, 0, 1, 1)},
		{"a strip", image.Rect(10, 0, 12, 1), "square", 1.65, image.Pt(1000, 1),
			image.Rect(11, 0, 12, 1)},
		{"an empty box", image.Rectangle{}, "square", 1.65, image.Pt(640, 480),
			image.Rect(0, 0, 1, 1)},
		{"the box itself", image.Rect(300, 200, 340, 260), "box", 2, image.Pt(640, 480),
			image.Rect(280, 170, 360, 290)},
		{"the box itself, too large", image.Rect(300, 200, 340, 260), "box", 10,
			image.Pt(640, 480), image.Rect(160, 0, 480, 480)},
	} {
		got := preprocess.Surroundings(c.box, c.crop, c.scale, c.frame)
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if !got.In(image.Rectangle{Max: c.frame}) || got.Empty() {
			t.Errorf("%s: %v is not in a frame of %v", c.name, got, c.frame)
		}
		if c.crop == "square" && got.Dx() != got.Dy() {
			t.Errorf("%s: %v is not a square", c.name, got)
		}
	}
}

func TestMeasure(t *testing.T) {
	grey := image.NewGray(image.Rect(0, 0, 100, 100))
	for i := range grey.Pix {
		grey.Pix[i] = 100
	}
	flat := fixture.Must(facedet.FromImage(grey))(t)
	defer flat.Close()
	box := image.Rect(10, 20, 70, 90)
	q := fixture.Must(preprocess.Measure(flat, box, landmarks(box)))(t)
	if q.Size != 60 || q.Sharpness != 0 || q.Brightness != 100 || q.Contrast != 0 ||
		math.Abs(q.Turn) > 1e-6 {
		t.Errorf("quality %+v", q)
	}
	// If the nose is under the left eye of the picture, the turn is -1.
	turned := landmarks(box)
	turned[30].X = turned[36].X
	if q, _ := preprocess.Measure(flat, box, turned); math.Abs(q.Turn+1) > 1e-6 {
		t.Errorf("turn %g, want -1", q.Turn)
	}
	file := fixture.Must(flat.JPEG(90))(t)
	part := fixture.Must(facedet.DecodePicture(file[:len(file)-2]))(t)
	defer part.Close()
	bright := fixture.Must(part.Brightened(1.5))(t)
	defer bright.Close()
	if q, err := preprocess.Measure(bright, box, nil); err != nil || !q.Partial {
		t.Errorf("of a picture that ends too early: %+v, %v", q, err)
	}
	if _, err := preprocess.Measure(flat, image.Rect(200, 200, 300, 300), nil); err == nil {
		t.Error("a box outside the picture gave no error")
	}
}

func TestGate(t *testing.T) {
	g := preprocess.Gate{MinSize: 40, MinSharpness: 10, MinBrightness: 30, MaxBrightness: 200,
		MinContrast: 12,
		MaxTurn:     .6, MinNorm: 2, MinStill: 60, MaxRoll: 40, MaxCut: .25, MinEyes: .06,
		MinMouth: .07, MaxGain: 4, MaxNoise: 2.5}
	good := face.Quality{Size: 40, Sharpness: 10, Brightness: 30, Contrast: 12, Turn: -.6,
		Roll: -40, Cut: .25, Streak: .5, Eyes: .06, Mouth: .07, Gain: 4}
	for _, c := range []struct {
		want   face.Reason
		change func(q *face.Quality)
	}{
		{"", func(q *face.Quality) {}},
		{face.Incomplete, func(q *face.Quality) { q.Partial = true }},
		{face.TooSmall, func(q *face.Quality) { q.Size = 39 }},
		{face.TooDark, func(q *face.Quality) { q.Brightness = 29.9 }},
		{face.TooBright, func(q *face.Quality) { q.Brightness = 200.1 }},
		{face.Flat, func(q *face.Quality) { q.Contrast = 11.9 }},
		{face.Blurred, func(q *face.Quality) { q.Sharpness = 9.9 }},
		{face.TurnedAway, func(q *face.Quality) { q.Turn = -.61 }},
		{face.TurnedAway, func(q *face.Quality) { q.Turn = .61 }},
		{"", func(q *face.Quality) { q.Norm = 2 }},
		{face.Unclear, func(q *face.Quality) { q.Norm = 1.99 }},
		{face.TurnedAway, func(q *face.Quality) { q.Turn, q.Norm = .61, 1.99 }},
		{face.TooDark, func(q *face.Quality) { q.Gain = 4.1 }},
		{"", func(q *face.Quality) { q.Noise = 2.5 }},
		{face.TooDark, func(q *face.Quality) { q.Noise = 2.6 }},
		{face.Moved, func(q *face.Quality) { q.Streak = .51 }},
		{"", func(q *face.Quality) { q.Streak, q.Sharpness = .51, 60 }},
		{face.Tilted, func(q *face.Quality) { q.Roll = -40.1 }},
		{face.Tilted, func(q *face.Quality) { q.Roll = 40.1 }},
		{face.CutOff, func(q *face.Quality) { q.Cut = .26 }},
		{face.Covered, func(q *face.Quality) { q.Eyes = .05 }},
		{face.Covered, func(q *face.Quality) { q.Mouth = .06 }},
		{face.TooSmall, func(q *face.Quality) { *q = face.Quality{} }},
	} {
		q := good
		c.change(&q)
		if got := g.Check(q); got != c.want {
			t.Errorf("quality %+v: reason %q, want %q", q, got, c.want)
		}
	}
}

// A sample does not change when it is encoded as JSON and decoded, so another process can make it.
func TestSampleIsPlain(t *testing.T) {
	live := float32(.5)
	s := face.Sample{
		Track: 3, Box: image.Rect(1, 2, 3, 4), Score: .9, Landmarks: []face.Point{{X: 1, Y: 2}},
		Space:  "pixels",
		Vector: []float32{.25, .5}, Quality: face.Quality{Size: 2}, Reason: face.Blurred,
		Liveness: &live, JPEG: []byte{1, 2},
	}
	b := fixture.Must(json.Marshal(s))(t)
	var back face.Sample
	fixture.Check(t, json.Unmarshal(b, &back))
	again := fixture.Must(json.Marshal(back))(t)
	if !bytes.Equal(b, again) {
		t.Errorf("%s became %s", b, again)
	}
}

// A model file that was changed never gets a face as input.
func TestEmbeddingWrongHash(t *testing.T) {
	d := models.Default(models.Embedding)
	dir := t.TempDir()
	fixture.Check(t, os.WriteFile(filepath.Join(dir, d.File), []byte("another network"), 0o600))
	if _, err := preprocess.NewEmbedding(d, dir); !errors.Is(err, models.ErrHash) {
		t.Errorf("a changed file: error %v", err)
	}
	if _, err := preprocess.NewEmbedding(d, t.TempDir()); !errors.Is(err, models.ErrMissing) {
		t.Errorf("a missing file: error %v", err)
	}
}

// What spoils a face shows in its quality.
func TestMeasureFaults(t *testing.T) {
	size := image.Pt(200, 200)
	box := image.Rect(60, 50, 134, 150) // .74 times as wide as high
	points := landmarks(box)
	eyes, _ := face.FivePoints(points)
	noise := func(smear int, dark ...image.Rectangle) *facedet.Picture {
		rnd := rand.New(rand.NewPCG(1, 2))
		pix := make([]byte, 3*size.X*size.Y)
		for y := range size.Y {
			for x := range size.X {
				if x%smear == 0 {
					pix[3*(y*size.X+x)] = uint8(80 + rnd.IntN(120))
				} else {
					pix[3*(y*size.X+x)] = pix[3*(y*size.X+x-1)]
				}
				for _, d := range dark {
					if image.Pt(x, y).In(d) {
						pix[3*(y*size.X+x)] = 16
					}
				}
				pix[3*(y*size.X+x)+1], pix[3*(y*size.X+x)+2] = pix[3*(y*size.X+x)],
					pix[3*(y*size.X+x)]
			}
		}
		return fixture.Must(facedet.FromBGR(size, pix))(t)
	}
	around := func(p [2]float64, by int) image.Rectangle {
		at := image.Pt(int(p[0]), int(p[1]))
		return image.Rectangle{at, at}.Inset(-by)
	}
	turned := append([]face.Point(nil), points...)
	for i := range turned { // by 90 degrees clockwise
		turned[i].X, turned[i].Y = 200-points[i].Y, points[i].X
	}
	mouth := [2]float64{(eyes[3][0] + eyes[4][0]) / 2, (eyes[3][1] + eyes[4][1]) / 2}
	g := preprocess.Gate{MaxBrightness: 255, MaxTurn: 2, MinStill: 5000, MaxRoll: 40, MaxCut: .25,
		MinEyes: .08, MinMouth: .06}
	for _, c := range []struct {
		name   string
		img    *facedet.Picture
		box    image.Rectangle
		points []face.Point
		want   face.Reason
	}{
		{"good", noise(1), box, points, ""},
		{"without landmarks", noise(1), box, nil, ""},
		{"sunglasses", noise(1, around(eyes[0], 15), around(eyes[1], 15)), box, points,
			face.Covered},
		{"mask", noise(1, around(mouth, 30)), box, points, face.Covered},
		{"smeared", noise(12), box, points, face.Moved},
		{"tilted", noise(1), box, turned, face.Tilted},
		{"narrow at the left", noise(1), image.Rect(0, 50, 50, 150), nil, face.CutOff},
		{"narrow in the middle", noise(1), image.Rect(60, 50, 110, 150), nil, ""},
		{"wide at the bottom", noise(1), image.Rect(60, 130, 160, 200), nil, face.CutOff},
		{"half black", noise(1, image.Rect(0, 0, 97, 200)), box, nil, face.CutOff},
		{"black below", noise(1, image.Rect(0, 110, 200, 200)), box, nil, face.CutOff},
		{"narrow beside black", noise(1, image.Rect(0, 0, 58, 200)), image.Rect(60, 50, 110, 150),
			nil, face.CutOff},
		{"whole beside black", noise(1, image.Rect(0, 0, 58, 200)), box, nil, ""},
		{"black", noise(1, image.Rect(0, 0, 200, 200)), box, nil, face.CutOff},
	} {
		q, err := preprocess.Measure(c.img, c.box, c.points)
		// noise that is scaled unevenly is smeared a little
		if c.want != face.Moved && q.Streak < .6 {
			q.Streak = 0
		}
		if got := g.Check(q); err != nil || got != c.want {
			t.Errorf("%s: %q, want %q: %+v, %v", c.name, got, c.want, q, err)
		}
		c.img.Close()
	}
	same := append([]face.Point(nil), points...)
	for i := range same {
		same[i] = face.Point{X: 3, Y: 3}
	}
	far := append([]face.Point(nil), points...)
	far[36].X = float32(math.Inf(1))
	img := noise(1)
	defer img.Close()
	for _, p := range [][]face.Point{same, far} {
		if q, err := preprocess.Measure(img, box, p); err != nil || q.Eyes != 1 || q.Mouth != 1 {
			t.Errorf("landmarks that fit no face: %+v, %v", q, err)
		}
	}
}
