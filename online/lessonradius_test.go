// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
)

// covered fails if a face that a source has learned is in the radius of no centroid that l uses, or if such a radius is
// above R1 + R2. It returns the largest radius.
func covered(t *testing.T, l *online.Learner, sources []*online.Learner, learned [][]float32) (radius float64) {
	t.Helper()
	own := 0.
	for i, s := range sources {
		lessons := s.Lessons()
		for _, x := range lessons {
			for _, c := range x.Centroids {
				own = max(own, c.Radius)
			}
		}
		if b := s.Graph().Bound(); own > b*(1+1e-9) && i == 0 {
			t.Fatalf("a centroid is given with the radius %g, and the bound is %g", own, b)
		}
		take(t, l, fmt.Sprint("source ", i), lessons...)
	}
	taken := l.Taken()
	if taken.Kept > l.Settings().K || taken.Left > 0 || taken.Radius > (own+taken.R)*(1+1e-9) {
		t.Fatalf("%+v, and sources have radii of at most %g", taken, own)
	}
	kept := l.Kept()
	for _, x := range learned {
		if !slices.ContainsFunc(kept, func(k quantized.Summary) bool {
			return graph.Distance(x, k.Point, l.Space().Scale) <= k.Radius*(1+1e-6)+1e-6
		}) {
			t.Fatalf("a face that was learned is in the radius of none of %d centroids", len(kept))
		}
	}
	return taken.Radius
}

// Several learners see faces in any order. A learner that takes their lessons knows a bound of the distance between
// each of these faces and its centroid.
func TestLessonRadius(t *testing.T) {
	merged, taken := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 45))
		s := online.Settings{K: 4 + r.IntN(20), Reach: .6, Multiplier: []float64{1.1, 1.5, 2.5}[seed%3]}
		var sources []*online.Learner
		var learned [][]float32
		for range 3 {
			source := learner(t, s)
			all := make([][]float32, 120)
			for i := range all {
				all[i] = []float32{.4 * r.Float32(), 1.2 * r.Float32()}
			}
			switch seed % 5 {
			case 1: // outwards: the first faces are the worst centroids
				slices.SortFunc(all, func(a, b []float32) int { return cmp.Compare(a[1], b[1]) })
			case 2: // inwards, after one that is far out
				slices.SortFunc(all[1:], func(a, b []float32) int { return cmp.Compare(b[1], a[1]) })
			case 3: // in and out
				slices.SortFunc(all, func(a, b []float32) int { return cmp.Compare(a[1], b[1]) })
				for i := 0; i < len(all)/2; i += 2 {
					all[i], all[len(all)-1-i] = all[len(all)-1-i], all[i]
				}
			}
			for _, x := range all {
				v, err := source.Observe(x)
				if err != nil {
					t.Fatal(err)
				}
				if v.Learned && v.Label == "alice" {
					learned = append(learned, x)
				}
			}
			if source.Graph().R() > 0 {
				merged++
			}
			sources = append(sources, source)
		}
		s.K = 3 + r.IntN(9)
		l := learner(t, s)
		covered(t, l, sources, learned)
		if l.Taken().R > 0 {
			taken++
		}
	}
	if merged < 30 || taken < 30 {
		t.Errorf("%d sources have merged, and %d learners what they took: the streams test too little", merged, taken)
	}
}
