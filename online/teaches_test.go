// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"errors"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
)

// A face can be learned later by the number of its observation, and by no other number.
func TestRecallBound(t *testing.T) {
	l := fresh(t)
	shown(t, l, alice, 0)
	const observed = 3
	for range observed {
		fixture.Must(l.ObserveFrame([]online.Observation{{Vector: []float32{.2, 0},
			Hold: true}}))(t)
	}
	for number, allowed := range map[int64]bool{-1: false, 0: false, 1: true, observed: true,
		observed + 1: false} {
		_, err := l.Recall(online.Observation{Vector: []float32{.2, 0}}, number)
		if allowed != (err == nil) || !allowed && !errors.Is(err, online.ErrSettings) {
			t.Errorf("observation %d of %d: %v", number, observed, err)
		}
	}
}

// Each guard of learning refuses a face that the others would let in.
func TestTeaches(t *testing.T) {
	for name, c := range map[string]struct {
		face   online.Observation
		reject float32 // a face that is not alice's; 0 for none
		want   bool
	}{
		"near": {face: online.Observation{Vector: []float32{.5, 0}},
			want: true},
		"held back": {face: online.Observation{Vector: []float32{.5, 0},
			Hold: true}},
		"as the person": {face: online.Observation{Vector: []float32{.5, 0},
			As: alice}, want: true},
		"as somebody else": {face: online.Observation{Vector: []float32{.5, 0},
			As: bob}},
		"denied": {face: online.Observation{Vector: []float32{.5, 0}},
			reject: .6},
		"denied, but nearer to a label": {face: online.Observation{Vector: []float32{.2, 0}},
			reject: .6, want: true},
		"denied, as the person": {face: online.Observation{Vector: []float32{.5, 0}, As: alice},
			reject: .6},
		"far from every face": {face: online.Observation{Vector: []float32{1.5, 0}}},
	} {
		l := fresh(t)
		shown(t, l, alice, 0)
		shown(t, l, bob, 9)
		if c.reject != 0 {
			fixture.Check(t, l.Reject([]float32{c.reject, 0}, alice))
		}
		v := fixture.Must(l.ObserveFrame([]online.Observation{c.face}))(t)
		if learned := l.Counts().Learned == 1; v[0].Learned != c.want || learned != c.want {
			t.Errorf("%s: learned %t, counted %t: %+v", name, v[0].Learned, learned, v[0])
		}
	}
}
