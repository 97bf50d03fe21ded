// SPDX-License-Identifier: Apache-2.0

package quantized_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/quantized"
)

// learn gives n points, numbered from first, to a graph, and returns how many were kept.
func learn(t *testing.T, g *quantized.Graph, s *stream, first, n int) (kept float64) {
	t.Helper()
	for i := range n {
		x, _ := s.next()
		if keep(t, g, x, 0, int64(first+i)) {
			kept++
		}
	}
	return kept
}

func labelled(t *testing.T, k, journal int) (*quantized.Graph, *stream) {
	t.Helper()
	c := config(k, 2)
	c.Journal = journal
	g, err := quantized.New(c)
	if err != nil {
		t.Fatal(err)
	}
	s := newStream(21, 2, 3)
	for class := range 2 {
		x, _ := s.next()
		if err := g.Label(x, class); err != nil {
			t.Fatal(err)
		}
	}
	return g, s
}

// Without a repartition in between, Undo restores the earlier graph, to the last point.
func TestUndo(t *testing.T) {
	g, s := labelled(t, 200, 1000)
	learn(t, g, s, 1, 60)
	before := strings.Replace(same(g), fmt.Sprint("LastID:", g.State().LastID), "", 1)
	kept := learn(t, g, s, 61, 60)
	if g.Len() > 200 {
		t.Fatal("it was repartitioned: the stream does not test this")
	}
	points, err := g.Undo(60)
	if err != nil || points != kept {
		t.Fatalf("%g points undone, want %g; %v", points, kept, err)
	}
	if after := strings.Replace(same(g), fmt.Sprint("LastID:", g.State().LastID), "", 1); before != after {
		t.Error("it is another graph than before")
	}
	if points, err := g.Undo(60); err != nil || points != 0 {
		t.Errorf("a second time: %g points, %v", points, err)
	}
}

// With repartitions, no later point is left, masses stay whole and positive, and the harmonic solution is the solution
// of the remaining graph.
func TestUndoAcrossRepartitions(t *testing.T) {
	for since := range int64(40) {
		since *= 10
		g, s := labelled(t, 20, 1000)
		kept := learn(t, g, s, 1, 400)
		r := g.R()
		points, err := g.Undo(since)
		if err != nil {
			t.Fatal(err)
		}
		if g.Learned() == 0 {
			r = 0
		}
		if g.Mass() != kept-points || g.R() != r {
			t.Fatalf("since %d: mass %g, %g of %g points undone", since, g.Mass(), points, kept)
		}
		for i := range g.Len() {
			if o := g.Origin(i); o.Observation > since {
				t.Fatalf("since %d: a vertex of observation %d is left", since, o.Observation)
			}
			if v := g.Multiplicity(i); v < 1 || v != math.Trunc(v) {
				t.Fatalf("since %d: multiplicity %g", since, v)
			}
		}
		// The remaining graph can be written and read, and continues to learn.
		h, err := quantized.Restore(g.Config(), g.State())
		if err != nil {
			t.Fatalf("since %d: %v", since, err)
		}
		learn(t, h, s, 401, 50)
	}
}

// A full journal forgets its oldest entries, and reports how far back it reaches.
func TestUndoTooFar(t *testing.T) {
	g, s := labelled(t, 20, 30)
	learn(t, g, s, 1, 300)
	before, lost := same(g), g.State().Lost
	if _, err := g.Undo(10); !errors.Is(err, quantized.ErrJournal) {
		t.Errorf("error %v", err)
	}
	if before != same(g) {
		t.Error("a refused undo changed the graph")
	}
	if _, err := g.Undo(lost.Observation); err != nil {
		t.Errorf("as far as it reaches: %v", err)
	}
	if none, s := labelled(t, 20, 0); learn(t, none, s, 1, 50) > 0 {
		if _, err := none.Undo(0); !errors.Is(err, quantized.ErrJournal) {
			t.Errorf("without a journal: %v", err)
		}
	}
}

// From every vertex, Via leads to a labelled vertex or to a removed one, with one hop fewer at each step.
func TestOrigin(t *testing.T) {
	g, s := labelled(t, 60, 0)
	learn(t, g, s, 1, 100)
	at := map[int64]int{}
	for i := range g.Len() {
		at[g.Origin(i).ID] = i
	}
	far := 0
	for i := range g.Len() {
		o := g.Origin(i)
		if _, ok := g.Class(i); ok {
			if o.Hops != 0 || o.Via != 0 || o.Observation != 0 {
				t.Errorf("a labelled vertex comes from %+v", o)
			}
			continue
		}
		far = max(far, o.Hops)
		if o.Hops < 1 || o.Via >= o.ID {
			t.Errorf("a learned vertex comes from %+v", o)
		}
		if j, there := at[o.Via]; there && g.Origin(j).Hops != o.Hops-1 {
			t.Errorf("%+v was accepted through %+v", o, g.Origin(j))
		}
	}
	if far < 2 {
		t.Errorf("no vertex is further than %d hops away: the stream tests too little", far)
	}
}

// A configuration that merges vertices and changes the length of the journal at the same time loses only the oldest
// entries.
func TestConfigureJournal(t *testing.T) {
	for _, size := range []int{2, 3, 9} {
		c := config(8, 1)
		c.Journal, c.Reach = 3, .3
		g, err := quantized.New(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Label([]float32{.05}, 0); err != nil {
			t.Fatal(err)
		}
		// Four centroids, and five faces at the first centroid: the journal is a ring of three, and holds the last
		// three faces.
		for i, x := range []float32{0, .1, .2, .3, 0, 0, 0, 0, 0} {
			if !keep(t, g, []float32{x}, 0, int64(i+1)) {
				t.Fatal("no room")
			}
		}
		c.Journal, c.K = size, 2
		if err := g.Configure(c); err != nil || g.Learned() != 2 {
			t.Fatalf("%d centroids, %v", g.Learned(), err)
		}
		// Two centroids were merged, as the last two entries.
		var observations []int64
		for _, e := range g.State().Journal {
			observations = append(observations, e.Observation)
		}
		all := []int64{7, 8, 9, 2, 4}
		if want := all[max(len(all)-size, 0):]; !slices.Equal(observations, want) {
			t.Errorf("a journal of %d has %d, want %d", size, observations, want)
		}
	}
}
