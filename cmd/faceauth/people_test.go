// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// What was learned far from the enrolled faces is enrolled, and what is near them, or nobody's, is not.
func TestConfirmLearned(t *testing.T) {
	space := face.Space{
		ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .6, ImpostorRadius: .6, GenuineRadius: 1.3,
		Stills: face.Impostors{People: 10, Pairs: 1000, Distances: [5]float64{1.2, 1.1, 1, .9, .8}},
	}
	g, err := gallery.New(space, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	if _, err := g.Enroll("alice", [][]float32{{0, 0}}, now, gallery.Enrolment{}); err != nil {
		t.Fatal(err)
	}
	for i := range 6 { // a head that turns
		if v, err := g.Learner().Observe([]float32{.5 * float32(i+1), 0}); err != nil || !v.Learned {
			t.Fatal(v, err)
		}
	}
	if v, err := g.Learner().Judge([]float32{2.5, 0}); err != nil || v.Label != "alice" || v.Anchored {
		t.Fatalf("before: %+v, %v", v, err)
	}
	// At 1.5, and, with that one enrolled, at 3.
	if n, err := confirmLearned(g, "alice", now); err != nil || n != 2 {
		t.Errorf("%d faces, %v", n, err)
	}
	if v, err := g.Learner().Judge([]float32{2.5, 0}); err != nil || v.Label != "alice" || !v.Anchored {
		t.Errorf("after: %+v, %v", v, err)
	}
	if n, err := confirmLearned(g, "alice", now); err != nil || n != 0 {
		t.Errorf("again: %d faces, %v", n, err)
	}
	if _, err := confirmLearned(g, "bob", now); !errors.Is(err, online.ErrUnknown) {
		t.Errorf("nobody: %v", err)
	}
}
