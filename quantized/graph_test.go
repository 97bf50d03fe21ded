// SPDX-License-Identifier: Apache-2.0

package quantized_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/quantized"
)

func config(k, dim int) quantized.Config {
	return quantized.Config{
		K: k, Multiplier: 1.5, Dim: dim, Scale: 1,
		Kernel: quantized.Heat(.25), Epsilon: 1e-4, Gamma: 1e-3,
	}
}

// stream makes points in drifting clusters, with duplicates, points exactly at the place of earlier
// ones, and points far from all clusters.
type stream struct {
	rand  *rand.Rand
	dim   int
	heart [][]float64
	past  [][]float32
}

func newStream(seed uint64, dim, clusters int) *stream {
	s := &stream{rand: rand.New(rand.NewPCG(seed, 7)), dim: dim}
	for range clusters {
		c := make([]float64, dim)
		for i := range c {
			c[i] = 2 * s.rand.Float64()
		}
		s.heart = append(s.heart, c)
	}
	return s
}

func (s *stream) next() (x []float32, cluster int) {
	cluster = s.rand.IntN(len(s.heart))
	if len(s.past) > 0 && s.rand.IntN(20) == 0 {
		return s.past[s.rand.IntN(len(s.past))], cluster
	}
	x = make([]float32, s.dim)
	far := 0.0
	if s.rand.IntN(25) == 0 {
		far = 50
	}
	for i := range x {
		s.heart[cluster][i] += .01 * s.rand.NormFloat64()
		x[i] = float32(s.heart[cluster][i] + .15*s.rand.NormFloat64() + far*s.rand.NormFloat64())
	}
	if far == 0 {
		s.past = append(s.past, x)
	}
	return x, cluster
}

// solved returns the value of each class at a trial.
func solved(t *testing.T, g *quantized.Graph, trial quantized.Trial) []float64 {
	t.Helper()
	s := trial.Solve()
	if !(s.Bound <= 1e-8) {
		t.Errorf("the error is bounded by %g only", s.Bound)
	}
	values := make([]float64, g.Classes())
	for _, v := range s.Values {
		values[v.Class] = v.Value
		if v.Value < -1e-8 || v.Value > 1+1e-8 {
			t.Fatalf("value %g is no probability", v.Value)
		}
	}
	return values
}

// all returns the values of each class at all vertices.
func all(t *testing.T, g *quantized.Graph) [][]float64 {
	t.Helper()
	var values [][]float64
	for c := range g.Classes() {
		v := fixture.Must(direct(g, func(class int) bool { return class == c }))(t)
		values = append(values, v)
	}
	return values
}

// same returns a text that is equal for two graphs that are equal to the last bit.
func same(g *quantized.Graph) string { return fmt.Sprintf("%+v", g.State()) }

// keep places and keeps a point, and reports whether there was room.
func keep(t *testing.T, g *quantized.Graph, x []float32, class int, observation int64) bool {
	t.Helper()
	c := g.Place(x)
	_, kept := c.Keep(class, quantized.Moment{Observation: observation})
	return kept
}

// Every method refuses a point with a coordinate that is not finite.
func TestNotFinite(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)),
		float32(math.Inf(-1))} {
		for name, take := range map[string]func(g *quantized.Graph){
			"look":  func(g *quantized.Graph) { g.Look([]float32{bad, 0}, 0, 0) },
			"place": func(g *quantized.Graph) { g.Place([]float32{bad, 0}) },
			"label": func(g *quantized.Graph) { g.Label([]float32{bad, 0}, 0) },
		} {
			g, _ := quantized.New(config(10, 2))
			func() {
				defer func() {
					if r := recover(); r != "quantized: coordinate that is not finite" {
						t.Errorf("%s: %v", name, r)
					}
				}()
				take(g)
			}()
		}
	}
}

// A configuration that cannot be changes nothing, and the error says which k can.
func TestConfigure(t *testing.T) {
	c := config(15, 3)
	g, _ := quantized.New(c)
	s := newStream(3, 3, 3)
	for class := range 3 {
		x, _ := s.next()
		g.Label(x, class)
	}
	for range 200 {
		x, _ := s.next()
		keep(t, g, x, 0, 1)
	}
	before := same(g)
	c.K = 1
	err := g.Configure(c)
	if !errors.Is(err, quantized.ErrConfig) ||
		!strings.Contains(err.Error(), "cannot be merged to fewer than") {
		t.Errorf("k = 1: %v", err)
	}
	if same(g) != before {
		t.Error("a refused configuration changed the graph")
	}
	var fewest int
	fixture.Must(fmt.Sscanf(err.Error()[strings.Index(err.Error(), "use k of at least"):],
		"use k of at least %d",
		&fewest))(t)
	c.K = fewest
	if err := g.Configure(c); err != nil || g.Learned() > fewest {
		t.Errorf("k = %d, as advised: %v, %d learned", fewest, err, g.Learned())
	}
}

// k limits the learned points, and any number of labelled points can be added. A graph without room
// still judges, but does not learn.
func TestFull(t *testing.T) {
	c := config(3, 1)
	g, _ := quantized.New(c)
	for i := range 50 {
		fixture.Check(t, g.Label([]float32{float32(10 * i)}, i))
	}
	// Each learned point is near one labelled point only, so nothing can be merged.
	for i := range 4 {
		if !keep(t, g, []float32{float32(10*i) + .1}, i, int64(i+1)) {
			t.Fatalf("point %d was not kept", i)
		}
	}
	if g.Full() {
		t.Error("full before it was tried")
	}
	before := g.R()
	if keep(t, g, []float32{40.1}, 4, 5) || !g.Full() || g.Learned() != 4 || g.R() != before {
		t.Fatalf("a fifth point was kept: full %t, %d learned, R %g", g.Full(), g.Learned(), g.R())
	}
	trial := g.Look([]float32{40.1}, 0, 0)
	if v := solved(t, g, trial); v[4] < .9 {
		t.Errorf("a full graph gives it %v", v[4])
	}
	// A point that a centroid absorbs needs no room.
	if !keep(t, g, []float32{.1}, 0, 6) {
		t.Error("a duplicate was not taken in")
	}
	g.Unlearn(func(_ int64, m quantized.Moment) bool { return m.Observation == 2 })
	if g.Full() || !keep(t, g, []float32{40.1}, 4, 7) {
		t.Error("no room after a centroid has gone")
	}
}

// Any number of points at one place takes limited memory: edges are limited, as coordinates are.
func TestTooManyEdges(t *testing.T) {
	defer quantized.SetMaxEdges(40)()
	c := config(50, 1)
	g, _ := quantized.New(c)
	for i := range 5 {
		fixture.Check(t, g.Label([]float32{float32(i) / 100}, 0))
	}
	kept := 0
	for i := range 20 {
		if keep(t, g, []float32{float32(i)/100 + .005}, 0, int64(i+1)) {
			kept++
		}
	}
	// 10 edges between the labelled points, and 5, 6, 7 and 8 edges of the points after them.
	if kept != 4 {
		t.Errorf("%d points were kept", kept)
	}
	if err := g.Label([]float32{0}, 1); !errors.Is(err, quantized.ErrFull) || g.Classes() != 1 {
		t.Errorf("%v, %d classes", err, g.Classes())
	}
	if err := g.Label([]float32{9}, 1); err != nil {
		t.Errorf("far from all others: %v", err)
	}
	if _, err := quantized.Restore(c, g.State()); err != nil {
		t.Errorf("a graph that may be is not restored: %v", err)
	}
	before := same(g)
	wide := c
	wide.Kernel = quantized.Heat(9)
	if err := g.Configure(wide); !errors.Is(err, quantized.ErrConfig) || before != same(g) {
		t.Errorf("longer edges: %v", err)
	}
	for _, reach := range []float64{0, g.State().Reach} {
		s := g.State()
		s.Reach = reach
		quantized.SetMaxEdges(20)
		if _, err := quantized.Restore(c, s); !errors.Is(err, quantized.ErrInvalid) {
			t.Errorf("a state of too many edges, known up to %g: %v", reach, err)
		}
	}
}

func TestNewErrors(t *testing.T) {
	for _, tt := range []struct {
		change func(*quantized.Config)
		want   string
	}{
		{func(c *quantized.Config) { c.K = 0 }, "unusable setting: k is 0, but must be at least 1"},
		{func(c *quantized.Config) { c.K = -5 },
			"unusable setting: k is -5, but must be at least 1"},
		{func(c *quantized.Config) { c.K = math.MaxInt },
			"unusable setting: 9223372036854775807 centroids of 2 " +
				"values need more than 1 GiB of memory; use a smaller k"},
		{func(c *quantized.Config) { c.K = 1<<27 + 1 },
			"unusable setting: 134217729 centroids of 2 values need more " +
				"than 1 GiB of memory; use a smaller k"},
		{func(c *quantized.Config) { c.Dim = math.MaxInt },
			"unusable setting: dimension is 9223372036854775807, but " +
				"must be at most 1048576"},
		{func(c *quantized.Config) { c.Dim = 0 },
			"unusable setting: dimension is 0, but must be at least 1"},
		{func(c *quantized.Config) { c.Scale = math.Inf(1) },
			"unusable setting: scale is +Inf, but must be positive " +
				"and of ordinary size"},
		{func(c *quantized.Config) { c.Kernel.Denominator = 0 },
			"unusable setting: kernel denominator is 0, but " +
				"must be positive"},
	} {
		c := config(10, 2)
		tt.change(&c)
		_, err := quantized.New(c)
		if err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
		if !errors.Is(err, quantized.ErrConfig) {
			t.Errorf("%v does not wrap ErrConfig", err)
		}
	}
}

// TestRestoreInvalid checks that no state in a file makes a graph that breaks its own rules.
func TestRestoreInvalid(t *testing.T) {
	good := func() quantized.State {
		return quantized.State{
			R: .1, Classes: 1, LastID: 4,
			Journal: []quantized.Entry{
				{Moment: quantized.Moment{Observation: 8}, Vertex: 2, Via: 2},
				{Moment: quantized.Moment{Observation: 9}, Vertex: 2, Via: 2},
			},
			Vertices: []quantized.Vertex{
				{Point: []float32{0}, Multiplicity: 1, Class: 0, Origin: quantized.Origin{ID: 1}},
				{
					Point: []float32{1}, Multiplicity: 3, Class: -1, Source: []int{0},
					Neighbours: []int{0},
					Origin: quantized.Origin{ID: 2, Moment: quantized.Moment{Observation: 7},
						Via: 1, Hops: 1},
				},
			},
		}
	}
	fixture.Must(quantized.Restore(config(5, 1), good()))(t)
	for name, change := range map[string]func(*quantized.State){
		"R":            func(s *quantized.State) { s.R = math.NaN() },
		"classes":      func(s *quantized.State) { s.Classes = -1 },
		"point":        func(s *quantized.State) { s.Vertices[1].Point = nil },
		"coordinate":   func(s *quantized.State) { s.Vertices[1].Point[0] = float32(math.Inf(1)) },
		"multiplicity": func(s *quantized.State) { s.Vertices[1].Multiplicity = 0 },
		"light label":  func(s *quantized.State) { s.Vertices[0].Multiplicity = .5 },
		"points":       func(s *quantized.State) { s.Vertices[1].Multiplicity = 2.5 },
		"class":        func(s *quantized.State) { s.Vertices[0].Class = 1 },
		"ID twice":     func(s *quantized.State) { s.Vertices[1].Origin.ID = 1 },
		"ID":           func(s *quantized.State) { s.LastID = 1 },
		"observation":  func(s *quantized.State) { s.Vertices[1].Origin.Observation = -1 },
		"hops":         func(s *quantized.State) { s.Vertices[1].Origin.Hops = -1 },
		"journal's ID": func(s *quantized.State) { s.Journal[1].Vertex = 3 },
		"journal full": func(s *quantized.State) { s.Journal = append(s.Journal, s.Journal[1]) },
		"lost":         func(s *quantized.State) { s.Lost.Observation = -1 },
		"source":       func(s *quantized.State) { s.Vertices[1].Source = []int{0, 0} },
		"spread":       func(s *quantized.State) { s.Spread = math.Inf(1) },
		"reach":        func(s *quantized.State) { s.Reach = -1 },
		"entry via":    func(s *quantized.State) { s.Journal[0].Via = 9 },
		"neighbour":    func(s *quantized.State) { s.Vertices[1].Neighbours = []int{1} },
		"neighbours":   func(s *quantized.State) { s.Vertices[1].Neighbours = []int{0, 0} },
		"link": func(s *quantized.State) {
			s.Links = []quantized.Link{{A: 1, B: 2, P: 1, Q: 2}}
		},
		"link's ends": func(s *quantized.State) {
			s.Links = []quantized.Link{{A: 2, B: 2, P: 1, Q: 2}}
		},
		"link's point": func(s *quantized.State) {
			s.Links = []quantized.Link{{A: 1, B: 2, P: 1, Q: 5}}
		},
	} {
		s := good()
		change(&s)
		if _, err := quantized.Restore(config(5, 1), s); !errors.Is(err, quantized.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A state may have one learned vertex more than k, as between a point and the next repartition, and
// not two.
func TestRestoreTooMany(t *testing.T) {
	c := config(15, 3)
	g, err := quantized.New(c)
	fixture.Check(t, err)
	s := newStream(3, 3, 3)
	for i := range 40 {
		x, _ := s.next()
		if i < 3 {
			err = g.Label(x, i)
		} else {
			keep(t, g, x, 0, 1)
		}
		fixture.Check(t, err)
	}
	c.K = g.Learned() - 1
	if _, err := quantized.Restore(c, g.State()); err != nil {
		t.Errorf("one more than k: %v", err)
	}
	c.K--
	if _, err := quantized.Restore(c, g.State()); !errors.Is(err, quantized.ErrInvalid) {
		t.Errorf("two more than k: %v", err)
	}
}
