// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
)

// sphere is a space like that of an embedding.
var sphere = face.Space{ID: "sphere", Dim: 512, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3}

// walker returns faces of a few people. Each person turns slowly and without end.
type walker struct {
	dim  int
	r    *rand.Rand
	axes [][5][]float64 // of each person: the middle, and four directions to turn in
}

func newWalker(people, dim int) *walker {
	w := &walker{dim: dim, r: rand.New(rand.NewPCG(8, 15))}
	for range people {
		var a [5][]float64
		for q := range a {
			a[q] = make([]float64, dim)
			for i := range a[q] {
				a[q][i] = w.r.NormFloat64() / math.Sqrt(float64(dim))
			}
		}
		w.axes = append(w.axes, a)
	}
	return w
}

// at returns a face of a person; it is further from the middle for a larger t.
func (w *walker) at(person int, t float64) []float32 {
	a := w.axes[person]
	x := make([]float32, w.dim)
	var turn [5]float64
	turn[0] = 1
	for q, period := range []float64{8, 19, 31, 43} {
		turn[q+1] = .55 * math.Sin(t/period)
	}
	var sum float64
	for i := range x {
		f := .14 / math.Sqrt(float64(w.dim)) * w.r.NormFloat64()
		for q := range a {
			f += turn[q] * a[q][i]
		}
		x[i] = float32(f)
		sum += f * f
	}
	for i := range x {
		x[i] /= float32(math.Sqrt(sum))
	}
	return x
}

// memory is the memory of a process, in bytes.
type memory struct {
	heap     uint64 // alive on Go's heap
	resident uint64 // of the whole process; 0 if the system does not report it
}

func measure(t *testing.T) (m memory) {
	t.Helper()
	debug.FreeOSMemory()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	m.heap = s.HeapAlloc
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		pages := fixture.Must(strconv.ParseUint(strings.Fields(string(b))[1], 10, 64))(t)
		m.resident = pages * uint64(os.Getpagesize())
	}
	return m
}

// After 40,000 steps a learner takes no more memory than after 20,000 steps, when it has had all
// its 500 centroids several times, and 16,384 entries in its journal. The test checks the heap,
// which is exact. The resident memory of such a small process varies by a few per cent because of
// the runtime, and is only logged for lab/NOTES.md.
func TestMemoryFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("40,000 steps take a while")
	}
	early, late := stroll(t)
	const mb = 1e6
	t.Logf("after 20,000 steps heap %.2f MB, resident %.1f MB; after 40,000 steps heap %.2f MB, "+
		"resident %.1f MB",
		float64(early.heap)/mb, float64(early.resident)/mb, float64(late.heap)/mb,
		float64(late.resident)/mb)
	if float64(late.heap) > 1.01*float64(early.heap) {
		t.Errorf("the heap grew from %d to %d bytes", early.heap, late.heap)
	}
}

// stroll shows a learner 40,000 faces, and returns the memory after the first 20,000 and at the
// end.
func stroll(t *testing.T) (early, late memory) {
	t.Helper()
	const people = 4
	w := newWalker(people, sphere.Dim)
	l := fixture.Must(online.New(sphere, online.Settings{K: 500}))(t)
	for i := range people {
		for q := range 4 {
			fixture.Check(t, l.Label(w.at(i, float64(q)), personOf(i)))
		}
	}
	right := 0
	for step := range 40_000 {
		v := fixture.Must(l.Observe(w.at(step%people, float64(step/people))))(t)
		if v.Person == personOf(step%people) {
			right++
		}
		if step == 19_999 {
			early = measure(t)
		}
	}
	if right < 39_600 {
		t.Errorf("%d of 40,000 verdicts are right: this is not the stream that was meant", right)
	}
	if n := l.Graph().Len(); n > 501 {
		t.Errorf("%d vertices", n)
	}
	late = measure(t)
	runtime.KeepAlive(l)
	return early, late
}
