// SPDX-License-Identifier: Apache-2.0

package evaluate_test

import (
	"errors"
	"math"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
)

// Two people on a line, alice at 0 and 1 and bob at 2.2 and 2.6, with verdicts computed by hand.
func TestBaselines(t *testing.T) {
	type probe struct {
		x     float32
		hold  bool
		claim string
		score float64
	}
	for name, c := range map[string]struct {
		entry  evaluate.Entry
		probes []probe
	}{
		"nearest": {evaluate.Nearest(line), []probe{
			{x: 1.55, claim: "alice", score: -.55}, {x: 3, claim: "bob", score: -.4},
			{x: 1.55, claim: "alice", score: -.55},
		}},
		"three nearest": {evaluate.KNN(line, 3), []probe{
			{x: 1.55, claim: "bob", score: -(.65 + 1.05) / 2},
			{x: .5, claim: "alice", score: -.5},
		}},
		"two nearest, a tie": {evaluate.KNN(line, 2), []probe{
			{x: 1.55, claim: "alice", score: -.55},
			{x: 1.7, claim: "bob", score: -.5},
		}},
		"more neighbours than faces": {evaluate.KNN(line, 99), []probe{
			{x: 1, claim: "alice", score: -.5}, // two votes each, and alice is nearer on the mean
		}},
		"mean": {evaluate.Mean(line), []probe{
			{x: 1.4, claim: "alice", score: -.9}, {x: 1.55, claim: "bob", score: -.85},
		}},
		"self-training": {evaluate.SelfTraining(line, .5), []probe{
			{x: 1.75, hold: true, claim: "bob", score: -.45},
			{x: 1.75, hold: true, claim: "bob", score: -.45}, // was not stored
			{x: 1.4, claim: "alice", score: -.4},             // is stored,
			// is nearer to that than to bob, and stored
			{x: 1.75, claim: "alice", score: -.35},
			{x: 1.95, claim: "alice", score: -.2},
			{x: 9, claim: "bob", score: -6.4}, // is not accepted,
			{x: 9, claim: "bob", score: -6.4}, // and was not stored
		}},
	} {
		m, err := c.entry.New()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []struct {
			x    float32
			name string
		}{{0, "alice"}, {1, "alice"}, {2.2, "bob"}, {2.6, "bob"}} {
			fixture.Check(t, m.Enroll([]float32{f.x}, f.name))
		}
		for i, p := range c.probes {
			claim, score, err := m.Judge([]float32{p.x}, p.hold)
			if err != nil || claim != p.claim || math.Abs(score-p.score) > 1e-6 {
				t.Errorf("%s, probe %d at %g: %q at %g, want %q at %g; %v", name, i, p.x, claim,
					score, p.claim, p.score, err)
			}
		}
		if _, _, err := m.Judge([]float32{1, 2}, false); !errors.Is(err, face.ErrVector) {
			t.Errorf("%s: a vector of another length: %v", name, err)
		}
		if err := m.Enroll([]float32{float32(math.NaN())}, "eve"); !errors.Is(err,
			face.ErrVector) {
			t.Errorf("%s: a vector that is not finite: %v", name, err)
		}
	}
}

// The mean of unit vectors is scaled to unit length.
func TestMeanOfUnitVectors(t *testing.T) {
	circle := face.Space{ID: "circle", Dim: 2, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3}
	m, err := evaluate.Mean(circle).New()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range [][]float32{{1, 0}, {0, 1}} {
		fixture.Check(t, m.Enroll(x, "alice"))
	}
	r := float32(math.Sqrt(.5))
	if claim, score, err := m.Judge([]float32{r, r}, false); err != nil || claim != "alice" ||
		score < -1e-6 {
		t.Errorf("%q at %g, %v", claim, score, err)
	}
}

func TestEntries(t *testing.T) {
	s := online.Settings{Sigma: .2, Gamma: 1e-3, Reach: .5}
	for _, c := range []struct {
		names, want []string
	}{
		{nil, []string{"learner"}},
		{[]string{"mean", "learner", "mean"}, []string{"learner", "mean"}},
		{evaluate.Methods, evaluate.Methods},
	} {
		entries, err := evaluate.Entries(c.names, line, s)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Name)
			if m, err := e.New(); err != nil || m == nil {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%v gives %v, want %v", c.names, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%v gives %v, want %v", c.names, got, c.want)
			}
		}
	}
	_, err := evaluate.Entries([]string{"oracle"}, line, s)
	want := `unknown method "oracle"; use learner, sightings, confirmed, within, nearest, knn, mean, ` +
		`boost, boost-first, boost-last, selftrain`
	if !errors.Is(err, evaluate.ErrMethod) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := evaluate.SelfTraining(line, 0).New(); !errors.Is(err, evaluate.ErrMethod) {
		t.Errorf("self-training without a radius: %v", err)
	}
}
