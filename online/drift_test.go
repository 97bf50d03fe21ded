// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/online"
)

// A person who is replaced step by step raises the alarm. A person who looks to both sides in turn does not.
func TestDrift(t *testing.T) {
	r := rand.New(rand.NewPCG(60, 0))
	for name, c := range map[string]struct {
		at    func(i int) float64
		alarm bool
	}{
		"turning to and fro": {func(i int) float64 { return .6 * math.Sin(float64(i)/15) }, false},
		"replaced":           {func(i int) float64 { return float64(i) / 100 }, true},
	} {
		l, err := online.New(plane, online.Settings{K: 100, DriftDistance: .8})
		if err != nil {
			t.Fatal(err)
		}
		l.Label([]float32{0, 0}, "alice")
		if d, err := l.Drift("alice"); err != nil || d.Distance != 0 || d.Alarm {
			t.Errorf("before anything is learned: %+v, %v", d, err)
		}
		for i := range 300 {
			if _, err := l.Observe([]float32{float32(.03 * r.NormFloat64()), float32(c.at(i))}); err != nil {
				t.Fatal(err)
			}
		}
		d, err := l.Drift("alice")
		if err != nil || d.Alarm != c.alarm || d.Learned < 290 {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	l := learner(t, online.Settings{})
	if _, err := l.Drift("eve"); !errors.Is(err, online.ErrUnknown) {
		t.Errorf("error %v", err)
	}
}
