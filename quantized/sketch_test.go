// SPDX-License-Identifier: Apache-2.0

package quantized_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/quantized"
)

// Sketches never hide a vertex to which a point has an edge. For values of any number, size and
// shape, the graph with sketches is to the last bit the graph without them, and its edges follow
// from the distances.
func TestSketches(t *testing.T) {
	for _, dim := range []int{256, 300, 512, 1000} {
		for _, shape := range []struct {
			name string
			at   func(r *rand.Rand, i int) float64 // value i of a point
		}{
			{"normal", func(r *rand.Rand, _ int) float64 { return r.NormFloat64() }},
			{"one large value", func(r *rand.Rand, i int) float64 {
				if i == 7 {
					return 30
				}
				return r.NormFloat64()
			}},
			{"far from the origin", func(r *rand.Rand, _ int) float64 {
				return 5 + r.NormFloat64()
			}},
			{"mostly nothing", func(r *rand.Rand, _ int) float64 {
				if r.IntN(20) > 0 {
					return 0
				}
				return r.NormFloat64()
			}},
		} {
			for _, size := range []float64{1, 1e-12, 1e9} {
				t.Run(fmt.Sprintf("%d/%s/%g", dim, shape.name, size), func(t *testing.T) {
					r := rand.New(rand.NewPCG(uint64(dim), 4))
					var points [][]float32
					for i := range 120 {
						x := make([]float32, dim)
						near := i > 20 && i%2 == 0
						for q := range x {
							v := shape.at(r, q) * size
							if near { // an earlier point, moved by up to the edge radius and beyond
								v = float64(points[i-20][q]) +
									.5*r.Float64()*size*r.NormFloat64()*float64(i%7)/3
							}
							x[q] = float32(v)
						}
						points = append(points, x)
					}
					points[30] = points[10] // a duplicate
					points[31] = make([]float32, dim)
					reach := size * math.Sqrt(float64(dim))
					c := quantized.Config{
						K: 60, Multiplier: 1.5, Dim: dim, Scale: 1, Kernel: quantized.Heat(reach),
						Epsilon: 1e-4, Reach: reach, Gamma: 1e-3,
					}
					feed := func() *quantized.Graph {
						g := fixture.Must(quantized.New(c))(t)
						for i, x := range points {
							if i%10 == 0 {
								fixture.Check(t, g.Label(x, i%3))
							} else {
								keep(t, g, x, 0, int64(i))
							}
						}
						return g
					}
					plain := feed()
					if asked, _ := plain.Sketched(); asked > 0 {
						t.Fatal("sketches were used already")
					}
					defer quantized.SketchAlways()()
					sketched := feed()
					if same(plain) != same(sketched) {
						t.Error("another graph with sketches")
					}
					if asked, _ := sketched.Sketched(); asked == 0 && !sketched.Resting() {
						t.Error("no sketch was used")
					}
					for i := range sketched.Len() {
						for j := range i {
							d := math.Sqrt(quantized.SquaredDistance(sketched.Point(i),
								sketched.Point(j)))
							if edge := !math.IsInf(distance(sketched, i, j),
								1); edge != (d <= reach) &&
								math.Abs(d-reach) > 1e-9*reach {
								t.Errorf("vertices %d and %d are %g apart, the radius is %g, and "+
									"edge %t", i, j, d,
									reach, edge)
							}
						}
					}
				})
			}
		}
	}
}

// For points in all directions, sketches leave very few points that have to be measured.
func TestSketchesPrune(t *testing.T) {
	defer quantized.SketchAlways()()
	r := rand.New(rand.NewPCG(2, 2))
	g := fixture.Must(quantized.New(quantized.Config{
		K: 10, Multiplier: 1.5, Dim: 512, Scale: 1, Kernel: quantized.Heat(.2), Epsilon: 1e-4,
		Reach: .86, Gamma: 1e-3,
	}))(t)
	for range 90 {
		x := make([]float32, 512)
		for i := range x {
			x[i] = float32(r.NormFloat64() / math.Sqrt(512))
		}
		fixture.Check(t, g.Label(x, 0))
	}
	if asked, left := g.Sketched(); asked < 3000 || left > asked/100 {
		t.Errorf("%d of %d vertices had to be measured", left, asked)
	}
}

// distance returns the length of the edge between two vertices, or +Inf.
func distance(g *quantized.Graph, i, j int) float64 {
	d := math.Inf(1)
	g.Neighbours(i, func(to int, x float64) {
		if to == j {
			d = x
		}
	})
	return d
}
