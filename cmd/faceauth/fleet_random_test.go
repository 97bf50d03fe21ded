// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/online"
)

// labels describes the labelled faces of an office.
func (b *branch) labels(t *testing.T) []string {
	t.Helper()
	all := make(map[string]bool) // a face that is labelled twice counts once
	if err := b.w.Exchange(func(g *gallery.Gallery, _ func(string)) (office.Exchanged, error) {
		for _, l := range g.Labels() {
			not := ""
			if l.Negative {
				not = "not "
			}
			all[fmt.Sprintf("%s%s%v", not, l.Name, l.Vector)] = true
		}
		return office.Exchanged{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(all))
}

// fleetFaces returns the faces that the fleet has of a person, and that forgetting the person removes.
func (b *branch) fleetFaces(name string) (all []string) {
	b.w.Exchange(func(*gallery.Gallery, func(string)) (office.Exchanged, error) {
		if p, err := b.m.Device.Find(b.m.People[name].String()); err == nil {
			for _, f := range p.Faces {
				all = append(all, fmt.Sprint(f.Vector))
			}
		}
		return office.Exchanged{}, nil
	})
	return all
}

// Three offices name, rename, merge, forget and undo at random, without waiting for each other. In the end all have the
// same people and faces, and nobody has a face of a person who was forgotten.
func TestFleetOfficesRandom(t *testing.T) {
	t.Parallel()
	seed, err := strconv.ParseUint(os.Getenv("FACEAUTH_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	rng := rand.New(rand.NewPCG(seed, 6))
	steps := 60
	if testing.Short() {
		steps = 15
	}
	invite := newTestFleet(t)
	all := []*branch{newBranch(t, invite(), "north"), newBranch(t, invite(), "south"), newBranch(t, invite(), "west")}
	forgotten := make(map[string]bool) // faces
	ok := func(err error) {
		t.Helper()
		for _, allowed := range []error{nil, online.ErrUnknown, gallery.ErrExists, office.ErrUndone} {
			if errors.Is(err, allowed) {
				return
			}
		}
		t.Log(err)
	}
	for step := range steps {
		b := all[rng.IntN(len(all))]
		names := b.known()
		some := func() string { return names[rng.IntN(len(names))] }
		switch k := rng.IntN(9); {
		case k < 2 || len(names) == 0:
			name := fmt.Sprint("p", step)
			if len(names) > 0 && rng.IntN(3) == 0 {
				name = some()
			}
			b.named(t, name, float32(3*step), 0)
			t.Log(step, b.name, "names", 3*step, name)
		case k == 2:
			from, to := some(), fmt.Sprint("q", step)
			t.Log(step, b.name, "renames", from, to)
			ok(b.w.Rename(from, to))
		case k == 3 && len(names) > 1:
			from, to := some(), some()
			if from == to {
				break
			}
			t.Log(step, b.name, "merges", from, to)
			ok(b.w.Rename(from, to))
		case k == 4:
			name := some()
			faces := b.fleetFaces(name)
			t.Log(step, b.name, "forgets", name, faces)
			if err := b.w.Forget(name); err == nil {
				for _, f := range faces {
					forgotten[f] = true
				}
			} else {
				ok(err)
			}
		case k == 5 || k == 6:
			var undo []uint64
			for _, c := range b.w.Corrections(0, 100) {
				if c.CanUndo && !c.Undone {
					undo = append(undo, c.ID)
				}
			}
			if len(undo) > 0 {
				id := undo[rng.IntN(len(undo))]
				t.Log(step, b.name, "undoes", id)
				ok(b.w.Undo(id))
			}
		default:
			time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		}
	}
	var last []string
	same := func() bool {
		last = last[:0]
		for _, b := range all {
			last = append(last, strings.Join(b.labels(t), " "))
		}
		return last[0] == last[1] && last[1] == last[2]
	}
	for end := time.Now().Add(2 * time.Minute); !same(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			for _, b := range all {
				t.Logf("%s: %s", b.name, &b.told)
			}
			t.Fatalf("the offices differ:\n%s", strings.Join(last, "\n"))
		}
	}
	time.Sleep(time.Second) // nothing more comes
	if !same() {
		t.Errorf("the offices differ again:\n%s", strings.Join(last, "\n"))
	}
	for f := range forgotten {
		if strings.Contains(last[0], f) {
			t.Errorf("face %s of a forgotten person is there: %s", f, last[0])
		}
	}
}
