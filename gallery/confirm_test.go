// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// Learned faces far from the enrolled faces are enrolled. Learned faces near them, and faces of nobody, are not.
func TestConfirm(t *testing.T) {
	space := face.Space{
		ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .6, ImpostorRadius: .6, GenuineRadius: 4,
		Stills: face.Impostors{People: 100, Pairs: 10000, Distances: [5]float64{1.2, 1.1, 1, .9, .8}},
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
	if v, err := g.Learner().Judge([]float32{2.5, 0}); err != nil || g.Name(v.Person) != "alice" || v.Anchored {
		t.Fatalf("before: %+v, %v", v, err)
	}
	// The face at 1.5 is chosen, and then the face at 3, which is the farthest.
	if got := offered(t, g); !slices.Equal(got, []int64{7, 4}) {
		t.Fatalf("faces %v are offered", got)
	}
	if err := g.Confirm("alice", []int64{4, 5}, now); !errors.Is(err, gallery.ErrNotOffered) ||
		g.People()[0].Faces != 1 {
		t.Errorf("a face that is not offered: %v", err)
	}
	if err := g.Confirm("alice", []int64{4, 7}, now); err != nil || g.People()[0].Faces != 3 {
		t.Errorf("confirming: %v", err)
	}
	if v, err := g.Learner().Judge([]float32{2.5, 0}); err != nil || g.Name(v.Person) != "alice" || !v.Anchored {
		t.Errorf("after: %+v, %v", v, err)
	}
	if got := offered(t, g); len(got) > 0 {
		t.Errorf("again: faces %v are offered", got)
	}
	if err := g.Confirm("bob", nil, now); !errors.Is(err, online.ErrUnknown) {
		t.Errorf("nobody: %v", err)
	}
}

// offered returns the numbers of the faces of alice that may be confirmed.
func offered(t *testing.T, g *gallery.Gallery) (ids []int64) {
	t.Helper()
	far, err := g.Unconfirmed("alice")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range far {
		ids = append(ids, f.ID)
	}
	return ids
}

// In a measured space a frontal face far from the enrolled faces is not offered, and neither is a face of which nothing
// is known. In another space there is no such rule.
func TestConfirmFrontal(t *testing.T) {
	measured := face.Impostors{People: 100, Pairs: 10000, Distances: [5]float64{1.2, 1.1, 1, .9, .8}}
	for _, c := range []struct {
		name    string
		stills  face.Impostors
		frontal bool
		learned int64 // of the faces at .5, 1 and 1.5
		offered int
	}{
		{"measured, frontal", measured, true, 3, 0},
		{"measured, turned", measured, false, 3, 1},
		{"not measured, frontal", face.Impostors{}, true, 3, 1}, // the anchor is the longest edge there
	} {
		t.Run(c.name, func(t *testing.T) {
			space := face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .6, Stills: c.stills}
			g, err := gallery.New(space, online.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
			if _, err := g.Enroll("alice", [][]float32{{0, 0}}, now, gallery.Enrolment{}); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				o := online.Observation{Vector: []float32{.5 * float32(i+1), 0}, Frontal: c.frontal, As: g.Number("alice")}
				if _, err := g.Learner().ObserveFrame([]online.Observation{o}); err != nil {
					t.Fatal(err)
				}
			}
			if got := offered(t, g); g.Learner().Counts().Learned != c.learned || len(got) != c.offered {
				t.Errorf("%d faces learned, %v offered", g.Learner().Counts().Learned, got)
			}
		})
	}
}

// An opened gallery uses the present values of its space, and not the values from when it was made.
func TestOpenMeasured(t *testing.T) {
	old := face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .6}
	path := filepath.Join(t.TempDir(), "gallery")
	g, err := gallery.Create(path, old, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Enroll("alice", [][]float32{{0, 0}}, time.Unix(0, 0), gallery.Enrolment{}); err != nil {
		t.Fatal(err)
	}
	now := old
	now.Stills = face.Impostors{People: 100, Pairs: 10000, Distances: [5]float64{1.2, 1.1, 1}}
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
