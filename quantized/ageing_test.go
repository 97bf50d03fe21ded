// SPDX-License-Identifier: Apache-2.0

package quantized_test

import (
	"math"
	"testing"

	"github.com/faceauth/faceauth/quantized"
)

// aged gives n points, numbered from first, to a graph with ageing.
func aged(t *testing.T, g *quantized.Graph, s *stream, first, n int) (evicted int) {
	t.Helper()
	for i := range n {
		gone, err := g.Age(int64(first + i))
		if err != nil {
			t.Fatal(err)
		}
		evicted += gone
		learn(t, g, s, first+i, 1)
	}
	return evicted
}

func ageing(t *testing.T, k, halfLife int) (*quantized.Graph, *stream) {
	t.Helper()
	young, s := labelled(t, k, 1000)
	c := young.Config()
	c.HalfLife = halfLife
	if err := young.Configure(c); err != nil {
		t.Fatal(err)
	}
	return young, s
}

// Learned points count half after a half-life, in however many steps the time passes. Labelled points keep their
// weight.
func TestHalfLife(t *testing.T) {
	for _, halfLife := range []int{1, 7, 64, 1000} {
		for _, pace := range []int{1, 3, 5000} {
			g, s := ageing(t, 300, halfLife)
			learn(t, g, s, 1, 40)
			mass, vertices := g.Mass(), g.Len()
			for o := 0; ; o += pace {
				o = min(o, 3*halfLife)
				if _, err := g.Age(int64(o)); err != nil {
					t.Fatal(err)
				}
				if o == 3*halfLife {
					break
				}
			}
			// Evicted points had aged, too.
			if got := g.Mass(); got > mass/8*1.0001 || g.Len() == vertices && got < mass/8*.9 {
				t.Errorf("half-life %d, at a pace of %d: mass %g after three of them, and %g before", halfLife, pace,
					got, mass)
			}
			for i := range g.Len() {
				if _, ok := g.Class(i); ok && g.Multiplicity(i) != 1 {
					t.Errorf("a labelled point counts %g", g.Multiplicity(i))
				}
			}
			if g.Labelled() != 2 {
				t.Errorf("%d labelled points are left", g.Labelled())
			}
		}
	}
}

// After Undo the multiplicities are the same as in a graph without the points that were taken back.
func TestUndoAged(t *testing.T) {
	g, s := ageing(t, 300, 100)
	learn(t, g, s, 1, 60)
	want, err := quantized.Restore(g.Config(), g.State())
	if err != nil {
		t.Fatal(err)
	}
	aged(t, g, s, 61, 30)
	if _, err := g.Undo(60); err != nil {
		t.Fatal(err)
	}
	if _, err := want.Age(90); err != nil {
		t.Fatal(err)
	}
	if g.Len() != want.Len() {
		t.Fatalf("%d vertices, want %d", g.Len(), want.Len())
	}
	for i := range g.Len() {
		if a, b := g.Multiplicity(i), want.Multiplicity(i); math.Abs(a-b) > 1e-12 || g.Points(i) != want.Points(i) {
			t.Errorf("vertex %d counts %g, want %g; it stands for %g points, want %g", i, a, b, g.Points(i),
				want.Points(i))
		}
	}
}

// A graph with ageing continues with the same bytes after it was restored at any moment.
func TestRestoreAged(t *testing.T) {
	g, s := ageing(t, 25, 30)
	evicted := 0
	for round := range 20 {
		evicted += aged(t, g, s, 1+20*round, 13)
		if round%3 == 0 {
			x, _ := s.next()
			if err := g.Label(x, round%2); err != nil {
				t.Fatal(err)
			}
		}
		h, err := quantized.Restore(g.Config(), g.State())
		if err != nil {
			t.Fatal(err)
		}
		x, _ := s.next()
		for _, g := range []*quantized.Graph{g, h} {
			if _, err := g.Age(int64(19 + 20*round)); err != nil {
				t.Fatal(err)
			}
			keep(t, g, x, 0, int64(19+20*round))
		}
		if same(g) != same(h) {
			t.Fatalf("round %d: a restored graph went on differently", round)
		}
	}
	if evicted == 0 {
		t.Error("nothing was evicted: the stream tests too little")
	}
}

// The graph stays valid after a long pause, and with any number of an observation in a file.
func TestLongGap(t *testing.T) {
	for _, o := range []int64{1e4, 1e9, math.MaxInt64} {
		g, s := ageing(t, 25, 30)
		aged(t, g, s, 1, 100)
		if _, err := g.Age(o); err != nil {
			t.Fatal(err)
		}
		for i := range g.Len() {
			if v := g.Multiplicity(i); !(v > 0) {
				t.Fatalf("at %d a vertex counts %g", o, v)
			}
		}
		if _, err := quantized.Restore(g.Config(), g.State()); err != nil {
			t.Fatal(err)
		}
		x := g.Point(0)
		trial, err := g.Look(x, quantized.Sight{})
		if err != nil || trial.Outlier() {
			t.Fatal("a labelled point is an outlier", err)
		}
		if v := solved(t, g, trial); !(v[0]+v[1] > .9) {
			t.Errorf("at %d a labelled point's own values are %g", o, v)
		}
		if n, err := g.Undo(0); err != nil || n < 1 {
			t.Errorf("%g undone, %v", n, err)
		}
	}
}
