// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/office/page"
	"github.com/faceauth/faceauth/online"
)

// BenchmarkLists measures what the page of an office asks for, with 10,000 people of four faces each.
func BenchmarkLists(b *testing.B) {
	space := face.Space{ID: "bench", Dim: 512, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, Reach: .86,
		ImpostorRadius: .93}
	g, err := gallery.New(space, online.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(4, 1))
	for i := range 10_000 {
		var four [][]float32
		middle := make([]float64, space.Dim)
		for i := range middle {
			middle[i] = r.NormFloat64()
		}
		for range 4 {
			x, sum := make([]float32, space.Dim), 0.
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
		if err := g.Label(fmt.Sprint("person ", i), four, time.Now()); err != nil {
			b.Fatal(err)
		}
	}
	p, err := page.New(office.New(g, office.Options{}), page.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range []string{"now", "people", "inbox", "person?name=person+77"} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				if w := ask(p, "GET", "/api/"+path, ""); w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}
