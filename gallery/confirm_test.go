// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"errors"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// Learned faces far from the enrolled faces are enrolled. Learned faces near them, and faces of nobody, are not.
func TestConfirm(t *testing.T) {
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
	// The face at 1.5 is enrolled, and then the face at 3.
	if n, err := g.Confirm("alice", now); err != nil || n != 2 {
		t.Errorf("%d faces, %v", n, err)
	}
	if v, err := g.Learner().Judge([]float32{2.5, 0}); err != nil || v.Label != "alice" || !v.Anchored {
		t.Errorf("after: %+v, %v", v, err)
	}
	if n, err := g.Confirm("alice", now); err != nil || n != 0 {
		t.Errorf("again: %d faces, %v", n, err)
	}
	if _, err := g.Confirm("bob", now); !errors.Is(err, online.ErrUnknown) {
		t.Errorf("nobody: %v", err)
	}
}

// An opened gallery uses the present values of its space, and not the values from when it was made.
func TestOpenMeasured(t *testing.T) {
	old := face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .6}
	g, err := gallery.New(old, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Enroll("alice", [][]float32{{0, 0}}, time.Unix(0, 0), gallery.Enrolment{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "gallery")
	if err := g.Save(path); err != nil {
		t.Fatal(err)
	}
	now := old
	now.Stills = face.Impostors{People: 10, Pairs: 1000, Distances: [5]float64{1.2, 1.1, 1}}
	for _, c := range []struct {
		space face.Space
		want  float64
	}{{old, .6}, {now, 1}} {
		g, err := gallery.Open(path, c.space)
		if err != nil {
			t.Fatal(err)
		}
		if r := g.Learner().Radii(); math.Abs(r.Anchor-c.want) > 1e-9 {
			t.Errorf("anchor %g, want %g", r.Anchor, c.want)
		}
	}
}
