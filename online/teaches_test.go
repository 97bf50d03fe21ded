// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"errors"
	"testing"

	"github.com/faceauth/faceauth/online"
)

// A face can be learned later by the number of its observation, and by no other number.
func TestRecallBound(t *testing.T) {
	l := fresh(t)
	shown(t, l, alice, 0)
	const observed = 3
	for range observed {
		if _, err := l.ObserveFrame([]online.Observation{{Vector: []float32{.2, 0}, Hold: true}}); err != nil {
			t.Fatal(err)
		}
	}
	for number, allowed := range map[int64]bool{-1: false, 0: false, 1: true, observed: true, observed + 1: false} {
		_, err := l.Recall(online.Observation{Vector: []float32{.2, 0}}, number)
		if allowed != (err == nil) || !allowed && !errors.Is(err, online.ErrSettings) {
			t.Errorf("observation %d of %d: %v", number, observed, err)
		}
	}
}
