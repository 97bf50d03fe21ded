// SPDX-License-Identifier: Apache-2.0

package evaluate_test

import (
	"math"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
)

// Three weak learners on a line, at .1, .5 and .9, with a radius of .25; alice is at 0 and bob at
// 1.
func TestBoost(t *testing.T) {
	m, err := evaluate.Boost("boost", line, online.Settings{Sigma: .2, Gamma: 1e-3, Reach: .25}, 0,
		1).New()
	if err != nil {
		t.Fatal(err)
	}
	fixture.Check(t, m.(evaluate.Foreseer).Foresee([][]float32{{.1}, {.5}, {.9}}))
	for x, name := range map[float32]string{0: "alice", 1: "bob"} { // in any order
		fixture.Check(t, m.Enroll([]float32{x}, name))
	}
	judge := func(what string, x float32, hold bool, claim string, score float64) {
		t.Helper()
		got, s, err := m.Judge([]float32{x}, hold)
		if err != nil || got != claim || math.Abs(s-score) > 1e-6 || m.Accepts(s) != (claim != "") {
			t.Errorf("%s: %q at %g, want %q at %g; %v", what, got, s, claim, score, err)
		}
	}
	// Each weak learner at a labelled face has met the weight exp(0) = 1 in favour of its person.
	one := .5 * math.Log(2)
	judge("near alice", .12, true, "alice", one)
	judge("near bob", .88, true, "bob", one)
	judge("far from all", 3, false, "", 0)
	judge("near a weak learner without votes", .5, true, "", 0)
	// A face at .05 is near alice alone, at a weight of p = exp(-.05²/2/.2²), and H is ½ ln 2
	// there: z = p exp(-H) = p/√2.
	judge("before learning", .05, false, "alice", one)
	two := .5 * math.Log(2+math.Exp(-.0025/.08)/math.Sqrt2)
	judge("after", .05, true, "alice", two)
	// At .26 no labelled face is near, and nothing is learned.
	judge("a step away", .26, false, "alice", two)
	judge("a step away, again", .26, false, "alice", two)
	// At .85, near bob, alice loses what she does not have: bob's weak learner speaks for him
	// alone.
	judge("near bob, after", .88, true, "bob", one)
}

// The first quarter of a stream is not the last.
func TestBoostSeesItsPart(t *testing.T) {
	stream := [][]float32{{0}, {10}, {20}, {30}}
	for _, c := range []struct {
		from, to float64
		x        float32
	}{{0, .25, 0}, {.75, 1, 30}} {
		m, err := evaluate.Boost("boost", line, online.Settings{Sigma: .2, Gamma: 1e-3, Reach: .25},
			c.from, c.to).New()
		if err != nil {
			t.Fatal(err)
		}
		fixture.Check(t, m.(evaluate.Foreseer).Foresee(stream))
		for _, x := range []float32{0, 30} {
			fixture.Check(t, m.Enroll([]float32{x}, "alice"))
		}
		for _, x := range []float32{0, 30} {
			if claim, _, err := m.Judge([]float32{x}, true); err != nil ||
				(claim != "") != (x == c.x) {
				t.Errorf("from %g to %g: %g is taken for %q, %v", c.from, c.to, x, claim, err)
			}
		}
	}
	if _, err := evaluate.Boost("boost", line, online.Settings{}, 0, 1).New(); err == nil {
		t.Error("boosting without a radius")
	}
}
