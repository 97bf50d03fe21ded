// SPDX-License-Identifier: Apache-2.0

package anomaly_test

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/anomaly"
	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

// The scores, margins and edges by neighbours are those of the dense matrices.
func TestNear(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 9))
	for run := range 60 {
		n := 2 + rnd.IntN(60)
		if run%20 == 0 {
			n = 700 // more than a tile
		}
		x, y := points(rnd, n, 2+rnd.IntN(4))
		if y[len(y)-1] == y[0] {
			y[0]++
		}
		v := make([]float64, len(x))
		for i := range x {
			x[i][0] *= 4
			v[i] = float64(1 + rnd.IntN(5))
		}
		scale := .5 + rnd.Float64()
		kernel := quantized.Kernel{Denominator: .05 + .2*rnd.Float64()}
		least := kernel.Weight(.2 + .5*rnd.Float64())
		d := dense.Distances(x, scale)
		w := dense.Similarity(d, kernel, least)
		want := scores(t, w, v, y, .1, .01)
		near := anomaly.Near(x, y, scale, kernel, least)
		edges := 0
		for i, all := range near.Edges {
			if got, want := near.OwnMinusOther(i), margin(d, y, i); got != want {
				t.Fatalf("run %d, margin of %d: %g, want %g", run, i, got, want)
			}
			for _, e := range all {
				if e.Weight != w.At(i, e.To) || e.Distance != d.At(i, e.To) {
					t.Fatalf("run %d, edge %d, %d: %+v, want %g", run, i, e.To, e, w.At(i, e.To))
				}
				edges++
			}
		}
		for i := range x {
			for j := range i {
				if w.At(i, j) > 0 {
					edges -= 2
				}
			}
		}
		if edges != 0 {
			t.Fatalf("run %d: %d edges too many", run, edges)
		}
		agree := func(what string, most float64) {
			got := near.SoftHarmonic(v, .1, .01)
			for i := range got {
				if math.Abs(got[i]-want[i]) > most {
					t.Fatalf("run %d, %s: the score of %d is %g, want %g", run, what, i, got[i],
						want[i])
				}
			}
		}
		back := anomaly.SetDirect(len(x))
		agree("directly", 1e-9)
		anomaly.SetDirect(0)
		agree("step by step", 2*anomaly.Tolerance)
		back()
	}
}

// margin returns the distance of an example to the nearest of its class minus that to the nearest
// of another, or 0.
func margin(d mat.Symmetric, y []int, i int) float64 {
	var own, other []float64
	for j := range y {
		switch {
		case j == i:
		case y[j] == y[i]:
			own = append(own, d.At(i, j))
		default:
			other = append(other, d.At(i, j))
		}
	}
	if len(own) == 0 || len(other) == 0 {
		return 0
	}
	return slices.Min(own) - slices.Min(other)
}

// Ten thousand people with four vectors each, as the network makes them: one pair of people in some
// thousands is nearer than an edge. A figure of lab/NOTES.md; otherwise a thousand people.
func TestNearMany(t *testing.T) {
	people := 1000
	if os.Getenv("FACEAUTH_FIGURES") != "" {
		people = 10_000
	}
	if testing.Short() {
		t.Skip("it takes a while")
	}
	const dim, alike = 512, 48
	r := rand.New(rand.NewPCG(1, 1))
	var x [][]float32
	var y []int
	for p := range people {
		at := make([]float64, alike)
		for i := range at {
			at[i] = r.NormFloat64() / math.Sqrt(alike)
		}
		for range 4 {
			v, sum := make([]float32, dim), 0.
			for i := range v {
				f := .6 * r.NormFloat64() / math.Sqrt(dim)
				if i < alike {
					f += at[i]
				}
				v[i] = float32(f)
				sum += f * f
			}
			for i := range v {
				v[i] /= float32(math.Sqrt(sum))
			}
			x, y = append(x, v), append(y, p)
		}
	}
	v := slices.Repeat([]float64{1}, len(x))
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	kernel := quantized.Kernel{Denominator: 3.5 * 3.5 * .08}
	near := anomaly.Near(x, y, 1, kernel, kernel.Weight(1.3*.86))
	scores := near.SoftHarmonic(v, .1, .01)
	runtime.ReadMemStats(&after)
	edges := 0
	for i, all := range near.Edges {
		edges += len(all)
		if scores[i] > 1.2 {
			t.Fatalf("example %d of one person has a score of %g", i, scores[i])
		}
	}
	allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
	t.Logf("%d vectors: %.1f neighbours each, %d MB allocated, %v", len(x),
		float64(edges)/float64(len(x)), allocated, time.Since(start).Round(time.Millisecond))
	if allocated > 800*uint64(people)/10_000+20 {
		t.Errorf("%d MB allocated", allocated)
	}
}

func TestOverflow(t *testing.T) {
	defer anomaly.SetDirect(0)()
	x := [][]float32{{0}, {1}, {math.MaxFloat32}, {-math.MaxFloat32}}
	near := anomaly.Near(x, []int{0, 1, 0, 1}, 1, quantized.Kernel{Denominator: 1}, .1)
	if got := near.SoftHarmonic([]float64{1, 1, 1, 1}, .1, .01); near.Other[0] != 1 ||
		len(near.Edges[2]) != 0 {
		t.Errorf("values whose product overflows: %v, %v", got, near)
	}
}
