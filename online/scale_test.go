// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// crowd returns faces of any number of people, with the distances of an embedding: two faces of one person are about .7
// apart, faces of two people about 1.4.
type crowd struct {
	r   *rand.Rand
	dim int
	of  [][]float32
}

func newCrowd(people, dim int) *crowd {
	c := &crowd{r: rand.New(rand.NewPCG(5, 1)), dim: dim}
	for range people {
		c.of = append(c.of, c.direction(make([]float32, dim), 1))
	}
	return c
}

// direction returns the unit vector that lies at x moved by noise of the given length.
func (c *crowd) direction(x []float32, noise float64) []float32 {
	y := make([]float32, c.dim)
	var sum float64
	for i := range y {
		v := float64(x[i]) + noise/math.Sqrt(float64(c.dim))*c.r.NormFloat64()
		y[i] = float32(v)
		sum += v * v
	}
	for i := range y {
		y[i] /= float32(math.Sqrt(sum))
	}
	return y
}

func (c *crowd) face(person int) []float32 { return c.direction(c.of[person], .55) }

func (c *crowd) stranger() []float32 { return c.direction(make([]float32, c.dim), 1) }

// sphereOf returns a space like that of the embedding that the program installs.
func sphereOf(dim int) face.Space {
	return face.Space{ID: "crowd", Dim: dim, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, Reach: .86}
}

func personName(i int) string { return fmt.Sprint("person ", i) }

// assembly returns a learner that knows people by four faces each, and has learned one more face of each.
func assembly(tb testing.TB, c *crowd) *online.Learner {
	tb.Helper()
	l, err := online.New(sphereOf(c.dim), online.Settings{K: len(c.of)})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range c.of {
		for range 4 {
			if err := l.Label(c.face(i), personName(i)); err != nil {
				tb.Fatal(err)
			}
		}
	}
	for i := range c.of {
		if v, err := l.Observe(c.face(i)); err != nil || v.Label != personName(i) || !v.Learned {
			tb.Fatalf("person %d: %+v, %v", i, v, err)
		}
	}
	return l
}

// median calls a function n times, and returns the median of its times.
func median(n int, f func()) time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		start := time.Now()
		f()
		all[i] = time.Since(start)
	}
	slices.Sort(all)
	return all[n/2]
}

// middle returns the median.
func middle(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// plainPass returns a function that multiplies a face with all coordinates that a learner holds, in float32.
func plainPass(l *online.Learner) func(x []float32) {
	const rows = 128
	n, dim := l.Graph().Len(), l.Space().Dim
	products := make([]float32, rows)
	var pages []blas32.General
	for i := 0; i < n; i += rows {
		page := blas32.General{Rows: min(rows, n-i), Cols: dim, Stride: dim}
		for j := range page.Rows {
			page.Data = append(page.Data, l.Graph().Point(i+j)...)
		}
		pages = append(pages, page)
	}
	return func(x []float32) {
		for _, p := range pages {
			blas32.Gemv(blas.NoTrans, 1, p, blas32.Vector{N: dim, Inc: 1, Data: x}, 0,
				blas32.Vector{N: p.Rows, Inc: 1, Data: products[:p.Rows]})
		}
	}
}

// least calls a function n times, and returns the least of its times: what it takes when nothing disturbs it.
func least(n int, f func()) float64 {
	best := time.Duration(math.MaxInt64)
	for range n {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return float64(best)
}

// BenchmarkPasses measures a step in passes over the float32 coordinates: the least of many repetitions of both, in
// turn. Eight people have 500 centroids; 1,000 people have four labelled faces and a centroid each.
func BenchmarkPasses(b *testing.B) {
	type learner struct {
		l                *online.Learner
		faces, strangers [][]float32
	}
	for name, make := range map[string]func() learner{
		"people=8/d=512": func() learner {
			l, faces := gathering(b, 500, 512)
			return learner{l: l, faces: faces}
		},
		"people=8/d=9216": func() learner {
			l, faces := gathering(b, 500, 9216)
			return learner{l: l, faces: faces}
		},
		"people=1000/d=512": func() learner {
			c := newCrowd(1000, 512)
			x := learner{l: assembly(b, c)}
			for i := range 200 {
				x.faces, x.strangers = append(x.faces, c.face(i)), append(x.strangers, c.stranger())
			}
			return x
		},
	} {
		b.Run(name, func(b *testing.B) {
			x := make()
			pass := plainPass(x.l)
			plain, known, stranger := math.Inf(1), math.Inf(1), math.Inf(1)
			for b.Loop() {
				for i, face := range x.faces {
					plain = min(plain, least(3, func() { pass(face) }))
					known = min(known, least(1, func() { x.l.Observe(face) }))
					if x.strangers != nil {
						stranger = min(stranger, least(1, func() { x.l.Observe(x.strangers[i]) }))
					}
				}
			}
			b.ReportMetric(float64(x.l.Graph().Learned()), "centroids")
			b.ReportMetric(plain/1e3, "pass-µs")
			b.ReportMetric(known/plain, "step/pass")
			if x.strangers != nil {
				b.ReportMetric(stranger/plain, "stranger/pass")
			}
		})
	}
}

// BenchmarkPeople measures a learner that knows many people: four labelled faces and one learned centroid of each.
// Times are printed beside the time of one float32 pass over all coordinates, measured in turn.
func BenchmarkPeople(b *testing.B) {
	for _, people := range []int{8, 100, 1000, 10_000} {
		b.Run(fmt.Sprint(people), func(b *testing.B) {
			c := newCrowd(people, 512)
			before := heap()
			l := assembly(b, c)
			held := float64(heap() - before)
			n := l.Graph().Len()
			coordinates := float64(4 * 512 * n)
			pass := plainPass(l)
			var known, outlier, plain []float64
			for b.Loop() {
				const turns = 15
				i := 0
				faces := make([][]float32, turns)
				for q := range faces {
					faces[q] = c.face(c.r.IntN(people))
				}
				next := func() []float32 { i++; return faces[i%turns] }
				p := median(turns, func() { pass(next()) })
				k := median(turns, func() { l.Observe(next()) })
				for q := range faces {
					faces[q] = c.stranger()
				}
				o := median(turns, func() { l.Observe(next()) })
				plain, known, outlier = append(plain, float64(p)), append(known, float64(k)/float64(p)), append(outlier,
					float64(o)/float64(p))
			}
			data, err := l.MarshalBinary()
			if err != nil {
				b.Fatal(err)
			}
			var back online.Learner
			start := time.Now()
			if err := back.UnmarshalBinary(data); err != nil {
				b.Fatal(err)
			}
			opened := time.Since(start)
			newcomer := c.direction(make([]float32, 512), 1)
			start = time.Now()
			for range 4 {
				if err := l.Label(c.direction(newcomer, .55), "newcomer"); err != nil {
					b.Fatal(err)
				}
			}
			enrolled := time.Since(start)
			b.ReportMetric(middle(plain)/1e6, "pass-ms")
			b.ReportMetric(middle(known), "step/pass")
			b.ReportMetric(middle(outlier), "outlier/pass")
			b.ReportMetric(held/coordinates, "held/coordinates")
			b.ReportMetric(float64(len(data))/coordinates, "snapshot/coordinates")
			b.ReportMetric(float64(opened.Milliseconds()), "open-ms")
			b.ReportMetric(float64(enrolled.Microseconds())/1e3, "label4-ms")
			runtime.KeepAlive(l)
		})
	}
}
