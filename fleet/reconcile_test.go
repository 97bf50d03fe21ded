// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

var plane = face.Space{ID: space, Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, GenuineRadius: .5, ImpostorRadius: .5}

func newGallery(t testing.TB) *gallery.Gallery {
	t.Helper()
	return must[*gallery.Gallery](t)(gallery.New(plane, online.Settings{}))
}

func enroll(t testing.TB, g *gallery.Gallery, name string, faces ...[]float32) {
	t.Helper()
	how := gallery.Enrolment{Add: g.Learner().Knows(name), Force: true}
	if _, err := g.Enroll(name, faces, time.Unix(1e9, 0), how); err != nil {
		t.Fatal(err)
	}
}

// labelsOf describes the labels of a gallery.
func labelsOf(g *gallery.Gallery) string {
	var all []string
	for _, l := range g.Learner().Labels() {
		not := ""
		if l.Negative {
			not = "not "
		}
		all = append(all, fmt.Sprintf("%s%s%.1f", not, l.Name, g.Learner().Vector(l.ID)))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// reconcile reconciles and saves a gallery, as the gallery's own program does.
func (m *member) reconcile(g *gallery.Gallery, publish bool) fleet.Reconciled {
	m.w.t.Helper()
	r := must[fleet.Reconciled](m.w.t)(m.d.Reconcile(g, fleet.Reconciling{Publish: publish}))
	if err := r.Done(); err != nil {
		m.w.t.Fatal(err)
	}
	return r
}

// pair is two devices with a gallery each.
type pair struct {
	t     *testing.T
	nodes [2]*member
	g     [2]*gallery.Gallery
}

func newPair(t *testing.T) *pair {
	w := newLive(t)
	p := &pair{t: t}
	for i := range p.nodes {
		p.nodes[i] = w.join(fleet.Scope{All: true})
		p.g[i] = newGallery(t)
	}
	return p
}

// settle reconciles both until nothing changes any more.
func (p *pair) settle() {
	p.t.Helper()
	allInStep(p.t, p.nodes[:]...)
	for range 6 {
		quiet := true
		for i, n := range p.nodes {
			r := n.reconcile(p.g[i], true)
			quiet = quiet && !r.Changed && r.Published == 0
			allInStep(p.t, p.nodes[:]...)
		}
		if quiet {
			return
		}
	}
	p.t.Fatal("the galleries go on changing")
}

func (p *pair) both(want string) {
	p.t.Helper()
	p.settle()
	for i, g := range p.g {
		if got := labelsOf(g); got != want {
			p.t.Errorf("gallery %d has\n%s\nand not\n%s", i, got, want)
		}
	}
}

// A change in one gallery, or at one device, reaches the other gallery.
func TestReconcile(t *testing.T) {
	p := newPair(t)
	one, two := p.nodes[0], p.nodes[1]
	enroll(t, p.g[0], "alice", []float32{1, 0}, []float32{1, .1})
	p.both("alice[1.0 0.0] alice[1.0 0.1]")
	enroll(t, p.g[1], "alice", []float32{1, .2})
	if err := p.g[0].Learner().Reject([]float32{0, 1}, "alice"); err != nil {
		t.Fatal(err)
	}
	p.both("alice[1.0 0.0] alice[1.0 0.1] alice[1.0 0.2] not alice[0.0 1.0]")
	if err := p.g[1].Rename("alice", "alicia"); err != nil {
		t.Fatal(err)
	}
	p.both("alicia[1.0 0.0] alicia[1.0 0.1] alicia[1.0 0.2] not alicia[0.0 1.0]")
	alice := must[fleet.Person](t)(one.d.Find("alicia")).ID
	try(t, two.d.Retract(alice, fleet.NewFaceID(space, []float32{1, .1})))
	p.both("alicia[1.0 0.0] alicia[1.0 0.2] not alicia[0.0 1.0]")
	try(t, one.d.Deny(alice, space, faceAt(1, .2)))
	p.both("alicia[1.0 0.0] not alicia[0.0 1.0] not alicia[1.0 0.2]")
	try(t, two.d.Undeny(alice, fleet.NewFaceID(space, []float32{1, .2})))
	p.both("alicia[1.0 0.0] not alicia[0.0 1.0]")
	try(t, one.d.Label(alice, space, faceAt(1, .2)))
	p.both("alicia[1.0 0.0] alicia[1.0 0.2] not alicia[0.0 1.0]")
	must[fleet.ID](t)(two.d.Enroll("bob", space, faceAt(3, 3)))
	enroll(t, p.g[0], "bob", []float32{9, 9}) // another bob, enrolled at the same time
	p.settle()
	if got := labelsOf(p.g[0]); got != labelsOf(p.g[1]) || !strings.Contains(got, "bob (2)[") {
		t.Errorf("two of one name: %s", got)
	}
	bob, other := must[fleet.Person](t)(one.d.Find("bob")).ID, must[fleet.Person](t)(one.d.Find("bob (2)")).ID
	merged := must[fleet.Merge](t)(one.d.Merge(other, bob))
	p.both("alicia[1.0 0.0] alicia[1.0 0.2] bob[3.0 3.0] bob[9.0 9.0] not alicia[0.0 1.0]")
	try(t, two.d.Unmerge(merged))
	p.settle()
	if got := labelsOf(p.g[0]); got != labelsOf(p.g[1]) || !strings.Contains(got, "bob (2)[") {
		t.Errorf("a merge that was undone: %s", got)
	}
	// The two people swap their names.
	try(t, one.d.Rename(bob, "alicia"))
	try(t, one.d.Rename(alice, "bob"))
	p.settle()
	if got := labelsOf(p.g[0]); got != labelsOf(p.g[1]) ||
		!strings.Contains(got, "alicia[3.0 3.0]") && !strings.Contains(got, "alicia[9.0 9.0]") {
		t.Errorf("names that were exchanged: %s", got)
	}
	for _, id := range []fleet.ID{bob, other, alice} {
		must[bool](t)(one.d.Forget(id))
	}
	p.both("")
}

// A camera that does not move can give a gallery the same face several times. When that face is taken back, all of its
// labels go.
func TestReconcileSameFace(t *testing.T) {
	p := newPair(t)
	one := p.nodes[0]
	enroll(t, p.g[0], "alice", []float32{1, 0}, []float32{1, 0}, []float32{1, 0}, []float32{1, .2})
	for range 2 {
		if err := p.g[0].Learner().Reject([]float32{0, 1}, "alice"); err != nil {
			t.Fatal(err)
		}
	}
	p.settle()
	alice := must[fleet.Person](t)(one.d.Find("alice"))
	try(t, one.d.Retract(alice.ID, fleet.NewFaceID(space, []float32{1, 0})))
	try(t, one.d.Undeny(alice.ID, alice.Denied[0].ID))
	p.both("alice[1.0 0.2]")
}

// A liar says a person without a name who has the face of somebody in a gallery. Who gets that name is not renamed for
// ever.
func TestReconcileNameless(t *testing.T) {
	p := newPair(t)
	enroll(t, p.g[0], "bob", []float32{3, 3})
	p.settle()
	enroll(t, p.g[0], "alice", []float32{1, 0})
	try(t, p.nodes[1].d.Nameless(space, faceAt(1, 0)))
	try(t, p.nodes[1].d.Rename(must[fleet.Person](t)(p.nodes[1].d.Find("bob")).ID, "alice"))
	allInStep(t, p.nodes[:]...)
	p.nodes[0].reconcile(p.g[0], false)
	if got := labelsOf(p.g[0]); got != "alice (2)[3.0 3.0] alice[1.0 0.0]" {
		t.Error(got)
	}
}

// Two devices join the same two people at the same time, in opposite directions. The name of the first entry holds,
// both devices know which entry that is, and each gallery is told once about another name.
func TestMergedAtOnce(t *testing.T) {
	p := newPair(t)
	enroll(t, p.g[0], "ann", []float32{1, 0})
	enroll(t, p.g[0], "bob", []float32{3, 3})
	p.settle()
	people := p.nodes[1].reconcile(p.g[1], true).People
	first := must[fleet.Merge](t)(p.nodes[0].d.SayMerged(people, "ann", "bob"))
	allInStep(t, p.nodes[:]...)
	second := must[fleet.Merge](t)(p.nodes[1].d.SayMerged(people, "bob", "ann"))
	if first != second {
		t.Errorf("said first by %v, and then by %v", first, second)
	}
	// The program of the second gallery has joined them under the other name.
	if err := p.g[1].Forget("bob"); err != nil {
		t.Fatal(err)
	}
	enroll(t, p.g[1], "ann", []float32{3, 3})
	r := p.nodes[1].reconcile(p.g[1], true)
	if want := []fleet.Renaming{{From: "ann", To: "bob", Merge: first}}; !slices.Equal(r.Renamed, want) {
		t.Errorf("%+v, want %+v", r.Renamed, want)
	}
	p.both("bob[1.0 0.0] bob[3.0 3.0]")
	if err := p.nodes[1].d.Unmerge(second); err != nil || !p.nodes[1].d.Unmerged(first) {
		t.Errorf("%v", err)
	}
	p.both("ann[1.0 0.0] bob[3.0 3.0]")
	if err := p.nodes[0].d.Unmerge(first); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if err := p.nodes[0].d.Unmerge(fleet.Merge{From: first.Into, Into: first.From}); !errors.Is(err, fleet.ErrUnknown) {
		t.Errorf("what is no merge: %v", err)
	}
	if _, err := p.nodes[0].d.SayMerged(people, "ann", "nobody"); !errors.Is(err, fleet.ErrUnknown) {
		t.Errorf("with nobody: %v", err)
	}
}

// joined makes one person of two in the gallery, as an office does.
func joined(t *testing.T, g *gallery.Gallery, from, to string) {
	t.Helper()
	before := g.Labels()
	if err := g.Forget(from); err != nil {
		t.Fatal(err)
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		switch x := before[id]; {
		case x.Name == from && x.Negative:
			if err := g.Learner().Reject(x.Vector, to); err != nil {
				t.Fatal(err)
			}
		case x.Name == from:
			enroll(t, g, to, x.Vector)
		}
	}
}

// Two people are joined and separated again before their gallery is reconciled. Each keeps the name and faces from
// before, no matter which person has the lower number.
func TestMergeUndoneAtOnce(t *testing.T) {
	for range 8 { // the numbers are random
		p := newPair(t)
		enroll(t, p.g[0], "ann", []float32{1, 0})
		enroll(t, p.g[0], "bob", []float32{3, 3}, []float32{3, 3.2})
		for _, x := range []struct {
			name string
			face []float32
		}{{"ann", []float32{5, 5}}, {"bob", []float32{7, 7}}} {
			if err := p.g[0].Learner().Reject(x.face, x.name); err != nil {
				t.Fatal(err)
			}
		}
		p.settle()
		people := p.nodes[1].reconcile(p.g[1], true).People
		by := must[fleet.Merge](t)(p.nodes[1].d.SayMerged(people, "bob", "ann"))
		joined(t, p.g[1], "bob", "ann")
		if err := p.nodes[1].d.Unmerge(by); err != nil {
			t.Fatal(err)
		}
		p.both("ann[1.0 0.0] bob[3.0 3.0] bob[3.0 3.2] not ann[5.0 5.0] not bob[7.0 7.0]")
	}
}

// A face that is taken back while its person is joined with another stays away after they are separated.
func TestRetractedWhileMerged(t *testing.T) {
	p := newPair(t)
	enroll(t, p.g[0], "ann", []float32{1, 0}, []float32{1, .2})
	enroll(t, p.g[0], "bob", []float32{3, 3})
	p.settle()
	people := p.nodes[0].reconcile(p.g[0], true).People
	by := must[fleet.Merge](t)(p.nodes[0].d.SayMerged(people, "ann", "bob"))
	p.both("bob[1.0 0.0] bob[1.0 0.2] bob[3.0 3.0]")
	try(t, p.nodes[1].d.Retract(people["bob"], fleet.NewFaceID(space, []float32{1, 0})))
	p.both("bob[1.0 0.2] bob[3.0 3.0]")
	if err := p.nodes[1].d.Unmerge(by); err != nil {
		t.Fatal(err)
	}
	p.both("ann[1.0 0.2] bob[3.0 3.0]")
}

// People who were in a gallery before it joined the fleet stay in it alone until it is asked to publish them.
func TestPublishOnRequest(t *testing.T) {
	p := newPair(t)
	one, two := p.nodes[0], p.nodes[1]
	enroll(t, p.g[0], "alice", []float32{1, 0})
	enroll(t, p.g[0], "carol", []float32{-4, 0})
	must[fleet.ID](t)(two.d.Enroll("alice", space, faceAt(1, .1))) // looks like her
	must[fleet.ID](t)(two.d.Enroll("carol", space, faceAt(4, 0)))  // does not
	allInStep(t, one, two)
	r := one.reconcile(p.g[0], false)
	if got := labelsOf(p.g[0]); got != "alice[1.0 0.0] alice[1.0 0.1] carol (2)[4.0 0.0] carol[-4.0 0.0]" ||
		r.Published != 0 {
		t.Errorf("the gallery has %s", got)
	}
	if r := one.reconcile(p.g[0], false); r.Changed {
		t.Error("it changes again")
	}
	if got := two.names(); got != "alice 1-0, carol 1-0" {
		t.Errorf("the fleet knows %s", got)
	}
	p.both("alice[1.0 0.0] alice[1.0 0.1] carol (2)[-4.0 0.0] carol[4.0 0.0]")
}

// Faces of another feature space are refused with an error that says so. All other faces are taken.
func TestOtherSpace(t *testing.T) {
	p := newPair(t)
	alice := must[fleet.ID](t)(p.nodes[0].d.Enroll("alice", "another", faceAt(1, 0)))
	try(t, p.nodes[0].d.Label(alice, space, faceAt(2, 0)))
	must[fleet.ID](t)(p.nodes[0].d.Enroll("bob", "another", faceAt(1, 0)))
	r := p.nodes[0].reconcile(p.g[0], true)
	if got := labelsOf(p.g[0]); got != "alice[2.0 0.0]" {
		t.Errorf("the gallery has %s", got)
	}
	if len(r.Refused) != 2 || !strings.Contains(r.Refused[0], "alice: 1 of 2 labelled faces are not used") {
		t.Errorf("it says %q", r.Refused)
	}
}

// A program may end at any point between Reconcile, Save and Done: no face is taken back by mistake. An old copy of a
// gallery takes no face back either.
func TestReconcileInterrupted(t *testing.T) {
	p := newPair(t)
	one, two := p.nodes[0], p.nodes[1]
	path := filepath.Join(t.TempDir(), "gallery")
	keep := func() {
		t.Helper()
		must[fleet.Reconciled](t)(one.d.Keep(path, plane, online.Settings{}, fleet.Reconciling{Publish: true}))
	}
	saved := func() string {
		g := must[*gallery.Gallery](t)(gallery.Open(path, plane))
		defer g.Close()
		return labelsOf(g)
	}
	alice := must[fleet.ID](t)(two.d.Enroll("alice", space, faceAt(1, 0)))
	bob := must[fleet.ID](t)(two.d.Enroll("bob", space, faceAt(3, 0)))
	allInStep(t, one, two)
	keep()
	old := must[[]byte](t)(os.ReadFile(path))
	if got := saved(); got != "alice[1.0 0.0] bob[3.0 0.0]" {
		t.Fatalf("it has %s", got)
	}
	try(t, two.d.Label(alice, space, faceAt(1, .1)))
	try(t, two.d.Rename(alice, "alicia"))
	must[bool](t)(two.d.Forget(bob))
	allInStep(t, one, two)
	for _, save := range []bool{false, true} { // killed before and after the gallery is saved
		g := must[*gallery.Gallery](t)(gallery.Open(path, plane))
		r := must[fleet.Reconciled](t)(one.d.Reconcile(g, fleet.Reconciling{Publish: true}))
		if r.Published != 0 || !r.Changed {
			t.Errorf("it published %d changes", r.Published)
		}
		if save {
			if err := g.Save(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
	try(t, two.d.Rename(alice, "ali"))
	try(t, two.d.Retract(alice, fleet.NewFaceID(space, []float32{1, .1})))
	allInStep(t, one, two)
	keep()
	if got := saved(); got != "ali[1.0 0.0]" {
		t.Errorf("it has %s", got)
	}
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	keep()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	keep()
	if got := saved(); got != "ali[1.0 0.0]" || two.names() != "ali 1-0" {
		t.Errorf("it has %s, and the fleet %s", got, two.names())
	}
}

// A gallery loses nothing if another program saves it at the same time.
func TestKeepWhileOthersSave(t *testing.T) {
	p := newPair(t)
	one := p.nodes[0]
	path := filepath.Join(t.TempDir(), "gallery")
	must[fleet.Reconciled](t)(one.d.Keep(path, plane, online.Settings{}, fleet.Reconciling{}))
	first := newGallery(t)
	if err := errors.Join(first.Save(path), first.Close()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 10 {
			g, err := gallery.Open(path, plane)
			if err != nil {
				t.Error(err)
				return
			}
			enroll(t, g, fmt.Sprint("local", i), []float32{float32(i), 5})
			if err := errors.Join(g.Save(path), g.Close()); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 10 {
		must[fleet.ID](t)(one.d.Enroll(fmt.Sprint("fleet", i), space, faceAt(float32(i), -5)))
		if _, err := one.d.Keep(path, plane, online.Settings{}, fleet.Reconciling{Publish: true}); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	must[fleet.Reconciled](t)(one.d.Keep(path, plane, online.Settings{}, fleet.Reconciling{Publish: true}))
	g := must[*gallery.Gallery](t)(gallery.Open(path, plane))
	if n, m := len(g.People()), len(one.d.People()); n != 20 || m != 20 {
		t.Errorf("the gallery has %d people and the fleet %d; 20 were enrolled", n, m)
	}
}

// After random changes in two galleries and at two devices, both galleries hold the same as the fleet.
func TestReconcileRandom(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 4))
			p := newPair(t)
			var merges []fleet.Merge
			// The programs speak of people as they know them from their last exchanges.
			people := [2]map[string]fleet.ID{make(map[string]fleet.ID), make(map[string]fleet.ID)}
			forgotten := make(map[string]bool) // the faces of forgotten people
			var ended [2]bool                  // the program of the gallery
			for step := range 80 {
				i := rng.IntN(2)
				n, g := p.nodes[i], p.g[i]
				if ended[i] { // a program that starts reconciles first
					people[i], ended[i] = n.reconcile(g, true).People, false
				}
				names, all := g.Learner().Names(), n.d.People()
				where := []float32{float32(rng.IntN(8)), float32(step)}
				some := func() string { return names[rng.IntN(len(names))] }
				switch k := rng.IntN(14); {
				case k < 2 || len(names) == 0:
					enroll(t, g, fmt.Sprint("p", rng.IntN(30)), where)
				case k == 12: // said to the fleet at once
					name := fmt.Sprint("s", step)
					enroll(t, g, name, where)
					if err := n.d.Say(space, people[i], fleet.Change{
						Added: []gallery.Label{{Name: name, Vector: where}},
					}); err != nil {
						t.Fatal(err)
					}
				case k == 13: // the program ends before Done, and before or after it has saved the gallery
					unsaved := [2]error{nil, errors.New("not saved")}[rng.IntN(2)]
					g.Attempt(func() error { // takes changes back after an error
						must[fleet.Reconciled](t)(n.d.Reconcile(g, fleet.Reconciling{Publish: true}))
						return unsaved
					})
					ended[i] = true
				case k == 2:
					enroll(t, g, some(), where)
				case k == 3:
					if err := g.Learner().Reject(where, some()); err != nil {
						t.Fatal(err)
					}
				case k == 4:
					g.Rename(some(), fmt.Sprint("q", rng.IntN(30))) // taken names are refused
				case k == 5 && len(all) > 0:
					q := all[rng.IntN(len(all))]
					if _, err := n.d.Forget(q.ID); err == nil {
						for _, f := range q.Faces {
							forgotten[fmt.Sprint(f.Vector)] = true
						}
					}
				case k == 6 && len(all) > 1:
					n.d.Merge(all[rng.IntN(len(all))].ID, all[rng.IntN(len(all))].ID)
				case k == 7 && len(all) > 0:
					if q := all[rng.IntN(len(all))]; len(q.Faces) > 0 {
						n.d.Retract(q.ID, q.Faces[0].ID)
					}
				case k == 8 && len(names) > 1:
					from, to := some(), some()
					if from == to {
						break
					}
					if by, err := n.d.SayMerged(people[i], from, to); err == nil {
						joined(t, g, from, to)
						delete(people[i], from)
						merges = append(merges, by)
					}
				case k == 9 && len(merges) > 0:
					n.d.Unmerge(merges[rng.IntN(len(merges))]) // it may already be undone, or concern forgotten people
				default:
					people[i] = n.reconcile(g, true).People
				}
			}
			p.settle()
			var want []string
			for _, q := range p.nodes[0].d.People() {
				for _, f := range q.Faces {
					want = append(want, fmt.Sprintf("%s%.1f", q.Shown, f.Vector))
					if forgotten[fmt.Sprint(f.Vector)] {
						t.Errorf("%s has the face %.1f of a forgotten person", q.Shown, f.Vector)
					}
				}
				for _, f := range q.Denied {
					if len(q.Faces) > 0 {
						want = append(want, fmt.Sprintf("not %s%.1f", q.Shown, f.Vector))
					}
				}
			}
			slices.Sort(want)
			for i, g := range p.g {
				p.nodes[i].end() // a program that remembers nothing finds nothing to do either
				p.nodes[i].open()
				if r := p.nodes[i].reconcile(g, true); r.Changed || r.Published > 0 {
					t.Errorf("gallery %d: everything was looked at again, and the gallery now has\n%s", i, labelsOf(g))
				}
				if got := labelsOf(g); got != strings.Join(want, " ") {
					t.Errorf("gallery %d has\n%s\nand the fleet\n%s", i, got, strings.Join(want, " "))
				}
			}
		})
	}
}

// An exchange reads the people who have changed, and not all: cameras wait for it.
func TestReconcileAgain(t *testing.T) {
	p := newPair(t)
	m, g := p.nodes[0], p.g[0]
	for i := range 20 {
		must[fleet.ID](t)(m.d.Enroll(fmt.Sprint("p", i), space, faceAt(float32(i), 0)))
	}
	reads := func(want int) {
		t.Helper()
		if n := m.reconcile(g, true).Loaded(); n != want {
			t.Errorf("it reads %d people, and not %d", n, want)
		}
	}
	reads(20)
	reads(0)
	must[fleet.ID](t)(m.d.Enroll("alice", space, faceAt(0, 9)))
	reads(1)
	enroll(t, g, "alice", []float32{.1, 9})
	reads(1)
	reads(1) // what the gallery said has changed the fleet
	reads(0)
	m.end()
	m.open() // a program that begins
	reads(21)
	reads(0)
}

// A gallery that meets a large fleet takes its people in parts.
func TestReconcileInParts(t *testing.T) {
	p := newPair(t)
	for i := range 30 {
		must[fleet.ID](t)(p.nodes[1].d.Enroll(fmt.Sprint("p", i), space, faceAt(float32(i), 0)))
	}
	allInStep(t, p.nodes[:]...)
	enroll(t, p.g[0], "alice", []float32{0, 9})
	for want := 2; want <= 31; want++ {
		r := must[fleet.Reconciled](t)(p.nodes[0].d.Reconcile(p.g[0], fleet.Reconciling{Publish: true, Most: 1}))
		try(t, r.Done())
		if n := len(p.g[0].People()); n != want || r.More != (n < 31) {
			t.Fatalf("%d people, and not %d; more: %v", n, want, r.More)
		}
	}
	p.settle()
	if n := len(p.g[1].People()); n != 31 {
		t.Errorf("the other gallery has %d people", n)
	}
	// A command that exchanges once has them all.
	part := must[*fleet.Part](t)(fleet.NewPart(p.nodes[0].d, space, nil))
	part.SetTake(1)
	third := newGallery(t).At(filepath.Join(t.TempDir(), "gallery"))
	try(t, part.Align(third))
	if n := len(third.People()); n != 31 {
		t.Errorf("a command has %d people", n)
	}
	try(t, third.Close())
}

// Another device can forget a person, or take a face back, before the gallery that enrolled the person is reconciled.
// The gallery must not enrol the person again.
func TestForgottenBeforeReconcile(t *testing.T) {
	for _, forget := range []bool{false, true} {
		p := newPair(t)
		one, two := p.nodes[0], p.nodes[1]
		p.settle()
		enroll(t, p.g[1], "bob", []float32{5, 5})
		if err := two.d.Say(space, make(map[string]fleet.ID), fleet.Change{
			Added: []gallery.Label{{Name: "bob", Vector: []float32{5, 5}}},
		}); err != nil {
			t.Fatal(err)
		}
		allInStep(t, one, two)
		bob := must[fleet.Person](t)(one.d.Find("bob"))
		if forget {
			must[bool](t)(one.d.Forget(bob.ID))
		} else {
			try(t, one.d.Retract(bob.ID, bob.Faces[0].ID))
		}
		p.both("")
	}
}

// The same for a gallery that took a new person from the fleet, or enrolled one, whose program ended before Done.
func TestForgottenAfterInterruption(t *testing.T) {
	for _, own := range []bool{false, true} {
		p := newPair(t)
		one, two := p.nodes[0], p.nodes[1]
		if own {
			enroll(t, p.g[1], "bob", []float32{5, 5})
		} else {
			enroll(t, p.g[0], "bob", []float32{5, 5})
		}
		enroll(t, p.g[0], "ann", []float32{1, 1})
		one.reconcile(p.g[0], true)
		allInStep(t, one, two)
		r := must[fleet.Reconciled](t)(two.d.Reconcile(p.g[1], fleet.Reconciling{Publish: true}))
		if !r.Changed {
			t.Error("the gallery has ann without a change")
		}
		allInStep(t, one, two)
		must[bool](t)(one.d.Forget(must[fleet.Person](t)(one.d.Find("bob")).ID))
		p.both("ann[1.0 1.0]")
	}
}

// A program can speak of a person before its gallery is reconciled. The person is found although another device has
// given another name meanwhile, and a person of the same name at another device is not mistaken for this person.
func TestSayBeforeReconcile(t *testing.T) {
	p := newPair(t)
	one, two := p.nodes[0], p.nodes[1]
	people := must[map[string]fleet.ID](t)(one.d.Shared(""))
	say := func(c fleet.Change) {
		t.Helper()
		if err := one.d.Say(space, people, c); err != nil {
			t.Fatal(err)
		}
		allInStep(t, one, two)
	}
	added := func(name string, x ...float32) fleet.Change {
		return fleet.Change{Added: []gallery.Label{{Name: name, Vector: x}}}
	}
	say(added("bob", 1, 0))
	try(t, two.d.Rename(people["bob"], "rob"))
	must[fleet.ID](t)(two.d.Enroll("bob", space, faceAt(9, 9)))
	allInStep(t, one, two)
	say(added("bob", 1, .1))
	say(fleet.Change{Renamed: []fleet.Renaming{{From: "bob", To: "bert"}}})
	if got := two.names(); got != "bert 2-0, bob 1-0" && got != "bob 1-0, bert 2-0" {
		t.Errorf("the fleet has %q", got)
	}
	if shared := must[map[string]fleet.ID](t)(one.d.Shared("")); len(shared) != 1 {
		t.Errorf("shared: %v", shared)
	}
	say(fleet.Change{Forgotten: []string{"bert"}})
	if got := two.names(); got != "bob 1-0" || len(people) != 0 {
		t.Errorf("the fleet has %q, and the program %v", got, people)
	}
	// A program gives the name of a person at another device: it is the same person.
	say(added("bob", 9, 9.1))
	if got := two.names(); got != "bob 2-0" {
		t.Errorf("the fleet has %q", got)
	}
}

// A program merges two people. Another device has just forgotten one of them. The faces of the forgotten person do not
// come back with the other's name.
func TestMergedWithForgotten(t *testing.T) {
	p := newPair(t)
	one, two := p.nodes[0], p.nodes[1]
	enroll(t, p.g[0], "ann", []float32{1, 0})
	enroll(t, p.g[0], "bob", []float32{5, 5})
	p.settle()
	people := one.reconcile(p.g[0], true).People
	must[bool](t)(two.d.Forget(people["ann"]))
	allInStep(t, one, two)
	if _, err := one.d.SayMerged(people, "ann", "bob"); !errors.Is(err, fleet.ErrUnknown) {
		t.Errorf("merging with a forgotten person: %v", err)
	}
	joined(t, p.g[0], "ann", "bob") // the gallery's program says it with labels
	if err := one.d.Say(space, people, fleet.Change{
		Removed: []gallery.Label{{Name: "ann", Vector: []float32{1, 0}}},
		Added:   []gallery.Label{{Name: "bob", Vector: []float32{1, 0}}, {Name: "bob", Vector: []float32{5, 6}}},
	}); err != nil {
		t.Fatal(err)
	}
	p.both("bob[5.0 5.0] bob[5.0 6.0]")
}

// A person is merged into another by one device while a second one, which has not heard of it, forgets the person. The
// faces do not come back as the other person's.
func TestForgottenWhileMerged(t *testing.T) {
	p := newPair(t)
	one, two := p.nodes[0], p.nodes[1]
	enroll(t, p.g[0], "alice", []float32{1, 0})
	enroll(t, p.g[0], "bob", []float32{3, 0})
	p.both("alice[1.0 0.0] bob[3.0 0.0]")
	bob := must[fleet.Person](t)(two.d.Find("bob"))
	people := one.reconcile(p.g[0], true).People
	one.pauseRun()
	two.pauseRun()
	must[fleet.Merge](t)(one.d.SayMerged(people, "bob", "alice"))
	joined(t, p.g[0], "bob", "alice")
	must[bool](t)(two.d.Forget(bob.ID))
	one.start()
	allInStep(t, one)
	two.start()
	p.both("alice[1.0 0.0]")
}

// newLive returns a fleet with a server in memory, in real time.
func newLive(t testing.TB) *world {
	w := newWorld(t, 0)
	w.settings = fleet.Settings{Turn: 20 * time.Millisecond, Retry: 5 * time.Millisecond}
	t.Cleanup(w.close)
	return w
}

func must[T any](t testing.TB) func(T, error) T {
	return func(x T, err error) T {
		t.Helper()
		try(t, err)
		return x
	}
}

// until waits until something holds.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// allInStep waits until devices know the same.
func allInStep(t testing.TB, all ...*member) {
	t.Helper()
	defer func() {
		for _, m := range all {
			if t.Failed() {
				t.Logf("%+v %x\n%s", m.d.State(), m.d.Hash(), m.d.Debug())
			}
		}
	}()
	until(t, "all are in step", func() bool {
		hash := all[0].d.Hash()
		for _, m := range all {
			if s := m.d.State(); !s.InStep || s.Keys > 0 || m.d.Hash() != hash {
				return false
			}
		}
		return true
	})
}

func faceAt(x ...float32) []fleet.Face { return []fleet.Face{{Vector: x}} }

// names describes the people whom a device knows.
func (m *member) names() string {
	var all []string
	for _, p := range m.d.People() {
		all = append(all, fmt.Sprintf("%s %d-%d", p.Shown, len(p.Faces), len(p.Denied)))
	}
	return strings.Join(all, ", ")
}
