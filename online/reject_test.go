// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/online"
)

// line is a space in which people lie along a line, and edges have a length of up to 1.
var line = face.Space{ID: "line", Dim: 2, Scale: 1, Sigma: .4, Gamma: 1e-3, Reach: 1}

func shown(t *testing.T, l *online.Learner, name string, xs ...float32) {
	t.Helper()
	for _, x := range xs {
		if err := l.Label([]float32{x, 0}, name); err != nil {
			t.Fatal(err)
		}
	}
}

func fresh(t *testing.T) *online.Learner {
	t.Helper()
	l, err := online.New(line, online.Settings{K: 60})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func judged(t *testing.T, l *online.Learner, x float32) online.Verdict {
	t.Helper()
	v, err := l.Judge([]float32{x, 0})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func rejected(t *testing.T, l *online.Learner, name string, xs ...float32) {
	t.Helper()
	for _, x := range xs {
		if err := l.Reject([]float32{x, 0}, name); err != nil {
			t.Fatal(err)
		}
	}
}

// A rejected face does not get her name, and neither do the faces into which it changes. None of them is learned as hers.
func TestReject(t *testing.T) {
	l := fresh(t)
	shown(t, l, "alice", 0, .1)
	shown(t, l, "bob", 5)
	if v := judged(t, l, .8); v.Label != "alice" {
		t.Fatalf("before: %+v", v)
	}
	rejected(t, l, "alice", .8)
	for x, want := range map[float32]string{.8: "", .9: "", .75: "", .2: "alice", 0: "alice", 5: "bob"} {
		if v := judged(t, l, x); v.Label != want || want == "" && v.Reason != online.Rejected {
			t.Errorf("%g: %+v, want %q", x, v, want)
		}
	}
	for x := float32(.8); x < 2.5; x += .1 { // the stranger moves on
		v, err := l.Observe([]float32{x, 0})
		if err != nil || v.Label != "" || v.Learned && v.Best != "" {
			t.Fatalf("%g: %+v, %v", x, v, err)
		}
	}
	if got := l.Names(); len(got) != 2 || got[0] != "alice" || got[1] != "bob" {
		t.Errorf("people %q", got)
	}
}

// Many faces of hers do not outweigh one rejected face that is nearer.
func TestRejectOutweighed(t *testing.T) {
	l := fresh(t)
	for i := range 20 {
		shown(t, l, "alice", .4+.005*float32(i))
	}
	rejected(t, l, "alice", .6)
	for x, want := range map[float32]string{.6: "", .58: "", .45: "alice"} {
		v := judged(t, l, x)
		if v.Label != want || v.Best != "alice" {
			t.Errorf("%g: %+v, want %q", x, v, want)
		}
		if want == "" && (v.Reason != online.Rejected || v.Confidence < .5) {
			t.Errorf("%g: %+v; the harmonic solution alone would not have given it to her, and this tests nothing", x,
				v)
		}
	}
}

func TestRejectErrors(t *testing.T) {
	l := fresh(t)
	if err := l.Reject([]float32{0, 0}, "alice"); !errors.Is(err, online.ErrUnknown) {
		t.Error(err)
	}
	shown(t, l, "alice", 0)
	if err := l.Reject([]float32{0}, "alice"); !errors.Is(err, face.ErrDimension) {
		t.Error(err)
	}
	// Any number of corrections does not fill up the learner.
	for i := range 200 {
		rejected(t, l, "alice", 1+float32(i))
	}
	if n := l.Graph().Labelled(); n != 1+online.MaxRejected {
		t.Errorf("%d labelled faces", n)
	}
	if v := judged(t, l, 200); v.Label != "" {
		t.Errorf("the last: %+v", v)
	}
	if v := judged(t, l, 1); v.Label != "alice" {
		t.Errorf("the first, which has made room: %+v", v)
	}
}

// The person of a rejected face may become known; then the face is labelled as theirs.
func TestRejectThenLabel(t *testing.T) {
	l := fresh(t)
	shown(t, l, "alice", 0)
	rejected(t, l, "alice", .8)
	shown(t, l, "carol", .8)
	if v := judged(t, l, .8); v.Label != "carol" {
		t.Errorf("%+v", v)
	}
	if n := l.Graph().Labelled(); n != 2 {
		t.Errorf("%d labelled faces", n)
	}
	rejected(t, l, "carol", 3)
	if err := l.Forget("carol"); err != nil {
		t.Fatal(err)
	}
	if n := l.Graph().Labelled(); n != 1 || len(l.Names()) != 1 {
		t.Errorf("%d labelled faces of %q", n, l.Names())
	}
}

func TestConflicts(t *testing.T) {
	l := fresh(t)
	shown(t, l, "alice", 0, .2)
	shown(t, l, "bob", .3, 4)
	rejected(t, l, "alice", .05)
	rejected(t, l, "bob", .06)
	all := l.Conflicts(.16)
	var got []string
	for _, c := range all {
		got = append(got, c.A.Name+" "+c.B.Name)
	}
	// alice and not alice at .05, alice at .2 and bob at .3, and alice at .2 and not alice at .15
	if len(all) != 3 || math.Abs(all[0].Distance-.05) > 1e-6 || !all[0].B.Negative || got[1] != "alice bob" {
		t.Fatalf("%+v", all)
	}
	if gone, err := l.Unlabel(all[1].B.ID); err != nil || gone != all[1].B {
		t.Fatal(err)
	}
	if left := l.Conflicts(.11); len(left) != 1 {
		t.Errorf("%+v", left)
	}
	if _, err := l.Unlabel(all[1].B.ID); !errors.Is(err, online.ErrUnknown) {
		t.Error(err)
	}
	for _, c := range l.Conflicts(9) {
		if c.A.Negative && c.B.Negative {
			t.Errorf("%+v is none", c)
		}
	}
}

// A snapshot keeps the rejected faces.
func TestRejectSnapshot(t *testing.T) {
	l := fresh(t)
	shown(t, l, "alice", 0)
	rejected(t, l, "alice", .8)
	data, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	m := new(online.Learner)
	if err := m.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	if v := judged(t, m, .8); v.Reason != online.Rejected {
		t.Errorf("%+v", v)
	}
	if again, err := m.MarshalBinary(); err != nil || !bytes.Equal(again, data) {
		t.Errorf("another snapshot: %v", err)
	}
}

// The faces learned from one track are taken back, with the faces that followed from them, and no others.
func TestUnlearn(t *testing.T) {
	l := fresh(t)
	shown(t, l, "alice", 0)
	see := func(x float32) int64 {
		t.Helper()
		if v, err := l.Observe([]float32{x, 0}); err != nil || !v.Learned {
			t.Fatalf("%g: %+v, %v", x, v, err)
		}
		return l.Counts().Observed
	}
	see(-.5)
	first := see(.7)
	last := see(1.4)
	see(2.1) // through a face that is taken back
	kept := see(-.9)
	if n := l.Unlearn([][2]int64{{first, last}}); n != 3 {
		t.Errorf("%d faces", n)
	}
	for x, want := range map[float32]string{2.5: "", 1.5: "", -.9: "alice", -.5: "alice"} {
		if v := judged(t, l, x); v.Label != want {
			t.Errorf("%g: %+v, want %q", x, v, want)
		}
	}
	if n := l.Unlearn([][2]int64{{kept, kept}}); n != 1 {
		t.Errorf("%d faces", n)
	}
	if n := l.Unlearn(nil); n != 0 {
		t.Errorf("%d faces", n)
	}
}

// On streams with repartitions no part of the faces taken back is left, masses stay whole, and all other faces stay.
func TestUnlearnRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 1))
	for run := range 40 {
		l, err := online.New(line, online.Settings{K: 15})
		if err != nil {
			t.Fatal(err)
		}
		shown(t, l, "alice", 0)
		shown(t, l, "bob", 3)
		for range 200 {
			if _, err := l.Observe([]float32{float32(4 * rnd.Float64()), float32(rnd.Float64())}); err != nil {
				t.Fatal(err)
			}
		}
		from := 1 + rnd.Int64N(200)
		to := from + rnd.Int64N(60)
		before := l.Graph().Mass()
		n := l.Unlearn([][2]int64{{from, to}})
		if got := before - l.Graph().Mass(); got != float64(n) {
			t.Fatalf("run %d: %d faces, and a mass of %g", run, n, got)
		}
		for i := range l.Graph().Len() {
			if o := l.Graph().Origin(i).Observation; o >= from && o <= to {
				t.Fatalf("run %d: a vertex of observation %d is left", run, o)
			}
			if v := l.Graph().Multiplicity(i); v < 1 || v != math.Trunc(v) {
				t.Fatalf("run %d: multiplicity %g", run, v)
			}
		}
		data, err := l.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := new(online.Learner).UnmarshalBinary(data); err != nil {
			t.Fatalf("run %d: %v", run, err)
		}
	}
}

// Conflicts along edges are all conflicts: the same as those of each pair of labels.
func TestConflictsOfEachPair(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	space := face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .86, ImpostorRadius: .93}
	l, err := online.New(space, online.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		x, name := []float32{6 * r.Float32(), 6 * r.Float32()}, fmt.Sprint(r.IntN(9))
		teach := l.Label
		if i%7 == 6 && l.Knows(name) {
			teach = l.Reject
		}
		if err := teach(x, name); err != nil {
			t.Fatal(err)
		}
	}
	reach := l.Graph().Config().EdgeRadius()
	for _, within := range []float64{.3, .69, reach, 1.5 * reach} {
		want := make(map[[2]int64]bool)
		labels := l.Labels()
		for i, a := range labels {
			for _, b := range labels[:i] {
				disagree := a.Name == b.Name && a.Negative != b.Negative ||
					a.Name != b.Name && !a.Negative && !b.Negative
				if disagree && graph.Distance(l.Vector(a.ID), l.Vector(b.ID), 1) <= within {
					want[[2]int64{b.ID, a.ID}] = true
				}
			}
		}
		got := l.Conflicts(within)
		for _, c := range got {
			if !want[[2]int64{c.A.ID, c.B.ID}] {
				t.Errorf("within %g: %+v", within, c)
			}
		}
		if len(got) != len(want) || len(want) == 0 {
			t.Errorf("within %g: %d conflicts, want %d", within, len(got), len(want))
		}
	}
}

// To deny truthfully that a face is somebody else's harms nobody: for every pair of people, five denials of B about A's
// faces leave A's faces recognised as before, and all but one in a hundred of B's.
func TestDenialHarmsNobody(t *testing.T) {
	const people, dim, steps = 6, 48, 40
	space := face.Space{ID: "ball", Dim: dim, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, Reach: .86,
		Stills: face.Impostors{Pairs: 1e6, People: 1e3, Distances: [5]float64{1.23, 1.15, 1.08, 1.02, .95}}}
	w := newWalker(people, dim)
	learner := func() *online.Learner {
		l, err := online.New(space, online.Settings{K: 60})
		if err != nil {
			t.Fatal(err)
		}
		for i := range people {
			for q := range 4 {
				if err := l.Label(w.at(i, float64(q)), personName(i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range people {
			var follows []int64
			for q := range steps {
				v, err := l.ObserveFrame([]online.Observation{{Vector: w.at(i, 4+2*float64(q)), Follows: follows,
					As: personName(i)}})
				if err != nil {
					t.Fatal(err)
				}
				if v[0].Stored > 0 {
					follows = []int64{v[0].Stored}
				}
			}
		}
		return l
	}
	recall := func(l *online.Learner, i int) (right int) {
		for q := range steps {
			v, err := l.Judge(w.at(i, 5+2*float64(q)))
			if err != nil {
				t.Fatal(err)
			}
			if v.Label == personName(i) {
				right++
			}
		}
		return right
	}
	before := learner()
	data, err := before.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for a := range people {
		for b := range people {
			if a == b {
				continue
			}
			var l online.Learner
			if err := l.UnmarshalBinary(data); err != nil {
				t.Fatal(err)
			}
			for q := range 5 {
				if err := l.Reject(w.at(a, 6+8*float64(q)), personName(b)); err != nil {
					t.Fatal(err)
				}
			}
			if was, is := recall(before, a), recall(&l, a); is != was || was < steps/2 {
				t.Errorf("%d of %d faces of %s are recognised after it was denied that they are %s's, and %d before", is,
					steps, personName(a), personName(b), was)
			}
			if was, is := recall(before, b), recall(&l, b); is < was-steps/100 {
				t.Errorf("%d of %d faces of %s are recognised after a denial, and %d before", is, steps, personName(b), was)
			}
		}
	}
}
