// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/online"
)

// The best faces of a stranger are clear and differ from each other. They are not simply the first four, from the
// moment at which the stranger walked in.
func TestBest(t *testing.T) {
	jpeg := []byte("a picture")
	faces := []office.Face{
		{ID: 1, Vector: []float32{0, 0}, JPEG: jpeg, Sharp: 4},
		{ID: 2, Vector: []float32{0, 0}, JPEG: jpeg, Sharp: 900},
		{ID: 3, Vector: []float32{.01, 0}, JPEG: jpeg, Sharp: 900},
		{ID: 4, Vector: []float32{1, 0}, JPEG: jpeg, Sharp: 900},
		{ID: 5, Vector: []float32{1, 1}, JPEG: jpeg, Sharp: 4},
		{ID: 6, Vector: []float32{0, 1}, JPEG: jpeg, Sharp: 900},
		{ID: 7, Vector: []float32{9, 9}, Sharp: 9000},
	}
	for n, want := range map[int][]uint64{4: {2, 4, 6, 5}, 100: {2, 4, 6, 5, 3, 1, 7}, 1: {2}, 0: {}} {
		var got []uint64
		for _, f := range office.Best(space, faces, n) {
			got = append(got, f.ID)
		}
		slices.Sort(got[min(4, len(got)):])
		if slices.Sort(want[min(4, len(want)):]); !slices.Equal(got, want) {
			t.Errorf("%d: %v", n, got)
		}
	}
}

// pictured is a recording, with pictures, of a person who moves away from a place in small steps.
func pictured(n int, step ...float32) office.Camera {
	all := frames(strings.Repeat("a ", n))
	for i := range all {
		all[i].Samples[0].Vector, all[i].Samples[0].JPEG = []float32{float32(i) * step[0], float32(i) * step[1]}, []byte("a picture")
	}
	return film(all, nil)
}

// A person's page has the enrolled and the learned faces, each with a picture that shows it, and for a learned face the
// chain of faces that led to it.
func TestProfile(t *testing.T) {
	k := new(recorded)
	w, err := run(t.Context(), t, people(t), k.options(), pictured(60, .02, .01))
	nothing(t, err)
	p, err := w.Profile("alice")
	if err != nil || p.Name != "alice" || !p.Enrolled.Equal(noon) {
		t.Fatalf("%+v, %v", p, err)
	}
	if len(p.Faces) < 5 || p.Faces[0].Learned || p.Faces[0].Portrait != (office.Portrait{}) {
		t.Fatalf("%+v", p.Faces)
	}
	longest := p.Faces[0]
	for _, f := range p.Faces[1:] {
		if !f.Learned || f.At.IsZero() || f.Points < 1 {
			t.Errorf("%+v", f)
		}
		if f.Portrait.Learned != f.ID || w.Learned(f.ID) == nil {
			t.Errorf("there is no picture of %+v", f)
		}
		if f.Hops > longest.Hops {
			longest = f
		}
	}
	way, err := w.Way(longest.ID)
	if err != nil || !way.Whole || len(way.Steps) != longest.Hops+1 || len(way.Steps) < 3 {
		t.Fatalf("%+v, %v", way, err)
	}
	for i, s := range way.Steps {
		if s.Distance > way.Link || (i == 0) != (s.Distance == 0) || (s.Name == "alice") != (i == len(way.Steps)-1) {
			t.Errorf("step %d: %+v", i, s)
		}
	}
	if _, err := w.Profile("nobody"); !errors.Is(err, online.ErrUnknown) {
		t.Error(err)
	}
	if _, err := w.Way(999); !errors.Is(err, online.ErrUnknown) {
		t.Error(err)
	}
	// Bob was never there.
	if p, err := w.Profile("bob"); err != nil || len(p.Faces) != 1 || p.Faces[0].Portrait != (office.Portrait{}) {
		t.Errorf("%+v, %v", p, err)
	}
}

// The picture of a person who has gone comes from the past. It follows corrections of its sighting, and is forgotten
// with the person.
func TestLastPicture(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{})
	var w *office.Office
	for range 2 {
		w = office.New(h.g, h.o)
		nothing(t, w.Run(t.Context(), []office.Camera{pictured(40, .001, 0)}))
	}
	last := known(w, "alice")
	if w.Face(last.Face) == nil || known(w, "bob").Face != 0 || last.Trust != "confirmed" {
		t.Fatalf("%+v", last)
	}
	wrong := w.Sightings()[0]
	nothing(t, w.Correct(wrong.ID, ""))
	before := known(w, "alice")
	if before.Face == wrong.Face || w.Face(before.Face) == nil {
		t.Errorf("the sighting before is hers: %+v", before)
	}
	nothing(t, w.Forget("alice"))
	if w.Face(before.Face) != nil {
		t.Error("somebody who is forgotten has a picture")
	}
}

// The picture of a stranger is the clearest one of the sighting so far, and not that of the first frame. There is none
// of somebody who has a name, and none at all if strangers are not kept.
func TestShot(t *testing.T) {
	g := people(t)
	var e office.Event
	all := frames(n(40, "s"))
	for i := range all {
		all[i].Samples[0].JPEG = fmt.Append(nil, "picture ", i)
		all[i].Samples[0].Quality.Sharpness = map[bool]float64{true: 900, false: 4}[i == 2 || i >= 30]
		all[i].Samples[0].Vector = []float32{float32(i%4) * .02, 2}
	}
	var w *office.Office
	k := new(recorded)
	o := k.options()
	o.Event = func(x office.Event) { e = x }
	clear := func(when string, want bool) (s office.Shot) {
		t.Helper()
		if s = w.Shot(e); s.Sighting == 0 || want != (s.JPEG != nil) || want && (s.Clear < 5 ||
			!bytes.Equal(w.Face(s.Face), s.JPEG)) {
			t.Errorf("%s: sighting %d, face %d, clear %g", when, s.Sighting, s.Face, s.Clear)
		}
		return s
	}
	w = office.New(g, o)
	nothing(t, w.Run(t.Context(), []office.Camera{film(all, map[int]func(){35: func() {
		if e.Kind != office.Unknown {
			t.Fatalf("%+v", e)
		}
		clear("in view", true)
	}})}))
	clear("afterwards", true)
	if s := w.Shot(office.Event{Kind: office.Unknown, Camera: "hall", At: e.At}); s.Sighting != 0 {
		t.Errorf("another camera: %+v", s)
	}
	nothing(t, w.Name(e.Group, "sue", false))
	clear("named", false)
}
