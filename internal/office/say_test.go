// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"errors"
	"image"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// play runs an office over a script with corrections, and returns the reported events.
func play(t *testing.T, g *gallery.Gallery, o office.Options, script string,
	say map[int]func(w *office.Office), kept ...*office.Past) []string {
	t.Helper()
	k := new(recorded)
	base := k.options()
	o.Clock, o.Now, o.Event, o.Health = base.Clock, base.Now, base.Event, base.Health
	if len(kept) == 0 {
		kept = append(kept, passing(t, g))
	}
	w := office.New(kept[0], o)
	do := make(map[int]func())
	for at, f := range say {
		do[at] = func() { f(w) }
	}
	nothing(t, w.Run(t.Context(), []office.Camera{acted("door", script, do)}))
	return k.events
}

func n(frames int, who string) string { return strings.Repeat(who+" ", frames) }

func wantEvents(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// named makes a stranger come and gives them a name, and returns the reported events.
func named(t *testing.T) (*gallery.Gallery, []string) {
	t.Helper()
	g := people(t)
	return g, play(t, g, office.Options{}, n(60, "s"), map[int]func(*office.Office){
		7: func(w *office.Office) {
			if all := w.Strangers(); len(all) != 0 {
				t.Errorf("before anybody is unknown: %+v", all)
			}
		},
		40: func(w *office.Office) {
			all := w.Strangers()
			if len(all) != 1 || len(all[0].Faces) != 4 || all[0].Visits != 1 {
				t.Fatalf("%+v", all)
			}
			id := all[0].ID
			if seen := w.Now().Cameras[0].Seen; len(seen) != 1 || seen[0].Group != id {
				t.Errorf("seen %+v", seen)
			}
			if err := refusal(w.Name(id, " sue", false)); !errors.Is(err, face.ErrName) {
				t.Error(err)
			}
			if err := refusal(w.Name(id+99, "sue", false)); !errors.Is(err, office.ErrNoGroup) {
				t.Error(err)
			}
			nothing(t, refusal(w.Name(id, "sue", false)))
			if all := w.Strangers(); len(all) != 0 {
				t.Errorf("still unknown: %+v", all)
			}
		},
		44: func(w *office.Office) {
			if seen := w.Now().Cameras[0].Seen; seen[0].Name != "sue" {
				t.Errorf("four frames later: %+v", seen)
			}
		},
	})
}

// A stranger comes, is kept, is named, and is recognised at once and in the next recording.
func TestName(t *testing.T) {
	g, got := named(t)
	wantEvents(t, "named", got, "unknown  door 0", "was sue door 0", "arrived sue door 0",
		"left sue door 11.8")
	if p := g.People(); len(p) != 3 || p[2].Name != "sue" || p[2].Faces != 4 {
		t.Errorf("%+v", p)
	}
	wantEvents(t, "the next recording", play(t, g, office.Options{}, n(5, "s"), nil),
		"arrived sue door 0", "left sue door 0.8")
}

// A stranger turns the head before the naming, and is then recognised with a turned head: the faces
// seen before are learned at once, as far as the learner's own checks allow.
func TestNameLearnsTheRest(t *testing.T) {
	for i, c := range "tuvw" { // sue turns further and further
		looks[byte(c)] = []float32{0, 2 + .5*float32(i+1)}
	}
	turning := n(30, "s") + n(5, "t") + n(5, "u") + n(5, "v") + n(5, "w")
	for _, c := range []struct {
		name  string
		o     office.Options
		learn online.Settings
		want  string
	}{
		{"as it is", office.Options{}, online.Settings{}, "sue"},
		{"frozen", office.Options{Freeze: true}, online.Settings{}, ""},
		{"bounded", office.Options{}, online.Settings{Learn: 1}, ""},
	} {
		g := people(t)
		nothing(t, g.Learner().Configure(c.learn))
		play(t, g, c.o, turning, map[int]func(*office.Office){
			49: func(w *office.Office) {
				all := w.Strangers()
				if len(all) != 1 || len(all[0].Faces) != 8 {
					t.Fatalf("%s: %+v", c.name, all)
				}
				if err := refusal(w.Name(all[0].ID, "sue", false)); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
			},
		})
		if v, err := g.Learner().Judge(looks['w']); err != nil || g.Name(v.Person) != c.want {
			t.Errorf("%s: %+v, %v", c.name, v, err)
		}
		// A person whose name only learned faces support does not arrive.
		wantEvents(t, c.name, play(t, g, office.Options{Freeze: true}, n(5, "w"), nil))
	}
}

// If only learned faces support a name, the office asks. A yes enrols these faces.
func TestConfirm(t *testing.T) {
	looks['y'] = []float32{-.8, 0} // alice with a beard
	g := people(t)
	looks['z'] = []float32{-1.5, 0}
	play(t, g, office.Options{}, n(5, "y"), nil)
	got := play(t, g, office.Options{}, n(16, "z"), map[int]func(*office.Office){
		7: func(w *office.Office) {
			all := w.Sightings(0, 64)
			if len(all) != 1 || all[0].Name != "alice" || all[0].Trust != sighting.Likely {
				t.Fatalf("%+v", all)
			}
			if err := refusal(w.Confirm(all[0].ID + 1)); !errors.Is(err, office.ErrNoSighting) {
				t.Errorf("another number: %v", err)
			}
			before := len(g.Learner().Labels())
			shown, err := w.Confirmable(all[0].ID)
			if err != nil || len(shown) == 0 || shown[0].Apart < shown[len(shown)-1].Apart ||
				shown[0].Apart == 0 {
				t.Fatalf("%+v %v", shown, err)
			}
			var seen []uint64
			for _, f := range shown {
				seen = append(seen, f.Face)
			}
			if err := refusal(w.Confirm(all[0].ID, seen[1:]...)); len(seen) > 1 &&
				!errors.Is(err, office.ErrOthers) {
				t.Errorf("faces that nobody was shown are enrolled: %v", err)
			}
			nothing(t, refusal(w.Confirm(all[0].ID, seen...)))
			if len(g.Learner().Labels()) <= before {
				t.Error("nothing was enrolled")
			}
		},
	})
	wantEvents(t, "confirmed", got, "arrived alice door 0", "left alice door 3")
}

// lookalike is a person who is taken for alice.
func init() { looks['x'] = []float32{.7, 0} }

// A denial holds for the sighting, for the same face in later recordings, and for the faces that
// were learned from it.
func TestCorrect(t *testing.T) {
	for _, is := range []string{"", "xenia"} {
		g := people(t)
		var id uint64
		got := play(t, g, office.Options{}, n(80, "x"), map[int]func(*office.Office){
			10: func(w *office.Office) {
				all := w.Sightings(0, 64)
				if len(all) != 1 || all[0].Name != "alice" || !all[0].Live ||
					g.Learner().Counts().Learned == 0 {
					t.Fatalf("%+v", all)
				}
				id = all[0].ID
				if err := refusal(w.Correct(id, "alice")); !errors.Is(err, office.ErrSame) {
					t.Error(err)
				}
				if err := refusal(w.Correct(id+9, is)); !errors.Is(err, office.ErrNoSighting) {
					t.Error(err)
				}
				if err := refusal(w.Correct(id, is, "bob")); !errors.Is(err, office.ErrMoved) {
					t.Errorf("somebody sees an older name: %v", err)
				}
				nothing(t, refusal(w.Correct(id, is)))
				if m := mass(g.Learner()); m != 0 {
					t.Errorf("%g faces that were learned from it are left", m)
				}
				twice := office.ErrNobody
				if is != "" {
					twice = office.ErrSame
				}
				if err := refusal(w.Correct(id, is)); !errors.Is(err, twice) {
					t.Errorf("a second time: %v", err)
				}
				if all := w.Strangers(); (len(all) == 1) != (is == "") {
					t.Errorf("strangers %+v", all)
				}
			},
		})
		if is == "" {
			wantEvents(t, "a stranger", got, "arrived alice door 0", "mistake alice door 0",
				"unknown  door 0")
		} else {
			wantEvents(t, "xenia", got, "arrived alice door 0", "mistake alice door 0",
				"was xenia door 0", "left xenia door 15.8")
		}
		got = play(t, g, office.Options{}, n(60, "x")+n(12, "-")+n(9, "a"), nil)
		if is == "" {
			wantEvents(t, "the next recording", got, "unknown  door 0", "arrived alice door 14.4",
				"left alice door 16")
		} else {
			wantEvents(t, "the next recording", got, "arrived xenia door 0",
				"arrived alice door 14.4", "left xenia door 11.8", "left alice door 16")
		}
	}
}

// A denial that is undone holds no longer, also for who is in view.
func TestUndoneDenial(t *testing.T) {
	play(t, people(t), office.Options{}, n(60, "x"), map[int]func(*office.Office){
		10: func(w *office.Office) { nothing(t, refusal(w.Correct(w.Sightings(0, 64)[0].ID, ""))) },
		20: func(w *office.Office) { nothing(t, w.Undo(w.Corrections(0, 1)[0].ID)) },
		50: func(w *office.Office) {
			if p := w.Now().People; len(p) != 1 || p[0].Name != "alice" {
				t.Errorf("%+v", p)
			}
		},
	})
}

// Who is here now did not come by a sighting of before, and stays when it is corrected.
func TestCorrectEarlier(t *testing.T) {
	got := play(t, people(t), office.Options{}, n(20, "x")+n(60, "-")+n(30, "a"),
		map[int]func(*office.Office){
			95: func(w *office.Office) {
				nothing(t,
					refusal(w.Correct(w.Sightings(0, 64)[1].ID, "")))
			},
		})
	wantEvents(t, "corrected later", got, "arrived alice door 0", "left alice door 3.8",
		"arrived alice door 16", "mistake alice door 0", "left alice door 21.8")
}

// A person whose sighting is corrected at one camera, but who is seen at another, has not left.
func TestCorrectElsewhere(t *testing.T) {
	g := people(t)
	k := new(recorded)
	w := office.New(passing(t, g), k.options())
	reached, corrected := make(chan bool), make(chan bool)
	door := acted("door", n(30, "a"), map[int]func(){10: func() { close(reached); <-corrected }})
	desk := acted("desk", n(30, "x"), map[int]func(){10: func() {
		defer close(corrected)
		<-reached
		for _, s := range w.Sightings(0, 64) {
			if s.Camera == "desk" {
				nothing(t, refusal(w.Correct(s.ID, "")))
			}
		}
	}})
	nothing(t, w.Run(t.Context(), []office.Camera{door, desk}))
	for _, e := range k.events {
		if strings.HasPrefix(e, "mistake") {
			t.Errorf("%q", k.events)
		}
	}
}

// A poster is ignored for ever, whatever happens to the program in between.
func TestIgnore(t *testing.T) {
	g := peopleAt(t, filepath.Join(t.TempDir(), "gallery"))
	var p *office.Past
	keep := func() *office.Past {
		if p != nil {
			nothing(t, p.Close())
		}
		p = past(t, g)
		return p
	}
	wantEvents(t, "first", play(t, g, office.Options{}, n(40, "s"), map[int]func(*office.Office){
		35: func(w *office.Office) {
			nothing(t, refusal(w.Ignore(w.Strangers()[0].ID, true)))
		},
	}, keep()), "unknown  door 0")
	wantEvents(t, "ignored", play(t, g, office.Options{}, n(80, "s")+n(80, "sa"),
		map[int]func(*office.Office){
			50: func(w *office.Office) {
				if seen := w.Now().Cameras[0].Seen; !seen[0].Ignored {
					t.Errorf("%+v", seen)
				}
			},
		}, keep()), "arrived alice door 16", "left alice door 31.8")
}

// An unknown person who leaves the view and comes back is reported once. Of a person who is
// forgotten nothing more is told.
func TestTellsOnce(t *testing.T) {
	g := people(t)
	wantEvents(t, "once", play(t, g, office.Options{}, n(40, "s")+n(15, "-")+n(40, "s"), nil),
		"unknown  door 0")
	wantEvents(t, "forgotten", play(t, g, office.Options{}, n(80, "a"),
		map[int]func(*office.Office){
			30: func(w *office.Office) {
				nothing(t, refusal(w.Forget("alice")))
				if err := refusal(w.Forget("alice")); !errors.Is(err, online.ErrUnknown) {
					t.Error(err)
				}
			},
		}), "arrived alice door 0", "unknown  door 0")
}

// Labels that contradict each other are a question with four answers, of which each ends it, and
// can be undone.
func TestConflicts(t *testing.T) {
	g := people(t)
	fixture.Must(g.Enroll("eve", [][]float32{{.1, 0}, {.2, 0}, {9, 0}}, noon,
		gallery.Enrolment{Force: true}))(t)
	now := noon
	w := office.New(passing(t, g), office.Options{Now: func() time.Time { return now }})
	takeBack := func(all bool) func() error {
		return func() error {
			c := w.Conflicts()[0]
			if c.A.Name != "eve" {
				c.A, c.B = c.B, c.A
			}
			if !all {
				c.B.ID = 0
			}
			_, _, err := w.TakeBack(c.A.ID, c.B.ID)
			return err
		}
	}
	for what, c := range map[string]struct {
		do    func() error
		pairs int
		faces map[string]int
	}{
		"this face": {takeBack(false), 1, map[string]int{"alice": 1, "eve": 2}},
		"all faces": {takeBack(true), 0, map[string]int{"alice": 1, "eve": 1}},
		"two people": {func() error { return refusal(w.Alike("eve", "alice")) }, 0,
			map[string]int{"alice": 1, "eve": 3}},
		"one person": {func() error { return refusal(w.Rename("alice", "eve")) }, 0,
			map[string]int{"eve": 4}},
	} {
		check := func(pairs int, faces map[string]int) {
			t.Helper()
			n, got := 0, make(map[string]int)
			for _, x := range w.Conflicts() {
				n += x.Pairs
			}
			for _, p := range g.People() {
				if p.Name != "bob" {
					got[p.Name] = p.Faces
				}
			}
			if n != pairs || !maps.Equal(got, faces) {
				t.Errorf("%s: %d pairs, %v", what, n, got)
			}
		}
		nothing(t, c.do())
		check(c.pairs, c.faces)
		if what == "two people" { // it is a fact, which stays
			now = now.Add(300 * 24 * time.Hour)
			office.Minute(w)
			check(c.pairs, c.faces)
		}
		nothing(t, w.Undo(w.Corrections(0, 1)[0].ID))
		check(2, map[string]int{"alice": 1, "eve": 3})
	}
	for _, err := range []error{refusal(w.Alike("eve", "nobody")),
		refusal(w.Alike("nobody", "eve")),
		refusal(w.Choose("nobody", 0)), refusal(w.Choose("eve", 99))} {
		if !errors.Is(err, online.ErrUnknown) && !errors.Is(err, office.ErrNoFaces) {
			t.Error(err)
		}
	}
	if err := refusal(w.Alike("eve", "eve")); !errors.Is(err, office.ErrSame) {
		t.Error(err)
	}
}

// A stranger probably is the known person who comes nearest, and a person has the picture that a
// user chose.
func TestProbable(t *testing.T) {
	g := people(t)
	looks['p'] = []float32{.99, .1} // nearer to bob than to alice, and near nobody
	seen := frames(n(30, "p"))
	for i := range seen {
		seen[i].Samples[0].JPEG = []byte{1}
	}
	w, err := run(t.Context(), t, g, new(recorded).options(), film(seen, nil))
	nothing(t, err)
	all := w.Strangers()
	if p := all[0].Probably; len(all) != 1 || p == nil || p.Name != "alice" || p.Distance < .99 ||
		p.Distance > 1 {
		t.Errorf("%+v", all)
	}
	nothing(t, refusal(w.Name(1, "paul", false)))
	p, err := w.Profile("paul")
	nothing(t, err)
	face := p.Faces[1].Portrait.Face
	nothing(t, refusal(w.Choose("paul", face)))
	if x := known(w, "paul"); x.Chosen != face || x.Face != face || face == 0 {
		t.Errorf("%+v, want %d", x, face)
	}
	nothing(t, w.Undo(w.Corrections(0, 1)[0].ID))
	if x := known(w, "paul"); x.Chosen != 0 || x.Face == face {
		t.Errorf("%+v", x)
	}
}

// A learned face is taken back with the faces that were accepted through it, and stays away after a
// restart. A label that is taken back the same way comes back by an undo.
func TestTakeBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gallery")
	g := peopleAt(t, path)
	p := past(t, g)
	for i := 1; i <= 6; i++ {
		if v, err := g.Learner().Observe([]float32{.25 * float32(i), 0}); err != nil || i < 5 &&
			!v.Learned {
			t.Fatalf("face %d: %+v, %v", i, v, err)
		}
	}
	w := office.New(p, office.Options{Keep: true})
	profile := func() (enrolled int64, learned []office.Kept) {
		t.Helper()
		p, err := w.Profile("alice")
		nothing(t, err)
		for _, f := range p.Faces {
			if f.Learned {
				learned = append(learned, f)
			} else {
				enrolled = f.ID
			}
		}
		return enrolled, learned
	}
	label, before := profile()
	middle := slices.IndexFunc(before, func(f office.Kept) bool { return f.Hops == 2 })
	if middle < 0 || before[len(before)-1].Hops < 3 {
		t.Fatalf("%+v", before)
	}
	_, n, err := w.TakeBack(before[middle].ID, 0)
	_, after := profile()
	if err != nil || n < 2 || len(after) != len(before)-n ||
		slices.ContainsFunc(after, func(f office.Kept) bool {
			return f.Hops >= 2
		}) {
		t.Errorf("%d faces, %v: %+v of %+v", n, err, after, before)
	}
	if _, _, err := w.TakeBack(before[middle].ID, 0); !errors.Is(err, online.ErrUnknown) {
		t.Errorf("a second time: %v", err)
	}
	again, err := gallery.Open(path, space)
	nothing(t, err)
	defer again.Close()
	if got := again.Learner().Graph().Learned(); got != len(after) {
		t.Errorf("%d faces are kept of %+v", got, after)
	}
	if _, n, err := w.TakeBack(label, 0); n != 0 || err != nil || len(g.People()) != 1 {
		t.Errorf("the label: %d, %v", n, err)
	}
	nothing(t, w.Undo(w.Corrections(0, 1)[0].ID))
	if len(g.People()) != 2 {
		t.Errorf("after the undo: %+v", g.People())
	}
}

// A new name that people take for another person's is asked about, wherever it is given. The name
// itself is taken, and so is another spelling of one's own name.
func TestNamesAlike(t *testing.T) {
	w := office.New(passing(t, people(t)), office.Options{})
	if err := refusal(w.Rename("bob", "Alice")); !errors.Is(err, gallery.ErrAlike) {
		t.Errorf("rename: %v", err)
	}
	nothing(t, refusal(w.Rename("bob", "Bob")))
	picture := face.Frame{Samples: []face.Sample{{Vector: looks['s']}}}
	if _, _, err := w.Enrol("ALICE", []face.Frame{picture}, false); !errors.Is(err,
		gallery.ErrAlike) {
		t.Errorf("enrolment: %v", err)
	}
	if _, _, err := w.Enrol("ALICE", []face.Frame{picture}, true); err != nil {
		t.Error(err)
	}
	if all := w.Corrections(0, 1); len(all) != 1 || !all[0].CanUndo {
		t.Fatalf("%+v", all)
	}
	nothing(t, w.Undo(w.Corrections(0, 1)[0].ID))
	if all := w.Now().Known; len(all) != 2 {
		t.Errorf("after undoing the enrolment: %+v", all)
	}
}

// Alice and her mirror image, which is sometimes the better match: she arrives, nobody unknown is
// there, and no group and no past sighting is made of the image. A stranger beside them is told as
// before.
func TestMirror(t *testing.T) {
	g := peopleAt(t, filepath.Join(t.TempDir(), "g.db"))
	p := past(t, g)
	var k recorded
	all := frames(strings.Repeat("as ", 60))
	for i := range all {
		near, mirrored := []float32{.1 * float32(i%2), 0}, []float32{.1 * float32((i+1)%2), .05}
		all[i].Samples[0].Vector = near
		all[i].Samples = append(all[i].Samples,
			face.Sample{Box: image.Rect(5, 50, 13, 58), Vector: mirrored})
	}
	w := office.New(p, k.options())
	err := w.Run(t.Context(), []office.Camera{film(all, nil)})
	nothing(t, err)
	if len(w.Strangers()) != 1 {
		t.Errorf("%d groups", len(w.Strangers()))
	}
	unknown := 0
	for _, e := range k.events {
		if strings.HasPrefix(e, "unknown") {
			unknown++
		}
	}
	if unknown != 1 || !slices.ContainsFunc(k.events, func(e string) bool {
		return strings.HasPrefix(e, "arrived alice")
	}) {
		t.Errorf("%q", k.events)
	}
}
