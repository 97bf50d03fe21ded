// SPDX-License-Identifier: Apache-2.0

package joint_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/lab/joint"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

var offline = joint.Offline{
	Kernel: quantized.Heat(.5), Neighbours: 3, Fit: 10, Doubt: .1, Gamma: 1e-6, Rounds: 10, Pull: 5,
}

// moons returns points of two classes on two half circles. The first few points have labels.
func moons(seed uint64, n, labelled int) (x [][]float32, classes, truth []int) {
	r := rand.New(rand.NewPCG(seed, 31))
	for i := range n {
		class := i % 2
		sin, cos := math.Sincos(math.Pi * r.Float64())
		p := []float32{float32(cos + .08*r.NormFloat64()), float32(sin + .08*r.NormFloat64())}
		if class == 1 {
			p[0], p[1] = 1-p[0], .5-p[1]
		}
		c := -1
		if i < labelled {
			c = class
		}
		x, classes, truth = append(x, p), append(classes, c), append(truth, class)
	}
	return x, classes, truth
}

func ExampleOffline_Joint() {
	x, classes, _ := moons(1, 300, 6)
	r := rand.New(rand.NewPCG(1, 1))
	b, err := offline.Joint(context.Background(), x, classes, joint.Seeds(r, x, classes, 30), r)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(b.Vertices), "vertices stand for", len(x), "points")
	// Output: 36 vertices stand for 300 points
}

// lloyd is plain k-means, with fixed centres that come first.
func lloyd(x, fixed, seeds [][]float32, rounds int) [][]float32 {
	centres := append(append([][]float32{}, fixed...), seeds...)
	for range rounds {
		sum, n := make([][]float64, len(centres)), make([]float64, len(centres))
		for j := range sum {
			sum[j] = make([]float64, len(x[0]))
		}
		for _, p := range x {
			best := 0
			for j := range centres {
				if quantized.SquaredDistance(p, centres[j]) < quantized.SquaredDistance(p,
					centres[best]) {
					best = j
				}
			}
			n[best]++
			for q, v := range p {
				sum[best][q] += float64(v)
			}
		}
		next := append([][]float32{}, centres[:len(fixed)]...)
		for j := len(fixed); j < len(centres); j++ {
			c := make([]float32, len(x[0]))
			for q := range c {
				c[q] = centres[j][q]
				if n[j] > 0 {
					c[q] = float32(sum[j][q] / n[j])
				}
			}
			next = append(next, c)
		}
		centres = next
	}
	return centres
}

// near reports whether two sets of points are the same except for rounding.
func near(t *testing.T, got, want [][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d points, want %d", len(got), len(want))
	}
	for i := range got {
		if d := quantized.Distance(got[i], want[i], 1); d > 1e-4 {
			t.Fatalf("point %d is off by %g", i, d)
		}
	}
}

func TestKMeans(t *testing.T) {
	x, classes, _ := moons(2, 400, 0)
	seeds := joint.Seeds(rand.New(rand.NewPCG(2, 2)), x, classes, 12)
	for _, rounds := range []int{0, 1, 5, 100} {
		got := fixture.Must(joint.KMeans(context.Background(), x, seeds, rounds))(t)
		near(t, got, lloyd(x, nil, seeds, rounds))
	}
}

// With an unlimited pull of the points the method is k-means with labelled centres that do not
// move.
func TestJointIsConstrainedKMeans(t *testing.T) {
	x, classes, _ := moons(3, 300, 8)
	r := rand.New(rand.NewPCG(3, 2))
	seeds := joint.Seeds(r, x, classes, 20)
	var fixed [][]float32
	for i, c := range classes {
		if c >= 0 {
			fixed = append(fixed, x[i])
		}
	}
	o := offline
	o.Pull = 1e9
	b, err := o.Joint(context.Background(), x, classes, seeds, r)
	if err != nil {
		t.Fatal(err)
	}
	near(t, b.Vertices, lloyd(x, fixed, seeds, o.Rounds))
	o.Pull, o.GammaQ = 0, 1e9
	if b, err = o.Joint(context.Background(), x, classes, seeds, r); err != nil {
		t.Fatal(err)
	}
	near(t, b.Vertices, lloyd(x, fixed, seeds, o.Rounds))
}

// TestJointSystem checks one round against the equation in the thesis, solved by elimination.
func TestJointSystem(t *testing.T) {
	for seed := range uint64(20) {
		x, classes, _ := moons(seed, 80, 4)
		r := rand.New(rand.NewPCG(seed, 2))
		seeds := joint.Seeds(r, x, classes, 6)
		o := offline
		o.Rounds, o.Pull, o.GammaQ = 1, 0, 2
		before := fixture.Must(o.Infer(x, classes, seeds))(t)
		got := fixture.Must(o.Joint(context.Background(), x, classes, seeds, r))(t)
		if got.Frozen > 0 {
			continue // the equation does not cover this
		}
		m, k := 4, len(seeds)
		sigma2 := o.Kernel.Denominator / 2
		a, b := mat.NewDense(k, k, nil), mat.NewDense(k, 2, nil)
		for r := range k {
			j := m + r
			diagonal := 2 * o.GammaQ * float64(before.Points[j]) / float64(len(x))
			for i := range before.Vertices {
				// For two classes the label is the difference of the two columns.
				li, lj := before.Values.At(i, 1)-before.Values.At(i, 0),
					before.Values.At(j, 1)-before.Values.At(j, 0)
				push := (li - lj) * (li - lj) / (float64((m+k)*(m+k)) * sigma2)
				diagonal -= push
				if i >= m {
					a.Set(r, i-m, a.At(r, i-m)+push)
					continue
				}
				for q := range 2 {
					b.Set(r, q, b.At(r, q)-push*float64(before.Vertices[i][q]))
				}
			}
			a.Set(r, r, a.At(r, r)+diagonal)
			for i, p := range x {
				if before.Of[i] == j {
					for q := range 2 {
						b.Set(r, q, b.At(r, q)+2*o.GammaQ/float64(len(x))*float64(p[q]))
					}
				}
			}
		}
		var c mat.Dense
		fixture.Check(t, c.Solve(a, b))
		for r := range k {
			for q := range 2 {
				if math.Abs(c.At(r, q)-float64(got.Vertices[m+r][q])) > 1e-4 {
					t.Fatalf("seed %d: centroid %d is at %v, want %v", seed, r, got.Vertices[m+r],
						c.RawRowView(r))
				}
			}
		}
	}
}

// The scale-free pull has the same result for any size of the features; the thesis's gamma_q does
// not.
func TestPullHasNoUnit(t *testing.T) {
	x, classes, _ := moons(5, 200, 6)
	large := make([][]float32, len(x))
	for i := range x {
		large[i] = []float32{1024 * x[i][0], 1024 * x[i][1]}
	}
	centroids := func(o joint.Offline, x [][]float32) [][]float32 {
		r := rand.New(rand.NewPCG(5, 2))
		b := fixture.Must(o.Joint(t.Context(), x, classes, joint.Seeds(r, x, classes, 15), r))(t)
		return b.Vertices
	}
	wide := offline
	wide.Kernel.Denominator *= 1024 * 1024
	shrink := func(x [][]float32) [][]float32 {
		y := make([][]float32, len(x))
		for i := range x {
			y[i] = []float32{x[i][0] / 1024, x[i][1] / 1024}
		}
		return y
	}
	near(t, shrink(centroids(wide, large)), centroids(offline, x))
	a, b := offline, wide
	a.Pull, a.GammaQ, b.Pull, b.GammaQ = 0, .5, 0, .5
	moved := 0.
	one, other := centroids(a, x), shrink(centroids(b, large))
	for i := range one {
		moved = max(moved, quantized.Distance(one[i], other[i], 1))
	}
	if moved < .01 {
		t.Errorf("gamma_q moves centroids by %g only when the features grow", moved)
	}
}

// Points with different labels push their centroids further apart than k-means does.
func TestLabelsPush(t *testing.T) {
	x := [][]float32{{-1}, {1}, {-.3}, {-.2}, {-.1}, {.1}, {.2}, {.3}}
	classes := []int{0, 1, -1, -1, -1, -1, -1, -1}
	seeds := [][]float32{{-.2}, {.2}}
	gap := func(pull float64) float32 {
		o := offline
		o.Pull, o.Neighbours = pull, 1
		b := fixture.Must(o.Joint(t.Context(), x, classes, seeds, rand.New(rand.NewPCG(1, 1))))(t)
		return b.Vertices[3][0] - b.Vertices[2][0]
	}
	if a, b := gap(4), gap(1e9); a <= b {
		t.Errorf("with a pull of 4 the gap is %g, and without labels %g", a, b)
	}
}

// An elastic net without energies is k-means; with a large stretch its nodes meet; the energy never
// rises.
func TestElasticNet(t *testing.T) {
	x, classes, _ := moons(6, 300, 0)
	seeds := joint.Seeds(rand.New(rand.NewPCG(6, 2)), x, classes, 10)
	loose := fixture.Must(joint.ElasticNet(context.Background(), x, seeds, 3, 0, 0, 20))(t)
	near(t, loose, lloyd(x, nil, seeds, 20))
	width := func(nodes [][]float32) (d float64) {
		for i := range nodes {
			for j := range i {
				d = max(d, quantized.Distance(nodes[i], nodes[j], 1))
			}
		}
		return d
	}
	last := width(loose)
	for _, stretch := range []float64{.01, .1, 1, 100} {
		nodes := fixture.Must(joint.ElasticNet(t.Context(), x, seeds, 9, stretch, 0, 20))(t)
		if w := width(nodes); w > last {
			t.Errorf("stretch %g makes the net wider, %g after %g", stretch, w, last)
		} else {
			last = w
		}
	}
	if last > .01 {
		t.Errorf("a net of rubber is %g wide", last)
	}
}

// The backbone tells the two moons apart from a few labels.
func TestJointClasses(t *testing.T) {
	wrong, all := 0, 0
	for seed := range uint64(5) {
		x, classes, truth := moons(seed, 400, 10)
		r := rand.New(rand.NewPCG(seed, 3))
		o := offline
		o.Kernel = quantized.Heat(.2)
		b := fixture.Must(o.Joint(t.Context(), x, classes, joint.Seeds(r, x, classes, 40), r))(t)
		for i, j := range b.Of {
			all++
			if b.Class(j) != truth[i] {
				wrong++
			}
		}
	}
	// Two moons are an easy case: more than one error in twenty is too many.
	if 20*wrong > all {
		t.Errorf("%d of %d wrong", wrong, all)
	}
}

func TestOfflineBadInput(t *testing.T) {
	ctx, r := context.Background(), rand.New(rand.NewPCG(1, 1))
	x := [][]float32{{0, 0}, {0, 1}, {1, 0}, {1, 1}}
	classes := []int{0, -1, -1, 1}
	seeds := [][]float32{{.5, .5}}
	nan := float32(math.NaN())
	bad := func(name string, o joint.Offline, x [][]float32, classes []int, seeds [][]float32) {
		t.Helper()
		if _, err := o.Joint(ctx, x, classes, seeds, r); !errors.Is(err, joint.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bad("no points", offline, nil, nil, seeds)
	bad("classes", offline, x, classes[:2], seeds)
	bad("no labels", offline, x, []int{-1, -1, -1, -1}, seeds)
	bad("class", offline, x, []int{-2, 0, 0, 0}, seeds)
	bad("NaN", offline, [][]float32{{nan}}, []int{0}, nil)
	bad("lengths", offline, [][]float32{{1}, {1, 2}}, []int{0, 1}, nil)
	bad("seeds", offline, x, classes, [][]float32{{1}})
	bad("NaN in a seed", offline, x, classes, [][]float32{{nan, 0}})
	for name, change := range map[string]func(*joint.Offline){
		"kernel":     func(o *joint.Offline) { o.Kernel.Denominator = 0 },
		"neighbours": func(o *joint.Offline) { o.Neighbours = 0 },
		"fit":        func(o *joint.Offline) { o.Fit = math.NaN() },
		"pull":       func(o *joint.Offline) { o.Pull = 0 },
		"rounds":     func(o *joint.Offline) { o.Rounds = -1 },
		"no sink":    func(o *joint.Offline) { o.Doubt, o.Gamma = 0, 0 },
	} {
		o := offline
		change(&o)
		bad(name, o, x, classes, seeds)
	}
	good := func(name string, o joint.Offline, x [][]float32, classes []int, seeds [][]float32) {
		t.Helper()
		b, err := o.Joint(ctx, x, classes, seeds, r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		for i, v := range b.Vertices {
			for _, f := range v {
				if f := float64(f); math.IsNaN(f) || math.IsInf(f, 0) {
					t.Errorf("%s: vertex %d is %v", name, i, v)
				}
			}
		}
	}
	good("all labelled, no centroids", offline, x, []int{0, 1, 0, 1}, nil)
	good("one class", offline, x, []int{0, -1, -1, 0}, seeds)
	good("more centroids than points", offline, x, classes,
		append(append([][]float32{}, x...), x...))
	good("duplicates with different labels", offline, [][]float32{{1}, {1}, {1}, {2}},
		[]int{0, 1, -1, -1},
		[][]float32{{1}})
	good("features that say nothing", offline, [][]float32{{1}, {1}, {1}, {1}}, []int{0, 1, -1, -1},
		[][]float32{{1}, {1}})
	narrow := offline
	narrow.Kernel.Denominator = 1e-300 // every vertex is alone
	good("a kernel that joins nothing", narrow, x, classes, seeds)
	loose := offline
	loose.Pull = 1e-9 // no centroid is held
	good("no pull", loose, x, classes, seeds)

	stop, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := offline.Joint(stop, x, classes, seeds, r); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := joint.KMeans(stop, x, seeds, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("k-means, cancelled: %v", err)
	}
	if _, err := joint.KMeans(ctx, nil, seeds, 3); !errors.Is(err, joint.ErrConfig) {
		t.Errorf("k-means of nothing: %v", err)
	}
	if _, err := joint.KMeans(ctx, x, [][]float32{{1, 2, 3}}, 3); !errors.Is(err, joint.ErrConfig) {
		t.Errorf("k-means with seeds of another length: %v", err)
	}
	if _, err := joint.ElasticNet(ctx, x, [][]float32{{1}}, 1, 1, 1, 3); !errors.Is(err,
		joint.ErrConfig) {
		t.Errorf("a net of another length: %v", err)
	}
	if _, err := joint.ElasticNet(ctx, x, seeds, 0, 1, 1, 3); !errors.Is(err, joint.ErrConfig) {
		t.Errorf("a net without neighbours: %v", err)
	}
}

// With any settings, all coordinates are numbers, no centroid is lost, and every point belongs to
// the nearest vertex.
func TestJointRandom(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 71))
		n, dim, k := 5+r.IntN(60), 1+r.IntN(5), 1+r.IntN(20)
		x, classes := make([][]float32, n), make([]int, n)
		for i := range x {
			x[i] = make([]float32, dim)
			for q := range x[i] {
				x[i][q] = float32(math.Round(10*r.NormFloat64()) / 10) // so that some are the same
			}
			classes[i] = -1
			if i < 3 {
				classes[i] = r.IntN(4)
			}
		}
		o := joint.Offline{
			Kernel: quantized.Heat(math.Pow(10, 3*r.Float64()-2)), Neighbours: 1 + r.IntN(5),
			Fit: math.Pow(10, 4*r.Float64()-2), Doubt: r.Float64(),
			Gamma: math.Pow(10, -6*r.Float64()), Rounds: r.IntN(12),
			Pull: math.Pow(10, 8*r.Float64()-3),
		}
		seeds := joint.Seeds(r, x, classes, k)
		b, err := o.Joint(context.Background(), x, classes, seeds, r)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(b.Vertices) != 3+len(seeds) || b.Labelled != 3 || len(b.Of) != n {
			t.Fatalf("seed %d: %d vertices", seed, len(b.Vertices))
		}
		sum := 0
		for j, v := range b.Vertices {
			sum += b.Points[j]
			for _, f := range v {
				if f := float64(f); math.IsNaN(f) || math.IsInf(f, 0) {
					t.Fatalf("seed %d: vertex %d is %v", seed, j, v)
				}
			}
			for q := range b.Values.RawRowView(j) {
				if l := b.Values.At(j, q); !(l >= -1e-9 && l <= 1+1e-9) {
					t.Fatalf("seed %d: a value of %g", seed, l)
				}
			}
		}
		for i, j := range b.Of {
			for _, v := range b.Vertices {
				if quantized.Distance(x[i], v, 1) < quantized.Distance(x[i], b.Vertices[j],
					1)-1e-3 {
					t.Fatalf("seed %d: point %d has a nearer vertex", seed, i)
				}
			}
		}
		if sum != n {
			t.Fatalf("seed %d: %d of %d points", seed, sum, n)
		}
	}
}

// On a lattice the pull of points on some centroids is exactly as strong as the push of labels, to
// the last bit or to the bit before. Such a system cannot be solved, and its rows do not show this.
func TestJointOnALattice(t *testing.T) {
	var x [][]float32
	for i := range 81 {
		x = append(x, []float32{float32(i % 3), float32(i / 3 % 3), float32(i / 9 % 3),
			float32(i / 27)})
	}
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 5))
		classes := make([]int, len(x))
		for i := range classes {
			classes[i] = -1
		}
		for q, i := range r.Perm(len(x))[:10] {
			classes[i] = q % 2
		}
		o := joint.Offline{Kernel: quantized.Heat(.07), Neighbours: 3, Fit: 10, Doubt: .1,
			Gamma: 1e-6, Rounds: 10, Pull: 2}
		if _, err := o.Joint(context.Background(), x, classes, joint.Seeds(r, x, classes, 15),
			r); err != nil {
			t.Fatal(err)
		}
	}
}
