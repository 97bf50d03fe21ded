// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"math"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
)

// A face that follows a stored one is recognised at any distance up to the link, for any number of people: the distance
// for learned names shrinks with their number, and once left a zone within the edge radius in which a nearer face had no
// name, and one further away had.
func TestFollowsAtAnyDistance(t *testing.T) {
	const dim = 512
	space := face.Space{ID: "ball", Dim: dim, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, Reach: .86,
		Stills:  face.Impostors{Pairs: 1e6, People: 1e3, Distances: [5]float64{1.23, 1.15, 1.08, 1.02, .95}},
		Streams: face.Impostors{Pairs: 1e5, People: 1e2, Distances: [5]float64{1.125, .986, .876}}}
	// at returns a vector at a distance from another one, on the great circle to a direction.
	at := func(x []float32, d float64, direction int) []float32 {
		angle := 2 * math.Asin(d/2)
		y := make([]float32, dim)
		for i, v := range x {
			y[i] = float32(math.Cos(angle)) * v
		}
		y[direction] += float32(math.Sin(angle))
		return y
	}
	for _, people := range []int{2, 6, 16, 40, 100} {
		enrolled := make([]float32, dim)
		enrolled[0] = 1
		turned := at(enrolled, 1.2, 201) // far from the enrolled face
		for d := .05; d <= 1.2; d += .05 {
			near := at(turned, d, 202)
			l, err := online.New(space, online.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range people {
				x := make([]float32, dim)
				x[i] = 1
				if err := l.Label(x, personOf(i)); err != nil {
					t.Fatal(err)
				}
			}
			first, err := l.ObserveFrame([]online.Observation{{Vector: at(enrolled, .5, 201)}})
			if err != nil {
				t.Fatal(err)
			}
			second, err := l.ObserveFrame([]online.Observation{{Vector: turned, Follows: []int64{first[0].Stored}}})
			if err != nil || !second[0].Learned {
				t.Fatalf("%d people: %+v, %v", people, second, err)
			}
			got, err := l.ObserveFrame([]online.Observation{{Vector: near, Hold: true,
				Follows: []int64{second[0].Stored}}})
			if err != nil || got[0].Person != personOf(0) {
				t.Errorf("%d people, at %.2f from the face before it: %+v, %v", people, d, got[0], err)
			}
		}
	}
}
