// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
)

func parallel(t testing.TB, split online.Split, workers int) *online.Parallel {
	t.Helper()
	p, err := online.NewParallel(plane, online.Settings{K: 30}, split, workers)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"alice", "bob", "carol"} {
		for _, y := range []float32{-.1, .1} {
			if err := p.Label([]float32{2 * float32(i), y}, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

// The results do not depend on the number of workers, or on chance.
func TestParallelWorkers(t *testing.T) {
	for split, graphs := range map[online.Split]int{online.PerPerson: 3, online.PerExample: 6} {
		one, many := parallel(t, split, 1), parallel(t, split, 4)
		if n := len(one.Learners()); n != graphs || fmt.Sprint(one.Names()) != "[alice bob carol]" {
			t.Errorf("%s: %d graphs of %v", split, n, one.Names())
		}
		recognised := 0
		for i, x := range faces(50, 400) {
			a, err := one.Observe(x)
			if err != nil {
				t.Fatal(err)
			}
			b, err := many.Observe(x)
			if err != nil {
				t.Fatal(err)
			}
			if a != b {
				t.Fatalf("%s, face %d: %+v by one worker, %+v by four", split, i, a, b)
			}
			if a.Label != "" {
				recognised++
			}
		}
		if recognised < 200 {
			t.Errorf("%s: %d of 400 faces recognised", split, recognised)
		}
	}
}

// If people do not touch in the space, separate graphs give the same verdicts as one graph.
func TestParallelAgreesWithOneGraph(t *testing.T) {
	p, l := parallel(t, online.PerPerson, 2), learner(t, online.Settings{K: 90})
	for i, x := range faces(51, 300) {
		a, err := p.Observe(x)
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Observe(x)
		if err != nil {
			t.Fatal(err)
		}
		if a.Label != b.Label {
			t.Fatalf("face %d: %q, and %q by one graph", i, a.Label, b.Label)
		}
	}
}

func TestParallelTie(t *testing.T) {
	p, err := online.NewParallel(plane, online.Settings{}, online.PerPerson, 2)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := p.Observe([]float32{0, 0}); err != nil || v.Label != "" || v.Reason != online.Outlier {
		t.Errorf("nobody labelled: %+v, %v", v, err)
	}
	p.Label([]float32{0, -.5}, "alice")
	p.Label([]float32{0, .5}, "bob")
	if v, err := p.Observe([]float32{0, 0}); err != nil || v.Label != "" || v.Reason != online.Tie {
		t.Errorf("in the middle: %+v, %v", v, err)
	}
	if v, err := p.Observe([]float32{0, .6}); err != nil || v.Label != "bob" {
		t.Errorf("near bob: %+v, %v", v, err)
	}
}

func TestParallelErrors(t *testing.T) {
	for _, f := range []func() (*online.Parallel, error){
		func() (*online.Parallel, error) { return online.NewParallel(plane, online.Settings{}, "room", 1) },
		func() (*online.Parallel, error) {
			return online.NewParallel(plane, online.Settings{}, online.PerPerson, -1)
		},
		func() (*online.Parallel, error) {
			return online.NewParallel(plane, online.Settings{K: -1}, online.PerPerson, 1)
		},
	} {
		if _, err := f(); !errors.Is(err, online.ErrSettings) {
			t.Errorf("error %v", err)
		}
	}
	p := parallel(t, online.PerExample, 2)
	if _, err := p.Observe([]float32{1}); !errors.Is(err, face.ErrDimension) {
		t.Errorf("error %v", err)
	}
	if err := p.Label([]float32{1, 1}, ""); !errors.Is(err, online.ErrName) || len(p.Learners()) != 6 {
		t.Errorf("error %v", err)
	}
}
