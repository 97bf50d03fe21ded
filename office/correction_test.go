// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"bytes"
	"context"
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
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/office/journal"
	"github.com/faceauth/faceauth/office/logbook"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/office/unknown"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
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

// visit opens the files of an office, as a program does that begins.
func enter(t testing.TB, dir string, o office.Options) *home {
	t.Helper()
	h := &home{t: t, dir: dir, said: new(recorded)}
	base := h.said.options()
	o.Clock, o.Now, o.Event, o.Health = base.Clock, base.Now, base.Event, base.Health
	path := filepath.Join(dir, "gallery")
	var err error
	if h.g, err = gallery.Open(path, space); errors.Is(err, fs.ErrNotExist) {
		h.g = people(t)
		err = h.g.Save(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	strangers := filepath.Join(dir, "unknown")
	if o.Unknown, err = unknown.Read(strangers, space, unknown.Settings{}); errors.Is(err, fs.ErrNotExist) {
		o.Unknown, err = unknown.New(space, unknown.Settings{}), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	o.Save, o.SaveUnknown = func() error { return h.g.Save(path) }, func() error { return o.Unknown.Save(strangers) }
	if o.Book, err = logbook.Open(filepath.Join(dir, "logbook"), logbook.Settings{}); err != nil {
		t.Fatal(err)
	}
	if h.past, err = office.OpenPast(filepath.Join(dir, "past"), office.PastSettings{}); err != nil {
		t.Fatal(err)
	}
	o.Past = h.past
	h.o = o
	t.Cleanup(h.leave)
	return h
}

// leave closes the files, and saves nothing.
func (h *home) leave() {
	h.o.Book.Close()
	h.past.Close()
}

// plays runs an office over scripts, one for each camera, with somebody who says things before frames of the first.
func (h *home) plays(scripts []string, say map[int]func(w *office.Office)) *office.Office {
	h.t.Helper()
	h.said.events = nil
	w := office.New(h.g, h.o)
	do := make(map[int]func())
	for at, f := range say {
		do[at] = func() { f(w) }
	}
	cameras := []office.Camera{acted("door", scripts[0], do)}
	for i, s := range scripts[1:] {
		cameras = append(cameras, recording(fmt.Sprint("camera ", i+2), s))
	}
	if err := w.Run(h.t.Context(), cameras); err != nil {
		h.t.Fatal(err)
	}
	return w
}

func nothing(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// sue is a stranger who moves a little, and turns the head: pictures of her differ.
func init() {
	for i := range 12 {
		looks['C'+byte(i)] = []float32{.02 * float32(i%3), 4 + .04*float32(i)}
	}
}

const loop = "C D E F G H I J K L M N "

// Who was named by mistake, and then denied, is not given the name again: with what was learned and without, before one
// camera and two, whether the naming is undone or not, live or later, in this program or the next.
func TestDenialSticks(t *testing.T) {
	for _, freeze := range []bool{false, true} {
		for _, cameras := range []int{1, 2} {
			for _, undo := range []bool{false, true} {
				for _, later := range []bool{false, true} {
					for _, same := range []bool{false, true} { // the sighting that was named is denied, and not a later one
						name := fmt.Sprintf("frozen %t, %d cameras, undo %t, later %t, same %t", freeze, cameras, undo, later, same)
						t.Run(name, func(t *testing.T) { denialSticks(t, freeze, cameras, undo, later, same) })
					}
				}
			}
		}
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
		for _, s := range w.Sightings() {
			if s.Name != "sue" || denied && cameras == 1 {
				continue
			}
			denied = true
			if n, ok := w.Naming(s.ID); !ok || n.Kind != office.Named || n.Name != "sue" || n.Group != group {
				t.Errorf("before: %+v, %t", n, ok)
			}
			nothing(t, w.Correct(s.ID, ""))
			n, ok := w.Naming(s.ID)
			if !ok || n.Kind != office.Named || n.Name != "sue" || n.Group != group || !n.CanUndo {
				t.Errorf("after: %+v, %t", n, ok)
			}
			if undo {
				nothing(t, w.Undo(n.ID))
			}
			break
		}
		if !denied {
			t.Errorf("nobody is sue: %+v", w.Sightings())
		}
	}
	say := map[int]func(w *office.Office){40: func(w *office.Office) {
		group = w.Strangers()[0].ID
		nothing(t, w.Name(group, "sue", false))
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
		for _, s := range w.Sightings()[:cameras] {
			if s.Name != "" {
				t.Errorf("%s: %+v", round, s)
			}
		}
		if all := w.Strangers(); len(all) == 0 || undo && !slices.ContainsFunc(all, func(g unknown.Group) bool { return g.ID == group }) || undo && len(all) != 1 {
			t.Errorf("%s: %d strangers", round, len(all))
		}
		h.leave()
		h = enter(t, h.dir, h.o)
	}
	w = office.New(h.g, h.o)
	if all := w.Strangers(); len(all) > 0 { // and the name is free
		nothing(t, w.Name(all[0].ID, "sue", false))
	}
}

var _ = []any{bytes.Equal, context.Background, binary.Append, math.Inf, os.Getpid, time.Now, face.Frame{}, journal.Settings{}, presence.Event{}, online.Off, sighting.Nobody}
