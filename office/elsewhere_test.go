// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"slices"
	"testing"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office"
)

// beside lets another program change the gallery of an office.
func (h *home) beside(change func(g *gallery.Gallery) error) {
	h.t.Helper()
	g, err := gallery.Open(h.dir+"/gallery", space)
	nothing(h.t, err)
	defer g.Close()
	nothing(h.t, change(g))
	nothing(h.t, g.Save())
}

// Changes that other programs make to people apply to the sightings, presence and events of an office, too.
func TestElsewhere(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{})
	beside := func(change func(g *gallery.Gallery) error) func(*office.Office) {
		return func(w *office.Office) {
			h.beside(change)
			nothing(t, w.Save())
		}
	}
	w := h.plays([]string{n(30, "ab") + n(40, "ab") + n(40, "ab") + n(40, "abs")}, map[int]func(*office.Office){
		30: beside(func(g *gallery.Gallery) error { return g.Rename("alice", "ann") }),
		70: beside(func(g *gallery.Gallery) error { return g.Forget("bob") }),
		110: beside(func(g *gallery.Gallery) error {
			_, err := g.Enroll("sue", [][]float32{looks['s']}, noon, gallery.Enrolment{})
			return err
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
	if all := w.Corrections(0, 10); len(all) != 0 {
		t.Errorf("other programs' changes are among the corrections: %+v", all)
	}
}

// A person whom another program forgets leaves.
func TestElsewhereLeave(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{})
	h.plays([]string{n(30, "a") + n(10, "a")}, map[int]func(*office.Office){
		30: func(w *office.Office) {
			if len(w.Now().People) != 1 {
				t.Errorf("%+v", w.Now().People)
			}
			h.beside(func(g *gallery.Gallery) error { return g.Forget("alice") })
			nothing(t, w.Save())
			if len(w.Now().People) != 0 {
				t.Errorf("%+v", w.Now().People)
			}
		},
	})
}
