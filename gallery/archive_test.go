// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

var archived = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .6}

func house(t testing.TB, people map[string][][]float32) *gallery.Gallery {
	t.Helper()
	g, err := gallery.New(archived, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alice", "bob", "carol"} {
		if people[name] == nil {
			continue
		}
		if _, err := g.Enroll(name, people[name], time.Unix(1e9, 0), gallery.Enrolment{}); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func TestArchive(t *testing.T) {
	from := house(t, map[string][][]float32{"alice": {{0, 0}, {.1, 0}}, "bob": {{5, 5}}})
	if v, err := from.Learner().Observe([]float32{.2, 0}); err != nil || !v.Learned {
		t.Fatal(v, err)
	}
	if err := from.Learner().Reject([]float32{9, 9}, "alice"); err != nil {
		t.Fatal(err)
	}
	data, err := from.Export()
	if err != nil {
		t.Fatal(err)
	}
	to := house(t, map[string][][]float32{"carol": {{-5, 0}}})
	names, err := to.Import(data, false)
	if err != nil || !slices.Equal(names, []string{"alice", "bob"}) {
		t.Fatal(names, err)
	}
	want := []gallery.Person{{Name: "carol", Faces: 1}, {Name: "alice", Faces: 2}, {Name: "bob", Faces: 1}}
	for i, p := range to.People() {
		if p.Name != want[i].Name || p.Faces != want[i].Faces || !p.Enrolled.Equal(time.Unix(1e9, 0)) {
			t.Errorf("%+v, want %+v", p, want[i])
		}
	}
	if v, err := to.Learner().Judge([]float32{.05, 0}); err != nil || v.Label != "alice" {
		t.Errorf("%+v, %v", v, err)
	}
	if n := to.Learner().Graph().Len(); n != 4 { // no learned and no rejected faces
		t.Errorf("%d faces", n)
	}

	// A second import is refused and changes nothing, or it keeps the people who are there already.
	before, err := to.Learner().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if names, err := to.Import(data, false); !errors.Is(err, gallery.ErrExists) || names != nil {
		t.Error(names, err)
	}
	if _, err := to.Import(data, true); err != nil {
		t.Error(err)
	}
	if after, err := to.Learner().MarshalBinary(); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the gallery has changed, %v", err)
	}

	// One of several people; and more faces of a known person.
	one, err := from.Export("bob")
	if err != nil {
		t.Fatal(err)
	}
	more := house(t, map[string][][]float32{"bob": {{5.1, 5}}})
	if names, err := more.Import(one, true); err != nil || len(names) != 1 || more.People()[0].Faces != 2 {
		t.Error(names, err, more.People())
	}
}

func TestArchiveErrors(t *testing.T) {
	g := house(t, map[string][][]float32{"alice": {{0, 0}}})
	if _, err := g.Export("nobody"); !errors.Is(err, online.ErrUnknown) {
		t.Error(err)
	}
	if _, err := house(t, nil).Export(); !errors.Is(err, gallery.ErrNoFaces) {
		t.Error(err)
	}
	data, err := g.Export()
	if err != nil {
		t.Fatal(err)
	}
	other := archived
	other.ID = "line"
	h, err := gallery.New(other, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Import(data, false); !errors.Is(err, gallery.ErrSpace) {
		t.Error(err)
	}
	empty := house(t, nil)
	for cut := range data {
		if _, err := empty.Import(data[:cut], false); !errors.Is(err, gallery.ErrArchive) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		bad := slices.Clone(data)
		bad[cut] ^= 0x10
		if _, err := empty.Import(bad, false); !errors.Is(err, gallery.ErrArchive) {
			t.Fatalf("altered at %d: %v", cut, err)
		}
	}
	if len(empty.People()) != 0 {
		t.Error(empty.People())
	}
}
