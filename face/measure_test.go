// SPDX-License-Identifier: Apache-2.0

package face_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/online"
)

// cloud returns n vectors of each of some people, each around a place of its own.
func cloud(seed uint64, people, n, dim int, spread float64) map[string][][]float32 {
	r := rand.New(rand.NewPCG(seed, 33))
	all := make(map[string][][]float32)
	for p := range people {
		at := make([]float64, dim)
		for i := range at {
			at[i] = r.NormFloat64()
		}
		name := fmt.Sprintf("p%03d", p)
		for range n {
			x := make([]float32, dim)
			for i := range x {
				x[i] = float32(at[i] + spread*r.NormFloat64())
			}
			all[name] = append(all[name], x)
		}
	}
	return all
}

// Vectors of one's own: measure their space on labelled ones, then label, judge and learn.
func ExampleMeasure() {
	space, err := face.Measure("badges", cloud(1, 40, 8, 16, .1)) // forty people, eight vectors of each
	if err != nil {
		panic(err)
	}
	learner, err := online.New(space, online.Settings{})
	if err != nil {
		panic(err)
	}
	right, strangers := 0, 0
	for name, vectors := range cloud(2, 20, 30, 16, .1) { // other people
		if name < "p010" {
			if err := learner.Label(vectors[0], name); err != nil {
				panic(err)
			}
		}
	}
	for name, vectors := range cloud(2, 20, 30, 16, .1) {
		for _, x := range vectors[1:] {
			v, err := learner.Observe(x)
			if err != nil {
				panic(err)
			}
			switch {
			case name < "p010" && v.Label == name:
				right++
			case name >= "p010" && v.Label != "":
				strangers++
			}
		}
	}
	fmt.Println(right, "of 290 named,", strangers, "strangers accepted")
	// Output:
	// 290 of 290 named, 0 strangers accepted
}

func TestMeasure(t *testing.T) {
	s, err := face.Measure("x", cloud(5, 60, 10, 16, .1))
	if err != nil {
		t.Fatal(err)
	}
	if s.Dim != 16 || s.Unit || s.Scale != 1 || !(0 < s.Sigma && s.Sigma < s.Reach && s.Reach < s.ImpostorRadius) ||
		!(s.GenuineRadius < s.ImpostorRadius) || !s.Stills.Measured() || s.Stills.Check() != nil ||
		s.Stills.People != 60 || s.Stills.Pairs != 60*59/2*100 {
		t.Fatalf("%+v", s)
	}
	within, genuine := 0, 0
	for _, all := range cloud(5, 60, 10, 16, .1) {
		for i, x := range all {
			for _, y := range all[:i] {
				if genuine++; graph.Distance(x, y, 1) <= s.GenuineRadius {
					within++
				}
			}
		}
	}
	if share := float64(within) / float64(genuine); share < .985 || share > .995 {
		t.Errorf("%.3f of the genuine pairs lie within the genuine radius, want .99", share)
	}
	// Twice as large vectors are the same space, twice as large.
	large := cloud(5, 60, 10, 16, .1)
	for _, all := range large {
		for _, x := range all {
			for i := range x {
				x[i] *= 2
			}
		}
	}
	if l, err := face.Measure("x", large); err != nil || math.Abs(l.Reach-2*s.Reach) > 1e-6 ||
		math.Abs(l.Sigma-2*s.Sigma) > 1e-6 {
		t.Errorf("%+v, %v", l, err)
	}
	few, err := face.Measure("few", map[string][][]float32{"a": {{1, 0}, {.6, .8}}, "b": {{0, 1}}})
	if err != nil || !few.Unit || few.Stills.Measured() || !(few.Reach > 0) {
		t.Errorf("%+v, %v", few, err)
	}
}

func TestMeasureErrors(t *testing.T) {
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		people map[string][][]float32
		want   error
	}{
		"nobody":              {nil, face.ErrFew},
		"one person":          {map[string][][]float32{"a": {{1}, {2}}}, face.ErrFew},
		"one vector each":     {map[string][][]float32{"a": {{1}}, "b": {{2}}}, face.ErrFew},
		"other lengths":       {map[string][][]float32{"a": {{1, 2}, {1}}, "b": {{2, 2}}}, face.ErrDimension},
		"not a number":        {map[string][][]float32{"a": {{1}, {nan}}, "b": {{2}}}, face.ErrNotFinite},
		"no values":           {map[string][][]float32{"a": {{}, {}}, "b": {{}}}, nil},
		"the same everywhere": {map[string][][]float32{"a": {{1}, {1}}, "b": {{1}}}, nil},
	} {
		if s, err := face.Measure("x", c.people); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}
