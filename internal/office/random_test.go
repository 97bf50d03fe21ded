// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/online"
)

// played returns a gallery file with the past of an office, made once: alice, bob and strangers
// were there several times.
var played = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "faceauth-office-")
	return dir, err
})

// village returns the folder of a new copy of an office with a past.
func village(t *testing.T) string {
	t.Helper()
	dir, err := played()
	nothing(t, err)
	path := filepath.Join(dir, "gallery")
	if _, err := os.Stat(path); err != nil {
		h := enter(t, dir, office.Options{Freeze: true})
		h.plays([]string{strings.Repeat(loop, 4) + n(60, "-") + n(60, "s") + n(60, "-") + n(9,
			"x") + n(60, "-") +
			n(30, "a") + n(60, "-") + n(30, "b") + n(60, "-")}, nil)
		h.leave()
	}
	return copied(t, dir)
}

// receiver is a program that gets events and keeps who was there: nobody of whom a mistake tells.
type receiver struct {
	q   *office.Queue
	all map[uint64]presence.Event
}

// receives takes in what is new, and compares who was there with what the page shows.
func (r *receiver) receives(t *testing.T, what string, w *office.Office) {
	t.Helper()
	for {
		e, ok, err := r.q.Next()
		nothing(t, err)
		if !ok {
			break
		}
		r.q.Done(e.ID)
		switch {
		case e.Kind == presence.Mistake:
			x := r.all[e.Of]
			x.Person = 0
			r.all[e.Of] = x
		case e.Kind != presence.Left:
			r.all[cmp.Or(e.Of, e.ID)] = e
		}
	}
	there := make(map[[2]uint64]bool) // person and sighting, as the receiver has it
	for _, e := range r.all {
		there[[2]uint64{uint64(e.Person), e.Sighting}] = true
	}
	shown := make(map[[2]uint64]bool)
	for _, v := range w.Visits(office.Wanted{}) {
		told := v.Person == 0
		for _, s := range v.Sightings {
			at := [2]uint64{uint64(v.Person), s}
			shown[at] = true
			told = told || there[at]
		}
		if !told {
			t.Fatalf("%s: nobody was told of the visit of %s, %v", what, v.Name, v.Sightings)
		}
	}
	for at := range there {
		if at[0] != 0 && !shown[at] {
			t.Fatalf("%s: a receiver has %d at sighting %d, and the page does not", what, at[0],
				at[1])
		}
	}
	for _, e := range w.Events(0, 999, told) {
		if x := r.all[e.ID]; e.Kind != presence.Left &&
			(x.Person != e.Person || x.Sighting != e.Sighting) {
			t.Fatalf("%s: the list has %+v, and a receiver %+v", what, e, x)
		}
	}
}

// corrects makes a random correction, and returns what it was.
func corrects(w *office.Office, r *rand.Rand) (what string, err error) {
	names := []string{"alice", "bob", "sue", "xenia", "carl"}
	sightings, strangers := w.Sightings(0, 64), w.Strangers()
	if len(sightings) == 0 {
		return "", nil
	}
	s := sightings[r.IntN(len(sightings))]
	a, b := names[r.IntN(len(names))], names[r.IntN(len(names))]
	k := r.IntN(9)
	if len(strangers) == 0 {
		k = r.IntN(5)
	}
	switch k {
	case 0:
		return fmt.Sprintf("rename %s %s", a, b), refusal(w.Rename(a, b))
	case 1:
		return fmt.Sprintf("correct %d(%s) %s", s.ID, s.Name, a), refusal(w.Correct(s.ID, a))
	case 2:
		return fmt.Sprintf("deny %d(%s)", s.ID, s.Name), refusal(w.Correct(s.ID, ""))
	case 3:
		return fmt.Sprintf("confirm %d(%s)", s.ID, s.Name), refusal(w.Confirm(s.ID))
	case 4:
		p, err := w.Profile(a)
		if err != nil || len(p.Faces) == 0 {
			return "", err
		}
		f := p.Faces[r.IntN(len(p.Faces))]
		_, _, err = w.TakeBack(f.ID, 0)
		return fmt.Sprintf("take back %d of %s", f.ID, a), err
	}
	g, other := strangers[r.IntN(len(strangers))], strangers[r.IntN(len(strangers))]
	switch k {
	case 5:
		return fmt.Sprintf("name %d %s", g.ID, a), refusal(w.Name(g.ID, a, r.IntN(2) == 0))
	case 6:
		return fmt.Sprintf("merge %d %d", g.ID, other.ID), refusal(w.Merge(g.ID, other.ID))
	case 7:
		return fmt.Sprintf("ignore %d", g.ID), refusal(w.Ignore(g.ID, !g.Ignored))
	}
	f := g.Faces[r.IntN(len(g.Faces))]
	return fmt.Sprintf("split %d", g.ID), refusal(w.Split(g.ID, []uint64{f.ID}))
}

// Any corrections, undone in any order, give what the remaining ones give alone, also with restarts
// and with changes by another program in between; when all are undone, everything is as it was. A
// correction that is refused changes nothing. After each step a receiver of events knows who was
// there as the page shows it. What statements give is tested in package gallery.
func TestPlainRandomCorrections(t *testing.T) {
	seeds := 2000
	if testing.Short() {
		seeds = 40
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 99))
		dir := village(t)
		h := enter(t, dir, office.Options{Freeze: true})
		w := office.New(h.past, h.o)
		begun := summary(w)
		far := &receiver{h.past.Queue("far"), make(map[uint64]presence.Event)}
		for _, e := range w.Events(0, 999, told) {
			if e.Kind != presence.Left {
				far.all[e.ID] = e
			}
		}
		var steps []string
		left, last := make(map[uint64]bool), uint64(0)
		undo := func() {
			ids := slices.Sorted(maps.Keys(left))
			id := ids[r.IntN(len(ids))]
			nothing(t, w.Undo(id))
			if err := w.Undo(id); !errors.Is(err, office.ErrUndone) {
				t.Fatalf("undone twice: %v", err)
			}
			delete(left, id)
			steps = append(steps, fmt.Sprint("undo ", id))
		}
		beside := false
		for step := 0; step < 8 || len(left) > 0; step++ {
			switch k := r.IntN(12); {
			case step >= 8 || k < 3 && len(left) > 0:
				undo()
			case k == 3:
				before := summary(w)
				h.leave()
				h = enter(t, dir, office.Options{Freeze: true})
				far.q = h.past.Queue("far")
				if w = office.New(h.past, h.o); summary(w) != before {
					t.Fatalf("seed %d: %q, after a restart\n%s, want\n%s", seed, steps, summary(w),
						before)
				}
			case k == 4 && !beside:
				beside = true
				h.beside(func(g *gallery.Gallery) error {
					_, err := g.Enroll("paul", [][]float32{{-50, -50}}, noon,
						gallery.Enrolment{Add: true, Force: true})
					return err
				})
				steps = append(steps, "paul")
				nothing(t, w.Save())
			default:
				was := summary(w)
				what, err := corrects(w, r)
				if err != nil {
					if got := summary(w); got != was {
						t.Fatalf("seed %d: %q: %s is refused (%v), and has changed\n%s\ninto\n%s",
							seed, steps, what, err, was, got)
					}
					continue
				}
				steps = append(steps, what)
				if c := w.Corrections(0, 1); len(c) > 0 && c[0].ID > last {
					last = c[0].ID
					left[last] = true
				}
			}
			nothing(t, office.Folded(h.g))
			far.receives(t, fmt.Sprintf("seed %d: %q", seed, steps), w)
		}
		if beside {
			h.beside(func(g *gallery.Gallery) error { return g.Forget("paul") })
			nothing(t, w.Save())
		}
		if got := summary(w); got != begun {
			t.Fatalf("seed %d: %q, all undone, gives\n%s, want\n%s", seed, steps, got, begun)
		}
		h.leave()
	}
}

// After somebody is forgotten, no name of theirs is left, also not among what others were denied to
// be, whatever was said and undone before. The others are as they were.
func TestPlainForgetAfterAll(t *testing.T) {
	seeds := 300
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		h := enter(t, village(t), office.Options{Freeze: true})
		w := office.New(h.past, h.o)
		var told []string
		for range 6 {
			what, err := corrects(w, r)
			if all := w.Corrections(0, 9); err == nil && len(all) > 0 && r.IntN(4) == 0 {
				if c := all[r.IntN(len(all))]; c.CanUndo {
					nothing(t, w.Undo(c.ID))
					what += fmt.Sprint(", undo ", c.ID)
				}
			}
			told = append(told, what)
		}
		known := w.Now().Known
		if len(known) == 0 {
			continue
		}
		gone := known[r.IntN(len(known))]
		nothing(t, refusal(w.Forget(gone.Name)))
		if err := refusal(w.Forget(gone.Name)); !errors.Is(err, online.ErrUnknown) {
			t.Fatal(err)
		}
		nothing(t, office.Folded(h.g))
		nothing(t, h.g.Rows().Look(func(tx *gallery.Tx) error {
			for _, sql := range []string{"select count(*) from person where id = ?",
				"select count(*) from said where person = ?",
				"select count(*) from statement where person = ?1 or other = ?1",
				"select count(*) from label where person = ?",
				"select count(*) from sighting where person = ?",
				"select count(*) from event where person = ?"} {
				if n, err := tx.Int(sql, gone.ID); err != nil || n > 0 {
					t.Errorf("seed %d: %q, forget %s: %s: %d, %v", seed, told, gone.Name, sql, n,
						err)
				}
			}
			return nil
		}))
		for _, c := range w.Corrections(0, 99) {
			if c.CanUndo {
				nothing(t, w.Undo(c.ID))
			}
		}
		nothing(t, office.Folded(h.g))
		for _, p := range w.Now().Known {
			if p.ID == gone.ID {
				t.Errorf("seed %d: %q: %s is back", seed, told, gone.Name)
			}
		}
		h.leave()
	}
}
