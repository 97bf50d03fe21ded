// SPDX-License-Identifier: Apache-2.0

package quantized_test

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/reference"
	"github.com/faceauth/faceauth/quantized"
)

// FuzzGraph reads its input as a program of graph operations, and compares their results with the
// slow graph. It runs the operations that package online does not use, or uses in one way only. The
// fuzz test of package gallery runs the others.
func FuzzGraph(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(graphProgram(seed))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) <= 400 {
			runGraph(t, p)
		}
	})
}

// TestRandomPrograms runs programs as FuzzGraph does.
func TestRandomPrograms(t *testing.T) {
	var steps, delicate, links, shared int
	for seed := range uint64(6000) {
		n, r, early := runGraph(t, graphProgram(seed))
		links, shared = links+r.Contracted, shared+r.Shared
		if steps += n; early {
			delicate++
		}
		if t.Failed() {
			t.Fatalf("program %d", seed)
		}
	}
	if steps < 180_000 || delicate > 20 || links < 600 || shared < 60 {
		t.Errorf("%d steps with %d contracted edges, %d vertices given up, and %d programs came "+
			"to a decision within rounding", steps, links, shared, delicate)
	}
}

func graphProgram(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 15))
	p := make([]byte, 100+r.IntN(300))
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

// runGraph runs a program, and reports whether it stopped early because rounding could have decided
// either way.
func runGraph(t *testing.T, p []byte) (steps int, r *reference.Graph, delicate bool) {
	next := func() byte {
		if len(p) == 0 {
			return 0
		}
		b := p[0]
		p = p[1:]
		return b
	}
	c := config(1+int(next()%10), 2)
	c.Reach, c.Journal, c.Link = .3, int(next()%24), .6
	c.Gamma = []float64{1e-3, 1, 1e-6}[next()%3]
	g := fixture.Must(quantized.New(c))(t)
	r = &reference.Graph{Config: c}
	point := func() []float32 {
		cell := next() & 0x3f
		j := rand.New(rand.NewPCG(uint64(cell), uint64(next()>>6)))
		return []float32{.11*float32(cell&7) + .06*j.Float32(),
			.11*float32(cell>>3) + .06*j.Float32()}
	}
	observation := int64(0)
	for len(p) > 0 && !t.Failed() {
		steps++
		switch op := next() % 64; op {
		case 0, 1, 2:
			x, class := point(), int(next()%3)
			fixture.Check(t, g.Label(x, class))
			r.Label(x, class)
		case 3, 4:
			if g.Len() > 0 {
				i := int(next()) % g.Len()
				r.Remove(r.Vertices[i])
				g.Remove(g.Origin(i).ID)
			}
		case 5:
			if r.Classes > 0 {
				class, n := int(next())%r.Classes, len(r.Vertices)
				classes := []int{class}
				r.Forget(class)
				for class > 0 && next()%2 == 0 { // those below, together
					class--
					classes = append(classes, class)
					r.Forget(class)
				}
				if gone := g.Forget(classes...); gone != n-len(r.Vertices) {
					t.Fatalf("step %d: Forget(%d) is %d, want %d", steps, classes, gone,
						n-len(r.Vertices))
				}
			}
		case 6, 7:
			odd := int64(2 + next()%5)
			gone := func(m quantized.Moment) bool { return m.Source%odd == 0 }
			n, want := g.Unlearn(func(_ int64, m quantized.Moment) bool { return gone(m) }),
				r.Unlearn(gone)
			if n != want {
				t.Fatalf("step %d: Unlearn is %g, want %g", steps, n, want)
			}
		case 8:
			since := observation - int64(next()%16)
			n, err := g.Undo(since)
			if want, ok := r.Undo(since); n != want || ok != (err == nil) || !ok &&
				!errors.Is(err, quantized.ErrJournal) {
				t.Fatalf("step %d: Undo(%d) is %g, %v; want %g, %t", steps, since, n, err, want, ok)
			}
		case 9:
			at := observation - int64(next()%16)
			now := at + int64(next()%16)
			if since, want := g.Since(at, now), r.Since(at, now); since != want {
				t.Fatalf("step %d: Since(%d, %d) is %d, want %d", steps, at, now, since, want)
			}
		case 10:
			observation += int64(next() % 8)
		case 14, 15:
			c := g.Config()
			c.K = 1 + int(next()%10)
			switch b := next(); b % 3 {
			case 0:
				c.Journal = int(b % 12)
			case 1:
				c.Reach = []float64{.15, .2, .3, .45}[b/3%4]
			default:
				c.Link = []float64{0, .25, .45, .7}[b/3%4]
			}
			before, err := same(g), g.Configure(c)
			if ok := r.Configure(c); ok != (err == nil) && !r.Delicate {
				t.Fatalf("step %d: %v, want %t", steps, err, ok)
			}
			if err != nil && before != same(g) {
				t.Fatalf("step %d: a configuration that was refused changed the graph", steps)
			}
		case 16, 17:
			s := g.State()
			if op == 17 {
				s.Reach = 0 // the edges are computed again
			}
			before := same(g)
			g = fixture.Must(quantized.Restore(g.Config(), s))(t)
			if before != same(g) {
				t.Fatalf("step %d: the graph that was restored is another one", steps)
			}
		default:
			x, class := point(), int(next()%4)-1
			class = min(class, r.Classes-1)
			observation++
			var follows []int64
			for range next() % 3 {
				follows = append(follows, 1+int64(next())%(r.LastID+1))
			}
			compareLook(t, steps, g, r, x, follows, .1*float64(next()%8), .1*float64(next()%8))
			if r.Delicate {
				return steps, r, true
			}
			candidate := g.Place(x, follows...)
			trial := r.Place(x, follows...)
			if r.Delicate {
				return steps, r, true
			}
			if candidate.Outlier() != trial.Outlier {
				t.Fatalf("step %d: outlier %t, want %t", steps, candidate.Outlier(), trial.Outlier)
			}
			room := !trial.Outlier && (trial.Home != nil || r.Learned() <= r.Config.K)
			if candidate.Room() != room {
				t.Fatalf("step %d: room %t, want %t", steps, candidate.Room(), room)
			}
			if !trial.Outlier {
				home, ok := candidate.Home()
				if ok != (trial.Home != nil) || ok && r.Vertices[home] != trial.Home {
					t.Fatalf("step %d: home %d, %t", steps, home, ok)
				}
				compareValues(t, steps, candidate.Trial, trial)
			}
			if op%4 == 0 { // this was only a trial
				break
			}
			m := quantized.Moment{Observation: observation, Time: observation / 3,
				Source: observation}
			id, kept := candidate.Keep(class, m)
			if at, want := r.Keep(trial, class, m); kept != want || id != at || room && !kept {
				t.Fatalf("step %d: kept %t at %d, want %d, and there was room: %t", steps, kept, id,
					at, room)
			}
		}
		if r.Delicate {
			return steps, r, true
		}
		compareGraph(t, steps, g, r)
		if r.Delicate {
			return steps, r, true
		}
	}
	return steps, r, false
}

// compareLook compares the result for a point that is only judged.
func compareLook(t *testing.T, step int, g *quantized.Graph, r *reference.Graph, x []float32,
	follows []int64,
	enrolled, met float64) {
	t.Helper()
	trial := g.Look(x, enrolled, met, follows...)
	want := r.Look(x, enrolled, met, follows...)
	if r.Delicate {
		return
	}
	if trial.Outlier() != want.Outlier || trial.Far() != want.Far {
		t.Fatalf("step %d: outlier %t, far %t; want %t, %t", step, trial.Outlier(), trial.Far(),
			want.Outlier, want.Far)
	}
	labelled, learned, linked := trial.Closest()
	wantLabelled, wantLearned := math.Inf(1), math.Inf(1)
	for v := range want.Edges {
		d := r.Distance(x, v.X)
		if v.Class < 0 {
			wantLearned = min(wantLearned, d)
		} else {
			wantLabelled = min(wantLabelled, d)
		}
	}
	near := func(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-6 }
	if !near(labelled, wantLabelled) || !near(learned, wantLearned) || linked != want.Linked {
		t.Fatalf("step %d: closest %g, %g, %t; want %g, %g, %t", step, labelled, learned, linked,
			wantLabelled, wantLearned, want.Linked)
	}
	if !want.Outlier {
		compareValues(t, step, trial, want)
	}
	alone, want := trial.Labelled(), r.Enrolled(x, enrolled)
	if r.Delicate {
		return
	}
	if alone.Outlier() != want.Outlier || alone.Far() != want.Far {
		t.Fatalf("step %d: by labelled vertices alone, outlier %t, far %t; want %t, %t", step,
			alone.Outlier(), alone.Far(), want.Outlier, want.Far)
	}
	if !want.Outlier {
		compareValues(t, step, alone, want)
	}
}

// compareValues compares the harmonic values at a point.
func compareValues(t *testing.T, step int, trial quantized.Trial, want reference.Trial) {
	t.Helper()
	s := trial.Solve()
	values := make([]float64, len(want.Values)+1)
	for _, v := range s.Values {
		values[min(v.Class, len(want.Values))] = v.Value
	}
	for c, want := range want.Values {
		if math.Abs(values[c]-want) > max(1e-8, s.Bound) || !(s.Bound <= 1e-7) {
			t.Fatalf("step %d: value %g of class %d within %g, want %g", step, values[c], c,
				s.Bound, want)
		}
	}
}

// compareGraph compares the graph, its edges and its values with the slow one.
func compareGraph(t *testing.T, step int, g *quantized.Graph, r *reference.Graph) {
	t.Helper()
	compare(t, step, g, r, step%7 == 0)
	points := 0.
	for i, v := range r.Vertices {
		var source []int
		for c := range r.Classes {
			if v.Source[c] {
				source = append(source, c)
			}
		}
		if !slices.Equal(g.Source(i), source) {
			t.Fatalf("step %d: vertex %d was learned through %v, want %v", step, i, g.Source(i),
				source)
		}
		if at, ok := g.Find(v.ID); !ok || at != i {
			t.Fatalf("step %d: vertex %d is found at %d, %t", step, i, at, ok)
		}
		if v.Class < 0 {
			points += v.Sum()
		}
		for j := range i {
			w := r.Edge(v, r.Vertices[j])
			if math.Abs(g.Edge(i, j)-w) > 1e-8 {
				t.Fatalf("step %d: an edge of %d and %d weighs %g, want %g", step, i, j,
					g.Edge(i, j), w)
			}
		}
		for _, p := range v.Points {
			if d := r.Distance(p.X, v.X); d > g.Bound()*(1+1e-8) {
				t.Fatalf("step %d: a point is %g from its centroid, and the bound is %g", step, d,
					g.Bound())
			}
		}
	}
	var links []quantized.Link
	for _, l := range r.Links {
		x := quantized.Link{A: l.A.ID, B: l.B.ID, P: l.P.ID, Q: l.Q.ID}
		if x.A > x.B {
			x = quantized.Link{A: x.B, B: x.A, P: x.Q, Q: x.P}
		}
		links = append(links, x)
	}
	slices.SortFunc(links, func(a, b quantized.Link) int {
		return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
	if !slices.Equal(g.State().Links, links) {
		t.Fatalf("step %d: contracted edges %v, want %v", step, g.State().Links, links)
	}
	mass := 0.
	for i, class := range g.Labels() {
		if class < 0 {
			mass += g.Multiplicity(i)
		}
	}
	if math.Abs(mass-points) > 1e-9*points+0x1p-90 {
		t.Fatalf("step %d: mass %g, want %g", step, mass, points)
	}
	if _, ok := g.Find(r.LastID + 1); ok {
		t.Fatalf("step %d: a vertex that is not there is found", step)
	}
}

// compare checks the graph and its solution against the reference, and against the graph of all
// points.
func compare(t *testing.T, step int, g *quantized.Graph, r *reference.Graph, full bool) {
	t.Helper()
	if g.Len() != len(r.Vertices) || g.Learned() != r.Learned() ||
		g.Full() != (r.Full && r.Learned() > r.Config.K) {
		t.Fatalf("step %d: %d vertices, %d learned, full %t; reference %d, %d", step, g.Len(),
			g.Learned(), g.Full(), len(r.Vertices), r.Learned())
	}
	if g.Learned() > r.Config.K+1 {
		t.Fatalf("step %d: %d learned vertices for k = %d", step, g.Learned(), r.Config.K)
	}
	if math.Abs(g.R()-r.R) > 1e-9*r.R { // the distances differ by rounding
		t.Fatalf("step %d: R = %g, reference %g", step, g.R(), r.R)
	}
	solution, values := r.Solution(), all(t, g)
	for i, v := range r.Vertices {
		if !slices.Equal(g.Point(i), v.X) || g.Multiplicity(i) != v.Sum() {
			t.Fatalf("step %d: vertex %d is not the reference's", step, i)
		}
		if o := g.Origin(i); o.ID != v.ID || o.Via != v.Via || o.Hops != v.Hops {
			t.Fatalf("step %d: vertex %d comes from %+v, reference %d, via %d, %d hops", step, i, o,
				v.ID, v.Via, v.Hops)
		}
		for c := range values {
			// 1e-8 is the accuracy that the learner needs; the solver aims at 1e-10.
			if w := solution.At(i, c); math.Abs(values[c][i]-w) > 1e-8 {
				t.Fatalf("step %d: value of class %d at vertex %d is %g, reference %g", step, c, i,
					values[c][i], w)
			}
		}
	}
	if !full {
		return
	}
	complete, first := r.Complete()
	for i := range r.Vertices {
		for c := range values {
			if w := complete.At(first[i], c); math.Abs(values[c][i]-w) > 1e-9 {
				t.Fatalf("step %d: value %g on the compact graph, %g on the full one", step,
					values[c][i], w)
			}
		}
	}
}
