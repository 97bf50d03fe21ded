// SPDX-License-Identifier: Apache-2.0

package parallel_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
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

func set(t testing.TB, workers int) *parallel.Set {
	t.Helper()
	p := fixture.Must(parallel.New(plane, online.Settings{K: 30}, workers))(t)
	for i := range 3 {
		for _, y := range []float32{-.1, .1} {
			fixture.Check(t, p.Label([]float32{2 * float32(i), y}, online.Person(i+1)))
		}
	}
	return p
}

// The results do not depend on the number of workers, or on chance.
func TestParallelWorkers(t *testing.T) {
	one, many := set(t, 1), set(t, 4)
	recognised := 0
	for i, x := range faces(50, 400) {
		a := fixture.Must(one.Observe(x))(t)
		b := fixture.Must(many.Observe(x))(t)
		if a != b {
			t.Fatalf("face %d: %+v by one worker, %+v by four", i, a, b)
		}
		if a.Person != 0 {
			recognised++
		}
	}
	if recognised < 200 {
		t.Errorf("%d of 400 faces recognised", recognised)
	}
}

func TestParallelTie(t *testing.T) {
	p, err := parallel.New(plane, online.Settings{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := p.Observe([]float32{0, 0}); err != nil || v.Person != 0 ||
		v.Reason != online.Outlier {
		t.Errorf("nobody labelled: %+v, %v", v, err)
	}
	p.Label([]float32{0, -.5}, 1)
	p.Label([]float32{0, .5}, 2)
	if v, err := p.Observe([]float32{0, 0}); err != nil || v.Person != 0 || v.Reason != online.Tie {
		t.Errorf("in the middle: %+v, %v", v, err)
	}
	if v, err := p.Observe([]float32{0, .6}); err != nil || v.Person != 2 {
		t.Errorf("near bob: %+v, %v", v, err)
	}
}

func TestParallelErrors(t *testing.T) {
	for _, f := range []func() (*parallel.Set, error){
		func() (*parallel.Set, error) {
			return parallel.New(plane, online.Settings{}, -1)
		},
		func() (*parallel.Set, error) {
			return parallel.New(plane, online.Settings{K: -1}, 1)
		},
	} {
		if _, err := f(); !errors.Is(err, online.ErrSettings) {
			t.Errorf("error %v", err)
		}
	}
	p := set(t, 2)
	if _, err := p.Observe([]float32{1}); !errors.Is(err, face.ErrVector) {
		t.Errorf("error %v", err)
	}
	if err := p.Label([]float32{1, 1}, 0); !errors.Is(err, online.ErrUnknown) {
		t.Errorf("error %v", err)
	}
}
