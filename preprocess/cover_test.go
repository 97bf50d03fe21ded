// SPDX-License-Identifier: Apache-2.0

package preprocess_test

import (
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/preprocess"
)

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
				pix[3*(y*size.X+x)+1], pix[3*(y*size.X+x)+2] = pix[3*(y*size.X+x)], pix[3*(y*size.X+x)]
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
	g := preprocess.Gate{MaxBrightness: 255, MaxTurn: 2, MinStill: 5000, MaxRoll: 40, MaxCut: .25, MinEyes: .08,
		MinMouth: .06}
	for _, c := range []struct {
		name   string
		img    *facedet.Picture
		box    image.Rectangle
		points []face.Point
		want   face.Reason
	}{
		{"good", noise(1), box, points, ""},
		{"without landmarks", noise(1), box, nil, ""},
		{"sunglasses", noise(1, around(eyes[0], 15), around(eyes[1], 15)), box, points, face.Covered},
		{"mask", noise(1, around(mouth, 30)), box, points, face.Covered},
		{"smeared", noise(12), box, points, face.Moved},
		{"tilted", noise(1), box, turned, face.Tilted},
		{"narrow at the left", noise(1), image.Rect(0, 50, 50, 150), nil, face.CutOff},
		{"narrow in the middle", noise(1), image.Rect(60, 50, 110, 150), nil, ""},
		{"wide at the bottom", noise(1), image.Rect(60, 130, 160, 200), nil, face.CutOff},
		{"half black", noise(1, image.Rect(0, 0, 97, 200)), box, nil, face.CutOff},
		{"black below", noise(1, image.Rect(0, 110, 200, 200)), box, nil, face.CutOff},
		{"narrow beside black", noise(1, image.Rect(0, 0, 58, 200)), image.Rect(60, 50, 110, 150), nil, face.CutOff},
		{"whole beside black", noise(1, image.Rect(0, 0, 58, 200)), box, nil, ""},
		{"black", noise(1, image.Rect(0, 0, 200, 200)), box, nil, face.CutOff},
	} {
		q, err := preprocess.Measure(c.img, c.box, c.points)
		if c.want != face.Moved && q.Streak < .6 { // noise that is scaled unevenly is smeared a little
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
