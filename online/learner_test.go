// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
)

// plane is a simple space in which a person can be drawn as a spot.
const alice, bob, carol online.Person = 1, 2, 3

func personOf(i int) online.Person { return online.Person(i + 1) }

var plane = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, ImpostorRadius: .9}

func Example() {
	l, err := online.New(plane, online.Settings{K: 50})
	if err != nil {
		panic(err)
	}
	l.Label([]float32{0, 0}, alice)
	l.Label([]float32{3, 0}, bob)
	// Alice turns her head, step by step, far beyond what she was labelled with.
	for i := range 10 {
		l.Observe([]float32{0, .3 * float32(i)})
	}
	for _, x := range [][]float32{{0, 2.9}, {3, .1}, {-3, -3}} {
		v, err := l.Observe(x)
		if err != nil {
			panic(err)
		}
		fmt.Printf("person %d, confidence %.2f, reason %q\n", v.Person, v.Confidence, v.Reason)
	}
	// Output:
	// person 1, confidence 0.88, reason ""
	// person 2, confidence 1.00, reason ""
	// person 0, confidence 0.00, reason "not near anybody known"
}

// faces returns a stream of labelled and unlabelled faces of three people and a stranger.
func faces(seed uint64, n int) [][]float32 {
	r := rand.New(rand.NewPCG(seed, 11))
	var xs [][]float32
	for range n {
		person := float64(r.IntN(4))
		x := []float32{float32(2*person + .15*r.NormFloat64()), float32(.5 * r.NormFloat64())}
		if person == 3 {
			x[1] += 20
		}
		xs = append(xs, x)
	}
	return xs
}

func learner(t *testing.T, s online.Settings) *online.Learner {
	t.Helper()
	l := fixture.Must(online.New(plane, s))(t)
	for i, name := range []online.Person{alice, bob, carol} {
		for _, y := range []float32{-.1, .1} {
			fixture.Check(t, l.Label([]float32{2 * float32(i), y}, name))
		}
	}
	return l
}

func snapshot(t *testing.T, l *online.Learner) []byte {
	t.Helper()
	return fixture.Must(l.MarshalBinary())(t)
}

func TestSameStreamSameBytes(t *testing.T) {
	run := func() []byte {
		l := learner(t, online.Settings{K: 25})
		for _, x := range faces(1, 500) {
			fixture.Must(l.Observe(x))(t)
		}
		return snapshot(t, l)
	}
	if !bytes.Equal(run(), run()) {
		t.Error("two runs over one stream differ")
	}
}

func TestWarnings(t *testing.T) {
	l, _ := online.New(plane, online.Settings{})
	if w := l.Warnings(); w != nil {
		t.Errorf("defaults: %q", w)
	}
	l, _ = online.New(plane, online.Settings{Sigma: .24})
	if w := l.Warnings(); len(w) != 1 || !strings.HasPrefix(w[0],
		"edges of this graph reach 1.03, and faces of two people are met from 0.9 on") {
		t.Errorf("near the cliff: %q", w)
	}
	l, _ = online.New(plane, online.Settings{K: 3})
	for i := range 9 {
		l.Label([]float32{float32(10 * i), 0}, personOf(i))
	}
	for i := range 9 {
		if v, _ := l.Observe([]float32{float32(10*i) + .1, 0}); v.Person != personOf(i) ||
			v.Learned == v.NoRoom || v.NoRoom != (i > 3) {
			t.Errorf("person %d: %+v", i, v)
		}
	}
	if c := l.Counts(); !l.Room().Full || c.PassedOver != 5 || c.Learned != 4 {
		t.Errorf("full %t, %+v", l.Room().Full, c)
	}
	const full = "k = 3 is full: known faces are recognised, and most new ones are not learned " +
		"(5 so far); use a k of about 110, or take back learned faces"
	if w := l.Warnings(); len(w) != 1 || w[0] != full {
		t.Errorf("k too small: %q", w)
	}
	var back online.Learner
	if err := back.UnmarshalBinary(snapshot(t, l)); err != nil || !back.Room().Full {
		t.Errorf("restored: full %t, %v", back.Room().Full, err)
	}
	if n, err := l.Undo(3); err != nil || n != 1 || l.Room().Full {
		t.Errorf("%d undone, full %t, %v", n, l.Room().Full, err)
	}
}

func TestSettingsErrors(t *testing.T) {
	for _, s := range []online.Settings{
		{K: -1}, {K: math.MaxInt}, {K: 1 << 28}, {Reach: -2}, {Reach: math.NaN()},
		{Sigma: -1}, {Sigma: math.NaN()}, {Gamma: -1}, {Gamma: math.Inf(1)},
		{Accept: 2}, {Accept: math.NaN()}, {Learn: -1},
	} {
		if _, err := online.New(plane, s); !errors.Is(err, online.ErrSettings) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// A caller may use one buffer for all faces: what a learner has learned, and has told of, stays.
func TestOneBuffer(t *testing.T) {
	l, same := learner(t, online.Settings{K: 20}), learner(t, online.Settings{K: 20})
	var told []online.Taught
	l.OnLearned(func(face online.Taught) { told = append(told, face) })
	var buffer []float32
	var learned [][]float32
	for _, x := range faces(31, 60) {
		buffer = append(buffer[:0], x...)
		v := fixture.Must(l.Observe(buffer))(t)
		if v.Learned {
			learned = append(learned, x)
		}
		fixture.Must(same.Observe(x))(t)
		clear(buffer)
	}
	if !bytes.Equal(snapshot(t, l), snapshot(t, same)) {
		t.Error("another learner than with a buffer for each face")
	}
	if len(told) == 0 || len(told) != len(learned) {
		t.Fatalf("told of %d faces, learned %d", len(told), len(learned))
	}
	for i, x := range learned {
		if !slices.Equal(told[i].Vector, x) {
			t.Fatalf("face %d was %v, and is told as %v", i, x, told[i].Vector)
		}
	}
}

// A face that a wrong clock has stamped in the future does not widen an undo, unless all later
// faces have such stamps.
func TestUndoSinceFuture(t *testing.T) {
	begin := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	now := begin.Add(130 * time.Minute)
	for _, c := range []struct{ from, to, want int }{{20, 21, 121}, {125, 126, 121},
		{121, 130, 121}, {110, 130, 110}} {
		l, same := learner(t, online.Settings{K: 20}), learner(t, online.Settings{K: 20})
		for i, x := range faces(31, 130) {
			at := begin.Add(time.Duration(i) * time.Minute)
			if i >= c.from && i < c.to {
				at = begin.AddDate(10, 0, 0)
			}
			for _, l := range []*online.Learner{l, same} {
				l.SetTime(at)
				fixture.Must(l.Observe(x))(t)
			}
		}
		got, err := l.UndoSince(begin.Add(120*time.Minute), now)
		want, wantErr := same.Undo(int64(c.want))
		if err != nil || wantErr != nil || got != want || want == 0 {
			t.Errorf("faces %d to %d in the future: %d undone, want %d; %v, %v", c.from, c.to, got,
				want, err, wantErr)
		}
	}
}

// raw returns a vector in the form that a snapshot has.
func raw(x []float32) []byte {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// After a person is forgotten, there is no labelled face of the person, no face that was accepted
// as theirs, and no name.
func TestForgetLeavesNothing(t *testing.T) {
	l := learner(t, online.Settings{K: 300})
	var bobs [][]float32
	for _, x := range faces(33, 200) {
		v := fixture.Must(l.Observe(x))(t)
		if v.Person == bob {
			bobs = append(bobs, x)
		}
	}
	if len(bobs) < 20 || !bytes.Contains(snapshot(t, l), raw(bobs[0])) {
		t.Fatalf("%d faces of bob: the stream tests too little", len(bobs))
	}
	fixture.Check(t, l.Forget(bob))
	after := snapshot(t, l)
	for _, x := range append(bobs, []float32{2, -.1}, []float32{2, .1}) {
		if bytes.Contains(after, raw(x)) {
			t.Fatal("a face of bob is still in the snapshot")
		}
	}
	var back online.Learner
	fixture.Check(t, back.UnmarshalBinary(after))
}

// A step that adds no vertex allocates its result and no more, whatever the verdict is and however
// large the graph.
func TestAllocations(t *testing.T) {
	l := learner(t, online.Settings{K: 2000})
	stream := faces(40, 3000)
	for _, x := range stream[:500] {
		l.Observe(x)
	}
	// A learner with many rejected faces.
	told := learner(t, online.Settings{K: 2000})
	for _, x := range stream[:8] {
		fixture.Check(t, told.Reject(x, alice))
	}
	for _, x := range stream[:500] {
		told.Observe(x)
	}
	frozen := told.Settings()
	frozen.Freeze = true
	still := learner(t, frozen)
	nowhere, near := []float32{-50, -50}, []float32{0, .1}
	for name, f := range map[string]func(){
		"merged":   func() { l.Observe(stream[0]) },
		"outlier":  func() { l.Observe(nowhere) },
		"judged":   func() { l.Judge(stream[1]) },
		"rejected": func() { told.Observe(stream[0]) },
		"frozen":   func() { still.Observe(near) },
	} {
		if n := testing.AllocsPerRun(300, f); n > 3 {
			t.Errorf("%s: %g allocations a step", name, n)
		}
	}
}

// The format of a snapshot does not change while its version stays: the golden file is read, and
// written again byte for byte.
func TestGoldenSnapshot(t *testing.T) {
	path := fixture.Golden(t, "snapshot.cbor", func(path string) error {
		return os.WriteFile(path, small(t), 0o600)
	})
	want := fixture.Must(os.ReadFile(path))(t)
	var l online.Learner
	fixture.Check(t, l.UnmarshalBinary(want))
	if !bytes.Equal(snapshot(t, &l), want) {
		t.Error("a learner from the golden file writes other bytes")
	}
	if l.Graph().Learned() == 0 {
		t.Error("the golden file has no learned faces")
	}
}

// Of two faces in a frame that look like one person the nearer one is the person, even if the other
// is surer: nobody else is near that one.
func TestNearerFaceIsThePerson(t *testing.T) {
	l := fixture.Must(online.New(plane, online.Settings{}))(t)
	fixture.Check(t, l.Label([]float32{0, 0}, alice))
	fixture.Check(t, l.Label([]float32{-.35, 0}, bob))
	near, sure := []float32{-.15, 0}, []float32{.3, 0}
	a, b := fixture.Must(l.Judge(near))(t), fixture.Must(l.Judge(sure))(t)
	if a.Person != alice || b.Person != alice || a.Confidence >= b.Confidence {
		t.Fatalf("%+v, %+v", a, b)
	}
	v := fixture.Must(l.ObserveFrame([]online.Observation{{Vector: sure}, {Vector: near}}))(t)
	if v[0].Reason != online.BetterFace || v[0].Learned || v[1].Person != alice {
		t.Errorf("%+v", v)
	}
}
