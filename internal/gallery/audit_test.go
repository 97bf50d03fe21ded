// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
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
	g := fixture.Must(gallery.New(field, online.Settings{}))(t)
	for _, p := range []struct {
		name  string
		faces [][]float32
	}{
		{"alice", spots(0, 0, 4)}, {"bob", spots(3, 0, 5)}, {"carol", spots(0, 9, 1)},
		{"alice", [][]float32{{3.1, .1}}}, {"alice", [][]float32{{50, 50}}},
	} {
		fixture.Must(g.Enroll(p.name, p.faces, time.Unix(0, 0), gallery.Enrolment{Add: true,
			Force: true}))(t)
	}
	return g
}

func TestAudit(t *testing.T) {
	g := mixedUp(t)
	all, err := g.Audit(false)
	fixture.Check(t, err)
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
	// Dave is bob under another name, and has one face only.
	fixture.Must(g.Enroll("dave", [][]float32{{3.1, .1}}, time.Unix(0, 0),
		gallery.Enrolment{}))(t)
	all, err = g.Audit(false)
	if err != nil || all[0].Name != "dave" || all[0].Likes != "bob" || !all[0].Suspect {
		t.Errorf("%+v, %v", all[0], err)
	}
}
