// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"image"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
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
	for _, e := range w.Events(0, 100, nil) {
		if e.Name == "bob" || e.Name == "alice" {
			t.Errorf("%+v", e)
		}
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
			h.beside(func(g *gallery.Gallery) error { // alice is here, whatever others say
				return g.Records(false, func(t *gallery.Tx) error {
					there := gallery.There{Place: "hall", At: noon.Add(time.Hour).Unix(), Since: make(map[[16]byte]int64)}
					for i, name := range []string{"alice", "bob"} {
						id := [16]byte{byte(i)}
						there.Since[id] = noon.Unix()
						t.Exec("insert into shared values(?, ?, '', 0, 0, 0, 1, 0, x'')", id[:], g.Number(name))
					}
					return t.Elsewhere("here.hall", there)
				})
			})
			if known(w, "alice").Place != "" || known(w, "bob").Place != "hall" {
				t.Errorf("%+v", w.Now().Known)
			}
			h.beside(func(g *gallery.Gallery) error { return g.Forget("alice") })
			nothing(t, w.Save())
			if len(w.Now().People) != 0 {
				t.Errorf("%+v", w.Now().People)
			}
		},
	})
}

// together runs an office over people who take the same place, so that a track is theirs one after the other. Do are
// called within a frame, after the office has heeded other programs.
func (h *home) together(script string, do map[int]func(w *office.Office), within map[int]func()) *office.Office {
	h.t.Helper()
	var w *office.Office
	o, clock, at := h.o, h.o.Clock, 0
	o.Clock = func(f face.Frame) time.Time {
		if say := within[at]; say != nil {
			say()
		}
		at++
		return clock(f)
	}
	w = office.New(h.g, o)
	say := make(map[int]func())
	for i, f := range do {
		say[i] = func() { f(w) }
	}
	all := frames(script)
	for i := range all {
		for j := range all[i].Samples {
			all[i].Samples[j].Box = image.Rect(10*j, 0, 10*j+8, 8)
		}
	}
	nothing(h.t, w.Run(h.t.Context(), []office.Camera{film(all, say)}))
	nothing(h.t, w.Save())
	return w
}

// What users say stays what they say, whatever a camera finds afterwards and whenever another program speaks; and what a
// camera finds stays when what was said is undone or removed.
func TestStatementsCount(t *testing.T) {
	deny := func(w *office.Office) { nothing(t, w.Correct(w.Sightings()[0].ID, "")) }
	undo := func(w *office.Office) { nothing(t, w.Undo(w.Corrections(0, 1)[0].ID)) }
	forget := func(w *office.Office) { nothing(t, w.ForgetGroup(w.Strangers()[0].ID)) }
	for what, c := range map[string]struct {
		script string
		do     map[int]func(w *office.Office)
		within func(w *office.Office) error // another office, within frame 60
	}{
		"denied, and somebody else": {n(30, "a") + n(60, "k"), map[int]func(*office.Office){30: deny}, nil},
		"denied and undone, and somebody else": {n(30, "a") + n(60, "k"),
			map[int]func(*office.Office){30: deny, 35: undo}, nil},
		"denied, and the stranger forgotten": {n(99, "a"), map[int]func(*office.Office){30: deny, 40: forget}, nil},
		"another office says who she is": {n(30, "a") + n(70, "-") + n(9, "b") + n(60, "-"),
			map[int]func(*office.Office){20: deny, 22: undo}, func(w *office.Office) error { return w.Rename("alice", "bob") }},
	} {
		t.Run(what, func(t *testing.T) {
			h := enter(t, t.TempDir(), office.Options{Freeze: true})
			_, err := h.g.Enroll("carl", [][]float32{looks['k']}, noon, gallery.Enrolment{Force: true})
			nothing(t, err)
			within := make(map[int]func())
			if c.within != nil {
				g, err := gallery.Open(h.dir+"/gallery", space)
				nothing(t, err)
				defer g.Close()
				within[60] = func() { nothing(t, c.within(office.New(g, office.Options{}))) }
			}
			h.together(c.script, c.do, within)
			nothing(t, office.Folded(h.g))
		})
	}
}
