// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// Lessons of one device help another device. The other device learns them, and does not publish them again. They go
// when they are withdrawn, and when their person is forgotten.
func TestLessons(t *testing.T) {
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
	log := newMemLog()
	a := newAdmin(t, log)
	one, two := a.join(everybody).run(), a.join(everybody).run()
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
	align := func(n *node, g *gallery.Gallery) fleet.Reconciled {
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

	if _, err := two.d.Withdraw(one.d.ID(), false); err != nil {
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
	if err := one.d.Teach(ann.ID, ledger.Lesson{Space: "plane"}); err == nil {
		t.Error("a lesson of somebody who is forgotten brings them back")
	}
}

// Changes of one gallery hold at the other devices: a face that is taken back, a face that is rejected and allowed
// again, another name, and a person with the same faces as a person whose enrolment was undone.
func TestSay(t *testing.T) {
	log := newMemLog()
	a := newAdmin(t, log)
	one, two := a.join(everybody).run(), a.join(everybody).run()
	id, err := one.d.Enroll("ann", "plane", []ledger.Face{{Vector: []float32{0, 0}}, {Vector: []float32{1, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	people := map[string]ledger.ID{"ann": id}
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
	say(fleet.Change{Removed: []fleet.Label{{Name: "ann", Vector: []float32{1, 0}}}})
	holds("taken back", "ann", 1, 0)
	say(
		fleet.Change{
			Added: []fleet.Label{
				{Name: "ann", Negative: true, Vector: []float32{2, 0}},
				{Name: "ann", Negative: true, Vector: []float32{3, 0}},
			},
		},
	)
	holds("denied", "ann", 1, 2)
	say(fleet.Change{Removed: []fleet.Label{{Name: "ann", Negative: true, Vector: []float32{2, 0}}}})
	holds("one of them allowed", "ann", 1, 1)
	say(
		fleet.Change{
			Renamed: []fleet.Renaming{{From: "ann", To: "anna"}},
			Added:   []fleet.Label{{Name: "anna", Vector: []float32{1, 0}}},
		},
	)
	holds("another name, and a face that was taken back", "anna", 2, 1)
	say(fleet.Change{Removed: []fleet.Label{{Name: "nobody", Vector: []float32{1, 0}}}})
	say(fleet.Change{Forgotten: []string{"anna"}, Removed: []fleet.Label{{Name: "anna", Vector: []float32{0, 0}}}})
	holds("forgotten", "anna", -1, -1)
	say(
		fleet.Change{
			Added: []fleet.Label{{Name: "ann", Vector: []float32{0, 0}}, {Name: "ann", Vector: []float32{1, 0}}},
		},
	)
	holds("enrolled again with the same faces", "ann", 2, 0)
}

// People who were forgotten or renamed while a gallery was away are listed when it comes back, until it has followed.
func TestReconciledNames(t *testing.T) {
	log := newMemLog()
	a := newAdmin(t, log)
	one, two := a.join(everybody).run(), a.join(everybody).run()
	for i, name := range []string{"ann", "bob", "cleo"} {
		if _, err := one.d.Enroll(name, plane.ID, []ledger.Face{{Vector: []float32{float32(3 * i), 0}}}); err != nil {
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
	id := make(map[string]ledger.ID)
	for _, p := range one.d.People() {
		id[p.Shown] = p.ID
	}
	if _, err := one.d.Forget(id["ann"]); err != nil {
		t.Fatal(err)
	}
	if _, err := one.d.Rename(id["bob"], "rob"); err != nil {
		t.Fatal(err)
	}
	merged, err := one.d.Merge(id["cleo"], id["bob"])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.d.Enroll("ann", plane.ID, []ledger.Face{{Vector: []float32{9, 0}}}); err != nil {
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
		r.Renamed[i].Merge = ledger.Ref{}
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
