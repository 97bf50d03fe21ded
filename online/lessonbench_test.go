// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
)

// BenchmarkTakeLessons takes the lessons of one of many sources, each with 300 centroids of ten people in 512
// dimensions, and judges a face with all of them. This includes merging all lessons. Judge measures one more face.
func BenchmarkTakeLessons(b *testing.B) {
	const dim, people, centroids = 512, 10, 300
	space := face.Space{ID: "bench", Dim: dim, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, Reach: .86}
	for _, sources := range []int{1, 10, 100} {
		r := rand.New(rand.NewPCG(1, 44))
		near := func(x []float32, spread float64) []float32 {
			y, sum := make([]float32, dim), 0.
			for q := range y {
				y[q] = float32(spread * r.NormFloat64() / math.Sqrt(dim))
				if x != nil {
					y[q] += x[q]
				}
				sum += float64(y[q]) * float64(y[q])
			}
			for q := range y {
				y[q] /= float32(math.Sqrt(sum))
			}
			return y
		}
		l, err := online.New(space, online.Settings{})
		if err != nil {
			b.Fatal(err)
		}
		var who [][]float32
		for p := range people {
			who = append(who, near(nil, 1))
			for range 4 {
				if err := l.Label(near(who[p], .3), fmt.Sprint("p", p)); err != nil {
					b.Fatal(err)
				}
			}
		}
		give := func() (all []online.Lesson) {
			for p, x := range who {
				s := online.Lesson{Space: space.ID, Name: fmt.Sprint("p", p)}
				for range centroids / people {
					s.Centroids = append(s.Centroids, online.Centroid{Vector: near(x, .5), Multiplicity: 1 +
						50*r.Float64(), Radius: .2})
				}
				all = append(all, s)
			}
			return all
		}
		for i := range sources {
			if err := l.TakeLessons(fmt.Sprint("s", i), give()); err != nil {
				b.Fatal(err)
			}
		}
		x, lessons := near(who[0], .4), give()
		b.Run(fmt.Sprint("sources=", sources), func(b *testing.B) {
			for b.Loop() {
				if err := l.TakeLessons("s0", lessons); err != nil {
					b.Fatal(err)
				}
				if v, err := l.Judge(x); err != nil || v.Label != "p0" {
					b.Fatalf("%+v, %v", v, err)
				}
			}
			t := l.Taken()
			b.ReportMetric(float64(t.Kept), "kept")
			data, err := l.MarshalBinary()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(len(data)), "B/snapshot")
		})
		b.Run(fmt.Sprint("sources=", sources, "/judge"), func(b *testing.B) {
			for b.Loop() {
				if _, err := l.Judge(x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
