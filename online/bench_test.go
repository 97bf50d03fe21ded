// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/online"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

const benchPeople = 8

// sizes are the sizes in lab/NOTES.md: the thesis's, the embedding's, and a series over k.
var sizes = []struct{ k, d int }{{500, 9216}, {100, 512}, {200, 512}, {500, 512}, {1000, 512},
	{2000, 512}}

func name(k, d int) string { return fmt.Sprintf("k=%d/d=%d", k, d) }

// observer is one learner or several.
type observer interface {
	Label(x []float32, p online.Person) error
	Observe(x []float32) (online.Verdict, error)
}

// observe is the loop of a benchmark: it shows one face after the other, in turn.
func observe(b *testing.B, l observer, faces [][]float32) {
	i := 0
	for b.Loop() {
		fixture.Must(l.Observe(faces[i%len(faces)]))(b)
		i++
	}
}

// gathering returns a learner with k vertices that eight people have filled, and faces that it has
// already seen, so that it does not grow.
func gathering(tb testing.TB, k, d int) (*online.Learner, [][]float32) {
	tb.Helper()
	space := face.Space{ID: "bench", Dim: d, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3}
	l, err := online.New(space, online.Settings{K: k})
	fixture.Check(tb, err)
	next := gather(tb, l, 6*k, d)
	// A repartition has left fewer than k vertices; the learner takes at most k faces before the
	// next repartition.
	s := l.Settings()
	s.K = k + 1
	fixture.Check(tb, l.Configure(s))
	var faces [][]float32
	for l.Graph().Len() < k {
		x := next()
		fixture.Must(l.Observe(x))(tb)
		faces = append(faces, x)
	}
	for len(faces) < 256 {
		x := next()
		v, err := l.Judge(x)
		if err != nil || v.Person == 0 {
			tb.Fatalf("%+v, %v", v, err)
		}
		faces = append(faces, x)
	}
	return l, slices.Clone(faces[len(faces)-256:])
}

// gather shows n faces of eight people to a learner, and returns a function that makes further
// faces.
func gather(tb testing.TB, l observer, n, d int) (next func() []float32) {
	tb.Helper()
	w := newWalker(benchPeople, d)
	for i := range benchPeople {
		for q := range 4 {
			fixture.Check(tb, l.Label(w.at(i, float64(q)), personOf(i)))
		}
	}
	step := 0
	next = func() []float32 {
		step++
		return w.at(step%benchPeople, float64(step/benchPeople))
	}
	for range n {
		fixture.Must(l.Observe(next()))(tb)
	}
	return next
}

// BenchmarkStep measures a face that is judged and learned by a full graph.
func BenchmarkStep(b *testing.B) {
	for _, s := range sizes {
		b.Run(name(s.k, s.d), func(b *testing.B) {
			before := heap()
			l, faces := gathering(b, s.k, s.d)
			// without the memory of the faces
			held := float64(heap()-before) - float64(4*s.d*len(faces))
			b.ReportAllocs()
			observe(b, l, faces)
			b.ReportMetric(float64(l.Graph().Len()), "vertices")
			b.ReportMetric(held, "bytes-held")
		})
	}
}

// heap returns the number of bytes in use on the heap.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkDistancePass measures the work that every step needs: the products of one face with
// every centroid, which is a float32 matrix times a vector.
func BenchmarkDistancePass(b *testing.B) {
	for _, s := range sizes {
		b.Run(name(s.k, s.d), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			random := func(n int) []float32 {
				x := make([]float32, n)
				for i := range x {
					x[i] = r.Float32()
				}
				return x
			}
			a := blas32.General{Rows: s.k, Cols: s.d, Stride: s.d, Data: random(s.k * s.d)}
			faces := make([]blas32.Vector, 256)
			for i := range faces {
				faces[i] = blas32.Vector{N: s.d, Inc: 1, Data: random(s.d)}
			}
			y := blas32.Vector{N: s.k, Inc: 1, Data: make([]float32, s.k)}
			i := 0
			for b.Loop() {
				blas32.Gemv(blas.NoTrans, 1, a, faces[i%len(faces)], 0, y)
				i++
			}
		})
	}
}

// BenchmarkDenseStep measures the obvious implementation on the same vertices: similarities from
// the vectors, and a dense Cholesky decomposition.
func BenchmarkDenseStep(b *testing.B) {
	for _, s := range sizes {
		b.Run(name(s.k, s.d), func(b *testing.B) {
			l, _ := gathering(b, s.k, s.d)
			g := l.Graph()
			c := g.Config()
			points := make([][]float32, g.Len())
			p := dense.Problem{Classes: g.State().Classes, Gamma: c.Gamma}
			for i := range points {
				points[i] = g.Point(i)
				class, labelled := g.Class(i)
				if !labelled {
					class = -1
				}
				p.V, p.Class = append(p.V, g.Multiplicity(i)), append(p.Class, class)
			}
			for b.Loop() {
				p.W = dense.Similarity(dense.Distances(points, c.Scale), c.Kernel, c.Epsilon)
				fixture.Must(p.Harmonic())(b)
			}
		})
	}
}

// BenchmarkPeople measures a step of a learner that knows people by four labelled faces each, with
// a face of one of them and with a stranger's.
func BenchmarkPeople(b *testing.B) {
	for _, people := range []int{100, 1000, 10_000} {
		c := newCrowd(people, 512)
		l, err := online.New(sphereOf(c.dim), online.Settings{K: people})
		for i := 0; i < 4*people && err == nil; i++ {
			err = l.Label(c.face(i%people), personOf(i%people))
		}
		fixture.Check(b, err)
		for name, face := range map[string]func() []float32{
			"known":    func() []float32 { return c.face(c.r.IntN(people)) },
			"stranger": c.stranger,
		} {
			var faces [][]float32
			for range 15 {
				faces = append(faces, face())
			}
			b.Run(fmt.Sprintf("%d/%s", people, name), func(b *testing.B) { observe(b, l, faces) })
		}
	}
}
