// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// BenchmarkEnroll measures the enrolment of one more person in a gallery in memory, which knows many people with four
// faces each. It also measures how long such a gallery takes to be saved, with its check, and to be opened.
func BenchmarkEnroll(b *testing.B) {
	for _, people := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(people), func(b *testing.B) {
			space := face.Space{
				ID: "bench", Dim: 512, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, Reach: .86, ImpostorRadius: .93,
				GenuineRadius: 1.2,
			}
			g, err := gallery.New(space, online.Settings{})
			if err != nil {
				b.Fatal(err)
			}
			r := rand.New(rand.NewPCG(3, 1))
			faces := func() (four [][]float32) {
				middle := make([]float64, space.Dim)
				for i := range middle {
					middle[i] = r.NormFloat64()
				}
				for range 4 {
					x := make([]float32, space.Dim)
					var sum float64
					for i := range x {
						v := middle[i] + .55*r.NormFloat64()
						x[i] = float32(v)
						sum += v * v
					}
					for i := range x {
						x[i] /= float32(math.Sqrt(sum))
					}
					four = append(four, x)
				}
				return four
			}
			for i := range people {
				if err := g.Learner().LabelAll(faces(), fmt.Sprint("person ", i)); err != nil {
					b.Fatal(err)
				}
			}
			n := 0
			for b.Loop() {
				b.StopTimer()
				four := faces()
				n++
				b.StartTimer()
				if like, err := g.Enroll(fmt.Sprint("newcomer ", n), four, noon, gallery.Enrolment{}); err != nil ||
					like != "" {
					b.Fatal(like, err)
				}
			}
			path := filepath.Join(b.TempDir(), "gallery")
			start := time.Now()
			if err := g.Save(path); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(start).Milliseconds()), "save-ms")
			start = time.Now()
			if _, err := gallery.Read(path); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(start).Milliseconds()), "open-ms")
		})
	}
}
