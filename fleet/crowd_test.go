// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// A liar labels hundreds of people with nearly the same face: a gallery takes only some, and says whose faces they are.
// What others enrol is taken, and revoking the liar removes all.
func TestCrowd(t *testing.T) {
	p := newPair(t)
	one, liar := p.nodes[0], p.nodes[1]
	for i := range 200 {
		var all []fleet.Face
		for j := range 4 {
			all = append(all, fleet.Face{Vector: []float32{float32(4*i+j) * 1e-4, 0}})
		}
		if _, err := liar.d.Enroll(fmt.Sprint("p", i), space, all); err != nil {
			t.Fatal(err)
		}
	}
	allInStep(t, one, liar)
	one.reconcile(p.g[0], true)
	if _, err := one.d.Enroll("alice", space, faceAt(5, 5)); err != nil {
		t.Fatal(err)
	}
	r := one.reconcile(p.g[0], true)
	l := p.g[0].Learner()
	edges := 0
	for _, label := range l.Labels() {
		edges += l.Crowd(label.ID)
	}
	if len(l.Names()) < 20 || len(l.Names()) > 60 || !l.Knows("alice") || edges > 20_000 {
		t.Errorf("%d people, %d edges", len(l.Names()), edges)
	}
	m, _ := one.d.Member(liar.d.ID())
	if len(r.Refused) != 1 || !strings.Contains(r.Refused[0], "further faces from "+m.Name+" are not taken") {
		t.Errorf("%q", r.Refused)
	}
	// When it takes its faces back, others of it are welcome.
	must[fleet.ID](t)(liar.d.Enroll("carol", space, faceAt(-5, 5)))
	allInStep(t, one, liar)
	if one.reconcile(p.g[0], true); l.Knows("carol") {
		t.Error("a face of the liar is taken")
	}
	for _, q := range liar.d.People() {
		for _, f := range q.Faces {
			if q.Name != "carol" && q.Name != "alice" {
				try(t, liar.d.Retract(q.ID, f.ID))
			}
		}
	}
	allInStep(t, one, liar)
	one.reconcile(p.g[0], true)
	if one.reconcile(p.g[0], true); len(l.Names()) != 2 || !l.Knows("carol") {
		t.Errorf("%q", l.Names())
	}
	record, err := one.w.admin.Revoke(liar.d.ID(), nil, time.Now())
	if err == nil {
		err = one.w.server.give(record)
	}
	if err != nil {
		t.Fatal(err)
	}
	for len(one.d.People()) > 1 {
		<-one.d.Changed()
	}
	if one.reconcile(p.g[0], true); len(l.Names()) != 1 {
		t.Errorf("%q stay", l.Names())
	}
}

// The same with 24 MB: 3,000 people with four faces of 512 values each.
func TestCrowdOf24MB(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	const most = 48 << 20 // bytes of the memory of a follower and its gallery, whose faces are 24 MB
	wide := plane
	wide.ID, wide.Dim = "wide space", 512
	w := newLive(t)
	one, liar := w.join(fleet.Scope{All: true}), w.join(fleet.Scope{All: true})
	for i := range 3000 {
		var all []fleet.Face
		for j := range 4 {
			all = append(all, fleet.Face{Vector: append(make([]float32, 511), float32(4*i+j)*1e-5)})
		}
		if _, err := liar.d.Enroll(fmt.Sprint("p", i), wide.ID, all); err != nil {
			t.Fatal(err)
		}
	}
	allInStep(t, one, liar)
	liar.end()
	g := must[*gallery.Gallery](t)(gallery.New(wide, online.Settings{}))
	heap := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before, begun := heap(), time.Now()
	r := one.reconcile(g, true)
	took := time.Since(begun)
	if used := int64(heap()) - int64(before); used > most || len(r.Refused) == 0 {
		t.Errorf("%d MB of memory, %q", used>>20, r.Refused)
	} else {
		t.Logf("%d of 3,000 people, %d MB of memory, %v", len(g.Learner().Names()), used>>20, took)
	}
	runtime.KeepAlive(one)
}
