// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
)

// A verdict does not depend on who else is in the frame: the same faces get the same verdicts and are learned in the
// same way alone, and beside strangers whose faces are held. Only names that two faces of a frame claim may differ.
func TestBystander(t *testing.T) {
	const people, dim = 6, 512
	space := face.Space{ID: "ball", Dim: dim, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, Reach: .86,
		Stills: face.Impostors{Pairs: 1e6, People: 1e3, Distances: [5]float64{1.23, 1.15, 1.08, 1.02, .95}}}
	learned, unnamed := 0, 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		w := newWalker(people+2, dim)
		settings := online.Settings{K: []int{5, 20, 60}[seed%3]}
		var learners [2]*online.Learner
		for i := range learners {
			l, err := online.New(space, settings)
			if err != nil {
				t.Fatal(err)
			}
			learners[i] = l
		}
		for i := range people {
			for q := range 3 {
				x := w.at(i, float64(q))
				for _, l := range learners {
					if err := l.Label(x, personOf(i)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for step := range 500 {
			x, noise := w.at(r.IntN(people), 60*r.Float64()), 1.5*r.Float64()
			for q := range x {
				x[q] += float32(r.NormFloat64() * noise / math.Sqrt(dim))
			}
			if !space.Project(x) {
				t.Fatal("no direction")
			}
			alone, err := learners[0].ObserveFrame([]online.Observation{{Vector: x}})
			if err != nil {
				t.Fatal(err)
			}
			frame := []online.Observation{{Vector: x}}
			for i := range r.IntN(3) { // faces of strangers before and after it
				stranger := online.Observation{Vector: w.at(people+i, 60*r.Float64()), Hold: true}
				if r.IntN(2) == 0 {
					frame = append(frame, stranger)
				} else {
					frame = append([]online.Observation{stranger}, frame...)
				}
			}
			seen, err := learners[1].ObserveFrame(frame)
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range frame {
				switch {
				case &o.Vector[0] != &x[0] && seen[i].Person != 0:
					t.Fatalf("seed %d, step %d: a stranger is %+v", seed, step, seen[i])
				case &o.Vector[0] == &x[0] && seen[i] != alone[0]:
					t.Fatalf("seed %d, step %d: alone %+v, beside others %+v", seed, step, alone[0], seen[i])
				}
			}
			if alone[0].Learned {
				learned++
			}
			if alone[0].Person == 0 {
				unnamed++
			}
		}
	}
	if learned < 500 || unnamed < 50 {
		t.Errorf("%d learned, %d without a name: the streams test too little", learned, unnamed)
	}
}
