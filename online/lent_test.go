// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"testing"

	"github.com/faceauth/faceauth/online"
)

// heavy returns lessons of centroids at the places, each of the largest weight.
func heavy(name string, places ...[]float32) online.Lesson {
	s := online.Lesson{Space: "plane", Name: name}
	for _, x := range places {
		s.Centroids = append(s.Centroids, online.Centroid{Vector: x, Multiplicity: 1 << 30})
	}
	return s
}

// between returns places on the way from one place to another, a tenth apart.
func between(from, to []float32, n int) (all [][]float32) {
	for i := range n + 1 {
		q := float32(i) / float32(n)
		all = append(all, []float32{(1-q)*from[0] + q*to[0], (1-q)*from[1] + q*to[1]})
	}
	return all
}

// pair returns a learner that knows alice and bob, two units apart.
func pair(t *testing.T) *online.Learner {
	t.Helper()
	space := plane
	space.Sigma, space.Gamma, space.Reach = .2, 1e-3, .6
	l, err := online.New(space, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]float32{"alice": 0, "bob": 2} {
		if err := l.Label([]float32{x, 0}, name); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// No weight of lessons changes a name that a learner gives without lessons, or overrules a denial.
func TestOwnNameStands(t *testing.T) {
	l := pair(t)
	if err := l.Reject([]float32{0, -.4}, "alice"); err != nil {
		t.Fatal(err)
	}
	places := [][]float32{{.1, 0}, {.3, .1}, {1.6, 0}, {2.4, .1}, {0, -.42}, {5, 5}}
	var before []online.Verdict
	for _, x := range places {
		before = append(before, judge(t, l, x...))
	}
	if before[0].Label != "alice" || before[2].Label != "bob" || before[4].Reason != online.Rejected {
		t.Fatalf("%+v", before)
	}
	take(t, l, "door", heavy("alice", between([]float32{.05, 0}, []float32{3, 0}, 40)...),
		heavy("bob", between([]float32{2, .1}, []float32{0, -.45}, 40)...))
	for i, x := range places[:5] {
		if v := judge(t, l, x...); v != before[i] {
			t.Errorf("at %v: %+v, and without lessons %+v", x, v, before[i])
		}
	}
	if v := judge(t, l, 3.1, 0); v.Label == "" || !v.Lent || v.Anchored {
		t.Errorf("where only lessons reach: %+v", v)
	}
}

// In one frame, a face named by lessons does not take this name from a face that has it without lessons.
func TestLentInFrame(t *testing.T) {
	l := pair(t)
	chain := between([]float32{0, .05}, []float32{0, 2}, 30)
	take(t, l, "door", heavy("alice", chain...))
	own, lent := []float32{-.55, 0}, []float32{0, 1.9}
	a, b := judge(t, l, own...), judge(t, l, lent...)
	if a.Label != "alice" || a.Lent || b.Label != "alice" || !b.Lent || b.Confidence <= a.Confidence {
		t.Fatalf("%+v, %+v: this tests nothing", a, b)
	}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		faces := []online.Observation{{Vector: own, Hold: true}, {Vector: lent, Hold: true}}
		got, err := l.ObserveFrame([]online.Observation{faces[order[0]], faces[order[1]]})
		if err != nil {
			t.Fatal(err)
		}
		if v, w := got[order[0]], got[order[1]]; v.Label != "alice" || w.Label != "" || w.Reason != online.BetterFace {
			t.Errorf("%+v, %+v", v, w)
		}
	}
}

// If a face is equally close to two people, lessons may decide between them, but do not anchor the face.
func TestLentIsNotAnchored(t *testing.T) {
	space := plane
	space.Sigma, space.Gamma, space.Reach = .2, 1e-3, .6
	l, err := online.New(space, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]float32{"alice": -.5, "bob": .5} {
		if err := l.Label([]float32{x, 0}, name); err != nil {
			t.Fatal(err)
		}
	}
	if v := judge(t, l, 0, 0); v.Reason != online.Tie {
		t.Fatalf("%+v", v)
	}
	take(t, l, "door", heavy("alice", []float32{-.3, 0}))
	if v := judge(t, l, 0, 0); v.Label != "alice" || !v.Lent || v.Anchored {
		t.Errorf("%+v", v)
	}
}
