// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/office"
)

// named names a stranger at a place on the page of an office.
func (b *branch) named(t *testing.T, name string, x ...float32) {
	t.Helper()
	b.stands(x...)
	group := uint64(0)
	waits(t, "a stranger is kept, who is to be "+name, func() bool {
		for _, g := range b.w.Strangers() {
			if slices.Equal(g.Album.Faces[0].Vector, x) {
				group = g.ID
			}
		}
		return group != 0
	})
	b.stands()
	if err := b.w.Name(group, name, true); err != nil { // perhaps another face of somebody
		t.Fatal(err)
	}
}

// sightings returns the names of the people who were seen, sorted.
func (b *branch) sightings() (names []string) {
	for _, s := range b.w.Sightings() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// merges returns the merges in the journal.
func (b *branch) merges() (all []office.Correction) {
	for _, c := range b.w.Corrections(0, 100) {
		if c.Kind == office.Renamed {
			all = append(all, c)
		}
	}
	return all
}

// Two people were merged at one office, and another office undoes the merge. Then they are two people everywhere: in
// the galleries, in the sightings and events of each office, and in the journals.
func TestFleetMergeUndone(t *testing.T) {
	t.Parallel()
	invite := newTestFleet(t)
	north, south, west := newBranch(t, invite(), "north"), newBranch(t, invite(), "south"),
		newBranch(t, invite(), "west")
	all := []*branch{north, south, west}
	everywhere := func(what string, ok func(b *branch) bool) {
		t.Helper()
		waits(t, what, func() bool { return !slices.ContainsFunc(all, func(b *branch) bool { return !ok(b) }) })
	}
	known := func(want ...string) func(*branch) bool {
		return func(b *branch) bool { return slices.Equal(b.known(), want) }
	}
	north.named(t, "ann", 0, 0)
	south.named(t, "bob", 5, 5)
	everywhere("all know both", known("ann", "bob"))
	south.stands(.01, 0)
	waits(t, "south has seen ann", func() bool { return slices.Contains(south.sightings(), "ann") })
	south.stands()

	if err := north.w.Rename("ann", "bob"); err != nil {
		t.Fatal(err)
	}
	everywhere("they are one", known("bob"))
	everywhere("all journals have it", func(b *branch) bool { return len(b.merges()) == 1 && b.merges()[0].CanUndo })
	if got := south.sightings(); slices.Contains(got, "ann") {
		t.Errorf("south has sightings of %q", got)
	}

	if err := south.w.Undo(south.merges()[0].ID); err != nil {
		t.Fatal(err)
	}
	everywhere("they are two again", known("ann", "bob"))
	everywhere("all journals have that", func(b *branch) bool { return len(b.merges()) == 1 && b.merges()[0].Undone })
	if got := south.sightings(); !slices.Contains(got, "ann") || !slices.Contains(got, "bob") {
		t.Errorf("south has sightings of %q", got)
	}
	if got := north.sightings(); !slices.Contains(got, "ann") || slices.Contains(got, "bob") {
		t.Errorf("north has sightings of %q", got)
	}
	apart := func() {
		t.Helper()
		for _, b := range all { // each person has her own face
			for _, l := range b.w.Conflicts() {
				t.Errorf("%+v", l)
			}
		}
	}
	apart()

	// The office of the merge can undo it, too. If both undo it at the same time, it is undone once.
	if err := west.w.Rename("bob", "ann"); err != nil {
		t.Fatal(err)
	}
	everywhere("they are one the other way round", known("ann"))
	everywhere("all journals have it", func(b *branch) bool { return len(b.merges()) == 2 })
	if err := west.w.Undo(west.merges()[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := north.w.Undo(north.merges()[0].ID); err != nil && !errors.Is(err, office.ErrUndone) {
		t.Fatal(err)
	}
	everywhere("they are two once more", known("ann", "bob"))
	everywhere("all journals have that", func(b *branch) bool { return len(b.merges()) == 2 && b.merges()[0].Undone })
	apart()
}

// A person who is forgotten at one office is forgotten at the other, together with the strangers there who look alike.
func TestFleetForgottenStrangers(t *testing.T) {
	t.Parallel()
	invite := newTestFleet(t)
	north, south := newBranch(t, invite(), "north"), newBranch(t, invite(), "south")
	for _, at := range [][]float32{{9, 9}, {.02, 0}} { // another person, and ann before she has a name
		south.stands(at...)
		waits(t, "south keeps a stranger", func() bool {
			return slices.ContainsFunc(south.w.Strangers(), func(g office.Group) bool {
				return g.Album.Faces[0].Vector[0] == at[0]
			})
		})
	}
	south.stands()
	waits(t, "south has seen both", func() bool { return len(south.sightings()) == 2 && !south.w.Sightings()[0].Live })
	picture := south.w.Sightings()[0].Face
	north.named(t, "ann", 0, 0)
	waits(t, "south knows ann", func() bool { return slices.Equal(south.known(), []string{"ann"}) })
	if err := north.w.Forget("ann"); err != nil {
		t.Fatal(err)
	}
	waits(t, "south has forgotten ann", func() bool { return len(south.known()) == 0 })
	if all := south.w.Strangers(); len(all) != 1 || all[0].Album.Faces[0].Vector[0] != 9 {
		t.Errorf("strangers of south: %+v", all)
	}
	for _, s := range south.w.Sightings() {
		if s.Face == picture {
			t.Errorf("south has a sighting of her: %+v", s)
		}
	}
}
