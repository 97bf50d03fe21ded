// SPDX-License-Identifier: Apache-2.0

package face_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
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
	// forty people, eight vectors of each
	space, err := face.Measure("badges", cloud(1, 40, 8, 16, .1))
	if err != nil {
		panic(err)
	}
	learner, err := online.New(space, online.Settings{})
	if err != nil {
		panic(err)
	}
	people := map[string]online.Person{}
	right, strangers := 0, 0
	for name, vectors := range cloud(2, 20, 30, 16, .1) { // other people
		if name < "p010" {
			people[name] = online.Person(len(people) + 1)
			if err := learner.Label(vectors[0], people[name]); err != nil {
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
			case name < "p010" && v.Person == people[name]:
				right++
			case name >= "p010" && v.Person != 0:
				strangers++
			}
		}
	}
	fmt.Println(right, "of 290 named,", strangers, "strangers accepted")
	// Output:
	// 290 of 290 named, 0 strangers accepted
}

func TestMeasure(t *testing.T) {
	s := fixture.Must(face.Measure("x", cloud(5, 60, 10, 16, .1)))(t)
	if s.Dim != 16 || s.Unit || s.Scale != 1 ||
		!(0 < s.Sigma && s.Sigma < s.Reach && s.Reach < s.ImpostorRadius) ||
		!(s.GenuineRadius < s.ImpostorRadius) || !s.Stills.Measured() || s.Stills.Check() != nil ||
		s.Stills.People != 60 || s.Stills.Pairs != 60*59/2*100 {
		t.Fatalf("%+v", s)
	}
	within, genuine := 0, 0
	for _, all := range cloud(5, 60, 10, 16, .1) {
		for i, x := range all {
			for _, y := range all[:i] {
				if genuine++; quantized.Distance(x, y, 1) <= s.GenuineRadius {
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
	if w := s.Warning(); w != "" {
		t.Errorf("%d pairs: %s", s.Stills.Pairs, w)
	}
	few, err := face.Measure("few", map[string][][]float32{"a": {{1, 0}, {.8, .6}}, "b": {{0, 1}}})
	if err != nil || !few.Unit || few.Stills.Measured() || !(few.Reach > 0) ||
		!strings.Contains(few.Warning(), "2 pairs") ||
		!strings.Contains(few.Warning(), "5000 are wanted") {
		t.Errorf("%+v, %v", few, err)
	}
}

// recognised returns how many vectors of people of whom one is labelled get their names, and how
// many of strangers get one, of 190 each.
func recognised(t *testing.T, s face.Space, seed uint64, dim int,
	spread float64) (right, strangers int) {
	t.Helper()
	l := fixture.Must(online.New(s, online.Settings{}))(t)
	if l.Warnings() == nil {
		t.Error("no warning")
	}
	all, people := cloud(seed, 20, 20, dim, spread), map[string]online.Person{}
	for name, vectors := range all {
		if name >= "p010" {
			continue
		}
		people[name] = online.Person(len(people) + 1)
		fixture.Check(t, l.Label(vectors[0], people[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, x := range all[name][1:] {
			v := fixture.Must(l.Observe(x))(t)
			switch {
			case v.Person == 0:
			case name >= "p010":
				strangers++
			case v.Person == people[name]:
				right++
			}
		}
	}
	return right, strangers
}

// Few pairs of two people bound the reach by what one person's vectors need: nothing says how near
// strangers come.
func TestMeasureFew(t *testing.T) {
	s := fixture.Must(face.Measure("few",
		map[string][][]float32{"a": {{1, 2}, {1, 3}}, "c": {{9, 9}}}))(t)
	l := fixture.Must(online.New(s, online.Settings{}))(t)
	fixture.Check(t, l.Label([]float32{1, 2}, 1))
	for _, x := range [][]float32{{5, 5}, {8, 2}, {-5, 2}, {1, 9}} {
		if v, err := l.Observe(x); err != nil || v.Person != 0 {
			t.Errorf("%v is %d with confidence %.2f, %v", x, v.Person, v.Confidence, err)
		}
	}
	for people := 4; people <= 8; people++ {
		s := fixture.Must(face.Measure("few", cloud(uint64(people), people, 3, 8, .1)))(t)
		right, strangers := recognised(t, s, 100, 8, .1)
		t.Logf("%d people: %d of 190 named, %d strangers", people, right, strangers)
		if right < 171 || strangers > 0 {
			t.Errorf("measured on %d people: %d of 190 are named, and %d strangers", people, right,
				strangers)
		}
	}
}

// A wrong name, and one picture in two folders, are errors that name the vectors: the radius rests
// on them.
func TestMeasureWrongNames(t *testing.T) {
	people := cloud(1, 12, 3, 64, .15)
	people["p001"] = append(people["p001"], people["p000"][2])
	people["p000"] = people["p000"][:2]
	_, err := face.Measure("f", people)
	if !errors.Is(err, face.ErrLabels) || !strings.Contains(err.Error(), "vector 4 of p001") ||
		!strings.Contains(err.Error(), "of p000") || strings.Contains(err.Error(), "others") {
		t.Errorf("a wrong name: %v", err)
	}
	people = cloud(1, 12, 8, 64, .15)
	people["p001"] = append(people["p001"], people["p000"][2])
	_, err = face.Measure("f", people)
	if !errors.Is(err, face.ErrLabels) || !strings.Contains(err.Error(), "vector 9 of p001") ||
		!strings.Contains(err.Error(), "vector 3 of p000") {
		t.Errorf("a vector of two people: %v", err)
	}
	// One wrong name among many people changes no radius, and people who lie apart do not need to
	// be dense.
	people = cloud(1, 400, 4, 16, .1)
	people["p001"][0] = people["p000"][2]
	if _, err := face.Measure("f", people); err != nil {
		t.Errorf("one of 1,600: %v", err)
	}
	// Vectors that say nothing about the person.
	if _, err := face.Measure("f", cloud(3, 30, 6, 16, 3)); !errors.Is(err, face.ErrLabels) ||
		!strings.Contains(err.Error(), "do not tell people apart") {
		t.Errorf("vectors without people: %v", err)
	}
}

func TestMeasureErrors(t *testing.T) {
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		people map[string][][]float32
		want   error
	}{
		"nobody":          {nil, face.ErrLabels},
		"one person":      {map[string][][]float32{"a": {{1}, {2}}}, face.ErrLabels},
		"one vector each": {map[string][][]float32{"a": {{1}}, "b": {{2}}}, face.ErrLabels},
		"other lengths": {map[string][][]float32{"a": {{1, 2}, {1}}, "b": {{2, 2}}},
			face.ErrVector},
		"not a number": {map[string][][]float32{"a": {{1}, {nan}}, "b": {{2}}},
			face.ErrVector},
		"no values":           {map[string][][]float32{"a": {{}, {}}, "b": {{}}}, nil},
		"the same everywhere": {map[string][][]float32{"a": {{1}, {1}}, "b": {{1}}}, nil},
	} {
		if s, err := face.Measure("x", c.people); err == nil || c.want != nil &&
			!errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}
