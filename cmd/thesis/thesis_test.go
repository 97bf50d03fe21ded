package main

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
)

// clouds returns a problem of two clouds of points.
func clouds(n int) problem {
	r := rand.New(rand.NewPCG(3, 3))
	rows := func(at float64) (x [][]float32) {
		for range n / 2 {
			x = append(x, []float32{float32(at + .3*r.NormFloat64()), float32(.3 * r.NormFloat64())})
		}
		return x
	}
	return newProblem(rows(0), rows(2), 1)
}

// With room for every point the quantized graph is the graph itself: no error, and the same predictions.
func TestApproximationVanishes(t *testing.T) {
	p := clouds(120)
	always := func(int) bool { return true }
	for _, s := range []sparse{true, false} {
		online, err := p.online(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := p.quantized(context.Background(), s, len(p.x), always)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range whole.error {
			if !(e < 1e-9) || whole.right[i] != online.right[i] {
				t.Errorf("%s, t = %d: error %g, right %t and %t", s, whole.t[i], e, whole.right[i], online.right[i])
			}
		}
		small, err := p.quantized(context.Background(), s, 20, always)
		if err != nil {
			t.Fatal(err)
		}
		if last := small.error[len(small.error)-1]; !(last > .01) {
			t.Errorf("%s: with 20 centroids the error is %g", s, last)
		}
		if a := whole.accuracy(); bool(s) && a[len(a)-1] < .95 {
			t.Errorf("accuracy %v on two clouds", a)
		}
	}
}

// The labelled points come first, five of each class, and the kernel is that of the printed formula.
func TestProblem(t *testing.T) {
	p := clouds(120)
	seen := [2]int{}
	for _, c := range p.class[:p.labelled()] {
		seen[c]++
	}
	if len(p.x) != 120 || seen != [2]int{perClass, perClass} {
		t.Errorf("%d points, labelled %v", len(p.x), seen)
	}
	// Two features with deviations of about √(1+.3²) and .3: the denominator is 2 p σ².
	if want := 2 * 2 * math.Pow((math.Sqrt(1.09)+.3)/2, 2); math.Abs(p.kernel.Denominator-want) > .2*want {
		t.Errorf("denominator %g, want about %g", p.kernel.Denominator, want)
	}
}

func TestReadUCI(t *testing.T) {
	o := options{data: filepath.Dir(fixture.Recordings(t, "tables"))}
	for dataset, features := range map[string]int{"letter": 16, "optdigits": 64} {
		ps, err := o.readUCI(dataset)
		if err != nil {
			t.Fatal(err)
		}
		if len(ps) != problems || len(ps[0].x) != points || len(ps[0].x[0]) != features {
			t.Errorf("%s: %d problems of %d points of %d features", dataset, len(ps), len(ps[0].x), len(ps[0].x[0]))
		}
	}
	if _, err := (&options{data: t.TempDir()}).readUCI("letter"); err == nil {
		t.Error("a folder without tables was read")
	}
}

// Ageing unlearns who was there before; this is what docs/thesis/drift.png shows.
func TestGuests(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred thousand steps take a while")
	}
	ages, err := guests(500)
	if err != nil {
		t.Fatal(err)
	}
	stays, err := guests(0)
	if err != nil {
		t.Fatal(err)
	}
	if ages > .04 || stays < .08 {
		t.Errorf("%.4f of the faces are taken for the other one with a half-life, and %.4f without", ages, stays)
	}
}
