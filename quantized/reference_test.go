package quantized_test

import (
	"math"
	"sort"
	"testing"

	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/quantized"
	"gonum.org/v1/gonum/mat"
)

// reference is the listing "Online quantized harmonic solution" written out: it keeps every point,
// rebuilds every matrix from the vectors, and solves by dense Cholesky. The Graph must agree with it.
type reference struct {
	c        quantized.Config
	r        float64
	vertices []*vertex
	now      int64
}

type vertex struct {
	x      []float32
	class  int         // -1 unlabelled
	points [][]float32 // all that it stands for
	when   []int64     // the observations at which they came; 0 for a labelled one
	count  float64     // what they count together
}

// weight returns what a point of that observation counts now.
func (r *reference) weight(when int64) float64 {
	if r.c.HalfLife == 0 || when == 0 {
		return 1
	}
	period := int64(max(1, r.c.HalfLife/64))
	return math.Exp2(-float64(r.now/period-when/period) * float64(period) / float64(r.c.HalfLife))
}

// multiplicity returns what the points of a vertex count together. They may be two at one age or one at
// half that age, which is the same but for rounding, and the order of a repartition hangs on it: so the
// sum that is used is the running one, and it is checked against the one written out.
func (r *reference) multiplicity(t *testing.T, v *vertex) float64 {
	t.Helper()
	var sum float64
	for _, when := range v.when {
		sum += r.weight(when)
	}
	if math.Abs(v.count-sum) > 1e-12*sum {
		t.Fatalf("the points of a vertex count %g, and the running sum is %g", sum, v.count)
	}
	return v.count
}

// age goes on to an observation, and evicts what has faded, by the rule of Graph.Age.
func (r *reference) age(t *testing.T, observation int64, classes int) {
	t.Helper()
	period := int64(max(1, r.c.HalfLife/64))
	ticks := observation/period - r.now/period
	r.now = observation
	if ticks == 0 {
		return
	}
	for _, v := range r.vertices {
		f := math.Exp2(-float64(ticks*period) / float64(r.c.HalfLife))
		if v.class < 0 {
			v.count *= f
		} else {
			v.count = 1 + (v.count-1)*f
		}
	}
	solution := r.solution(t, classes)
	var faint []*vertex
	for _, v := range r.vertices {
		if v.class < 0 && r.multiplicity(t, v) < .5 {
			faint = append(faint, v)
		}
	}
	value := make(map[*vertex][]float64)
	for i, v := range r.vertices {
		value[v] = mat.Row(nil, i, solution)
	}
	for q := range min(16, len(faint)) {
		all := r.vertices
		v := faint[(int(observation/period)%len(faint)*16+q)%len(faint)]
		r.vertices = nil
		for _, w := range all {
			if w != v {
				r.vertices = append(r.vertices, w)
			}
		}
		without := r.solution(t, classes)
		for i, w := range r.vertices {
			for c, x := range value[w] {
				if math.Abs(x-without.At(i, c)) > .01 {
					r.vertices = all
				}
			}
			if len(r.vertices) == len(all) {
				break
			}
		}
	}
}

func (r *reference) distance(a, b []float32) float64 {
	return r.c.Scale * math.Sqrt(graph.SquaredDistance(a, b))
}

func (r *reference) label(t *testing.T, x []float32, class int) {
	t.Helper()
	if len(r.vertices) == r.c.K+1 {
		r.repartition(t)
	}
	r.vertices = append(r.vertices, &vertex{x, class, [][]float32{x}, []int64{0}, 1})
}

// observe returns the harmonic values of x, or nil for an outlier.
func (r *reference) observe(t *testing.T, x []float32, classes int) []float64 {
	if !r.reaches(x, r.vertices) {
		return nil
	}
	if len(r.vertices) == r.c.K+1 {
		before := r.copy()
		r.repartition(t)
		if !r.reaches(x, r.vertices) {
			*r = before
			return nil
		}
	}
	at := -1
	for i, v := range r.vertices {
		if d := r.distance(x, v.x); r.mergeable(v) && (d < r.r || d == 0) && (at < 0 || d < r.distance(x, r.vertices[at].x)) {
			at = i
		}
	}
	if at >= 0 {
		r.vertices[at].points = append(r.vertices[at].points, x)
		r.vertices[at].when = append(r.vertices[at].when, r.now)
		r.vertices[at].count++
	} else {
		at = len(r.vertices)
		r.vertices = append(r.vertices, &vertex{x, -1, [][]float32{x}, []int64{r.now}, 1})
	}
	return mat.Row(nil, at, r.solution(t, classes))
}

func (r *reference) mergeable(v *vertex) bool { return v.class < 0 || r.c.Absorb }

func (r *reference) reaches(x []float32, among []*vertex) bool {
	for _, v := range among {
		if d := r.distance(x, v.x); r.c.Kernel.Weight(d) >= r.c.Epsilon && (r.c.Reach == 0 || d <= r.c.Reach) {
			return true
		}
	}
	return false
}

func (r *reference) copy() reference {
	c := *r
	c.vertices = nil
	for _, v := range r.vertices {
		w := *v
		c.vertices = append(c.vertices, &w)
	}
	return c
}

func (r *reference) repartition(t *testing.T) {
	t.Helper()
	if r.r == 0 {
		r.r = math.Inf(1)
		for i, v := range r.vertices {
			for _, w := range r.vertices[:i] {
				if d := r.distance(v.x, w.x); d > 0 && (v.class < 0 || w.class < 0) {
					r.r = min(r.r, d)
				}
			}
		}
	}
	for len(r.vertices) > r.c.K {
		r.r *= r.c.Multiplier
		order := append([]*vertex(nil), r.vertices...)
		sort.SliceStable(order, func(i, j int) bool {
			a, b := order[i], order[j]
			if (a.class >= 0) != (b.class >= 0) {
				return a.class >= 0
			}
			return r.multiplicity(t, a) > r.multiplicity(t, b) && (a.class < 0 || r.c.Absorb)
		})
		var kept []*vertex
		keep := make(map[*vertex]bool)
		for _, v := range order {
			free := true
			for _, w := range kept {
				free = free && !(r.mergeable(w) && r.distance(v.x, w.x) < r.r)
			}
			if v.class >= 0 || free {
				kept = append(kept, v)
				keep[v] = true
			}
		}
		if len(kept) > r.c.K {
			continue // as if nothing had been moved: a larger R begins from the same set
		}
		for _, v := range order {
			if keep[v] {
				continue
			}
			var home *vertex
			for _, w := range kept {
				if r.mergeable(w) && r.distance(v.x, w.x) < r.r && (home == nil || r.distance(v.x, w.x) < r.distance(v.x, home.x)) {
					home = w
				}
			}
			home.points = append(home.points, v.points...)
			home.when = append(home.when, v.when...)
			home.count += v.count
		}
		var left []*vertex
		for _, v := range r.vertices {
			if keep[v] {
				left = append(left, v)
			}
		}
		r.vertices = left
	}
}

// solution returns the harmonic values of all vertices on the compact graph.
func (r *reference) solution(t *testing.T, classes int) *mat.Dense {
	t.Helper()
	x := make([][]float32, len(r.vertices))
	p := graph.Problem{Gamma: r.c.Gamma, Normalized: r.c.Normalized}
	for i, v := range r.vertices {
		x[i] = v.x
		p.V = append(p.V, r.multiplicity(t, v))
		if v.class >= 0 {
			p.Labelled = append(p.Labelled, i)
		}
	}
	return r.solve(t, p, x, classes, func(i int) int { return r.vertices[i].class })
}

// full returns the harmonic values on the graph in which every point is a vertex of its own, at the
// place of its centroid, and the index of the first point of each vertex.
func (r *reference) full(t *testing.T, classes int) (*mat.Dense, []int) {
	t.Helper()
	var x [][]float32
	var first, class []int
	p := graph.Problem{Gamma: r.c.Gamma}
	for _, v := range r.vertices {
		first = append(first, len(x))
		if v.class >= 0 {
			p.Labelled = append(p.Labelled, len(x))
		}
		for _, when := range v.when {
			p.V = append(p.V, r.weight(when))
			x = append(x, v.x)
			class = append(class, v.class)
		}
	}
	return r.solve(t, p, x, classes, func(i int) int { return class[i] }), first
}

func (r *reference) solve(t *testing.T, p graph.Problem, x [][]float32, classes int, class func(int) int) *mat.Dense {
	t.Helper()
	d := graph.Distances(x, r.c.Scale)
	w := graph.Similarity(d, r.c.Kernel, r.c.Epsilon)
	for i := range x {
		for j := range i {
			if r.c.Reach > 0 && d.At(i, j) > r.c.Reach {
				w.SetSym(i, j, 0)
			}
		}
	}
	p.W = w
	if len(p.Labelled) > 0 {
		y := mat.NewDense(len(p.Labelled), classes, nil)
		for q, i := range p.Labelled {
			y.Set(q, class(i), 1)
		}
		p.Y = y
	}
	l, err := graph.Harmonic(p)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
