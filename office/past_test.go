// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office"
)

// One program runs an office of a name. Another office of the database is no trouble, and of a temporary one nothing is
// left, also after a crash.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gallery")
	g := peopleAt(t, path)
	home, err := office.OpenPast(g, "home", office.PastSettings{})
	nothing(t, err)
	other, err := gallery.Open(path, space)
	nothing(t, err)
	defer other.Close()
	if _, err := office.OpenPast(other, "home", office.PastSettings{}); !errors.Is(err, office.ErrBusy) {
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
	if home, err = office.OpenPast(other, "home", office.PastSettings{}); err != nil || home.ID() != id {
		t.Errorf("%v, identifier %s and %s", err, id, home.ID())
	}
	nothing(t, home.Close())

	offices := func() (n int64) {
		nothing(t, g.Look(func(tx *gallery.Tx) (err error) {
			n, err = tx.Int("select count(*) from office")
			return err
		}))
		return n
	}
	for _, crash := range []bool{false, true} {
		p, err := office.TemporaryPast(g, office.PastSettings{})
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

// A sink gets all events since it was first there, in order, also over restarts; if it gets nothing for long, the oldest
// are dropped and counted. Pages see the newest.
func TestQueue(t *testing.T) {
	dir := t.TempDir()
	limits := office.PastSettings{Events: 6, Waiting: 4}
	h := enterWith(t, dir, office.Options{}, limits)
	q := h.past.Queue("hook")
	h.plays([]string{n(9, "a") + n(60, "-") + n(9, "b") + n(60, "-")}, nil)
	var got []string
	next := func() {
		e, ok := q.Next()
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
	if waiting, lost := q.Waiting(); waiting != 4 || lost != 4 {
		t.Errorf("%d wait, and %d are lost", waiting, lost)
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

// Whoever asks when somebody was there gets the same answer: a stranger who was there three times and is named then was
// there three times, under the name, until an undo.
func TestVisits(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{Freeze: true})
	w := h.plays([]string{strings.Repeat(n(40, "s")+n(80, "-"), 3) + n(9, "a") + n(80, "-")}, nil)
	group := w.Strangers()[0]
	if group.Visits != 3 {
		t.Errorf("a stranger who was there three times has %d visits", group.Visits)
	}
	before := w.Visits(office.Wanted{})
	nothing(t, w.Name(group.ID, "sue", false))
	sue := w.Number("sue")
	all := w.Visits(office.Wanted{Person: sue})
	if len(all) != 3 || all[0].Name != "sue" || !all[0].Last.Equal(known(w, "sue").Last) ||
		all[0].First.Before(all[1].Last) || all[0].Face == 0 {
		t.Errorf("%+v, %+v", all, known(w, "sue"))
	}
	if one := w.Visits(office.Wanted{Person: sue, N: 1}); len(one) != 1 || !one[0].First.Equal(all[0].First) {
		t.Errorf("%+v", one)
	}
	if some := w.Visits(office.Wanted{From: all[1].Last, To: all[0].First}); len(some) != 1 || some[0].Name != "sue" {
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
