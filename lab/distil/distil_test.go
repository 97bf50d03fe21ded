// SPDX-License-Identifier: Apache-2.0

package distil_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/distil"
	"github.com/faceauth/faceauth/online"
)

// plane is a simple space in which a person can be drawn as a spot.
var plane = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .3, Gamma: 1e-3}

func Example() {
	l, err := online.New(plane, online.Settings{})
	if err != nil {
		panic(err)
	}
	if err := l.Label([]float32{0, 0}, 1); err != nil {
		panic(err)
	}
	for i := range 20 { // a head that turns
		if _, err := l.Observe([]float32{float32(i) / 10, 0}); err != nil {
			panic(err)
		}
	}
	v, err := distil.New(l, 1, distil.Settings{})
	if err != nil {
		panic(err)
	}
	turned, err := v.Accepts([]float32{1.8, .1})
	if err != nil {
		panic(err)
	}
	stranger, err := v.Accepts([]float32{1, 3})
	if err != nil {
		panic(err)
	}
	fmt.Println(turned, stranger)
	// Output: true false
}

// learner returns a learner that knows alice around (0,0) and, if others is set, bob around (5,0). Both have moved two
// to the right.
func learner(t *testing.T, others bool) *online.Learner {
	t.Helper()
	l, err := online.New(plane, online.Settings{K: 60})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	people := map[online.Person]float32{1: 0}
	if others {
		people[2] = 5
	}
	for _, p := range []online.Person{1, 2} {
		at, ok := people[p]
		if !ok {
			continue
		}
		for range 3 {
			if err := l.Label([]float32{at + .1*r.Float32(), .1 * r.Float32()}, p); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 100 {
			if _, err := l.Observe([]float32{at + float32(i)/50, .2 * r.Float32()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return l
}

func TestVerifier(t *testing.T) {
	for _, others := range []bool{false, true} {
		l := learner(t, others)
		before, err := l.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		v, err := distil.New(l, 1, distil.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		after, err := l.MarshalBinary()
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("the learner changed: %v", err)
		}
		if v.Support() == 0 || v.Support() > l.Graph().Len() {
			t.Errorf("%d support vectors of %d", v.Support(), l.Graph().Len())
		}
		for _, c := range []struct {
			x    []float32
			want bool
		}{{[]float32{0, 0}, true}, {[]float32{1, .1}, true}, {[]float32{2, .1}, true}, {[]float32{1, 4}, false},
			{[]float32{-4, 0}, false}, {[]float32{6, 0}, false}, {[]float32{1e6, 1e6}, false}} {
			if got, err := v.Accepts(c.x); err != nil || got != c.want {
				t.Errorf("others %v: face %v accepted %v, error %v", others, c.x, got, err)
			}
		}
		if f, err := v.Value([]float32{6, 0}); others && (err != nil || f >= 0) {
			t.Errorf("bob's face has the value %g, error %v", f, err)
		}
	}
}

// Rejected faces are on the other side of the boundary.
func TestRejected(t *testing.T) {
	l := learner(t, false)
	if err := l.Reject([]float32{2.3, .1}, 1); err != nil {
		t.Fatal(err)
	}
	v, err := distil.New(l, 1, distil.Settings{Width: .1})
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := v.Accepts([]float32{2.3, .1}); ok || err != nil {
		t.Errorf("rejected face accepted %v, error %v", ok, err)
	}
}

func TestErrors(t *testing.T) {
	l := learner(t, true)
	if _, err := distil.New(l, 3, distil.Settings{}); !errors.Is(err, online.ErrUnknown) {
		t.Error(err)
	}
	for _, s := range []distil.Settings{{Width: -1}, {Width: math.NaN()}, {Gamma: -1}, {Epsilon: 2},
		{Threshold: math.Inf(1)}, {Threshold: -1}} {
		if _, err := distil.New(l, 1, s); !errors.Is(err, distil.ErrSettings) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	v, err := distil.New(l, 1, distil.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range [][]float32{nil, {1}, {float32(math.NaN()), 0}} {
		if _, err := v.Accepts(x); err == nil {
			t.Errorf("%v was judged without an error", x)
		}
	}
}
