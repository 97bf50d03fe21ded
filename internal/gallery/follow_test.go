// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/online"
)

// Faces of one track that were learned one after the other are learned again after another program
// has changed the gallery, also those that only the track joins to the enrolled ones.
func TestLearnedAgainByTrack(t *testing.T) {
	line := face.Space{ID: "line", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .5,
		ImpostorRadius: .6, Stills: face.Impostors{People: 10, Pairs: 1e7,
			Distances: [5]float64{1.2, 1.1, 1, .9, .8}}}
	path := filepath.Join(t.TempDir(), "gallery")
	g := fixture.Must(gallery.Create(path, line, online.Settings{K: 50}))(t)
	fixture.Must(g.Enroll("alice", [][]float32{{0, 0}}, noon, gallery.Enrolment{}))(t)
	g.Close()
	open := func() *gallery.Gallery {
		t.Helper()
		g := fixture.Must(gallery.Open(path, line))(t)
		t.Cleanup(func() { g.Close() })
		return g
	}
	ours, theirs := open(), open()
	var follows []int64
	for _, x := range []float32{.4, 1.5} {
		v, err := ours.Learner().ObserveFrame([]online.Observation{{Vector: []float32{x, 0},
			Follows: follows, Source: 7}})
		if err != nil || !v[0].Learned {
			t.Fatalf("at %g: %+v, %v", x, v, err)
		}
		follows = []int64{v[0].Stored}
	}
	// The numbers of the faces are those of other faces now.
	fixture.Must(theirs.Enroll("bob", [][]float32{{0, 50}, {0, 50.1}, {0, 50.2}}, noon,
		gallery.Enrolment{}))(t)
	if v, err := theirs.Learner().Observe([]float32{0, 50.3}); err != nil || !v.Learned {
		t.Fatal(v, err)
	}
	fixture.Check(t, theirs.Save())
	fixture.Check(t, ours.Save())
	if n := ours.Learner().Unlearn(7); n != 2 {
		t.Errorf("%d of 2 faces of the track were learned again", n)
	}
}

// A gallery that cannot read what another program has written stays as it was, with its learner.
func TestUnreadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gallery")
	ours := fixture.Must(gallery.Create(path, field, online.Settings{K: 50}))(t)
	defer ours.Close()
	fixture.Must(ours.Enroll("alice", spots(0, 0, 2), noon, gallery.Enrolment{}))(t)
	theirs := fixture.Must(gallery.Open(path, field))(t)
	defer theirs.Close()
	before := fixture.Must(ours.Learner().MarshalBinary())(t)
	if v, err := theirs.Learner().Observe([]float32{.1, .1}); err != nil || !v.Learned ||
		theirs.Save() != nil {
		t.Fatal(v, err)
	}
	db := fixture.Must(store.Open(path, store.Schema{}, false))(t)
	defer db.Close()
	fixture.Check(t,
		db.Exec("insert into label(number, person, rejected, vector) values(99, 1, 0, x'00')"))
	if err := ours.Update(); !errors.Is(err, gallery.ErrDamaged) {
		t.Fatal(err)
	}
	after, err := ours.Learner().MarshalBinary()
	if err != nil || !bytes.Equal(before, after) || !slices.Equal(ours.Names(), []string{"alice"}) {
		t.Errorf("the learner is another one: %v, %v", ours.Learner().Counts(), err)
	}
}

// A label that cannot be taken in is an error each time, until it is gone: nobody works with a part
// of the labels.
func TestBadLabel(t *testing.T) {
	path := stored(t, "alice")
	g := open(t, path)
	db := fixture.Must(store.Open(path, store.Schema{}, false))(t)
	defer db.Close()
	fixture.Check(t,
		db.Exec("insert into label(number, person, rejected, vector) values(99, 1, 0, x'00')"))
	for range 3 {
		if err := g.Update(); !errors.Is(err, face.ErrVector) {
			t.Errorf("update: %v", err)
		}
		if err := g.Save(); !errors.Is(err, face.ErrVector) {
			t.Errorf("save: %v", err)
		}
	}
	fixture.Check(t, db.Exec("delete from label where number = 99"))
	enrol(t, g, "bob", 1)
	want(t, g, "alice 4", "bob 4")
	want(t, open(t, path), "alice 4", "bob 4")
}
