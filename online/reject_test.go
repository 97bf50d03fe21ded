// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
)

// line is a space in which people lie along a line, and edges have a length of up to 1.
var line = face.Space{ID: "line", Dim: 2, Scale: 1, Sigma: .4, Gamma: 1e-3, Reach: 1}

func shown(t *testing.T, l *online.Learner, p online.Person, xs ...float32) {
	t.Helper()
	for _, x := range xs {
		fixture.Check(t, l.Label([]float32{x, 0}, p))
	}
}

func fresh(t *testing.T) *online.Learner {
	t.Helper()
	return fixture.Must(online.New(line, online.Settings{K: 60}))(t)
}

func judged(t *testing.T, l *online.Learner, x float32) online.Verdict {
	t.Helper()
	return fixture.Must(l.Judge([]float32{x, 0}))(t)
}

// To deny truthfully that a face is somebody else's harms nobody: for every pair of people, five
// denials of B about A's faces leave A's faces recognised as before, and all but one in a hundred
// of B's.
func TestDenialHarmsNobody(t *testing.T) {
	const people, dim, steps = 6, 48, 40
	space := face.Space{ID: "ball", Dim: dim, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3,
		Reach: .86, Stills: face.Impostors{Pairs: 1e6, People: 1e3,
			Distances: [5]float64{1.23, 1.15, 1.08, 1.02, .95}}}
	w := newWalker(people, dim)
	learner := func() *online.Learner {
		l := fixture.Must(online.New(space, online.Settings{K: 60}))(t)
		for i := range people {
			for q := range 4 {
				fixture.Check(t, l.Label(w.at(i, float64(q)), personOf(i)))
			}
		}
		for i := range people {
			var follows []int64
			for q := range steps {
				v := fixture.Must(l.ObserveFrame([]online.Observation{{Vector: w.at(i,
					4+2*float64(q)),
					Follows: follows, As: personOf(i)}}))(t)
				if v[0].Stored > 0 {
					follows = []int64{v[0].Stored}
				}
			}
		}
		return l
	}
	recall := func(l *online.Learner, i int) (right int) {
		for q := range steps {
			v := fixture.Must(l.Judge(w.at(i, 5+2*float64(q))))(t)
			if v.Person == personOf(i) {
				right++
			}
		}
		return right
	}
	before := learner()
	data := fixture.Must(before.MarshalBinary())(t)
	for a := range people {
		for b := range people {
			if a == b {
				continue
			}
			var l online.Learner
			fixture.Check(t, l.UnmarshalBinary(data))
			for q := range 5 {
				fixture.Check(t, l.Reject(w.at(a, 6+8*float64(q)), personOf(b)))
			}
			if was, is := recall(before, a), recall(&l, a); is != was || was < steps/2 {
				t.Errorf("%d of %d faces of %d are recognised after it was denied that they are "+
					"%d's, and %d before", is,
					steps, personOf(a), personOf(b), was)
			}
			if was, is := recall(before, b), recall(&l, b); is < was-steps/100 {
				t.Errorf("%d of %d faces of %d are recognised after a denial, and %d before", is,
					steps, personOf(b), was)
			}
		}
	}
}

// In a photograph the nearest of several faces of a person keeps the name, the first of equal ones.
func TestJudgePhotograph(t *testing.T) {
	l := fresh(t)
	shown(t, l, alice, 0)
	shown(t, l, bob, 5)
	for _, c := range []struct {
		at   []float32 // 99 for a face without a vector
		want []online.Person
	}{
		{[]float32{.2, .1, 5}, []online.Person{0, alice, bob}},
		{[]float32{.1, .2, .3}, []online.Person{alice, 0, 0}},
		{[]float32{.2, .2}, []online.Person{alice, 0}},
		{[]float32{99, .2, 40, .1}, []online.Person{0, 0, 0, alice}},
		{nil, nil},
	} {
		var faces [][]float32
		for _, x := range c.at {
			if x == 99 {
				faces = append(faces, nil)
				continue
			}
			faces = append(faces, []float32{x, 0})
		}
		all, err := online.JudgePhotograph(l, faces)
		if err != nil || len(all) != len(c.want) {
			t.Fatalf("%v: %d verdicts, %v", c.at, len(all), err)
		}
		for i, v := range all {
			if v.Person != c.want[i] || v.Person == 0 && v.Distance != 0 {
				t.Errorf("%v: face %d is %d at %g, want %d", c.at, i, v.Person, v.Distance,
					c.want[i])
			}
			if near := c.at[i] < 1; near && v.Person == 0 && v.Reason != online.BetterFace {
				t.Errorf("%v: face %d: %q", c.at, i, v.Reason)
			}
		}
	}
	if _, err := online.JudgePhotograph(l, [][]float32{{1}}); err == nil {
		t.Error("a vector of another length gave no error")
	}
}

// Of two faces of one person in a frame, the one that loses the name is not anchored and has no
// distance.
func TestLosesName(t *testing.T) {
	l := fresh(t)
	shown(t, l, alice, 0)
	all := fixture.Must(l.ObserveFrame([]online.Observation{{Vector: []float32{.2, 0}},
		{Vector: []float32{.1, 0}}}))(t)
	if v := all[0]; v.Person != 0 || v.Reason != online.BetterFace || v.Anchored ||
		v.Distance != 0 || v.Best != alice {
		t.Errorf("%+v", v)
	}
	if v := all[1]; v.Person != alice || !v.Anchored || v.Distance == 0 {
		t.Errorf("%+v", v)
	}
}
