// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// Lessons of one device help another device. The other device learns them, and does not publish them again. They go
// when they are withdrawn, and when their person is forgotten.
func TestLessonsHelp(t *testing.T) {
	plane := face.Space{
		ID:             "plane",
		Dim:            2,
		Scale:          1,
		Sigma:          .2,
		Gamma:          1e-3,
		Reach:          .86,
		ImpostorRadius: .93,
		GenuineRadius:  1.3,
	}
	w := newLive(t)
	one, two := w.join(fleet.Scope{All: true}), w.join(fleet.Scope{All: true})
	open := func() *gallery.Gallery {
		g, err := gallery.New(plane, online.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g1, g2 := open(), open()
	if _, err := g1.Enroll("ann", [][]float32{{0, 0}}, time.Now(), gallery.Enrolment{}); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		if _, err := g1.Learner().Observe([]float32{.08 * float32(i), 0}); err != nil {
			t.Fatal(err)
		}
	}
	if len(g1.Learner().Lessons()) != 1 {
		t.Fatalf("it learned %+v", g1.Learner().Counts())
	}
	align := func(n *member, g *gallery.Gallery) fleet.Reconciled {
		t.Helper()
		r, err := n.d.Reconcile(g, fleet.Reconciling{Publish: true})
		if err != nil {
			t.Fatal(err)
		}
		r.TakeLessons(g)
		if err := r.Done(); err != nil {
			t.Fatal(err)
		}
		return r
	}
	far := []float32{2.4, 0}
	judged := func(g *gallery.Gallery) string {
		t.Helper()
		v, err := g.Learner().Judge(far)
		if err != nil {
			t.Fatal(err)
		}
		return v.Label
	}
	r := align(one, g1)
	for i, want := range []int{1, 0} { // a lesson is not published twice
		if n, err := one.d.TeachLessons(g1, r.People); n != want || err != nil {
			t.Fatalf("call %d gave lessons of %d, %v", i, n, err)
		}
	}
	var r2 fleet.Reconciled
	until(t, "two has the lesson", func() bool { r2 = align(two, g2); return len(g2.Learner().Sources()) == 1 })
	if align(two, g2).Changed {
		t.Error("the same lessons change a gallery again")
	}
	if judged(g1) != "ann" || judged(g2) != "ann" {
		t.Errorf("one takes her for %q, two for %q", judged(g1), judged(g2))
	}
	if n, err := two.d.TeachLessons(g2, r2.People); n != 0 || err != nil {
		t.Errorf("what two took in is taught as its own: %d, %v", n, err)
	}
	for _, l := range g2.Learner().Labels() {
		if g2.Learner().Vector(l.ID)[0] != 0 {
			t.Error("a lesson has become a label")
		}
	}

	if err := two.d.Withdraw(one.d.ID(), false); err != nil {
		t.Fatal(err)
	}
	align(two, g2)
	if len(g2.Learner().Sources()) != 0 || judged(g2) != "" {
		t.Errorf("withdrawn, and there are %+v; she is %q", g2.Learner().Sources(), judged(g2))
	}
	until(t, "one hears of it", func() bool {
		all := one.d.People()
		return len(all) == 1 && len(all[0].Lessons) == 0
	})
	if n, err := one.d.TeachLessons(g1, r.People); n != 1 || err != nil { // the face was not muted
		t.Errorf("%d, %v", n, err)
	}
	until(t, "two has it again", func() bool { align(two, g2); return judged(g2) == "ann" })

	ann, err := two.d.Find("ann")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.d.Forget(ann.ID); err != nil {
		t.Fatal(err)
	}
	align(two, g2)
	until(t, "one has forgotten her", func() bool { align(one, g1); return len(g1.People()) == 0 })
	if len(g2.Learner().Sources()) != 0 || len(g2.People()) != 0 || len(two.d.People()) != 0 {
		t.Errorf("%+v, %+v", g2.Learner().Sources(), two.d.People())
	}
	if _, err := one.d.Teach(ann.ID, nil); err == nil {
		t.Error("a lesson of somebody who is forgotten brings them back")
	}
}

// chain is a fleet in which the door learned ann up to 2.9, the gate one face at 3.2 with the door's help, and the hall
// one face at 3.7 with the help of both.
type chain struct {
	t                *testing.T
	door, gate, hall *member
	galleries        map[*member]*gallery.Gallery
}

func newChain(t *testing.T) *chain {
	plane := face.Space{
		ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .6, ImpostorRadius: .93, GenuineRadius: 1.3,
	}
	c := &chain{t: t, galleries: make(map[*member]*gallery.Gallery)}
	w := newLive(t)
	all := fleet.Scope{All: true}
	c.door, c.gate, c.hall = w.join(all), w.join(all), w.join(all)
	for _, n := range []*member{c.door, c.gate, c.hall} {
		g, err := gallery.New(plane, online.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		c.galleries[n] = g
	}
	if _, err := c.galleries[c.door].Enroll("ann", [][]float32{{0, 0}}, time.Now(), gallery.Enrolment{}); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if _, err := c.learner(c.door).Observe([]float32{.1 * float32(i), 0}); err != nil {
			t.Fatal(err)
		}
	}
	c.exchange(c.door)
	until(t, "the gate has the door's lessons", func() bool {
		c.exchange(c.gate)
		return c.label(c.gate, 2.9) == "ann"
	})
	c.aid(c.gate, 3.2)
	c.exchange(c.gate)
	until(t, "the hall has the lessons of both", func() bool {
		c.exchange(c.hall)
		return c.label(c.hall, 3.7) == "ann" && len(c.learner(c.hall).Sources()) == 2
	})
	c.aid(c.hall, 3.7)
	return c
}

func (c *chain) learner(n *member) *online.Learner { return c.galleries[n].Learner() }

// exchange does what an office does once a second, and with lessons once a minute.
func (c *chain) exchange(n *member) {
	c.t.Helper()
	g := c.galleries[n]
	r, err := n.d.Reconcile(g, fleet.Reconciling{Publish: true})
	if err != nil {
		c.t.Fatal(err)
	}
	r.TakeLessons(g)
	if err := r.Done(); err != nil {
		c.t.Fatal(err)
	}
	if _, err := n.d.TeachLessons(g, r.People); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chain) label(n *member, x float32) string {
	c.t.Helper()
	v, err := c.learner(n).Judge([]float32{x, 0})
	if err != nil {
		c.t.Fatal(err)
	}
	return v.Label
}

// aid shows a face of ann, which the device learns with the help of others.
func (c *chain) aid(n *member, x float32) {
	c.t.Helper()
	seen, err := c.learner(n).ObserveFrame([]online.Observation{{Vector: []float32{x, 0}, As: "ann"}})
	if err != nil || !seen[0].Learned || seen[0].Stored >= 0 {
		c.t.Fatalf("at %g: %+v, %v", x, seen, err)
	}
}

// A face that one device learned with the help of a second one helps a third one. If the lessons of the second are
// withdrawn, it no longer does, also while the first has not heard of the withdrawal.
func TestLessonsGivenOn(t *testing.T) {
	c := newChain(t)
	c.gate.pauseRun()
	if err := c.hall.d.Withdraw(c.door.d.ID(), true); err != nil {
		t.Fatal(err)
	}
	c.exchange(c.hall)
	l := c.learner(c.hall)
	if c.label(c.hall, 3.7) != "" || l.Aided() != 0 || len(l.Sources()) != 0 || len(l.Through()) != 0 {
		t.Errorf("at 3.7 it says %q, %d aided, %+v", c.label(c.hall, 3.7), l.Aided(), l.Sources())
	}
	// The gate gives on another face that it learned so, before it hears of the withdrawal.
	c.aid(c.gate, 3.5)
	ann, err := c.gate.d.Find("ann")
	if err != nil {
		t.Fatal(err)
	}
	n, err := c.gate.d.TeachLessons(c.galleries[c.gate], map[string]fleet.ID{"ann": ann.ID})
	if err != nil || n != 1 {
		t.Fatalf("%d, %v", n, err)
	}
	c.gate.start()
	allInStep(t, c.gate, c.hall)
	c.exchange(c.hall)
	if c.label(c.hall, 3.7) != "" || len(l.Sources()) != 0 {
		t.Errorf("at 3.7 it says %q, from %+v", c.label(c.hall, 3.7), l.Sources())
	}
	c.exchange(c.gate)
	if c.label(c.gate, 3.2) != "" || c.learner(c.gate).Aided() != 0 {
		t.Error("the gate keeps what was withdrawn")
	}
}

// If a device takes back what it learned, and nobody withdraws its lessons, lessons that were learned through it count
// until their own devices take them back.
func TestTakenBack(t *testing.T) {
	c := newChain(t)
	c.gate.pauseRun()
	if _, err := c.learner(c.door).Undo(0); err != nil {
		t.Fatal(err)
	}
	c.exchange(c.door)
	allInStep(t, c.door, c.hall)
	l := c.learner(c.hall)
	for range 2 {
		c.exchange(c.hall)
		if all := l.Sources(); len(all) != 1 || all[0].Name != c.gate.d.ID() || all[0].Centroids != 1 {
			t.Errorf("the hall has %+v", all)
		}
	}
	c.gate.start()
	allInStep(t, c.gate)
	c.exchange(c.gate)
	if c.learner(c.gate).Aided() != 0 {
		t.Error("the gate keeps a face that it would not learn now")
	}
	allInStep(t, c.gate, c.hall)
	c.exchange(c.hall)
	if all := l.Sources(); len(all) != 0 {
		t.Errorf("the hall has %+v", all)
	}
}

// Changes of one gallery hold at the other devices: a face that is taken back, a face that is rejected and allowed
// again, another name, and a person with the same faces as a person whose enrolment was undone.
func TestSay(t *testing.T) {
	w := newLive(t)
	one, two := w.join(fleet.Scope{All: true}), w.join(fleet.Scope{All: true})
	id, err := one.d.Enroll("ann", "plane", []fleet.Face{{Vector: []float32{0, 0}}, {Vector: []float32{1, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	people := map[string]fleet.ID{"ann": id}
	say := func(c fleet.Change) {
		t.Helper()
		if err := one.d.Say("plane", people, c); err != nil {
			t.Fatal(err)
		}
	}
	person := func(name string) (faces, denied int) {
		p, err := two.d.Find(name)
		if err != nil {
			return -1, -1
		}
		return len(p.Faces), len(p.Denied)
	}
	holds := func(what, name string, faces, denied int) {
		t.Helper()
		until(t, what, func() bool { f, d := person(name); return f == faces && d == denied })
	}
	holds("enrolled", "ann", 2, 0)
	say(fleet.Change{Removed: []gallery.Label{{Name: "ann", Vector: []float32{1, 0}}}})
	holds("taken back", "ann", 1, 0)
	say(
		fleet.Change{
			Added: []gallery.Label{
				{Name: "ann", Negative: true, Vector: []float32{2, 0}},
				{Name: "ann", Negative: true, Vector: []float32{3, 0}},
			},
		},
	)
	holds("denied", "ann", 1, 2)
	say(fleet.Change{Removed: []gallery.Label{{Name: "ann", Negative: true, Vector: []float32{2, 0}}}})
	holds("one of them allowed", "ann", 1, 1)
	say(
		fleet.Change{
			Renamed: []fleet.Renaming{{From: "ann", To: "anna"}},
			Added:   []gallery.Label{{Name: "anna", Vector: []float32{1, 0}}},
		},
	)
	holds("another name, and a face that was taken back", "anna", 2, 1)
	say(fleet.Change{Removed: []gallery.Label{{Name: "nobody", Vector: []float32{1, 0}}}})
	say(fleet.Change{Forgotten: []string{"anna"}, Removed: []gallery.Label{{Name: "anna", Vector: []float32{0, 0}}}})
	holds("forgotten", "anna", -1, -1)
	say(
		fleet.Change{
			Added: []gallery.Label{{Name: "ann", Vector: []float32{0, 0}}, {Name: "ann", Vector: []float32{1, 0}}},
		},
	)
	holds("enrolled again with the same faces", "ann", 2, 0)
}

// People who were forgotten or renamed while a gallery was away are listed when it comes back, until it has followed.
func TestReconciledNames(t *testing.T) {
	w := newLive(t)
	one, two := w.join(fleet.Scope{All: true}), w.join(fleet.Scope{All: true})
	for i, name := range []string{"ann", "bob", "cleo"} {
		if _, err := one.d.Enroll(name, plane.ID, []fleet.Face{{Vector: []float32{float32(3 * i), 0}}}); err != nil {
			t.Fatal(err)
		}
	}
	g := newGallery(t)
	reconcile := func() fleet.Reconciled {
		t.Helper()
		r, err := two.d.Reconcile(g, fleet.Reconciling{Publish: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	until(t, "two knows them", func() bool {
		r := reconcile()
		if err := r.Done(); err != nil {
			t.Fatal(err)
		}
		return len(g.People()) == 3
	})
	if r := reconcile(); r.Changed || len(r.Renamed)+len(r.Forgotten) > 0 {
		t.Errorf("nothing has happened: %+v", r)
	}
	id := make(map[string]fleet.ID)
	for _, p := range one.d.People() {
		id[p.Shown] = p.ID
	}
	if _, err := one.d.Forget(id["ann"]); err != nil {
		t.Fatal(err)
	}
	if err := one.d.Rename(id["bob"], "rob"); err != nil {
		t.Fatal(err)
	}
	merged, err := one.d.Merge(id["cleo"], id["bob"])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.d.Enroll("ann", plane.ID, []fleet.Face{{Vector: []float32{9, 0}}}); err != nil {
		t.Fatal(err)
	}
	until(t, "two has all of it", func() bool {
		_, err := two.d.Find(id["cleo"].String())
		p, _ := two.d.Find("ann")
		return err == nil && len(two.d.People()) == 2 && p.ID != id["ann"] && len(p.Faces) == 1
	})
	r := reconcile()
	if i := slices.IndexFunc(r.Renamed, func(n fleet.Renaming) bool { return n.From == "cleo" }); i < 0 ||
		r.Renamed[i].Merge != merged {
		t.Errorf("%+v: cleo was merged by %+v", r.Renamed, merged)
	} else {
		r.Renamed[i].Merge = fleet.Merge{}
	}
	slices.SortFunc(r.Renamed, func(a, b fleet.Renaming) int { return strings.Compare(a.From, b.From) })
	if !slices.Equal(r.Forgotten, []string{"ann"}) ||
		!slices.Equal(r.Renamed, []fleet.Renaming{{From: "bob", To: "rob"}, {From: "cleo", To: "rob"}}) {
		t.Errorf("forgotten %q, renamed %v", r.Forgotten, r.Renamed)
	}
	if again := reconcile(); !again.Changed || !slices.Equal(again.Forgotten, []string{"ann"}) {
		t.Errorf("before it was done: %+v", again)
	}
	r = reconcile()
	if err := r.Done(); err != nil {
		t.Fatal(err)
	}
	if r := reconcile(); r.Changed || len(r.Forgotten) > 0 {
		t.Errorf("after it was done: %+v", r)
	}
	if len(g.People()) != 2 {
		t.Errorf("%+v", g.People())
	}
}
