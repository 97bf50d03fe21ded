// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
)

// The learner sees a million faces of three people who wander without end, and of strangers. Memory, the number of
// vertices and the time of a step do not grow, and no value stops being a number.
func TestSystemSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("a million steps take a while")
	}
	const steps = 1_000_000
	space := face.Space{ID: "soak", Dim: 4, Scale: 1, Sigma: .2, Gamma: 1e-3}
	l, err := online.New(space, online.Settings{K: 60})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(77, 1))
	at := func(person, step int) []float32 {
		u := float64(step) / 20_000
		x := []float32{float32(5 * person), float32(.8 * math.Sin(u)), float32(.8 * math.Cos(1.3*u)), 0}
		for i := range x {
			x[i] += float32(.08 * r.NormFloat64())
		}
		return x
	}
	for person, name := range []string{"alice", "bob", "carol"} {
		for i := range 4 {
			if err := l.Label(at(person, i), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	const parts = 10
	var heap [parts]uint64
	young := filepath.Join(t.TempDir(), "young") // the learner at step 300,000, when everybody has been everywhere
	wrong := 0
	for part := range parts {
		for i := range steps / parts {
			step := part*steps/parts + i
			person := r.IntN(4) // 3 is nobody
			v, err := l.Observe(at(person, step))
			if err != nil {
				t.Fatal(err)
			}
			if math.IsNaN(v.Confidence) || v.Confidence < 0 || v.Confidence > 1+1e-6 || math.IsNaN(v.Sink) {
				t.Fatalf("step %d: %+v", step, v)
			}
			if want := []string{"alice", "bob", "carol", ""}[person]; v.Label != want {
				wrong++
			}
			if n := l.Graph().Learned(); n > 61 {
				t.Fatalf("step %d: %d centroids", step, n)
			}
		}
		heap[part] = measure(t).heap
		if part == 2 {
			b, err := l.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(young, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d steps, %d wrong; heap by tenths %v; mass %g, R %.3g", steps, wrong, heap, l.Graph().Mass(),
		l.Graph().R())
	if float64(heap[parts-1]) > 1.02*float64(heap[0]) {
		t.Errorf("the heap grew from %d to %d bytes", heap[0], heap[parts-1])
	}

	// The young learner and the old one judge the same faces in turn. The fastest of many turns counts, so that other
	// work on the machine does not.
	early := new(online.Learner)
	if b, err := os.ReadFile(young); err != nil {
		t.Fatal(err)
	} else if err := early.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	fastest := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	faces := make([][]float32, 500)
	for turn := range 100 {
		for i := range faces {
			faces[i] = at(r.IntN(4), steps+turn*len(faces)+i)
		}
		for j, l := range []*online.Learner{early, l} {
			begun := time.Now()
			for _, x := range faces {
				if _, err := l.Observe(x); err != nil {
					t.Fatal(err)
				}
			}
			fastest[j] = min(fastest[j], time.Since(begun))
		}
	}
	t.Logf("%d steps take %v after 300,000 and %v after 1,000,000", len(faces), fastest[0], fastest[1])
	if fastest[1] > 2*fastest[0] {
		t.Errorf("%d steps took %v after 300,000, and %v after 1,000,000", len(faces), fastest[0], fastest[1])
	}
	if wrong > steps/100 {
		t.Errorf("%d of %d verdicts are wrong: this is not the stream that was meant", wrong, steps)
	}
	if b, err := l.MarshalBinary(); err != nil {
		t.Error(err)
	} else if err := new(online.Learner).UnmarshalBinary(b); err != nil {
		t.Errorf("what a million steps made cannot be restored: %v", err)
	}
}
