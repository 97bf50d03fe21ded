// SPDX-License-Identifier: Apache-2.0

package preprocess

import (
	"image"
	"math"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
)

// whole is the usual width of a whole face's box, as a share of its height.
const whole = .74

// darkEyes is the share of the brightness of the cheeks below which eyes may be covered.
const darkEyes = .45

// cut returns face.Quality.Cut. A box at the left or right edge that is too narrow, or at the upper or lower edge too
// wide, shows a part of a face.
func cut(box image.Rectangle, frame image.Point) float64 {
	aspect, near := float64(box.Dx())/float64(box.Dy()), min(box.Dx(), box.Dy())*6/100
	var share float64
	if box.Min.X < near || frame.X-box.Max.X < near {
		share = 1 - aspect/whole
	}
	if box.Min.Y < near || frame.Y-box.Max.Y < near {
		share = max(share, 1-whole/aspect)
	}
	return max(0, share)
}

// streak returns face.Quality.Streak of grey values: the energies of central differences in four directions.
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
func contrasts(img *facedet.Picture, box image.Rectangle, landmarks []face.Point) (eyes, mouth float64, err error) {
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
	if eyes = 1; m1+m2 < darkEyes*(c1+c2) {
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
