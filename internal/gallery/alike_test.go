// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/online"
)

// People have names in all scripts. A new name that looks like another person's is asked about, and
// --force takes it.
func TestAlike(t *testing.T) {
	one := make([]float32, space.Dim)
	one[0] = 1
	for name, alike := range map[string][]string{
		"Alice":          {"alice", "ALICE", "\uff41lice", "Al\u200dice", "Alice\ufe0f"},
		"علی\u200cرضا":   {"علیرضا"}, // without the joiner
		"👩\u200d💻":       {"👩💻"},
		"José":           {"JOSÉ"},
		"Ευα":            {"ευα"},
		"Anna  Maria Li": {"anna maria li"},
	} {
		g := fixture.Must(gallery.New(space, online.Settings{}))(t)
		enrol := func(name string, how gallery.Enrolment) error {
			_, err := g.Enroll(name, [][]float32{one}, time.Now(), how)
			return err
		}
		if err := enrol(name, gallery.Enrolment{}); err != nil {
			t.Error(err)
			continue
		}
		for _, other := range alike {
			if err := enrol(other, gallery.Enrolment{}); !errors.Is(err, gallery.ErrAlike) ||
				!strings.Contains(err.Error(), name) {
				t.Errorf("%q and %q: %v", name, other, err)
			}
		}
		for _, other := range []string{"Alicia", "Jose", "Anna Mario Li", "👩", "علی"} {
			if got := g.Alike(other); got != "" {
				t.Errorf("%q is taken for %q", other, got)
			}
		}
		if err := enrol(alike[0], gallery.Enrolment{Force: true}); err != nil {
			t.Error(err)
		}
		if err := enrol(name, gallery.Enrolment{Add: true, Force: true}); err != nil {
			t.Errorf("more faces of %q: %v", name, err)
		}
	}
}

// Nobody gets nearly the same name as somebody else by a new name, but may write their own in
// another way.
func TestRenameAlike(t *testing.T) {
	g := newGallery(t, "alice", "bob")
	if err := g.Rename("bob", "ALICE"); !errors.Is(err, gallery.ErrAlike) {
		t.Errorf("error %v", err)
	}
	fixture.Check(t, g.Rename("alice", "Alice"))
	want(t, g, "Alice 4", "bob 4")
}

// A name is the same in each normal form of Unicode: it finds the person, and enrols nobody else.
func TestNormalForms(t *testing.T) {
	composed, decomposed := "Jos\u00e9", "Jose\u0301"
	g := newGallery(t, "Jose", composed)
	number := g.Number(composed)
	found, err := g.Find(decomposed)
	if number == 0 || found != number || err != nil {
		t.Errorf("%d and %d, %v", number, found, err)
	}
	_, err = g.Enroll(decomposed, person(1, 1), noon, gallery.Enrolment{Force: true})
	if !errors.Is(err, gallery.ErrExists) {
		t.Error(err)
	}
	fixture.Must(g.Enroll(decomposed, person(1, 1), noon, gallery.Enrolment{Add: true}))(t)
	fixture.Check(t, g.Rename(composed, decomposed))
	if g.Name(number) != decomposed || len(g.People()) != 2 {
		t.Errorf("%+v", g.People())
	}
}

// Two people never have one name, also if one is called what another one of several is called.
func TestOneName(t *testing.T) {
	g, err := gallery.New(space, online.Settings{})
	fixture.Check(t, err)
	defer g.Close()
	for i, name := range []string{"alice (3)", "bob", "carol"} {
		fixture.Must(g.Enroll(name, person(i, 1), time.Now(), gallery.Enrolment{}))(t)
	}
	err = g.Rows().Change(func(tx *gallery.Tx) error {
		tx.Call(2, "alice")
		return tx.Call(3, "alice")
	})
	if names := g.Names(); err != nil ||
		!slices.Equal(names, []string{"alice (3)", "alice", "alice (3) (3)"}) {
		t.Errorf("%q, %v", names, err)
	}
}
