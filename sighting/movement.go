// SPDX-License-Identifier: Apache-2.0

package sighting

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/faceauth/faceauth/face"
)

// side is that of an aligned face ([face.Sample].Aligned) and of the maps of it.
const side = face.AlignedSide

// Movement is looked for in the disc around the middle of a face that has no background. In units
// of half of the side, its radius squared:
const disc = .8

const (
	around   = 6   // pixels on each side in whose light a pixel is measured
	clips    = 10  // levels from black or white within which a pixel counts as clipped
	grain    = 9   // variance of grey values below which a surrounding is flat
	block    = 14  // side of a part of the face, which overlaps half of the next one
	least    = 100 // pixels of a block from which its movement is measured
	texture  = .5  // smaller eigenvalue of a block's structure tensor from which it has texture
	farthest = 4   // pixels that a block moves at most
	// The variance of a movement is taken to be alike times that of independent pixels, since
	// smoothing and compression give neighbouring pixels the same noise, and noisy at most, since a
	// block that shows something else fits badly, too; certain is added to it.
	alike   = 10
	noisy   = .08
	certain = .003
)

// light is a map over a face.
type light [side * side]float64

// pattern is an aligned face without its light: each pixel in standard deviations from the mean of
// its surroundings, smoothed. Neither level and contrast are left, nor the light of a lamp that
// changes slowly over the face.
type pattern struct {
	value, right, down light             // and the derivatives, to the right and down
	clipped            [side * side]bool // pixels that do not count
}

// patternsOf returns the patterns of two aligned faces. What is too bright or too dark to tell in
// one of them counts in neither, as it changes the mean of its surroundings.
func patternsOf(before, now []byte) (a, b *pattern) {
	a, b = new(pattern), new(pattern)
	for i := range before {
		if min(before[i], now[i]) <= clips || max(before[i], now[i]) >= 255-clips {
			a.clip(i%side, i/side)
		}
	}
	b.clipped = a.clipped
	a.measure(before)
	b.measure(now)
	return a, b
}

// clip takes the surroundings of a pixel out.
func (p *pattern) clip(column, row int) {
	for r := max(0, row-2); r <= min(side-1, row+2); r++ {
		for c := max(0, column-2); c <= min(side-1, column+2); c++ {
			p.clipped[r*side+c] = true
		}
	}
}

// measure computes the values and derivatives from grey values.
func (p *pattern) measure(grey []byte) {
	x, counted, squares := new(light), new(light), new(light)
	for i, v := range grey {
		if !p.clipped[i] {
			x[i], counted[i] = float64(v), 1
		}
	}
	mean, share := x.mean(around), counted.mean(around)
	for i := range x {
		if counted[i] > 0 {
			x[i] -= mean[i] / share[i]
			squares[i] = x[i] * x[i]
		}
	}
	variance := squares.mean(around)
	for i := range x {
		if counted[i] > 0 {
			x[i] /= math.Sqrt(variance[i]/share[i] + grain)
		}
	}
	p.value = *x.mean(1).mean(1)
	p.slope()
}

// slope computes the derivatives, which are 0 at the rim.
func (p *pattern) slope() {
	for r := 1; r < side-1; r++ {
		for i := r*side + 1; i < (r+1)*side-1; i++ {
			p.right[i] = (p.value[i+1] - p.value[i-1]) / 2
			p.down[i] = (p.value[i+side] - p.value[i-side]) / 2
		}
	}
}

// mean returns the means over squares around each pixel, of so many pixels on each side.
func (m *light) mean(around int) *light {
	rows, all := new(light), new(light)
	for i := range m {
		first, last := max(0, i%side-around), min(side-1, i%side+around)
		for c := first; c <= last; c++ {
			rows[i] += m[i/side*side+c]
		}
		rows[i] /= float64(last - first + 1)
	}
	for i := range m {
		first, last := max(0, i/side-around), min(side-1, i/side+around)
		for r := first; r <= last; r++ {
			all[i] += rows[r*side+i%side]
		}
		all[i] /= float64(last - first + 1)
	}
	return all
}

// at returns the value and the derivatives between pixels; ok is false outside.
func (p *pattern) at(x, y float64) (value, right, down float64, ok bool) {
	if !(x >= 1 && y >= 1 && x < side-2 && y < side-2) {
		return 0, 0, 0, false
	}
	i := int(y)*side + int(x)
	x -= math.Floor(x)
	y -= math.Floor(y)
	a, b, c, d := (1-x)*(1-y), x*(1-y), (1-x)*y, x*y
	mix := func(m *light) float64 { return a*m[i] + b*m[i+1] + c*m[i+side] + d*m[i+side+1] }
	return mix(&p.value), mix(&p.right), mix(&p.down), !p.clipped[i]
}

// plane is a homography in units of half of the side, around the middle: (x, y) goes to
// (x + h0 + h1 x + h2 y, y + h3 + h4 x + h5 y) / (1 + h6 x + h7 y).
type plane [8]float64

// unit returns a pixel's place in units of half of the side.
func unit(column, row int) (x, y float64) {
	return (float64(column) - side/2) / (side / 2), (float64(row) - side/2) / (side / 2)
}

// to returns where a place goes, in both units, and the divisor.
func (h *plane) to(x, y float64) (u, v, by float64) {
	by = 1 + h[6]*x + h[7]*y
	return (x + h[0] + h[1]*x + h[2]*y) / by, (y + h[3] + h[4]*x + h[5]*y) / by, by
}

// planeBetween returns the homography that takes a pattern to where another one shows the same, by
// least squares in which pixels that fit badly count less (Gauss and Newton's method; S. Baker and
// I. Matthews, Lucas-Kanade 20 Years On, 2004).
func planeBetween(from, to *pattern) *plane {
	h := new(plane)
	normal, right, step := mat.NewSymDense(8, nil), mat.NewVecDense(8, nil), mat.NewVecDense(8, nil)
	for range 20 {
		var a [8][8]float64
		var b [8]float64
		for row := 4; row < side-4; row++ {
			for column := 4; column < side-4; column++ {
				x, y := unit(column, row)
				i := row*side + column
				if x*x+y*y > disc || from.clipped[i] {
					continue
				}
				u, v, by := h.to(x, y)
				value, gx, gy, ok := to.at((u+1)*side/2, (v+1)*side/2)
				if !ok {
					continue
				}
				gx, gy = gx*side/2/by, gy*side/2/by
				k := gx*u + gy*v
				e := from.value[i] - value
				weight := 1 / (1 + 4*e*e)
				slopes := [8]float64{gx, gx * x, gx * y, gy, gy * x, gy * y, -k * x, -k * y}
				for p, s := range slopes {
					b[p] += weight * s * e
					for q := range p + 1 {
						a[p][q] += weight * s * slopes[q]
					}
				}
			}
		}
		for p := range b {
			a[p][p] += 1e-3 // defined without texture, too
			right.SetVec(p, b[p])
			for q := range p + 1 {
				normal.SetSym(p, q, a[p][q])
			}
		}
		var c mat.Cholesky
		if !c.Factorize(normal) {
			return h
		}
		_ = c.SolveVecTo(step, right) // factorized
		for p := range h {
			h[p] += step.AtVec(p)
		}
		if mat.Norm(step, 2) < 1e-4 {
			break
		}
	}
	return h
}

// seen returns a pattern as it looks through a homography.
func (p *pattern) seen(h *plane) *pattern {
	q := new(pattern)
	for i := range q.value {
		x, y := unit(i%side, i/side)
		u, v, _ := h.to(x, y)
		value, _, _, ok := p.at((u+1)*side/2, (v+1)*side/2)
		q.value[i], q.clipped[i] = value, !ok || x*x+y*y > disc
	}
	q.slope()
	return q
}

// movement returns how far the parts of a face have moved against each other between two aligned
// pictures of it (side x side grey values, row by row): the mean over blocks of the square of the
// movement that is left after the best homography, in units of its error's variance. A photograph
// is flat, so it obeys one homography however it is held ([Hartley and Zisserman, Multiple View
// Geometry, 13.1]), and light moves nothing: both stay below [movedApart]. A head that turns, or a
// mouth that speaks, does not. It is +Inf without two pictures.
func movement(before, now []byte) float64 {
	if len(before) != side*side || len(now) != side*side {
		return math.Inf(1)
	}
	a, b := patternsOf(before, now)
	b = b.seen(planeBetween(a, b))
	sum, blocks := 0., 0
	for row := block / 2; row+block <= side-around; row += block / 2 {
		for column := block / 2; column+block <= side-around; column += block / 2 {
			square, variance, ok := blockMovement(a, b, column, row)
			if ok {
				sum += square / (min(alike*variance, noisy) + certain)
				blocks++
			}
		}
	}
	return sum / float64(max(blocks, 1))
}

// blockMovement returns the square of how far a block has moved, in pixels, and the variance that
// independent noise of its pixels gives it. Ok is false for a block without texture.
func blockMovement(a, b *pattern, column, row int) (square, variance float64, ok bool) {
	dx, dy := 0., 0.
	for range 6 {
		var xx, xy, yy, ex, ey, squares, pixels float64
		for r := row; r < row+block; r++ {
			for c := column; c < column+block; c++ {
				i := r*side + c
				value, gx, gy, ok := b.at(float64(c)+dx, float64(r)+dy)
				if !ok || a.clipped[i] || b.clipped[i] {
					continue
				}
				e := a.value[i] - value
				xx, xy, yy = xx+gx*gx, xy+gx*gy, yy+gy*gy
				ex, ey = ex+gx*e, ey+gy*e
				squares += e * e
				pixels++
			}
		}
		if pixels < least || xx+yy-math.Hypot(xx-yy, 2*xy) < 2*texture {
			return 0, 0, false
		}
		det := xx*yy - xy*xy
		variance = squares / pixels * (xx + yy) / det
		dx, dy = dx+(yy*ex-xy*ey)/det, dy+(xx*ey-xy*ex)/det
		if max(math.Abs(dx), math.Abs(dy)) > farthest {
			dx, dy = min(max(dx, -farthest), farthest), min(max(dy, -farthest), farthest)
			break
		}
	}
	return dx*dx + dy*dy, variance, true
}
