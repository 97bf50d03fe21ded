// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/online"
)

// drawn returns a function that draws four faces of the next person, with this number of values.
func drawn(dim int) (next func() [][]float32) {
	r := rand.New(rand.NewPCG(3, 1))
	return func() (four [][]float32) {
		middle := make([]float64, dim)
		for i := range middle {
			middle[i] = r.NormFloat64()
		}
		for range 4 {
			x, sum := make([]float32, dim), 0.
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
}

// crowd returns a gallery of many people with four drawn faces each, and a function that draws the
// next person.
func crowd(b *testing.B, people int) (g *gallery.Gallery, next func() [][]float32) {
	b.Helper()
	space := face.Space{
		ID: "bench", Dim: 512, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, Reach: .86,
		ImpostorRadius: .93, GenuineRadius: 1.2,
	}
	g = fixture.Must(gallery.Create(filepath.Join(b.TempDir(), "crowd"), space,
		online.Settings{}))(b)
	next = drawn(space.Dim)
	fixture.Check(b, g.Rows().Change(func(t *gallery.Tx) error {
		for i := range people {
			id, err := t.Person(fmt.Sprint("person ", i))
			if err == nil {
				err = t.Label(id, false, next(), nil)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
	return g, next
}

// BenchmarkShared measures an enrolment that a program commits and another one takes in, in a
// gallery of 10,000 people with four faces each, with and without encryption; and how long the
// gallery takes to be opened, its memory and size. Times of enrolments are medians.
func BenchmarkShared(b *testing.B) {
	g, next := crowd(b, 10_000)
	plain := g.Path()
	fixture.Check(b, g.Close())
	for _, kind := range []string{"plain", "encrypted"} {
		b.Run(kind, func(b *testing.B) {
			path := plain
			var key []byte
			if kind == "encrypted" {
				d, err := store.Open(plain, store.Schema{}, false)
				key, path = testKey, plain+"-encrypted"
				fixture.Check(b, errors.Join(err, gallery.SetKey(path, key), d.Backup(path),
					d.Close()))
			}
			opened := func() *gallery.Gallery {
				return fixture.Must(gallery.Read(path))(b)
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := time.Now()
			one := opened()
			opening := time.Since(start)
			runtime.GC()
			runtime.ReadMemStats(&after)
			info := fixture.Must(os.Stat(path))(b)
			defer one.Close()
			two := opened()
			defer two.Close()
			n := 0
			var saved, known []time.Duration
			for b.Loop() {
				n++
				name := fmt.Sprint(kind, " newcomer ", n)
				start := time.Now()
				fixture.Must(one.Enroll(name, next(), noon, gallery.Enrolment{}))(b)
				saved = append(saved, time.Since(start))
				start = time.Now()
				fixture.Check(b, two.Update())
				if known = append(known, time.Since(start)); two.Number(name) == 0 {
					b.Fatal(name, " is not known")
				}
			}
			b.ReportMetric(float64(opening.Milliseconds()), "open-ms")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "heap-MB")
			b.ReportMetric(float64(info.Size())/1e6, "file-MB")
			slices.Sort(saved)
			slices.Sort(known)
			b.ReportMetric(float64(saved[n/2].Microseconds())/1e3, "save-ms")
			b.ReportMetric(float64(known[n/2].Microseconds())/1e3, "update-ms")
		})
	}
}
