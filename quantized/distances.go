package quantized

import (
	"math"

	"github.com/faceauth/faceauth/graph"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// unmeasured stands for a distance that exceeds the edge radius and was not measured any closer.
var unmeasured = math.Inf(1)

// cached is how many coordinates a core's own cache surely holds.
const cached = 1 << 16

// distances returns those from x to every vertex that matter: all up to the edge radius or R, whichever
// is longer, and [unmeasured] for the rest.
//
// One float32 product with all vertices finds out which those are. The computed product of two vectors
// of n values differs from the true one by at most n·u/(1 - n·u) times the product of their norms, with
// u = 2^-24 (Higham, Accuracy and Stability of Numerical Algorithms, Section 3.1), in whatever order it
// was summed, so that a vertex is left out only where it is certainly too far. The others are measured
// in float64.
func (g *Graph) distances(x []float32) []float64 {
	if len(x) != g.c.Dim {
		panic("quantized: dimension mismatch")
	}
	g.square = squaredNorm(x)
	n := g.Len()
	g.d = resized(g.d, n)
	if n == 0 {
		return g.d
	}
	nu := float64(g.c.Dim+4) * 0x1p-24 // 4 for the scaling and the sum that Gemv adds
	if nu >= .5 {
		nu = math.Inf(1) // no bound holds; measure everything
	}
	slack := 2 * nu / (1 - nu) * math.Sqrt(g.square)
	cut := max(g.reach, g.r) / g.c.Scale
	cut *= cut
	// Some vertices at a time, so that those that are measured are still in the cache.
	rows := min(n, max(1, cached/g.c.Dim))
	g.products = resized(g.products, rows)
	for first := 0; first < n; first += rows {
		some := min(rows, n-first)
		blas32.Gemv(blas.NoTrans, 1, blas32.General{Rows: some, Cols: g.c.Dim, Stride: g.c.Dim, Data: g.x[first*g.c.Dim:]},
			vector(x), 0, blas32.Vector{N: some, Inc: 1, Data: g.products})
		for q, p := range g.products[:some] {
			i := first + q
			near := g.square + g.squares[i] - 2*float64(p) - slack*math.Sqrt(g.squares[i])
			// Written so that what overflowed, and is not a number, is measured.
			if near > cut*(1+1e-9) {
				g.d[i] = unmeasured
				continue
			}
			g.d[i] = g.measure(x, g.square, i)
		}
	}
	return g.d
}

// measure returns the distance from x, whose squared norm is given, to vertex i.
func (g *Graph) measure(x []float32, square float64, i int) float64 {
	y := g.Point(i)
	sum := square + g.squares[i]
	d := sum - 2*blas32.DDot(vector(x), vector(y))
	// Where nearly all of the sum cancels, rounding would show: there the differences are summed, which
	// is slower, and gives duplicates a distance of exactly 0.
	if !(d > 1e-6*sum) || math.IsInf(d, 1) {
		d = graph.SquaredDistance(x, y)
	}
	return g.c.Scale * math.Sqrt(d)
}

// measureAll measures what is not measured yet: a repartition whose R exceeds the edge radius needs it.
func (g *Graph) measureAll() {
	s := g.stride()
	for i := range g.Len() {
		for j := range i {
			if g.dist[i*s+j] == unmeasured {
				d := g.measure(g.Point(i), g.squares[i], j)
				g.dist[i*s+j], g.dist[j*s+i] = d, d
			}
		}
	}
}

func vector(x []float32) blas32.Vector { return blas32.Vector{N: len(x), Inc: 1, Data: x} }

func squaredNorm(x []float32) float64 { return blas32.DDot(vector(x), vector(x)) }
