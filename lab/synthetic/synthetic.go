// SPDX-License-Identifier: Apache-2.0

// Package synthetic makes the artificial problems of the thesis.
package synthetic

import (
	"math"
	"math/rand/v2"

	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

// Squares returns the problem of the thesis's Figures "HFS" and "synthetic cuts": two square
// clusters on a grid, the graph along the grid, and one labelled vertex in each cluster, in the
// middle of the picture. The plane between these two vertices cuts through both clusters. Y has the
// two labels, -1 and 1, and 0 elsewhere; truth has all labels.
//
// The thesis does not list the points. It gives the sum of squared edges in each direction,
// 218.351. Two unconnected clusters of 10 by 10 at a distance of 1 have this sum.
func Squares() (x [][]float32, y, truth []float64, w *mat.SymDense) {
	for _, class := range []float64{1, -1} {
		for row := range 10 {
			for column := range 10 {
				p := []float32{float32(-class) * float32(1+column), float32(row) - 4.5}
				label := 0.
				if column == 0 && p[1] == float32(2.5*class) {
					label = class
				}
				x, y, truth = append(x, p), append(y, label), append(truth, class)
			}
		}
	}
	w = mat.NewSymDense(len(x), nil)
	kernel := quantized.Heat(1)
	for i := range x {
		for j := range i {
			if d := quantized.Distance(x[i], x[j], 1); d == 1 {
				w.SetSym(i, j, kernel.Weight(d))
			}
		}
	}
	return x, y, truth, w
}

// Labelled has points of two classes, 0 and 1, and how unusual each label truly is.
type Labelled struct {
	X     [][]float32
	Class []int
	Truth []float64
}

// Inner is half the side of the small square of [Core]; half the side of the big one is 1.
const Inner = .245

// Core returns the thesis's Core dataset, scale times as large as its training set: a big square of
// 100·scale points of class 0, and in its middle a small square of 50·scale points of class 1. The
// 6·scale points of class 0 in the small square, the expected number for its area, are unusual:
// their truth is 1. Far away are two tiny squares of 3·scale points each, one of each class.
func Core(r *rand.Rand, scale int) (l Labelled) {
	square := func(n, class int, x, y, half, truth float64, allowed func(a, b float64) bool) {
		for n > 0 {
			a, b := x+half*(2*r.Float64()-1), y+half*(2*r.Float64()-1)
			if !allowed(a, b) {
				continue
			}
			n--
			l.X = append(l.X, []float32{float32(a), float32(b)})
			l.Class, l.Truth = append(l.Class, class), append(l.Truth, truth)
		}
	}
	anywhere := func(_, _ float64) bool { return true }
	around := func(a, b float64) bool { return math.Abs(a) > Inner || math.Abs(b) > Inner }
	square(94*scale, 0, 0, 0, 1, 0, around)
	square(6*scale, 0, 0, 0, Inner, 1, anywhere)
	square(50*scale, 1, 0, 0, Inner, 0, anywhere)
	square(3*scale, 0, -1.6, 1.6, .05, 0, anywhere)
	square(3*scale, 1, 1.6, -1.6, .05, 0, anywhere)
	return l
}

// Component is one Gaussian of a mixture in the plane.
type Component struct {
	Class       int
	X, Y        float64 // mean
	Long, Short float64 // standard deviations along its axes
	Angle       float64 // of the long axis
}

// Mixtures are three mixtures of our own, because the thesis prints only a picture of its mixtures,
// without parameters: two clouds that overlap, two bands that cross, and islands in a sea.
var Mixtures = map[string][]Component{
	"D1": {{0, -1, 0, 1, 1, 0}, {1, 1, 0, 1, 1, 0}},
	"D2": {{0, 0, 0, 2, .5, math.Pi / 4}, {1, 0, 0, 2, .5, -math.Pi / 4}, {0, 3, -3, .5, .5, 0},
		{1, -3, -3, .5, .5, 0}},
	"D3": {{0, 0, 0, 2, 2, 0}, {1, -1.5, 1, .3, .3, 0}, {1, 1.5, 1, .4, .4, 0},
		{1, 0, -1.5, .8, .2, 0}},
}

// density returns the density of a component.
func (c Component) density(x, y float64) float64 {
	sin, cos := math.Sincos(c.Angle)
	a, b := (cos*(x-c.X)+sin*(y-c.Y))/c.Long, (cos*(y-c.Y)-sin*(x-c.X))/c.Short
	return math.Exp(-(a*a+b*b)/2) / (c.Long * c.Short)
}

// Mixture returns n points of a mixture, half of them of each class. A share flip of them gets the
// other label. The truth of a point is the probability of the other class there.
func Mixture(r *rand.Rand, parts []Component, n int, flip float64) (l Labelled) {
	of := map[int][]Component{}
	for _, c := range parts {
		of[c.Class] = append(of[c.Class], c)
	}
	for i := range n {
		class := i % 2
		c := of[class][r.IntN(len(of[class]))]
		a, b := c.Long*r.NormFloat64(), c.Short*r.NormFloat64()
		sin, cos := math.Sincos(c.Angle)
		x, y := c.X+cos*a-sin*b, c.Y+sin*a+cos*b
		l.X = append(l.X, []float32{float32(x), float32(y)})
		l.Class = append(l.Class, class)
	}
	Flip(r, l.Class, flip)
	for i, x := range l.X {
		var p [2]float64
		for class, parts := range of {
			for _, c := range parts {
				p[class] += c.density(float64(x[0]), float64(x[1])) / float64(len(parts))
			}
		}
		l.Truth = append(l.Truth, p[1-l.Class[i]]/(p[0]+p[1]))
	}
	return l
}

// Flip changes a share of labels, 0 and 1, to the other value, and returns their indices.
func Flip(r *rand.Rand, class []int, share float64) []int {
	which := r.Perm(len(class))[:int(math.Round(share*float64(len(class))))]
	for _, i := range which {
		class[i] = 1 - class[i]
	}
	return which
}
