// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
)

// Learning never takes away a name that the enrolled faces alone give, whatever is taken back,
// forgotten, denied, taken from others or configured in between, for any number of people and
// centroids. Without changes no later pass over the same faces recognises fewer than the enrolled
// faces do, and at most .01 fewer than the first pass; when the graph is full, centroids go over to
// those who come later, and the first pass does not count.
func TestLearningTakesNoNameAway(t *testing.T) {
	type setting struct{ people, k int }
	all := []setting{{4, 15}, {16, 45}}
	if !testing.Short() {
		for _, people := range []int{4, 8, 16, 40} {
			for _, k := range []int{15, 60, 300, 1000} {
				all = append(all, setting{people, k})
			}
		}
	}
	for _, s := range all {
		for _, changes := range []bool{false, true} {
			t.Run(fmt.Sprintf("people=%d/k=%d/changes=%t", s.people, s.k, changes),
				func(t *testing.T) {
					t.Parallel()
					promised(t, s.people, s.k, changes)
				})
		}
	}
}

func promised(t *testing.T, people, k int, changes bool) {
	const dim, steps, passes = 48, 60, 10
	space := face.Space{ID: "ball", Dim: dim, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3,
		Reach: .86, GenuineRadius: 1.3, Stills: face.Impostors{Pairs: 1e6, People: 1e3,
			Distances: [5]float64{1.23, 1.15, 1.08, 1.02, .95}}}
	w, r := newWalker(people, dim), rand.New(rand.NewPCG(uint64(people), uint64(k)))
	l := fixture.Must(online.New(space, online.Settings{K: k}))(t)
	type shown struct {
		x      []float32
		person online.Person
	}
	var stream []shown
	for i := range people {
		name := personOf(i)
		for q := range 4 {
			fixture.Check(t, l.Label(w.at(i, float64(q)), name))
		}
		for q := range steps {
			stream = append(stream, shown{w.at(i, 4+2*float64(q)), name})
		}
	}
	var first float64
	for pass := range passes {
		alone := enrolledAlone(t, l)
		right, before := 0, 0
		// visits in random order, each a quarter of somebody's faces
		for _, start := range r.Perm(people * 4) {
			at := start * steps / 4
			var follows []int64
			for _, s := range stream[at : at+steps/4] {
				want := fixture.Must(alone.Judge(s.x))(t)
				seen := fixture.Must(l.ObserveFrame([]online.Observation{{Vector: s.x,
					Follows: follows, Source: 1 + l.Counts().Observed/20}}))(t)
				v := seen[0]
				if follows = nil; v.Stored != 0 {
					follows = []int64{v.Stored}
				}
				if want.Person != 0 && v.Person == 0 && v.Reason != online.Rejected {
					t.Fatalf("pass %d: %+v, and the enrolled faces alone give %+v", pass, v, want)
				}
				if want.Person == s.person {
					before++
				}
				if v.Person == s.person {
					right++
				}
			}
		}
		share := float64(right) / float64(len(stream))
		if pass == 0 {
			first = share
		}
		if !changes && (right < before || share < first-.01 && !l.Room().Full) {
			t.Errorf("pass %d: %.3f are recognised, in the first pass %.3f, by the enrolled "+
				"faces alone %.3f", pass,
				share, first, float64(before)/float64(len(stream)))
		}
		if changes {
			change(t, l, w, r, people)
		}
	}
}

// enrolledAlone returns a learner with the labelled and rejected faces of l that has learned
// nothing.
func enrolledAlone(t *testing.T, l *online.Learner) *online.Learner {
	t.Helper()
	s := l.Settings()
	s.Freeze = true
	alone := fixture.Must(online.New(l.Space(), s))(t)
	for _, negative := range []bool{false, true} {
		add := alone.Label
		if negative {
			add = alone.Reject
		}
		for _, label := range l.Labels() {
			if label.Negative == negative {
				fixture.Check(t, add(l.Vector(label.ID), label.Person))
			}
		}
	}
	return alone
}

// change takes back, forgets, denies and configures at random.
func change(t *testing.T, l *online.Learner, w *walker, r *rand.Rand, people int) {
	t.Helper()
	who := r.IntN(people)
	name := personOf(who)
	s := l.Settings()
	var err error
	switch r.IntN(6) {
	case 0:
		_, err = l.Undo(max(l.Counts().Observed-int64(r.IntN(200)), 0))
	case 1:
		if err = l.Forget(name); err == nil {
			err = l.Label(w.at(who, 20*r.Float64()), name)
		}
	case 2:
		err = l.Reject(w.at(who, 40*r.Float64()), name)
	case 3:
		l.Unlearn(1 + int64(r.IntN(int(l.Counts().Observed)))/20)
	case 4:
		s.Reach = []float64{.7, .86}[r.IntN(2)]
	case 5:
		s.K += r.IntN(10)
	}
	if err == nil {
		err = l.Configure(s)
	}
	fixture.Check(t, err)
}
