// SPDX-License-Identifier: Apache-2.0

package evaluate_test

import (
	"math"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
)

// A face is nearer to the one labelled face of bob than to many that were learned as alice's. All
// methods but the nearest stored face go by the many.
func TestSolvedBy(t *testing.T) {
	space := face.Space{ID: "line", Dim: 1, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .5}
	l := fixture.Must(online.New(space, online.Settings{}))(t)
	names := []string{"learner-stored", "learner-spread", "learner-soft"}
	entries := fixture.Must(evaluate.Entries(names, space, l.Settings()))(t)
	for i, want := range []string{"alice", "bob", "alice", "alice"} {
		m := fixture.Must(entries[i].New())(t)
		fixture.Check(t, m.Enroll([]float32{0}, "alice"))
		fixture.Check(t, m.Enroll([]float32{1}, "bob"))
		for n := range 90 {
			name, _, err := m.Judge([]float32{.2 + .2*float32(n/30)}, false)
			if err != nil || name != "alice" {
				t.Fatalf("%s, face %d: %q, %v", entries[i].Name, n, name, err)
			}
		}
		name, score, err := m.Judge([]float32{.82}, true)
		if err != nil || name != want || !(score > 0 && score <= 1) {
			t.Errorf("%s: %q, %g, %v; want %s", entries[i].Name, name, score, err, want)
		}
	}
}

// With labels that are certain, the soft solution is the harmonic one, along links, too.
func TestSoftIsHarmonic(t *testing.T) {
	space := face.Space{ID: "line", Dim: 1, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .5}
	l := fixture.Must(online.New(space, online.Settings{Link: .8}))(t)
	fixture.Check(t, l.Label([]float32{0}, 1))
	fixture.Check(t, l.Label([]float32{2}, 2))
	var follows []int64
	for _, x := range []float32{.1, .3, .5, .5, 1.2} {
		v := fixture.Must(l.ObserveFrame([]online.Observation{
			{Vector: []float32{x}, Follows: follows}}))(t)
		follows = []int64{v[0].Stored}
	}
	for _, x := range []float32{.5, .7, 1.1, 1.55} {
		l.SolveBy(nil)
		want := fixture.Must(l.Judge([]float32{x}))(t)
		l.SolveBy(evaluate.Soft(l.Graph(), 1e9))
		is := fixture.Must(l.Judge([]float32{x}))(t)
		if math.Abs(is.Confidence-want.Confidence) > 1e-6 || is.Person != want.Person ||
			want.Person == 0 {
			t.Errorf("at %g the soft solution is %+v, the harmonic one %+v", x, is, want)
		}
	}
}
