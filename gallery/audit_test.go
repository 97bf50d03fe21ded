// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

var field = face.Space{ID: "field", Dim: 2, Scale: 1, Sigma: .3, Gamma: 1e-3}

func spots(x, y float32, n int) (faces [][]float32) {
	for i := range n {
		faces = append(faces, []float32{x + .05*float32(i), y})
	}
	return faces
}

// Alice has one of bob's faces, and one face that is like nobody's; carol is alone.
func mixedUp(t *testing.T) *gallery.Gallery {
	t.Helper()
	g, err := gallery.New(field, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		name  string
		faces [][]float32
	}{
		{"alice", spots(0, 0, 4)}, {"bob", spots(3, 0, 5)}, {"carol", spots(0, 9, 1)},
		{"alice", [][]float32{{3.1, .1}}}, {"alice", [][]float32{{50, 50}}},
	} {
		if _, err := g.Enroll(p.name, p.faces, time.Unix(0, 0), gallery.Enrolment{Add: true, Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func TestAudit(t *testing.T) {
	g := mixedUp(t)
	all, err := g.Audit(false)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 12 {
		t.Fatalf("%d faces", len(all))
	}
	worst := all[0]
	if worst.Name != "alice" || worst.Likes != "bob" || !worst.Suspect || worst.Vector[0] != 3.1 ||
		math.Abs(worst.Distance-.1) > 1e-6 {
		t.Errorf("%+v", worst)
	}
	for i, u := range all[1:] {
		if u.Suspect || all[i].Isolated && !u.Isolated ||
			u.Isolated == all[i].Isolated && !u.Isolated && u.Score > all[i].Score {
			t.Errorf("%+v after %+v", u, all[i])
		}
		// A face that is like nobody's says nothing about its name, and comes last.
		alone := u.Vector[0] == 50 || u.Name == "carol"
		if alone != u.Isolated || alone && (u.Likes != "" || i < len(all)-3) {
			t.Errorf("place %d, alone %t: %+v", i+1, alone, u)
		}
	}
	if err := g.Retract(worst.ID); err != nil {
		t.Error(err)
	}
	if all, err = g.Audit(false); err != nil || len(all) != 11 || all[0].Suspect {
		t.Errorf("%d faces, %+v, %v", len(all), all[0], err)
	}
	if p := g.People()[0]; p.Name != "alice" || p.Faces != 5 {
		t.Errorf("%+v", p)
	}
	if _, err := g.Remove(worst.ID); !errors.Is(err, online.ErrUnknown) {
		t.Errorf("twice: %v", err)
	}
}

// Two of alice's faces are connected, and one of them is nearer to bob than to her other faces. A margin and the graph
// disagree here, and the graph alone cannot tell an unusual face from a swapped label.
func TestAuditMargin(t *testing.T) {
	g, err := gallery.New(field, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		name  string
		faces [][]float32
	}{
		{"alice", spots(0, 0, 6)}, {"bob", spots(1.5, 0, 6)},
		{"bob", [][]float32{{.9, 0}}},    // in between: .05 further from bob's than from alice's
		{"alice", [][]float32{{1.3, 0}}}, // bob's, enrolled as alice: .2 from bob's, and 1.05 from alice's
	} {
		if _, err := g.Enroll(p.name, p.faces, time.Unix(0, 0), gallery.Enrolment{Add: true, Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := g.Audit(false)
	if err != nil {
		t.Fatal(err)
	}
	if u := all[0]; u.Vector[0] != 1.3 || math.Abs(u.Margin-(1.05-.2)) > 1e-6 || !u.Suspect {
		t.Errorf("%+v", u)
	}
}

// A learned face among the faces of another person is found, and is removed with the faces learned through it.
func TestAuditLearned(t *testing.T) {
	g, err := gallery.New(field, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Enroll("alice", spots(0, 0, 3), time.Unix(0, 0), gallery.Enrolment{}); err != nil {
		t.Fatal(err)
	}
	for i := range 6 { // alice seems to walk to where bob is, in large steps
		if _, err := g.Learner().Observe([]float32{.6 * float32(i), 0}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Audit(true); !errors.Is(err, gallery.ErrOnePerson) {
		t.Errorf("one person: %v", err)
	}
	if _, err := g.Enroll("bob", spots(2.3, .02, 20), time.Unix(0, 0), gallery.Enrolment{Force: true}); err != nil {
		t.Fatal(err)
	}
	if all, err := g.Audit(false); err != nil || all[0].Suspect {
		t.Errorf("no label is wrong: %+v, %v", all[0], err)
	}
	all, err := g.Audit(true)
	if err != nil {
		t.Fatal(err)
	}
	worst := all[slices.IndexFunc(all, func(u gallery.Unusual) bool { return u.Learned })]
	if worst.Name != "alice" || worst.Likes != "bob" || !worst.Suspect || worst.Vector[0] < 2.2 {
		t.Fatalf("%+v", worst)
	}
	n := g.Learner().Graph().Len()
	gone, err := g.Remove(worst.ID)
	if err != nil || gone < 1 || g.Learner().Graph().Len() != n-gone {
		t.Errorf("%d gone, %v", gone, err)
	}
}

func TestAuditOfNobody(t *testing.T) {
	g, err := gallery.New(field, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Audit(true); !errors.Is(err, gallery.ErrOnePerson) {
		t.Error(err)
	}
}
