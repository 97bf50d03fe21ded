package quantized_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/quantized"
)

func config(k, dim int) quantized.Config {
	return quantized.Config{
		K: k, Multiplier: 1.5, Dim: dim, Scale: 1,
		Kernel: graph.Heat(.25), Epsilon: 1e-4, Gamma: 1e-3,
	}
}

// stream makes points that gather in drifting clusters, with duplicates, points that lie exactly on
// top of earlier ones, and some that lie nowhere.
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

// TestAgainstReference runs random streams through the graph and through the listing written out,
// and checks after every step what the thesis promises.
func TestAgainstReference(t *testing.T) {
	for _, tt := range []struct {
		name               string
		k, dim, labels     int
		classes, steps     int
		gamma              float64
		absorb, normalized bool
		full               bool
		reach              float64
		halfLife           int
	}{
		{name: "one class", k: 12, dim: 2, labels: 3, classes: 1, steps: 400, gamma: 1e-3, full: true},
		{name: "three classes", k: 20, dim: 3, labels: 9, classes: 3, steps: 500, gamma: 1e-3, full: true},
		{name: "heavy sink", k: 20, dim: 2, labels: 6, classes: 2, steps: 300, gamma: 1, full: true},
		{name: "light sink", k: 30, dim: 2, labels: 6, classes: 2, steps: 300, gamma: 1e-6, full: true},
		{name: "k is one more than labelled", k: 7, dim: 2, labels: 6, classes: 3, steps: 300, gamma: 1e-3, full: true},
		{name: "smallest k", k: 2, dim: 2, labels: 1, classes: 1, steps: 200, gamma: 1e-3, full: true},
		{name: "absorbing", k: 15, dim: 2, labels: 6, classes: 2, steps: 400, gamma: 1e-3, absorb: true},
		{name: "normalised", k: 15, dim: 2, labels: 6, classes: 2, steps: 200, gamma: 1e-3, normalized: true},
		{name: "short reach", k: 20, dim: 3, labels: 9, classes: 3, steps: 500, gamma: 1e-3, full: true, reach: .3},
		{name: "ageing", k: 20, dim: 3, labels: 9, classes: 3, steps: 500, gamma: 1e-3, full: true, halfLife: 15},
		{name: "ageing fast", k: 30, dim: 2, labels: 6, classes: 2, steps: 500, gamma: 1e-3, full: true, halfLife: 7},
		{name: "ageing, absorbing", k: 15, dim: 2, labels: 6, classes: 2, steps: 400, gamma: 1e-3, absorb: true, halfLife: 10},
		{name: "many vertices", k: 80, dim: 4, labels: 12, classes: 4, steps: 600, gamma: 1e-3},
	} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("%s/seed %d", tt.name, seed), func(t *testing.T) {
				c := config(tt.k, tt.dim)
				c.Gamma, c.Absorb, c.Normalized, c.Reach, c.HalfLife = tt.gamma, tt.absorb, tt.normalized, tt.reach, tt.halfLife
				g, err := quantized.New(c)
				if err != nil {
					t.Fatal(err)
				}
				r := &reference{c: c}
				s := newStream(seed, tt.dim, tt.classes+1) // one cluster nobody labels
				labelled, accepted, evicted := 0, 0, 0
				for step := range tt.steps {
					x, cluster := s.next()
					if cluster < tt.classes && labelled < tt.labels && (step < tt.labels || s.rand.IntN(10) == 0) {
						if err := g.Label(x, cluster); err != nil {
							t.Fatal(err)
						}
						r.label(t, x, cluster)
						labelled++
						continue
					}
					if g.Classes() == 0 {
						continue
					}
					if tt.halfLife > 0 {
						n := g.Len()
						gone, err := g.Age(int64(step + 1))
						if err != nil {
							t.Fatal(err)
						}
						if g.Len() != n-gone {
							t.Fatalf("step %d: %d vertices, of %d, after %d were evicted", step, g.Len(), n, gone)
						}
						evicted += gone
						r.age(t, int64(step+1), g.Classes())
					}
					before := g.State()
					ok := g.Place(x, false)
					want := r.observe(t, x, g.Classes())
					if ok != (want != nil) {
						t.Fatalf("step %d: placed %t, reference %t", step, ok, want != nil)
					}
					if !ok {
						if !reflect.DeepEqual(before, g.State()) {
							t.Fatalf("step %d: an outlier changed the graph", step)
						}
						continue
					}
					method, err := g.Solve()
					if err != nil {
						t.Fatal(err)
					}
					if method == quantized.Direct && !tt.normalized {
						t.Errorf("step %d: the iteration did not converge", step)
					}
					compare(t, step, g, r, want, tt.full && step%7 == 0)
					g.Keep(-1, quantized.Moment{Observation: int64(step + 1)})
					accepted++
					invariants(t, step, g, r, accepted)
				}
				if accepted < tt.steps*2/5 {
					t.Errorf("only %d of %d points were accepted: the stream tests too little", accepted, tt.steps)
				}
				if tt.halfLife > 0 && evicted < 5 {
					t.Errorf("only %d vertices were evicted: the stream tests too little", evicted)
				}
			})
		}
	}
}

// compare checks the solution on the graph against the reference, and against the full graph.
func compare(t *testing.T, step int, g *quantized.Graph, r *reference, want []float64, full bool) {
	t.Helper()
	if g.Len() != len(r.vertices) {
		t.Fatalf("step %d: %d vertices, reference %d", step, g.Len(), len(r.vertices))
	}
	if g.Len() > r.c.K+1 {
		t.Fatalf("step %d: %d vertices for k = %d", step, g.Len(), r.c.K)
	}
	if math.Abs(g.R()-r.r) > 1e-9*r.r { // the distances differ by rounding
		t.Fatalf("step %d: R = %g, reference %g", step, g.R(), r.r)
	}
	solution := r.solution(t, g.Classes())
	for i, v := range r.vertices {
		if m := r.multiplicity(t, v); !reflect.DeepEqual(g.Point(i), v.x) || g.Points(i) != float64(len(v.points)) || math.Abs(g.Multiplicity(i)-m) > 1e-12*m {
			t.Fatalf("step %d: vertex %d is not the reference's", step, i)
		}
		for c, x := range g.ValuesTo(nil, i) {
			// 1e-8 is what the issue of the learner asks for; the solver aims at 1e-10.
			if w := solution.At(i, c); math.Abs(x-w) > 1e-8 {
				t.Fatalf("step %d: value of class %d at vertex %d is %g, reference %g", step, c, i, x, w)
			}
			if !r.c.Normalized && (x < -1e-8 || x > 1+1e-8) {
				t.Fatalf("step %d: value %g is no probability", step, x)
			}
		}
	}
	for c, x := range g.ValuesTo(nil, g.Trial()) {
		if math.Abs(x-want[c]) > 1e-8 {
			t.Fatalf("step %d: value %g at the new point, reference %g", step, x, want[c])
		}
	}
	if !full {
		return
	}
	all, first := r.full(t, g.Classes())
	for i := range r.vertices {
		for c, x := range g.ValuesTo(nil, i) {
			if w := all.At(first[i], c); math.Abs(x-w) > 1e-9 {
				t.Fatalf("step %d: value %g on the compact graph, %g on the full one", step, x, w)
			}
		}
	}
}

// invariants checks what holds between steps.
func invariants(t *testing.T, step int, g *quantized.Graph, r *reference, accepted int) {
	t.Helper()
	for i, v := range r.vertices {
		for _, x := range v.points {
			if d := r.distance(x, v.x); d > g.Bound()*(1+1e-12) {
				t.Fatalf("step %d: a point is %g from its centroid, and the bound is %g", step, d, g.Bound())
			}
		}
		for j, w := range r.vertices[:i] {
			d := r.distance(v.x, w.x)
			if v.class < 0 && w.class < 0 && (d < g.R() || d == 0) {
				t.Fatalf("step %d: centroids %d and %d are %g apart, and R is %g", step, i, j, d, g.R())
			}
			// Beyond the edges it need not be measured; what is measured is right to rounding.
			stored := g.Distance(i, j)
			if far := math.IsInf(stored, 1) && d > r.c.EdgeRadius(); stored != g.Distance(j, i) || !far && math.Abs(stored-d) > 1e-9*d {
				t.Fatalf("step %d: stored distance of %d and %d is %g, and they are %g apart", step, i, j, stored, d)
			}
		}
	}
	if !r.c.Absorb && r.c.HalfLife == 0 && g.Mass() != float64(accepted) {
		t.Fatalf("step %d: multiplicities sum to %g, and %d points were accepted", step, g.Mass(), accepted)
	}
}

// TestDrop checks that a point that was placed for a look, solved for and dropped leaves no trace.
func TestDrop(t *testing.T) {
	g, _ := quantized.New(config(10, 2))
	s := newStream(1, 2, 2)
	for class := range 2 {
		x, _ := s.next()
		if err := g.Label(x, class); err != nil {
			t.Fatal(err)
		}
	}
	merged := 0
	for range 500 {
		x, _ := s.next()
		before := g.State()
		if !g.Place(x, true) {
			continue
		}
		n := g.Len()
		if n == len(before.Vertices) {
			merged++
		}
		g.Solve()
		g.Drop()
		if !reflect.DeepEqual(before, g.State()) {
			t.Fatal("a dropped point left a trace")
		}
		if g.Place(x, false) {
			g.Solve()
			g.Keep(0, quantized.Moment{Observation: 1})
		}
	}
	if merged == 0 {
		t.Error("no point was merged: the stream tests too little")
	}
}

func TestRestore(t *testing.T) {
	c := config(15, 3)
	g, _ := quantized.New(c)
	s := newStream(3, 3, 3)
	feed := func(g *quantized.Graph, points [][]float32) {
		for _, x := range points {
			if g.Place(x, false) {
				g.Solve()
				g.Keep(0, quantized.Moment{Observation: 1})
			}
		}
	}
	points := func(n int) (xs [][]float32) {
		for range n {
			x, _ := s.next()
			xs = append(xs, x)
		}
		return xs
	}
	for class := range 3 {
		g.Label(points(1)[0], class)
	}
	feed(g, points(200))
	h, err := quantized.Restore(c, g.State())
	if err != nil {
		t.Fatal(err)
	}
	later := points(200)
	feed(g, later)
	feed(h, later)
	if !reflect.DeepEqual(g.State(), h.State()) {
		t.Error("a restored graph went on differently")
	}

	for _, k := range []int{4, 5, 10, 14, 15, 16, 40} {
		c := c
		c.K = k
		h, err := quantized.Restore(c, g.State())
		if err != nil {
			t.Fatalf("k = %d: %v", k, err)
		}
		if h.Len() > k+1 || h.Mass() != g.Mass() || h.Labelled() != 3 {
			t.Errorf("k = %d: %d vertices, mass %g of %g, %d labelled", k, h.Len(), h.Mass(), g.Mass(), h.Labelled())
		}
		feed(h, later)
		if h.Len() > k+1 {
			t.Errorf("k = %d: %d vertices later", k, h.Len())
		}
	}
	c.K = 3
	if _, err := quantized.Restore(c, g.State()); !errors.Is(err, quantized.ErrFull) {
		t.Errorf("k = 3 with 3 labelled: %v", err)
	}
}

// TestForget checks that nothing of a class is left: neither its labelled points, nor what was
// learned through it, nor its number.
func TestForget(t *testing.T) {
	c := config(20, 1)
	c.Kernel = graph.Heat(.1)
	g, _ := quantized.New(c)
	g.Label([]float32{0}, 0)
	g.Label([]float32{1}, 1)
	g.Label([]float32{2}, 2)
	for _, p := range []struct {
		x     float32
		class int
	}{{.1, 0}, {.2, 0}, {1.1, 1}, {1.2, 1}, {2.1, 2}, {1.9, 2}} {
		if !g.Place([]float32{p.x}, false) {
			t.Fatalf("%g is an outlier", p.x)
		}
		g.Solve()
		g.Keep(p.class, quantized.Moment{Observation: 1})
	}
	if n := g.Forget(1); n != 3 {
		t.Errorf("removed %d vertices, want 3", n)
	}
	if g.Classes() != 2 || g.Len() != 6 || g.Labelled() != 2 || g.Mass() != 4 {
		t.Errorf("%d classes, %d vertices, %d labelled, mass %g", g.Classes(), g.Len(), g.Labelled(), g.Mass())
	}
	if g.Place([]float32{1.15}, true) {
		t.Error("a point of the forgotten class still belongs to the graph")
	}
	if !g.Place([]float32{2.05}, true) {
		t.Fatal("a point of another class does not belong to the graph any more")
	}
	g.Solve()
	if v := g.ValuesTo(nil, g.Trial()); v[0] > 1e-9 || v[1] < .9 {
		t.Errorf("values %.3f", v)
	}
	g.Drop()
}

func TestNewErrors(t *testing.T) {
	for _, tt := range []struct {
		change func(*quantized.Config)
		want   string
	}{
		{func(c *quantized.Config) { c.K = 1 }, "unusable setting: k is 1, but must be at least 2"},
		{func(c *quantized.Config) { c.K = -5 }, "unusable setting: k is -5, but must be at least 2"},
		{func(c *quantized.Config) { c.K = math.MaxInt }, "unusable setting: 9223372036854775807 vertices of 2 values need too much memory; use a smaller k"},
		{func(c *quantized.Config) { c.K = 1 << 20 }, "unusable setting: 1048576 vertices of 2 values need too much memory; use a smaller k"},
		{func(c *quantized.Config) { c.Dim = 0 }, "unusable setting: dimension is 0, but must be at least 1"},
		{func(c *quantized.Config) { c.Multiplier = 1 }, "unusable setting: multiplier is 1, but must lie between 1.05 and 1000"},
		{func(c *quantized.Config) { c.Multiplier = math.NaN() }, "unusable setting: multiplier is NaN, but must lie between 1.05 and 1000"},
		{func(c *quantized.Config) { c.Scale = math.Inf(1) }, "unusable setting: scale is +Inf, but must be positive and of ordinary size"},
		{func(c *quantized.Config) { c.Kernel.Denominator = 0 }, "unusable setting: kernel denominator is 0, but must be positive"},
		{func(c *quantized.Config) { c.Epsilon = 1 }, "unusable setting: epsilon is 1, but must lie between 0 and 1"},
		{func(c *quantized.Config) { c.Gamma = math.NaN() }, "unusable setting: gamma is NaN, but must be positive"},
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

func TestLabelFull(t *testing.T) {
	g, _ := quantized.New(config(3, 1))
	for i := range 2 {
		if err := g.Label([]float32{float32(i)}, 0); err != nil {
			t.Fatal(err)
		}
	}
	before := fmt.Sprint(g.State())
	err := g.Label([]float32{2}, 0)
	if want := "too many labelled points for k: this would be number 3 and k is 3; use a larger k"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if !bytes.Equal([]byte(before), []byte(fmt.Sprint(g.State()))) {
		t.Error("a refused label changed the graph")
	}
}

// TestRestoreInvalid checks that no state from a file makes a graph that breaks its own rules.
func TestRestoreInvalid(t *testing.T) {
	good := func() quantized.State {
		return quantized.State{R: .1, Classes: 1, LastID: 4, Journal: []quantized.Entry{{quantized.Moment{Observation: 8}, 2}, {quantized.Moment{Observation: 9}, 2}}, Vertices: []quantized.Vertex{
			{Point: []float32{0}, Multiplicity: 1, Points: 1, Class: 0, Values: []float64{1}, Origin: quantized.Origin{ID: 1}},
			{Point: []float32{1}, Multiplicity: 3, Points: 3, Class: -1, Source: []int{0}, Values: []float64{.5}, Origin: quantized.Origin{ID: 2, Moment: quantized.Moment{Observation: 7}, Via: 1, Hops: 1}},
		}}
	}
	if _, err := quantized.Restore(config(5, 1), good()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*quantized.State){
		"R":            func(s *quantized.State) { s.R = math.NaN() },
		"classes":      func(s *quantized.State) { s.Classes = -1 },
		"point":        func(s *quantized.State) { s.Vertices[1].Point = nil },
		"coordinate":   func(s *quantized.State) { s.Vertices[1].Point[0] = float32(math.Inf(1)) },
		"multiplicity": func(s *quantized.State) { s.Vertices[1].Multiplicity = 0 },
		"heavy":        func(s *quantized.State) { s.Vertices[1].Multiplicity = 7 },
		"light label":  func(s *quantized.State) { s.Vertices[0].Multiplicity = .5 },
		"points":       func(s *quantized.State) { s.Vertices[1].Points = 2.5 },
		"aged":         func(s *quantized.State) { s.Aged = -1 },
		"class":        func(s *quantized.State) { s.Vertices[0].Class = 1 },
		"values":       func(s *quantized.State) { s.Vertices[0].Values = nil },
		"value":        func(s *quantized.State) { s.Vertices[1].Values[0] = math.NaN() },
		"ID twice":     func(s *quantized.State) { s.Vertices[1].Origin.ID = 1 },
		"ID":           func(s *quantized.State) { s.LastID = 1 },
		"observation":  func(s *quantized.State) { s.Vertices[1].Origin.Observation = -1 },
		"hops":         func(s *quantized.State) { s.Vertices[1].Origin.Hops = -1 },
		"journal's ID": func(s *quantized.State) { s.Journal[1].Vertex = 3 },
		"journal full": func(s *quantized.State) { s.Journal = append(s.Journal, s.Journal[1]) },
		"lost":         func(s *quantized.State) { s.Lost.Observation = -1 },
		"source":       func(s *quantized.State) { s.Vertices[1].Source = []int{0, 0} },
	} {
		s := good()
		change(&s)
		if _, err := quantized.Restore(config(5, 1), s); !errors.Is(err, quantized.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
