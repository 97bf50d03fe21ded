// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
)

// A face that two people claim alike is nobody's.
func TestTieIsNobodys(t *testing.T) {
	l := fixture.Must(online.New(plane, online.Settings{Accept: .01}))(t)
	fixture.Check(t, l.Label([]float32{-.3, 0}, alice))
	fixture.Check(t, l.Label([]float32{.3, 0}, bob))
	v := fixture.Must(l.Observe([]float32{0, 0}))(t)
	if v.Person != 0 || v.Best != 0 || v.Reason != online.Tie {
		t.Errorf("%+v", v)
	}
}

// Of two faces of one frame that are so near that an edge joins them the second is not learned,
// whoever each of them is; in a frame of its own it is.
func TestAlikeInOneFrame(t *testing.T) {
	learner := func() *online.Learner {
		l := fixture.Must(online.New(line, online.Settings{Accept: .01, Learn: .01}))(t)
		shown(t, l, alice, 0)
		shown(t, l, bob, 1.6)
		return l
	}
	hers, his := online.Observation{Vector: []float32{.5, 0}},
		online.Observation{Vector: []float32{1.1, 0}}
	together := fixture.Must(learner().ObserveFrame([]online.Observation{hers, his}))(t)
	apart := learner()
	fixture.Must(apart.Observe(hers.Vector))(t)
	alone := fixture.Must(apart.Observe(his.Vector))(t)
	if v := together[1]; v.Person != bob || v.Learned || !together[0].Learned ||
		alone.Person != bob || !alone.Learned {
		t.Errorf("together %+v, and alone %+v", together, alone)
	}
}

// What a learner tells of its faces.
func TestTold(t *testing.T) {
	l := fresh(t)
	if l.Newest() != 0 || !l.Time().IsZero() {
		t.Errorf("a new one has face %d at %v", l.Newest(), l.Time())
	}
	shown(t, l, alice, 0, 5)
	shown(t, l, bob, 1.6)
	labels := l.Labels()
	if l.Newest() != labels[2].ID {
		t.Errorf("the newest is %d of %v", l.Newest(), labels)
	}
	for _, test := range []struct {
		x       float32
		of      online.Person
		nearest float64
		bound   float64
		person  online.Person
		closest float64
	}{
		{.5, alice, .5, 9, alice, .5}, {.5, bob, 1.1, 1, alice, .5}, {4, alice, 1, .5, 0, .5},
		{1.5, 77, math.Inf(1), 1, bob, .1},
	} {
		x := []float32{test.x, 0}
		nearest := fixture.Must(l.Nearest(x, test.of))(t)
		person, closest := l.Closest(x, test.bound)
		const rounding = 1e-6 // of float32
		if nearest != test.nearest && math.Abs(nearest-test.nearest) > rounding ||
			person != test.person ||
			math.Abs(closest-test.closest) > rounding {
			t.Errorf("%+v: %g, and %d at %g", test, nearest, person, closest)
		}
	}
	if _, err := l.Nearest([]float32{1}, alice); err == nil {
		t.Error("a vector of another length has a distance")
	}
	fixture.Check(t, l.Reject([]float32{.2, 0}, alice))
	for within, want := range map[float64]int{.1: 0, .5: 1, 2: 2, 9: 4} {
		all := l.Conflicts(within)
		if len(all) != want || !slices.IsSortedFunc(all, func(a, b online.Conflict) int {
			return int(math.Copysign(1, a.Distance-b.Distance))
		}) {
			t.Errorf("within %g: %+v, want %d", within, all, want)
		}
	}
}

// A snapshot without labelled vectors is the learner itself when the vectors are given again, and
// nothing without them. What was learned can be learned again by another learner, with its pictures
// and times.
func TestLearned(t *testing.T) {
	var taught []online.Taught
	l := fresh(t)
	l.OnLearned(func(x online.Taught) { taught = append(taught, x) })
	shown(t, l, alice, 0)
	l.SetTime(time.Unix(1000, 0))
	var follows []int64
	for _, x := range []float32{.6, 1.2, 1.8} {
		v := fixture.Must(l.ObserveFrame([]online.Observation{{Vector: []float32{x, 0},
			Follows: follows, Frontal: true, Picture: []byte{byte(10 * x)}}}))(t)[0]
		if !v.Learned {
			t.Fatalf("%+v", v)
		}
		follows = []int64{v.Stored}
	}
	again := fresh(t)
	shown(t, again, bob, -9) // the numbers differ
	shown(t, again, alice, 0)
	fixture.Check(t, again.LearnAgain(taught))
	if !again.Time().IsZero() {
		t.Errorf("its own time is %v", again.Time())
	}
	for _, s := range again.Stored() {
		if !s.Labelled && (s.Person != alice || !s.At.Equal(l.Time()) ||
			!bytes.Equal(again.Picture(s.ID), s.Picture) ||
			len(s.Picture) != 1 || s.Picture[0] != byte(10*s.Vector[0])) {
			t.Errorf("learned again: %+v", s)
		}
	}
	if n := again.Graph().Learned(); n != len(taught) || n != 3 {
		t.Errorf("%d faces of %d were learned again", n, len(taught))
	}
	whole, learned := fixture.Must(l.MarshalBinary())(t), fixture.Must(l.MarshalLearned())(t)
	if len(learned) >= len(whole) {
		t.Errorf("%d bytes of %d", len(learned), len(whole))
	}
	back := fresh(t)
	if back.UnmarshalLearned(learned, func(int64) []float32 { return nil }) == nil ||
		back.Restored() != 0 {
		t.Error("labels without vectors were taken")
	}
	fixture.Check(t, back.UnmarshalLearned(learned, l.Vector))
	if !bytes.Equal(fixture.Must(back.MarshalBinary())(t), whole) || back.Restored() != 1 {
		t.Errorf("another learner is back, %d times", back.Restored())
	}
	if n := back.Retract(back.Labels()[0].ID); n != 3 || back.Graph().Len() != 0 ||
		back.Picture(2) != nil {
		t.Errorf("%d learned faces went with her label, and %d are left", n, back.Graph().Len())
	}
}
