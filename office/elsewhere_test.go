// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/sighting"
)

// Changes that other offices make to people apply to the sightings, presence and events of this office, too.
func TestExchange(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{})
	exchange := func(do func(g *gallery.Gallery) office.Exchanged) func(*office.Office) {
		return func(w *office.Office) {
			t.Helper()
			nothing(t,
				w.Exchange(func(g *gallery.Gallery, _ func(string)) (office.Exchanged, error) { return do(g), nil }))
		}
	}
	w := h.plays([]string{n(30, "ab") + n(40, "ab") + n(40, "ab") + n(40, "abs")}, map[int]func(*office.Office){
		30: exchange(func(g *gallery.Gallery) office.Exchanged {
			nothing(t, g.Rename("alice", "ann"))
			return office.Exchanged{Changed: true, Renamed: []office.Rename{{From: "alice", To: "ann"}}}
		}),
		70: exchange(func(g *gallery.Gallery) office.Exchanged {
			nothing(t, g.Forget("bob"))
			return office.Exchanged{Changed: true, Forgotten: []string{"bob"}}
		}),
		110: exchange(func(g *gallery.Gallery) office.Exchanged {
			_, err := g.Enroll("sue", [][]float32{looks['s']}, noon, gallery.Enrolment{})
			nothing(t, err)
			return office.Exchanged{Changed: true}
		}),
	})
	var names []string
	for _, s := range w.Sightings() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"", "ann", "sue"}) {
		t.Errorf("sightings of %q", names)
	}
	for _, e := range w.Events(0, 100) {
		if e.Name == "bob" || e.Name == "alice" {
			t.Errorf("%+v", e)
		}
	}
	if w.LastFace("bob") != nil {
		t.Error("a forgotten person has a picture")
	}
	g, err := gallery.Open(h.dir+"/gallery", space)
	nothing(t, err)
	if !slices.Equal(g.Learner().Names(), []string{"ann", "sue"}) {
		t.Errorf("saved are %q", g.Learner().Names())
	}
	// Somebody was forgotten elsewhere, and another person has the name.
	var said []office.Said
	o := office.Options{Said: func(x office.Said) string { said = append(said, x); return "" }}
	w = office.New(people(t), o)
	nothing(t, w.Exchange(func(*gallery.Gallery, func(string)) (office.Exchanged, error) {
		return office.Exchanged{Changed: true, Forgotten: []string{"bob"}}, nil
	}))
	if len(w.Now().Known) != 2 || len(said) != 0 {
		t.Errorf("%+v are known, and it said %+v", w.Now().Known, said)
	}
	nothing(t, w.Forget("bob"))
	if len(w.Now().Known) != 1 || len(said) != 1 || said[0].Forgotten != "bob" {
		t.Errorf("%+v are known, and it said %+v", w.Now().Known, said)
	}
	broken := errors.New("broken")
	if err := w.Exchange(func(*gallery.Gallery, func(string)) (office.Exchanged, error) {
		return office.Exchanged{}, broken
	}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// A merge that was sent to other offices is undone there, too: by its entry, and not by labels. If another office has
// undone it, the past of this office follows.
func TestExchangeMerged(t *testing.T) {
	var said []office.Said
	h := enter(t, t.TempDir(), office.Options{Said: func(x office.Said) string {
		if said = append(said, x); x.Merged != nil {
			return "m1"
		}
		return ""
	}})
	unmerged := map[string]bool{}
	exchange := func(w *office.Office, do func(g *gallery.Gallery) []office.Rename) {
		t.Helper()
		nothing(t, w.Exchange(func(g *gallery.Gallery, _ func(string)) (office.Exchanged, error) {
			return office.Exchanged{
				Changed:  true,
				Renamed:  do(g),
				Unmerged: func(m string) bool { return unmerged[m] },
			}, nil
		}))
	}
	names := func(w *office.Office) (all []string) {
		for _, s := range w.Sightings() {
			all = append(all, s.Name)
		}
		for _, e := range w.Events(0, 100) {
			all = append(all, string(e.Kind)+" "+e.Name)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	w := h.plays([]string{n(30, "ab") + n(600, ".")}, nil)
	before := names(w)
	nothing(t, w.Rename("alice", "bob"))
	if len(said) != 1 || said[0].Merged == nil || *said[0].Merged != (office.Rename{From: "alice", To: "bob"}) {
		t.Fatalf("%+v", said)
	}
	merged := names(w)
	if slices.Equal(before, merged) {
		t.Fatalf("%q, and merged the same", before)
	}
	c := w.Corrections(0, 1)[0]
	nothing(t, w.Rename("bob", "rob"))
	nothing(t, w.Undo(c.ID))
	if len(said) != 3 || !reflect.DeepEqual(said[2], office.Said{Unmerged: "m1"}) {
		t.Errorf("%+v", said)
	}
	if got := names(w); len(got) != len(before) || !slices.Contains(got, "alice") || !slices.Contains(got, "rob") {
		t.Errorf("%q after undoing, and %q before", got, before)
	}

	// Another office merges, and undoes it.
	exchange(w, func(g *gallery.Gallery) []office.Rename {
		nothing(t, g.Forget("rob"))
		_, err := g.Enroll("alice", [][]float32{looks['a']}, noon, gallery.Enrolment{})
		nothing(t, err)
		return []office.Rename{{From: "rob", To: "alice", Merge: "m2"}}
	})
	if c := w.Corrections(0, 1)[0]; !c.CanUndo || c.Undone || c.Name != "alice" {
		t.Errorf("%+v", c)
	}
	if got := names(w); slices.Contains(got, "rob") {
		t.Errorf("%q", got)
	}
	unmerged["m2"] = true
	exchange(w, func(g *gallery.Gallery) []office.Rename { return nil })
	if c := w.Corrections(0, 1)[0]; !c.Undone {
		t.Errorf("%+v", c)
	}
	if got := names(w); !slices.Contains(got, "rob") {
		t.Errorf("%q", got)
	}
	last := len(said)
	exchange(w, func(g *gallery.Gallery) []office.Rename { return nil })
	if len(said) != last {
		t.Errorf("it was said again: %+v", said[last:])
	}
}

// If a person is forgotten elsewhere, strangers here who look like the person go, too. This also holds if somebody else
// has the name by then, if an old gallery brought the person back, or if the first exchange failed half way.
func TestExchangeForgetsStrangers(t *testing.T) {
	for _, c := range []string{"forgotten", "an old gallery", "failed at first"} {
		h := enter(t, t.TempDir(), office.Options{Freeze: true})
		w := h.plays([]string{strings.Repeat(loop, 4) + n(60, "-") + n(60, "s") + n(60, "-")}, nil)
		if got := len(w.Strangers()); got != 2 {
			t.Fatalf("%d groups", got)
		}
		sue := w.Sightings()[0].ID
		nothing(t, w.Exchange(func(g *gallery.Gallery, _ func(string)) (office.Exchanged, error) {
			_, err := g.Enroll("sue", [][]float32{looks['s']}, noon, gallery.Enrolment{})
			return office.Exchanged{Changed: true}, err
		}))
		if got := len(w.Strangers()); got != 2 {
			t.Fatalf("%d groups after she was enrolled elsewhere", got)
		}
		broken := errors.New("broken")
		if c == "failed at first" {
			err := w.Exchange(func(g *gallery.Gallery, forgetting func(string)) (office.Exchanged, error) {
				forgetting("sue")
				return office.Exchanged{}, errors.Join(broken, g.Forget("sue"))
			})
			if !errors.Is(err, broken) || len(w.Strangers()) != 2 {
				t.Errorf("%v", err)
			}
		}
		nothing(t, w.Exchange(func(g *gallery.Gallery, forgetting func(string)) (office.Exchanged, error) {
			x := office.Exchanged{Changed: true}
			if c != "an old gallery" {
				x.Forgotten = []string{"sue"}
			}
			if c != "failed at first" {
				forgetting("sue")
				return x, g.Forget("sue")
			}
			return x, nil
		}))
		if got := w.Strangers(); len(got) != 1 || got[0].Album.Faces[0].Vector[1] == looks['s'][1] {
			t.Errorf("%s: %+v", c, got)
		}
		for _, s := range w.Sightings() {
			if s.ID == sue {
				t.Errorf("%s: %+v", c, s)
			}
		}
		h.leave()
		h = enter(t, h.dir, office.Options{Freeze: true})
		if got := office.New(h.g, h.o).Strangers(); len(got) != 1 {
			t.Errorf("%s, after a restart: %+v", c, got)
		}
	}
}

// A person who is no longer known, but was not forgotten, leaves.
func TestExchangeLeave(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{})
	w := h.plays([]string{n(30, "a") + n(10, "a")}, map[int]func(*office.Office){
		30: func(w *office.Office) {
			if len(w.Now().People) != 1 {
				t.Errorf("%+v", w.Now().People)
			}
			nothing(t, w.Exchange(func(g *gallery.Gallery, _ func(string)) (office.Exchanged, error) {
				return office.Exchanged{Changed: true}, g.Forget("alice")
			}))
			if len(w.Now().People) != 0 {
				t.Errorf("%+v", w.Now().People)
			}
		},
	})
	var kinds []office.EventKind
	for _, e := range w.Events(0, 100) {
		kinds = append(kinds, e.Kind)
	}
	if !slices.Equal(kinds, []office.EventKind{office.Left, office.Arrived}) {
		t.Errorf("%q", kinds)
	}
}

// A person who is seen here and at another site at the same time is a contradiction. A person who has just gone there
// is not.
func TestElsewhere(t *testing.T) {
	at := noon.Add(48 * time.Hour) // the clock of the other site is wrong
	ann := office.Presence{Name: "alice", Since: at, Last: at, Camera: "lab", Trust: sighting.Confirmed}
	play(t, people(t), office.Options{}, n(40, "a"), map[int]func(*office.Office){
		30: func(w *office.Office) {
			for _, c := range []struct {
				what  string
				sites []office.Site
				twice []office.Twice
			}{
				{"nothing", nil, []office.Twice{}},
				{"there, too", []office.Site{{Name: "lab", At: at, People: []office.Presence{ann}}},
					[]office.Twice{{Name: "alice", Places: []string{"", "lab"}}}},
				{"was there", []office.Site{{Name: "lab", At: at.Add(5 * time.Second), People: []office.Presence{ann}}},
					[]office.Twice{}},
				{"silent", []office.Site{{Name: "lab", At: at, Silent: true, People: []office.Presence{ann}}},
					[]office.Twice{}},
				{"somebody else", []office.Site{{Name: "lab", At: at,
					People: []office.Presence{{Name: "bob", Last: at, Trust: sighting.Confirmed}}}}, []office.Twice{}},
				{"not confirmed", []office.Site{{Name: "lab", At: at,
					People: []office.Presence{{Name: "alice", Last: at, Trust: sighting.Learned}}}}, []office.Twice{}},
			} {
				w.Elsewhere(c.sites)
				if now := w.Now(); !reflect.DeepEqual(now.Twice, c.twice) || len(now.Sites) != len(c.sites) {
					t.Errorf("%s: %+v, %+v", c.what, now.Twice, now.Sites)
				}
			}
		},
	})
}
