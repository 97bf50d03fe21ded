// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/online"
)

// home is an office with all its files in a folder.
type home struct {
	t    testing.TB
	dir  string
	g    *gallery.Gallery
	o    office.Options
	said *recorded
	past *office.Past
}

// visit opens the files of an office, as a starting program does.
func enter(t testing.TB, dir string, o office.Options) *home {
	t.Helper()
	return enterWith(t, dir, o, office.PastSettings{})
}

func enterWith(t testing.TB, dir string, o office.Options, s office.PastSettings) *home {
	t.Helper()
	h := &home{t: t, dir: dir, said: new(recorded)}
	base := h.said.options()
	o.Clock, o.Now, o.Event, o.Health = base.Clock, base.Now, base.Event, base.Health
	path := filepath.Join(dir, "gallery")
	var err error
	if h.g, err = gallery.Open(path, space); errors.Is(err, fs.ErrNotExist) {
		h.g, err = peopleAt(t, path), nil
	}
	fixture.Check(t, err)
	h.past = fixture.Must(office.OpenPast(h.g, "home", s))(t)
	h.o = o
	t.Cleanup(h.leave)
	return h
}

// leave closes the files without saving anything.
func (h *home) leave() {
	h.past.Close()
	h.g.Close()
}

// plays runs an office over scripts, one for each camera. A user makes corrections before given
// frames of the first script.
func (h *home) plays(scripts []string, say map[int]func(w *office.Office)) *office.Office {
	h.t.Helper()
	h.said.events = nil
	w := office.New(h.past, h.o)
	do := make(map[int]func())
	for at, f := range say {
		do[at] = func() { f(w) }
	}
	cameras := []office.Camera{acted("door", scripts[0], do)}
	for i, s := range scripts[1:] {
		cameras = append(cameras, recording(fmt.Sprint("camera ", i+2), s))
	}
	nothing(h.t, w.Run(h.t.Context(), cameras))
	return w
}

func nothing(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// sue is a stranger who moves a little and turns the head, so that pictures of her differ.
func init() {
	for i := range 12 {
		looks['C'+byte(i)] = []float32{.02 * float32(i%3), 4 + .04*float32(i)}
	}
}

const loop = "C D E F G H I J K L M N "

// A person who was named by mistake, and then denied, does not get the name again. The cases are:
// with and without learned faces, one camera and two, the naming undone or not, live or later, in
// this program or the next.
func TestPlainDenialSticks(t *testing.T) {
	for i := range 32 {
		is := func(bit int) bool { return i>>bit&1 == 1 }
		// same: the denied sighting is the named one
		freeze, cameras, undo, later, same := is(0), 1+i>>1&1, is(2), is(3), is(4)
		t.Run(fmt.Sprintf("frozen %t, %d cameras, undo %t, later %t, same %t", freeze, cameras,
			undo, later, same), func(t *testing.T) {
			denialSticks(t, freeze, cameras, undo, later, same)
		})
	}
}

func denialSticks(t *testing.T, freeze bool, cameras int, undo, later, same bool) {
	h := enter(t, t.TempDir(), office.Options{Freeze: freeze})
	scripts := func(s string) []string { return slices.Repeat([]string{s}, cameras) }
	var group uint64
	deny := func(w *office.Office) {
		if w.Now().Known[len(w.Now().Known)-1].Name != "sue" {
			t.Errorf("known %+v", w.Now().Known)
		}
		denied := false
		for _, s := range w.Sightings(0, 64) {
			if s.Name != "sue" || denied && cameras == 1 {
				continue
			}
			denied = true
			nothing(t, refusal(w.Correct(s.ID, "")))
			for _, c := range w.Corrections(0, 9) {
				if undo && c.Kind == office.Named && c.CanUndo {
					nothing(t, w.Undo(c.ID))
				}
			}
			break
		}
		if !denied {
			t.Errorf("nobody is sue: %+v", w.Sightings(0, 64))
		}
	}
	say := map[int]func(w *office.Office){40: func(w *office.Office) {
		group = w.Strangers()[0].ID
		nothing(t, refusal(w.Name(group, "sue", false)))
	}}
	if same && !later {
		say[46] = deny
	}
	w := h.plays(scripts(strings.Repeat(loop, 5)), say)
	again := map[int]func(w *office.Office){}
	switch {
	case same && later:
		deny(w)
	case !same:
		again[12] = deny
		if later {
			h.plays(scripts(loop), nil)
			again[0], again[12] = deny, func(*office.Office) {}
		}
	}
	if len(again) > 0 {
		h.plays(scripts(strings.Repeat(loop, 2)), again)
	}
	for _, round := range []string{"in the same program", "in the next program"} {
		h.said.events = nil
		w := h.plays(scripts(strings.Repeat(loop, 4)), nil)
		for _, e := range h.said.events {
			if strings.Contains(e, "sue") {
				t.Errorf("%s: %q", round, h.said.events)
			}
		}
		for _, s := range w.Sightings(0, 64)[:cameras] {
			if s.Name != "" {
				t.Errorf("%s: %+v", round, s)
			}
		}
		// Another camera may have seen the stranger between the denial and its undo, and may have
		// made a group of its own.
		most := 1
		if cameras > 1 && !later {
			most = cameras
		}
		if all := w.Strangers(); len(all) == 0 ||
			undo && !slices.ContainsFunc(all, func(g office.Stranger) bool {
				return g.ID == group
			}) ||
			undo && len(all) > most {
			t.Errorf("%s: %d strangers", round, len(all))
		}
		h.leave()
		h = enter(t, h.dir, h.o)
	}
	w = office.New(h.past, h.o)
	if all := w.Strangers(); len(all) > 0 { // and the name is free again
		nothing(t, refusal(w.Name(all[0].ID, "sue", false)))
	}
}

// copied copies a folder, in the state that a kill of the program leaves.
func copied(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	nothing(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// told reports whether an event is of what cameras have seen: it corrects no other.
func told(e presence.Event) bool { return e.Of == 0 && e.Kind != presence.Was }

// summary describes the parts of an office that a user sees.
func summary(w *office.Office) string {
	var b strings.Builder
	known := w.Now().Known
	slices.SortFunc(known, func(a, b office.KnownPerson) int {
		return strings.Compare(a.Name, b.Name)
	})
	for _, p := range known {
		fmt.Fprintf(&b, "%s %d, ", p.Name, p.Faces)
	}
	b.WriteString("groups")
	strangers := w.Strangers()
	slices.SortFunc(strangers, func(a, b office.Stranger) int { return int(a.ID) - int(b.ID) })
	for _, g := range strangers {
		fmt.Fprintf(&b, " %d(%d faces, ignored %t)", g.ID, len(g.Faces), g.Ignored)
	}
	b.WriteString(", seen")
	for _, s := range w.Sightings(0, 99) {
		fmt.Fprintf(&b, " %d %q %d", s.ID, s.Name, s.Group)
	}
	b.WriteString(", events")
	for _, e := range w.Events(0, 99, told) {
		fmt.Fprintf(&b, " %d %s %q %d", e.ID, e.Kind, e.Name, e.Group)
	}
	return b.String()
}

// The journal has what was said, with names.
func TestJournal(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{Freeze: true})
	h.plays([]string{strings.Repeat(loop, 4) + n(60, "-") + n(60, "s") + n(60, "-") + n(9, "x") +
		n(60, "-")}, nil)
	w := office.New(h.past, h.o)
	face := func() uint64 { return w.Strangers()[1].Faces[0].ID }
	for _, c := range []struct {
		do   func() (office.Correction, error)
		want office.Correction
	}{
		{func() (office.Correction, error) { return w.Name(1, "sue", false) },
			office.Correction{Kind: office.Named, Name: "sue", Group: 1}},
		{func() (office.Correction, error) { return w.Name(1, "bob", true) },
			office.Correction{Kind: office.Named, Name: "bob", Group: 1}},
		{func() (office.Correction, error) { return w.Rename("alice", "anna") },
			office.Correction{Kind: office.Renamed, Name: "anna", Was: "alice"}},
		{func() (office.Correction, error) { return w.Rename("alice", "bob") },
			office.Correction{Kind: office.Renamed, Name: "bob", Was: "alice"}},
		{func() (office.Correction, error) { return w.Merge(2, 1) },
			office.Correction{Kind: office.Merged, Group: 2}},
		{func() (office.Correction, error) { return w.Correct(3, "") },
			office.Correction{Kind: office.Denied, Was: "alice", Sighting: 3}},
		{func() (office.Correction, error) { return w.Correct(3, "xenia") },
			office.Correction{Kind: office.Denied, Name: "xenia", Was: "alice", Sighting: 3}},
		{func() (office.Correction, error) { return w.Correct(1, "sue") },
			office.Correction{Kind: office.Named, Name: "sue", Group: 1, Sighting: 1}},
		{func() (office.Correction, error) { return w.Confirm(3) },
			office.Correction{Kind: office.Confirmed, Name: "alice", Sighting: 3}},
		{func() (office.Correction, error) { return w.Ignore(1, true) },
			office.Correction{Kind: office.Ignored, Group: 1}},
		{func() (office.Correction, error) { return w.Split(1, []uint64{face()}) },
			office.Correction{Kind: office.Split, Group: 1}},
	} {
		got := fixture.Must(c.do())(t)
		all := w.Corrections(0, 1)
		if got != all[0] || !got.CanUndo || !got.At.Equal(noon.Add(time.Second)) {
			t.Errorf("%+v, and the journal has %+v", got, all[0])
		}
		got.ID, got.At, got.CanUndo, got.Person, got.Other = 0, time.Time{}, false, 0, 0
		if got != c.want {
			t.Errorf("the journal has %+v, want %+v", got, c.want)
		}
		nothing(t, w.Undo(all[0].ID))
		if got = w.Corrections(0, 1)[0]; !got.Undone || got.CanUndo {
			t.Errorf("undone: %+v", got)
		}
	}
	c, err := w.Ignore(1, false)
	if c != (office.Correction{}) || err != nil {
		t.Errorf("nothing was said, and the answer is %+v, %v", c, err)
	}
	if err := w.Undo(99); !errors.Is(err, office.ErrNoCorrection) {
		t.Error(err)
	}
}

// A program may be killed at any write of a correction. Afterwards the whole correction counts, or
// none of it. With -short it is killed at some thirty writes of each.
func TestPlainKilledWhileSaying(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{Freeze: true})
	h.plays([]string{strings.Repeat(loop, 4) + n(60, "-") + n(60, "s") + n(60, "-") +
		n(9, "x") + n(60, "-")}, nil)
	h.leave()
	begun := h.dir
	for name, say := range map[string]func(w *office.Office) error{
		"name":   func(w *office.Office) error { return refusal(w.Name(1, "sue", false)) },
		"rename": func(w *office.Office) error { return refusal(w.Rename("alice", "anna")) },
		"join":   func(w *office.Office) error { return refusal(w.Rename("alice", "bob")) },
		"merge":  func(w *office.Office) error { return refusal(w.Merge(2, 1)) },
		"deny":   func(w *office.Office) error { return refusal(w.Correct(3, "")) },
		"ignore": func(w *office.Office) error { return refusal(w.Ignore(1, true)) },
		"split": func(w *office.Office) error {
			return refusal(w.Split(1, []uint64{w.Strangers()[1].Faces[0].ID}))
		},
		"forget":       func(w *office.Office) error { return refusal(w.Forget("alice")) },
		"forget group": func(w *office.Office) error { return refusal(w.ForgetGroup(2)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// look describes the state that a program finds when it starts in a folder.
			look := func(dir string) string {
				t.Helper()
				h := enter(t, dir, office.Options{Freeze: true})
				defer h.leave()
				return summary(office.New(h.past, h.o))
			}
			dir := copied(t, begun)
			h := enter(t, dir, office.Options{Freeze: true})
			w := office.New(h.past, h.o)
			before := summary(w)
			log := filepath.Join(dir, "gallery-wal")
			size := func() int64 {
				info, err := os.Stat(log)
				nothing(t, err)
				return info.Size()
			}
			from := size()
			var after, moments string
			// A reader keeps the log, which is emptied when something was removed.
			reader, err := store.Open(filepath.Join(dir, "gallery"), store.Schema{}, false)
			nothing(t, err)
			nothing(t, reader.Read(func() error {
				nothing(t, reader.Exec("select 1 from person"))
				nothing(t, say(w))
				after, moments = summary(w), copied(t, dir)
				return nil
			}))
			to := size()
			nothing(t, reader.Close())
			h.leave()
			if got := look(dir); got != after {
				t.Errorf("at the end\n%s, want\n%s", got, after)
			}
			// A killed program leaves the beginning of what it writes into the log.
			const frame = 24 + 8192
			step := int64(frame)
			if testing.Short() {
				step *= 1 + (to-from)/frame/30
			}
			seen := make(map[string]bool)
			for n := from; n < to+step; n += step {
				m := copied(t, moments)
				nothing(t, os.Truncate(filepath.Join(m, "gallery-wal"), min(n, to)))
				got := look(m)
				if seen[got] = true; got != before && got != after {
					t.Errorf("%d of %d bytes:\n%s, want\n%s or\n%s", n-from, to-from, got, before,
						after)
				}
			}
			if len(seen) != 2 {
				t.Errorf("%d states, so it tests nothing", len(seen))
			}
		})
	}
}

// A person who got an old name in the meantime keeps it. Any order of undos has the slow model
// (TestPlainRandomCorrections).
func TestOldName(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{Freeze: true})
	h.plays([]string{strings.Repeat(loop, 4) + n(60, "-")}, nil)
	w := office.New(h.past, h.o)
	begun := summary(w)
	nothing(t, refusal(w.Rename("alice", "anna")))
	renaming := w.Corrections(0, 1)[0].ID
	nothing(t, refusal(w.Name(1, "alice", true)))
	nothing(t, w.Undo(renaming))
	var both []string
	for _, p := range w.Now().Known {
		if strings.HasPrefix(p.Name, "alice") {
			both = append(both, p.Name)
		}
	}
	if len(both) != 2 || both[0] != "alice" || !strings.HasPrefix(both[1], "alice (") {
		t.Errorf("two people with one name are %q", both)
	}
	nothing(t, w.Undo(w.Corrections(0, 1)[0].ID))
	if got := summary(w); got != begun {
		t.Errorf("%s, want\n%s", got, begun)
	}
	for _, c := range []struct {
		from, to string
		want     error
	}{{"nobody", "x", online.ErrUnknown}, {"nobody", "bob", online.ErrUnknown},
		{"bob", "bob", office.ErrSame},
		{"bob", " x", face.ErrName}} {
		if err := refusal(w.Rename(c.from, c.to)); !errors.Is(err, c.want) {
			t.Errorf("%q to %q: %v", c.from, c.to, err)
		}
	}
}

// A person in view who gets another name is there under the new name at once, without leaving or
// arriving.
func TestRenameInView(t *testing.T) {
	g := people(t)
	got := play(t, g, office.Options{}, n(30, "a"), map[int]func(*office.Office){
		10: func(w *office.Office) {
			nothing(t, refusal(w.Rename("alice", "anna")))
			if p := w.Now().People; len(p) != 1 || p[0].Name != "anna" {
				t.Errorf("%+v", p)
			}
			if e := w.Events(0, 9, nil); len(e) != 1 || e[0].Name != "anna" {
				t.Errorf("%+v", e)
			}
		}, 20: func(w *office.Office) {
			nothing(t, refusal(w.Rename("anna", "bob")))
			if p := w.Now().People; len(p) != 1 || p[0].Name != "bob" {
				t.Errorf("%+v", p)
			}
		}})
	wantEvents(t, "renamed", got, "arrived alice door 0", "was bob door 0", "left bob door 5.8")
}

// After a person is forgotten, no file has the person's name or a face of the person.
func TestForgetEverywhere(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{})
	h.plays(
		[]string{n(9, "-") + n(9, "a") + n(60, "-") + n(60, "s") + n(60, "-") + strings.Repeat(loop,
			4) + n(60, "-")},
		nil)
	w := office.New(h.past, h.o)
	// Her name and her faces get into every file, in every way that exists.
	groups := w.Strangers()
	nothing(t, refusal(w.Name(groups[0].ID, "Zdenka", false)))
	h.plays([]string{strings.Repeat(loop, 2) + n(60, "-")}, nil)
	w = office.New(h.past, h.o)
	for _, s := range w.Sightings(0, 64) {
		if s.Name == "Zdenka" {
			nothing(t, refusal(w.Confirm(s.ID)))
		}
	}
	nothing(t, refusal(w.Rename("Zdenka", "Zdeňka")))
	nothing(t, refusal(w.Rename("Zdeňka", "Zdenka")))
	nothing(t, refusal(w.Rename("Zdenka", "Zdislava")))
	nothing(t, refusal(w.Correct(1, "Zdislava")))
	nothing(t, w.Undo(w.Corrections(0, 1)[0].ID))
	h.past.Queue("hook")
	h.plays([]string{strings.Repeat(loop, 2)}, nil)
	w = office.New(h.past, h.o)
	traces := func() (found []string) {
		h.t.Helper()
		what := map[string][]byte{
			"Zdislava":        []byte("Zdislava"),
			"Zdenka":          []byte("Zdenka"),
			"Zdeňka":          []byte("Zde\u0148ka"),
			"Zdeňka in UTF-8": []byte("Zdeňka"),
		}
		for _, c := range "DEGHJKMN" { // C, F, I and L have a coordinate that other faces have, too
			for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
				what[fmt.Sprintf("a face, %v", order)+string(c)] = order.AppendUint32(nil,
					math.Float32bits(looks[byte(c)][1]))
			}
		}
		files := 0
		err := filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			files++
			data, err := os.ReadFile(path)
			for name, b := range what {
				if bytes.Contains(data, b) {
					found = append(found, filepath.Base(path)+" has "+name)
				}
			}
			return err
		})
		if err != nil || files < 2 {
			t.Fatalf("%d files, %v", files, err)
		}
		return found
	}
	if found := traces(); len(found) < 10 {
		t.Fatalf("before, there is only %q; this tests nothing", found)
	}
	nothing(t, refusal(w.Forget("Zdislava")))
	if found := traces(); len(found) > 0 {
		t.Errorf("%q", found)
	}
	for _, c := range w.Corrections(0, 99) {
		if c.Kind == office.Forgot && (c.Name != "" || c.CanUndo) ||
			strings.HasPrefix(c.Name+c.Was, "Zd") {
			t.Errorf("%+v", c)
		}
		if c.Kind == office.Forgot {
			if err := w.Undo(c.ID); !errors.Is(err, office.ErrFinal) {
				t.Error(err)
			}
		}
	}
	if got := summary(w); strings.Contains(got, "Zd") || !strings.Contains(got, "alice") {
		t.Error(got)
	}
	h.leave()
	h = enter(t, h.dir, office.Options{})
	if got := summary(office.New(h.past, h.o)); strings.Contains(got, "Zd") {
		t.Error(got)
	}
	if found := traces(); len(found) > 0 {
		t.Errorf("after a restart %q", found)
	}
}

// Sightings of past days are there after restarts, with their faces, and can be corrected like new
// sightings.
func TestPastOverRestarts(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{})
	pictures := func(frames []face.Frame) []face.Frame {
		for i := range frames {
			for j := range frames[i].Samples {
				frames[i].Samples[j].JPEG = fmt.Appendf(nil, "picture %d of %v", i,
					frames[i].Samples[j].Vector)
			}
		}
		return frames
	}
	for range 3 {
		w := office.New(h.past, h.o)
		script := n(9, "a") + n(20, "-") + n(9, "x") + n(20, "-") + n(60, "s") + n(20, "-") + n(4,
			"s")
		nothing(t, w.Run(t.Context(), []office.Camera{film(pictures(frames(script)), nil)}))
		h.leave()
		h = enter(t, h.dir, office.Options{})
	}
	w := office.New(h.past, h.o)
	all := w.Sightings(0, 99)
	if len(all) != 12 || len(w.Sightings(0, 64)) != 12 {
		t.Fatalf("%+v", all)
	}
	for i, s := range all {
		if i > 0 && s.ID >= all[i-1].ID || s.Live || s.Face == 0 ||
			!bytes.HasPrefix(w.Face(s.Face), []byte("picture")) {
			t.Errorf("%+v, picture %s", s, w.Face(s.Face))
		}
	}
	if page := w.Sightings(all[3].ID, 2); len(page) != 2 || page[0] != all[4] || page[1] != all[5] {
		t.Errorf("%+v", page)
	}
	if page := w.Sightings(all[11].ID, 2); len(page) != 0 || page == nil {
		t.Errorf("%+v", page)
	}
	var alice, lookalike, stranger office.Sighting // of the first day
	for _, s := range all {
		switch {
		case s.Name == "" && s.Group != 0:
			stranger = s
		case s.Name == "alice":
			alice, lookalike = s, alice
		}
	}
	if alice.Name != "alice" || lookalike.Name != "alice" || stranger.ID == 0 {
		t.Fatalf("%+v", all)
	}
	nothing(t, refusal(w.Confirm(alice.ID)))
	nothing(t, refusal(w.Correct(lookalike.ID, "")))
	nothing(t, refusal(w.Correct(stranger.ID, "sue")))
	if err := refusal(w.Correct(stranger.ID, "sue")); !errors.Is(err, office.ErrSame) {
		t.Error(err)
	}
	if v, err := h.g.Learner().Judge(looks['s']); err != nil || h.g.Name(v.Person) != "sue" {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := h.g.Learner().Judge(looks['x']); err != nil || v.Person != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	// The group of the stranger has the name, and so have all its sightings and events.
	for _, s := range w.Sightings(0, 64) {
		if s.Name == "" && s.ID != lookalike.ID && s.ID != all[0].ID && s.ID != all[4].ID &&
			s.ID != all[8].ID {
			t.Errorf("without a name: %+v", s)
		}
	}
	for _, e := range w.Events(0, 99, nil) {
		if e.Kind == presence.Unknown && e.Name != "sue" {
			t.Errorf("%+v", e)
		}
	}
	if c := w.Corrections(0, 99); len(c) != 3 || c[0].Name != "sue" {
		t.Errorf("%+v", c)
	}
	if page := w.Corrections(w.Corrections(0, 99)[0].ID, 1); len(page) != 1 ||
		page[0].Kind != office.Denied {
		t.Errorf("%+v", page)
	}
}

// Faces that a sighting taught can be taken back days later. Observations that a program learned
// but did not save are lost. Their numbers belong to other observations now, and the two are not
// confused.
func TestLearnedOverRestarts(t *testing.T) {
	for _, saved := range []bool{false, true} {
		h := enter(t, t.TempDir(), office.Options{})
		w := h.plays([]string{n(9, "b") + n(20, "-") + n(20, "x") + n(20, "-")}, nil)
		if saved {
			nothing(t, w.Save())
		}
		h.leave()
		h = enter(t, h.dir, office.Options{})
		before := h.g.Learner().Counts().Learned
		// The next program learns bob under the numbers that the first program gave to the sighting
		// of alice.
		w = h.plays([]string{n(60, "b") + n(20, "-")}, nil)
		learned := h.g.Learner().Counts().Learned
		if saved == (before == 0) || learned-before < 40 {
			t.Fatalf("%d and %d were learned", before, learned)
		}
		all := mass(h.g.Learner())
		for _, s := range w.Sightings(0, 64) {
			if s.Name == "alice" {
				nothing(t, refusal(w.Correct(s.ID, "")))
			}
		}
		gone := all - mass(h.g.Learner())
		if want := map[bool]bool{false: gone == 0, true: gone > 10 && gone <= 20}; !want[saved] {
			t.Errorf("saved %t: %g of %g faces went", saved, gone, all)
		}
	}
}

// The kept past has a limit, on disk and in memory.
func TestPastBounds(t *testing.T) {
	script := strings.Repeat(n(5, "a")+n(20, "-"), 12)
	h := enter(t, t.TempDir(), office.Options{})
	var err error
	for name, c := range map[string]struct {
		s    office.PastSettings
		want int
	}{
		"few":  {office.PastSettings{Records: 4}, 4},
		"old":  {office.PastSettings{Age: 11 * time.Second}, 3},
		"free": {office.PastSettings{}, 12},
	} {
		if h.past, err = office.OpenPast(h.g, name, c.s); err != nil {
			t.Fatal(err)
		}
		w := h.plays([]string{script}, nil)
		if got := len(w.Sightings(0, 99)); got != c.want {
			t.Errorf("%s: %d sightings, want %d", name, got, c.want)
		}
		h.past.Close()
		rows := 0
		nothing(t, h.g.Rows().Look(func(tx *gallery.Tx) error {
			n, err := tx.Int(
				"select count(*) from sighting s join office o on o.id = s.office where name = ?",
				name)
			rows = int(n)
			return err
		}))
		if rows != c.want {
			t.Errorf("%s: %d rows, want %d", name, rows, c.want)
		}
	}
	h.past, err = office.OpenPast(h.g, "", office.PastSettings{Records: 3})
	nothing(t, err)
	if w := h.plays([]string{script}, nil); len(w.Sightings(0, 99)) != 3 {
		t.Errorf("in memory: %+v", w.Sightings(0, 99))
	}
}

// A clock that was wrong for a while costs no sighting after it.
func TestPastClock(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{})
	script, right := n(9, "a")+n(60, "-"), h.o.Clock
	h.o.Clock = func(f face.Frame) time.Time { return right(f).AddDate(5, 0, 0) }
	h.plays([]string{script}, nil)
	h.o.Clock = right
	for visits := range 2 {
		w := h.plays([]string{script}, nil)
		if all := w.Sightings(0, 9); len(all) != 2+visits {
			t.Errorf("%d sightings after %d visits", len(all), visits+1)
		}
	}
}

// If strangers are not to be kept, none are kept, not in the past either. Sightings of ignored
// groups are not kept either.
func TestPastWithoutStrangers(t *testing.T) {
	script := n(60, "s") + n(20, "-") + n(9, "a") + n(20, "-")
	h := enter(t, t.TempDir(), office.Options{})
	w := h.plays([]string{script}, nil)
	if all := w.Sightings(0, 9); len(all) != 2 {
		t.Errorf("%+v", all)
	}
	nothing(t, w.KeepUnknown(false))
	if all := w.Sightings(0, 9); len(all) != 1 || all[0].Name != "alice" || w.Now().Keeps {
		t.Errorf("%+v", all)
	}
	h.said.events = nil
	w = h.plays([]string{script}, nil)
	if !strings.HasPrefix(h.said.events[0], "unknown") || len(w.Strangers()) > 0 {
		t.Errorf("%q", h.said.events)
	}
	if all := w.Sightings(0, 9); len(all) != 2 || all[0].Name != "alice" || all[1].Name != "alice" {
		t.Errorf("%+v", all)
	}
	nothing(t, w.KeepUnknown(true))
	w = h.plays([]string{script}, nil)
	group := w.Strangers()[0].ID
	nothing(t, refusal(w.Ignore(group, true)))
	w = h.plays([]string{script}, nil)
	if all := w.Sightings(0, 2); all[0].Name != "alice" || all[1].Name != "alice" {
		t.Errorf("%+v", all)
	}
	nothing(t, refusal(w.Ignore(group, false)))
	nothing(t, refusal(w.ForgetGroup(group)))
	for _, s := range w.Sightings(0, 9) {
		if s.Name != "alice" {
			t.Errorf("%+v", s)
		}
	}
	for _, c := range w.Corrections(0, 9) {
		if c.Group == group && c.Kind != office.ForgotGroup {
			t.Errorf("%+v", c)
		}
	}
}

func init() { looks['l'], looks['q'] = []float32{0, -3}, []float32{-5, 0} }

// A face that is too small or too poor to judge is not announced again and again, and makes no
// group.
func TestPoor(t *testing.T) {
	g := people(t)
	k := new(recorded)
	o := k.options()
	now := noon.Add(90 * time.Second)
	o.Now = func() time.Time { return now }
	w := office.New(passing(t, g), o)
	script := frames(strings.Repeat(n(40, "s")+n(60, "-"), 3) + n(5, "s") + n(60, "-") + n(40,
		"s") + n(9, "a"))
	for i := range script[:300] {
		for j := range script[i].Samples {
			script[i].Samples[j].Reason = face.TooSmall
		}
	}
	nothing(t, w.Run(t.Context(), []office.Camera{film(script, nil)}))
	wantEvents(t, "poor", k.events, "unknown  door 73", "arrived alice door 81",
		"left alice door 82.6")
	if got := len(w.Strangers()); got != 1 {
		t.Errorf("%d strangers", got)
	}
	if got := w.Now().Cameras[0].Far; got != 3 {
		t.Errorf("%d were too far away today", got)
	}
	if now = now.Add(24 * time.Hour); w.Now().Cameras[0].Far != 0 {
		t.Error("yesterday's are counted today")
	}
}

// Who runs past, or stands half behind a bar, is not told: of their pictures some pass the checks,
// and most do not.
func TestSpoilt(t *testing.T) {
	for every, want := range map[int]int{2: 1, 5: 0} { // one of so many is clear
		k := new(recorded)
		script := frames(n(90, "s"))
		for i := range script {
			if i%every > 0 {
				script[i].Samples[0].Reason = face.Blurred
			}
		}
		w, err := run(t.Context(), t, people(t), k.options(), film(script, nil))
		nothing(t, err)
		if len(k.events) != want || len(w.Strangers()) != want {
			t.Errorf("one of %d: %q, %d strangers", every, k.events, len(w.Strangers()))
		}
	}
}

// Learned faces are on disk within a minute, if they are to be kept.
func TestKeep(t *testing.T) {
	for _, keep := range []bool{false, true} {
		h := enter(t, t.TempDir(), office.Options{Keep: keep})
		w := h.plays([]string{n(20, "a")}, nil)
		office.Minute(w)
		again, err := gallery.Open(filepath.Join(h.dir, "gallery"), space)
		if err != nil ||
			(again.Learner().Counts().Learned == h.g.Learner().Counts().Learned) != keep {
			t.Errorf("keep %t: %+v, %v", keep, again.Learner().Counts(), err)
		}
	}
}

// mass returns the number of faces that were learned.
func mass(l *online.Learner) (sum float64) {
	for _, v := range l.Graph().State().Vertices {
		if v.Class < 0 {
			sum += v.Multiplicity
		}
	}
	return sum
}

// If a naming is taken back, the faces that were learned through it go, and no others.
func TestUndoUnlearns(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{})
	h.plays([]string{n(30, "a") + n(20, "-") + strings.Repeat(loop, 4)}, nil)
	before := mass(h.g.Learner())
	w := office.New(h.past, h.o)
	nothing(t, refusal(w.Name(w.Strangers()[0].ID, "sue", false)))
	h.plays([]string{strings.Repeat(loop, 3) + n(30, "a")}, nil)
	if now := mass(h.g.Learner()); now < before+60 {
		t.Fatalf("%g faces, and %g before", now, before)
	}
	w = office.New(h.past, h.o)
	nothing(t, w.Undo(w.Corrections(0, 1)[0].ID))
	if now := mass(h.g.Learner()); now < before+29 || now > before+30 { // those of alice
		t.Errorf("%g faces are left, and %g were before", now, before)
	}
	for _, c := range []byte("CDEFGHIJKLMN") {
		if v, err := h.g.Learner().Judge(looks[c]); err != nil || v.Person != 0 {
			t.Errorf("%c: %+v, %v", c, v, err)
		}
	}
}

// A person who is there only because of a naming is no longer there after a denial has taken the
// naming back. The same holds if a past sighting is denied.
func TestDenialOfPastInView(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{})
	h.plays([]string{strings.Repeat(loop, 4)}, map[int]func(*office.Office){
		40: func(w *office.Office) {
			nothing(t,
				refusal(w.Name(w.Strangers()[0].ID, "sue", false)))
		},
	})
	h.plays([]string{strings.Repeat(loop, 6)}, map[int]func(*office.Office){
		24: func(w *office.Office) {
			all := w.Sightings(0, 64)
			if len(all) != 2 || !all[0].Live || all[0].Name != "sue" || all[1].Live ||
				all[1].Name != "sue" {
				t.Fatalf("%+v", all)
			}
			nothing(t, refusal(w.Correct(all[1].ID, "")))
			if now := w.Sightings(0, 64); now[0].Name != "" || len(w.Now().People) != 0 {
				t.Errorf("%+v", now)
			}
		}})
	// It was nobody on the first day either: neither when she had no name yet, nor afterwards.
	wantEvents(t, "the second day", h.said.events, "arrived sue door 0", "mistake sue door 0",
		"mistake sue door 0", "mistake sue door 0", "unknown  door 0")
}

// A detection with a low score, such as a hand, makes no group and no event.
func TestPerhapsNoFace(t *testing.T) {
	g := people(t)
	k := new(recorded)
	w := office.New(passing(t, g), k.options())
	script := frames(n(60, "s") + n(60, "-") + n(60, "l"))
	for i := range script {
		for j := range script[i].Samples {
			if script[i].Samples[j].Score = .71; i > 90 {
				script[i].Samples[j].Score = .86
			}
		}
	}
	nothing(t, w.Run(t.Context(), []office.Camera{film(script, nil)}))
	wantEvents(t, "a hand", k.events, "unknown  door 24")
	if all := w.Strangers(); len(all) != 1 || all[0].Faces[0].Vector[1] != looks['l'][1] {
		t.Errorf("%d groups", len(all))
	}
}
