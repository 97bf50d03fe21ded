// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/office"
)

// Random corrections, undone in the opposite order, leave everything as it was before each; a restart changes nothing,
// nor does a correction that is refused; and no name comes from nowhere.
func TestRandomCorrections(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 27))
			h := enter(t, t.TempDir(), office.Options{Freeze: true})
			h.plays([]string{strings.Repeat(loop, 4) + n(60, "-") + n(60, "s") + n(60, "-") + n(9, "x") + n(60, "-") +
				n(30, "a") + n(60, "-") + n(30, "b") + n(60, "-")}, nil)
			w := office.New(h.g, h.o)
			names := []string{"alice", "bob", "sue", "xenia"}
			name := func() string { return names[r.IntN(len(names))] }
			restart := func(what string) {
				t.Helper()
				before := summary(w)
				h.leave()
				h = enter(t, h.dir, office.Options{Freeze: true})
				if w = office.New(h.g, h.o); summary(w) != before {
					t.Fatalf("%s, after a restart\n%s, want\n%s", what, summary(w), before)
				}
			}
			type done struct {
				what, before string
				id           uint64
			}
			var all []done
			had := map[string]bool{"alice": true, "bob": true} // names that somebody has had
			for range 12 {
				sightings, strangers := w.Sightings(), w.Strangers()
				if len(sightings) == 0 || len(strangers) == 0 {
					break
				}
				s, g := sightings[r.IntN(len(sightings))], strangers[r.IntN(len(strangers))]
				other := strangers[r.IntN(len(strangers))]
				a, b := name(), name()
				if had[b] && !h.g.Learner().Knows(b) {
					b = a // who has no faces any more and loses the name, too, is not brought back (TestSettled)
				}
				var what string
				var err error
				before := summary(w)
				switch r.IntN(9) {
				case 0:
					what, err = fmt.Sprintf("name %d %s", g.ID, a), w.Name(g.ID, a, r.IntN(2) == 0)
				case 1:
					what, err = fmt.Sprintf("rename %s %s", a, b), w.Rename(a, b)
				case 2:
					what, err = fmt.Sprintf("correct %d %s", s.ID, a), w.Correct(s.ID, a)
				case 3:
					what, err = fmt.Sprintf("deny %d", s.ID), w.Correct(s.ID, "")
				case 4:
					what, err = fmt.Sprintf("confirm %d", s.ID), w.Confirm(s.ID)
				case 5:
					what, err = fmt.Sprintf("merge %d %d", g.ID, other.ID), w.Merge(g.ID, other.ID)
				case 6:
					what, err = fmt.Sprintf("ignore %d", g.ID), w.Ignore(g.ID, !g.Ignored)
				case 7:
					f := g.Album.Faces[r.IntN(len(g.Album.Faces))]
					what, err = fmt.Sprintf("split %d", g.ID), w.Split(g.ID, []uint64{f.ID})
				case 8:
					restart("nothing")
				}
				if err != nil {
					if got := summary(w); got != before {
						t.Fatalf("%s is refused (%v), and has changed\n%s\ninto\n%s", what, err, before, got)
					}
					continue
				}
				for _, p := range h.g.People() {
					had[p.Name] = true
				}
				if c := w.Corrections(0, 1); what != "" && len(c) > 0 &&
					(len(all) == 0 || c[0].ID > all[len(all)-1].id) {
					all = append(all, done{what, before, c[0].ID})
				}
			}
			var said []string
			for _, d := range all {
				said = append(said, d.what)
			}
			restart(strings.Join(said, ", "))
			for i := len(all) - 1; i >= 0; i-- {
				if err := w.Undo(all[i].id); err != nil {
					t.Fatalf("%s: undoing the last: %v", strings.Join(said[:i+1], ", "), err)
				}
				if got := summary(w); got != all[i].before {
					t.Fatalf("%s: undoing the last gives\n%s, want\n%s", strings.Join(said[:i+1], ", "), got,
						all[i].before)
				}
			}
			restart("all undone")

		})
	}
}

// Two people who were made one stay so once another person gets the name that is free now; all that was said before is
// about the one.
func TestSettled(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{Freeze: true})
	h.plays([]string{strings.Repeat(loop, 4) + n(60, "-") + n(30, "s") + n(60, "-") + n(30, "a") + n(60, "-")}, nil)
	w := office.New(h.g, h.o)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.Name(w.Strangers()[0].ID, "sue", false))
	must(w.Rename("alice", "bob"))
	joined := w.Corrections(0, 1)[0]
	must(w.Undo(joined.ID))
	if summary(w)[:len("alice 1, bob 1, sue 4")] != "alice 1, bob 1, sue 4" {
		t.Fatal(summary(w))
	}
	must(w.Rename("alice", "bob"))
	joined = w.Corrections(0, 1)[0]
	must(w.Rename("sue", "alice"))
	for range 2 {
		if c := w.Corrections(0, 2)[1]; c.ID != joined.ID || c.CanUndo || c.Was != "alice" || c.Name != "bob" {
			t.Fatalf("%+v", c)
		}
		before := summary(w)
		if err := w.Undo(joined.ID); !errors.Is(err, office.ErrSettled) || summary(w) != before {
			t.Fatal(err, summary(w))
		}
		h.leave()
		h = enter(t, h.dir, office.Options{Freeze: true})
		w = office.New(h.g, h.o)
	}
	must(w.Undo(w.Corrections(0, 1)[0].ID))
	if got := summary(w); got[:len("bob 2, sue 4")] != "bob 2, sue 4" {
		t.Fatal(got)
	}
}
