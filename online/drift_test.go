// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/online"
)

// A person who is replaced step by step raises the alarm. A person who looks to both sides in turn does not.
func TestDrift(t *testing.T) {
	r := rand.New(rand.NewPCG(60, 0))
	for name, c := range map[string]struct {
		at    func(i int) float64
		alarm bool
	}{
		"turning to and fro": {func(i int) float64 { return .6 * math.Sin(float64(i)/15) }, false},
		"replaced":           {func(i int) float64 { return float64(i) / 100 }, true},
	} {
		l, err := online.New(plane, online.Settings{K: 100, DriftDistance: .8})
		if err != nil {
			t.Fatal(err)
		}
		l.Label([]float32{0, 0}, "alice")
		if d, err := l.Drift("alice"); err != nil || d.Distance != 0 || d.Alarm {
			t.Errorf("before anything is learned: %+v, %v", d, err)
		}
		for i := range 300 {
			if _, err := l.Observe([]float32{float32(.03 * r.NormFloat64()), float32(c.at(i))}); err != nil {
				t.Fatal(err)
			}
		}
		d, err := l.Drift("alice")
		if err != nil || d.Alarm != c.alarm || d.Learned < 290 {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	l := learner(t, online.Settings{})
	if _, err := l.Drift("eve"); !errors.Is(err, online.ErrUnknown) {
		t.Errorf("error %v", err)
	}
}

// A cap limits the number of learned faces of one person in a window. It does not limit verdicts.
func TestLearnCap(t *testing.T) {
	l := learner(t, online.Settings{K: 300, LearnCap: 5, LearnWindow: 50})
	learned := map[string]int{}
	for i, x := range faces(61, 400) {
		if i%50 == 49 { // observations count from 1, and a window begins at a multiple of 50
			clear(learned)
		}
		v, err := l.Observe(x)
		if err != nil {
			t.Fatal(err)
		}
		if v.Learned {
			learned[v.Label]++
		}
		if v.Label != "" && learned[v.Label] > 5 {
			t.Fatalf("face %d: %d faces of %s were learned in one window", i, learned[v.Label], v.Label)
		}
	}
	if m := l.Graph().Mass(); m < 60 || m > 3*5*9 {
		t.Errorf("mass %g: the stream tests too little", m)
	}
	// A snapshot in the middle of a window keeps the number of faces that the window has used.
	var back online.Learner
	if err := back.UnmarshalBinary(snapshot(t, l)); err != nil {
		t.Fatal(err)
	}
	for i, x := range faces(62, 100) {
		a, err := l.Observe(x)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := back.Observe(x); err != nil || a != b {
			t.Fatalf("face %d: %+v, and %+v after a restart; %v", i, a, b, err)
		}
	}
}

// A cap holds from the window in which it is set. Windows of another length begin from the start.
func TestLearnCapSetLater(t *testing.T) {
	l, err := online.New(plane, online.Settings{LearnWindow: 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Label([]float32{0, 0}, "alice"); err != nil {
		t.Fatal(err)
	}
	learned := func() bool {
		t.Helper()
		v, err := l.Observe([]float32{.01, 0})
		if err != nil || v.Label != "alice" {
			t.Fatalf("%+v, %v", v, err)
		}
		return v.Learned
	}
	set := func(capacity, window int) {
		t.Helper()
		s := l.Settings()
		s.LearnCap, s.LearnWindow = capacity, window
		if err := l.Configure(s); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		learned()
	}
	set(3, 10)
	if learned() {
		t.Error("a fourth face was learned in a window of three")
	}
	for l.Counts().Observed < 28 {
		learned()
	}
	set(3, 10) // window 2 is used up
	if learned() {
		t.Error("a fourth face was learned in the third window")
	}
	set(3, 15) // and observation 30 is in window 2 of these longer windows
	if !learned() {
		t.Error("a window of 15 was taken for one of 10")
	}
}
