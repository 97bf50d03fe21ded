// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"errors"
	"fmt"
	"image"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/store"
)

// One program runs an office of a name. Another office of the database is no trouble, and of a
// temporary one nothing is left, also after a crash.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gallery")
	g := peopleAt(t, path)
	home, err := office.OpenPast(g, "home", office.PastSettings{})
	nothing(t, err)
	other, err := gallery.Open(path, space)
	nothing(t, err)
	defer other.Close()
	if _, err := office.OpenPast(other, "home", office.PastSettings{}); !errors.Is(err,
		office.ErrBusy) {
		t.Errorf("error %v", err)
	}
	shop, err := office.OpenPast(other, "shop", office.PastSettings{})
	nothing(t, err)
	if home.ID() == shop.ID() || home.ID() == "" {
		t.Errorf("both have the identifier %q", home.ID())
	}
	id := home.ID()
	nothing(t, home.Close())
	nothing(t, shop.Close())
	if home, err = office.OpenPast(other, "home", office.PastSettings{}); err != nil ||
		home.ID() != id {
		t.Errorf("%v, identifier %s and %s", err, id, home.ID())
	}
	nothing(t, home.Close())

	offices := func() (n int64) {
		nothing(t, g.Rows().Look(func(tx *gallery.Tx) (err error) {
			n, err = tx.Int("select count(*) from office")
			return err
		}))
		return n
	}
	for _, crash := range []bool{false, true} {
		p, err := office.OpenPast(g, "", office.PastSettings{})
		nothing(t, err)
		if n := offices(); n != 3 {
			t.Errorf("%d offices, want 3", n)
		}
		if crash {
			nothing(t, g.Close())
			g, err = gallery.Open(path, space)
			nothing(t, err)
			defer g.Close()
		}
		nothing(t, p.Close())
		again, err := office.OpenPast(g, "home", office.PastSettings{})
		nothing(t, err)
		if n := offices(); n != 2 {
			t.Errorf("crash %t: %d offices, want 2", crash, n)
		}
		nothing(t, again.Close())
	}
}

// Many ask for the present state, all the time: it has what is in view, and nothing is written for
// it.
func TestNowWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gallery")
	g := peopleAt(t, path)
	other := fixture.Must(store.Open(path, store.Schema{}, false))(t)
	defer other.Close()
	version := func() (n int64) {
		nothing(t, other.Query("pragma data_version", func(r store.Row) error {
			n = r.ColumnInt64(0)
			return nil
		}))
		return n
	}
	var w *office.Office
	quiet, do := 0, make(map[int]func())
	for i := 302; i < 320; i++ { // after a minute
		do[i] = func() {
			was := version()
			if p := known(w, "alice"); !p.Here || !p.Last.Equal(noon.Add(time.Minute)) ||
				p.Face == 0 {
				t.Errorf("frame %d: %+v", i, p)
			}
			if version() == was {
				quiet++
			}
		}
	}
	k := new(recorded)
	w = office.New(passing(t, g), k.options())
	was := version()
	nothing(t, w.Run(t.Context(), []office.Camera{acted("door", n(320, "a"), do)}))
	if quiet == 0 { // the office itself writes every two seconds
		t.Error("the database has never stayed the same")
	}
	if version() == was {
		t.Error("what was seen is not written")
	}
}

// A sink gets all events since it was first there, in order, also over restarts; if it gets nothing
// for long, the oldest are dropped and counted. Pages see the newest.
func TestQueue(t *testing.T) {
	dir := t.TempDir()
	limits := office.PastSettings{Events: 6, Waiting: 4}
	h := enterWith(t, dir, office.Options{}, limits)
	q := h.past.Queue("hook")
	h.plays([]string{n(9, "a") + n(60, "-") + n(9, "b") + n(60, "-")}, nil)
	var got []string
	next := func() {
		e, ok, err := q.Next()
		nothing(t, err)
		if !ok {
			got = append(got, "none")
			return
		}
		got = append(got, fmt.Sprintf("%d %s %s", e.ID, e.Kind, e.Name))
		q.Done(e.ID)
	}
	next()
	h.leave()
	h = enterWith(t, dir, office.Options{}, limits)
	q = h.past.Queue("hook")
	for range 4 {
		next()
	}
	want := []string{"1 arrived alice", "2 left alice", "3 arrived bob", "4 left bob", "none"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	w := h.plays([]string{strings.Repeat(n(9, "a")+n(60, "-"), 4)}, nil)
	if waiting, lost, err := q.Waiting(); waiting != 4 || lost != 4 || err != nil {
		t.Errorf("%d wait, and %d are lost, %v", waiting, lost, err)
	}
	if all := w.Events(0, 99, nil); len(all) != 6 || all[0].ID != 12 || all[5].ID != 7 {
		t.Errorf("%+v", all)
	}
}

// known returns what an office knows of a person.
func known(w *office.Office, name string) (x office.KnownPerson) {
	for _, p := range w.Now().Known {
		if p.Name == name {
			x = p
		}
	}
	return x
}

// Whoever asks when somebody was there gets the same answer: a stranger who was there three times
// and is named then was there three times, under the name, until an undo.
func TestVisits(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{Freeze: true})
	w := h.plays([]string{strings.Repeat(n(40, "s")+n(80, "-"), 3) + n(9, "a") + n(80, "-")}, nil)
	group := w.Strangers()[0]
	if group.Visits != 3 {
		t.Errorf("a stranger who was there three times has %d visits", group.Visits)
	}
	before := w.Visits(office.Wanted{})
	nothing(t, refusal(w.Name(group.ID, "sue", false)))
	sue := w.Number("sue")
	all := w.Visits(office.Wanted{Person: sue})
	if len(all) != 3 || all[0].Name != "sue" || !all[0].Last.Equal(known(w, "sue").Last) ||
		all[0].First.Before(all[1].Last) || all[0].Face == 0 {
		t.Errorf("%+v, %+v", all, known(w, "sue"))
	}
	if one := w.Visits(office.Wanted{Person: sue, N: 1}); len(one) != 1 ||
		!one[0].First.Equal(all[0].First) {
		t.Errorf("%+v", one)
	}
	if some := w.Visits(office.Wanted{From: all[1].Last, To: all[0].First}); len(some) != 1 ||
		some[0].Name != "sue" {
		t.Errorf("%+v", some)
	}
	nothing(t, w.Undo(w.Corrections(0, 1)[0].ID))
	if after := w.Visits(office.Wanted{}); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%+v, want %+v", after, before)
	}
	if x := known(w, "sue"); x.ID != 0 {
		t.Errorf("%+v", x)
	}
}

// beside lets another program change the gallery of an office.
func (h *home) beside(change func(g *gallery.Gallery) error) {
	h.t.Helper()
	g, err := gallery.Open(h.dir+"/gallery", space)
	nothing(h.t, err)
	defer g.Close()
	nothing(h.t, change(g))
	nothing(h.t, g.Save())
}

// Changes that other programs make to people apply to the sightings, presence and events of an
// office, too.
func TestElsewhere(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{})
	beside := func(change func(g *gallery.Gallery) error) func(*office.Office) {
		return func(w *office.Office) {
			h.beside(change)
			nothing(t, w.Save())
		}
	}
	w := h.plays([]string{n(30, "ab") + n(40, "ab") + n(40, "ab") + n(40, "abs")},
		map[int]func(*office.Office){
			30: beside(func(g *gallery.Gallery) error { return g.Rename("alice", "ann") }),
			70: beside(func(g *gallery.Gallery) error { return g.Forget("bob") }),
			110: beside(func(g *gallery.Gallery) error {
				_, err := g.Enroll("sue", [][]float32{looks['s']}, noon, gallery.Enrolment{})
				return err
			}),
		})
	var names []string
	for _, s := range w.Sightings(0, 64) {
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
				return g.Rows().Write(false, func(t *gallery.Tx) error {
					there := gallery.There{Place: "hall", At: noon.Add(time.Hour).Unix(),
						Since: make(map[[16]byte]int64)}
					for i, name := range []string{"alice", "bob"} {
						id := [16]byte{byte(i)}
						there.Since[id] = noon.Unix()
						t.Exec("insert into shared values(?, ?, '', 0, 0, 1, 0, x'')", id[:],
							g.Number(name))
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

// together runs an office over people who take the same place, so that a track is theirs one after
// the other. Do are called within a frame, after the office has heeded other programs.
func (h *home) together(script string, do map[int]func(w *office.Office),
	within map[int]func()) *office.Office {
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
	w = office.New(h.past, o)
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

// What users say stays what they say, whatever a camera finds afterwards and whenever another
// program speaks; and what a camera finds stays when what was said is undone or removed.
func TestStatementsCount(t *testing.T) {
	deny := func(w *office.Office) { nothing(t, refusal(w.Correct(w.Sightings(0, 64)[0].ID, ""))) }
	undo := func(w *office.Office) { nothing(t, w.Undo(w.Corrections(0, 1)[0].ID)) }
	forget := func(w *office.Office) { nothing(t, refusal(w.ForgetGroup(w.Strangers()[0].ID))) }
	for what, c := range map[string]struct {
		script string
		do     map[int]func(w *office.Office)
		within func(w *office.Office) error // another office, within frame 60
	}{
		"denied, and somebody else": {n(30, "a") + n(60, "k"), map[int]func(*office.Office){
			30: deny}, nil},
		"denied and undone, and somebody else": {n(30, "a") + n(60, "k"),
			map[int]func(*office.Office){30: deny, 35: undo}, nil},
		"denied, and the stranger forgotten": {n(99, "a"), map[int]func(*office.Office){
			30: deny, 40: forget}, nil},
		"another office says who she is": {n(30, "a") + n(70, "-") + n(9, "b") + n(60, "-"),
			map[int]func(*office.Office){20: deny, 22: undo}, func(w *office.Office) error {
				return refusal(w.Rename("alice", "bob"))
			}},
	} {
		t.Run(what, func(t *testing.T) {
			h := enter(t, t.TempDir(), office.Options{Freeze: true})
			_, err := h.g.Enroll("carl", [][]float32{looks['k']}, noon,
				gallery.Enrolment{Force: true})
			nothing(t, err)
			within := make(map[int]func())
			if c.within != nil {
				g, err := gallery.Open(h.dir+"/gallery", space)
				nothing(t, err)
				defer g.Close()
				within[60] = func() {
					nothing(t,
						c.within(office.New(passing(t, g), office.Options{})))
				}
			}
			h.together(c.script, c.do, within)
			nothing(t, office.Folded(h.g))
		})
	}
}

// A queue that cannot be read is not empty: it says so. A number beyond all rows is before none.
func TestQueueUnread(t *testing.T) {
	h := enterWith(t, t.TempDir(), office.Options{}, office.PastSettings{})
	q := h.past.Queue("hook")
	w := h.plays([]string{n(9, "a") + n(60, "-")}, nil)
	for _, last := range []uint64{1<<63 - 1, 1 << 63, 1<<64 - 1} {
		if len(w.Sightings(last, 9)) != 1 || len(w.Events(last, 9, nil)) != 2 {
			t.Errorf("before %d there are %d sightings", last, len(w.Sightings(last, 9)))
		}
	}
	nothing(t, h.g.Close())
	if _, ok, err := q.Next(); ok || err == nil {
		t.Errorf("an event %v, error %v", ok, err)
	}
	if _, _, err := q.Waiting(); err == nil {
		t.Error("it counts what it cannot read")
	}
}
