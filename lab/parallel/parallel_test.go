// SPDX-License-Identifier: Apache-2.0

package parallel_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/parallel"
	"github.com/faceauth/faceauth/online"
)

// plane is a simple space in which a person can be drawn as a spot.
var plane = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, ImpostorRadius: .9}

// faces returns a stream of faces of three people and a stranger.
func faces(seed uint64, n int) (xs [][]float32) {
	r := rand.New(rand.NewPCG(seed, 11))
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

func set(t testing.TB, split parallel.Split, workers int) *parallel.Set {
	t.Helper()
	p, err := parallel.New(plane, online.Settings{K: 30}, split, workers)
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
	for split, graphs := range map[parallel.Split]int{parallel.PerPerson: 3, parallel.PerExample: 6} {
		one, many := set(t, split, 1), set(t, split, 4)
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
	p := set(t, parallel.PerPerson, 2)
	l, err := online.New(plane, online.Settings{K: 90})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"alice", "bob", "carol"} {
		if err := l.LabelAll([][]float32{{2 * float32(i), -.1}, {2 * float32(i), .1}}, name); err != nil {
			t.Fatal(err)
		}
	}
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
	p, err := parallel.New(plane, online.Settings{}, parallel.PerPerson, 2)
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
	for _, f := range []func() (*parallel.Set, error){
		func() (*parallel.Set, error) { return parallel.New(plane, online.Settings{}, "room", 1) },
		func() (*parallel.Set, error) {
			return parallel.New(plane, online.Settings{}, parallel.PerPerson, -1)
		},
		func() (*parallel.Set, error) {
			return parallel.New(plane, online.Settings{K: -1}, parallel.PerPerson, 1)
		},
	} {
		if _, err := f(); !errors.Is(err, online.ErrSettings) {
			t.Errorf("error %v", err)
		}
	}
	p := set(t, parallel.PerExample, 2)
	if _, err := p.Observe([]float32{1}); !errors.Is(err, face.ErrDimension) {
		t.Errorf("error %v", err)
	}
	if err := p.Label([]float32{1, 1}, ""); !errors.Is(err, online.ErrName) || len(p.Learners()) != 6 {
		t.Errorf("error %v", err)
	}
}
