// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/fixture"
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

// An archive and a database of the first version are read.
func TestGolden(t *testing.T) {
	people := map[string][][]float32{"alice": {{0, 0}, {.1, 0}}, "bob": {{5, 5}}}
	archive := fixture.Golden(t, "people", func(path string) error {
		data, err := house(t, people).Export()
		return errors.Join(err, os.WriteFile(path, data, 0o600))
	})
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	to := house(t, nil)
	if names, err := to.Import(data, false); err != nil || !slices.Equal(names, []string{"alice", "bob"}) {
		t.Error(names, err)
	}
	newer := slices.Clone(data)
	newer[len("faceauth people")+3]++
	if _, err := to.Import(newer, true); err == nil || !strings.Contains(err.Error(),
		"it has version 2, and this program reads version 1; update this program") {
		t.Error(err)
	}

	path := fixture.Golden(t, "faceauth.db", func(path string) error {
		g := house(t, people)
		_, err := g.Learner().Observe([]float32{.2, 0})
		os.Remove(path)
		return errors.Join(err, g.Learner().Reject([]float32{9, 9}, "alice"), g.Save(path), g.Close())
	})
	g, err := gallery.Open(path, archived)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if p := g.People(); len(p) != 2 || p[0].Name != "alice" || p[0].Faces != 2 ||
		!p[1].Enrolled.Equal(time.Unix(1e9, 0)) || g.Learner().Graph().Learned() != 1 {
		t.Errorf("%+v, %d learned", p, g.Learner().Graph().Learned())
	}
}
