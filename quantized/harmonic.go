package quantized

import (
	"fmt"
	"math"

	"github.com/faceauth/faceauth/graph"
)

// Method says how a harmonic solution was found.
type Method string

const (
	Iterative Method = "iterative" // conjugate gradients from the last solution
	Direct    Method = "direct"    // dense Cholesky
)

// tolerance is the largest error that an iterative solution may have at any vertex, by the bound
// that [Graph.Solve] proves. Verdicts compare values that are equal by symmetry up to ten times it.
const tolerance = 1e-10

// solver holds the working storage of Solve.
type solver struct {
	degree []float64 // sum of w_ij v_j over all neighbours
	scaled []float64 // v_j times the value at j of what a product is taken with; fixed at labelled j
	r      []float64 // residual
	z      []float64 // preconditioned residual
	p, q   []float64 // search direction, and the matrix times it
	part   []int     // unlabelled vertices that depend on each other
	seen   []bool    // vertices that were put into a part
	class  []bool    // classes of the labelled vertices next to the part
}

// Solve brings the harmonic solution up to date, starting from the last one, and says how.
//
// Divided by v_i, the equation of an unlabelled vertex i reads
//
//	(gamma + Σ_j w_ij v_j) l_i - Σ_j w_ij v_j l_j = 0,
//
// so a residual of at most ρ in all of them leaves an error of at most ρ/gamma at any vertex: the
// matrix is an M-matrix whose rows sum to at least gamma. The iteration stops at ρ <= gamma·1e-10,
// or at the rounding error of the sums where that is larger; where it does not come to that, the
// direct solution takes over.
//
// Vertices depend on each other along paths that no labelled vertex cuts. Where nothing but the point
// on trial is new since the last solution, only the part of the graph in which it lies is solved, and
// only for the classes that are labelled at its rim.
func (g *Graph) Solve() (Method, error) {
	g.trial.solved = true
	if g.c.Normalized {
		return Direct, g.direct()
	}
	s := &g.solver
	n := g.Len()
	s.degree, s.scaled = resized(s.degree, n), resized(s.scaled, n)
	s.r, s.z, s.p, s.q = resized(s.r, n), resized(s.z, n), resized(s.p, n), resized(s.q, n)
	s.seen, s.class = resized(s.seen, n), resized(s.class, len(g.l))
	clear(s.seen)
	ok := true
	switch {
	case g.stale:
		for i := range n {
			if g.label[i] == unlabelled && !s.seen[i] {
				ok = ok && g.solvePart(i)
			}
		}
		for c := range g.l {
			for i, class := range g.label {
				if class != unlabelled {
					g.l[c][i] = indicator(class, c)
				}
			}
		}
	case g.trial.on && g.label[g.trial.vertex] == unlabelled:
		ok = g.solvePart(g.trial.vertex)
	}
	if !ok {
		err := g.direct()
		g.stale = err != nil
		return Direct, err
	}
	g.stale = false
	return Iterative, nil
}

// solvePart solves for the vertices that depend on vertex i, and reports whether every residual came
// to the bound.
func (g *Graph) solvePart(i int) bool {
	s := &g.solver
	clear(s.class)
	s.part = append(s.part[:0], i)
	s.seen[i] = true
	var largest float64
	for at := 0; at < len(s.part); at++ {
		var degree float64
		for _, e := range g.edges[s.part[at]] {
			degree += e.w * g.v[e.to]
			if class := g.label[e.to]; class != unlabelled {
				s.class[class] = true
			} else if !s.seen[e.to] {
				s.seen[e.to] = true
				s.part = append(s.part, e.to)
			}
		}
		s.degree[s.part[at]] = degree
		largest = max(largest, degree)
	}
	// The sums of a residual are of that size, and no better than the rounding of their terms: 64 units
	// in the last place are reached on graphs of some thousand edges a vertex, and 8 are not.
	stop := max(g.c.Gamma*tolerance, 64*largest*0x1p-53)
	for c, near := range s.class {
		if !near {
			for _, i := range s.part {
				g.l[c][i] = 0
			}
		} else if !g.iterate(c, stop) {
			return false
		}
	}
	return true
}

// iterate solves for one class on a part by conjugate gradients on the symmetric system, each equation
// times v_i, preconditioned by its diagonal. It reports whether every residual came to at most stop.
func (g *Graph) iterate(class int, stop float64) bool {
	s := &g.solver
	l, gamma := g.l[class], g.c.Gamma
	for range 3 { // the residual that the recurrence carries drifts from the true one: look, and go on
		for i, c := range g.label {
			if c != unlabelled {
				s.scaled[i] = g.v[i] * indicator(c, class)
			}
		}
		for _, i := range s.part {
			s.scaled[i] = g.v[i] * l[i]
		}
		var rz, worst float64
		for _, i := range s.part {
			diagonal := gamma + s.degree[i]
			sum := g.pull(i) - diagonal*l[i]
			worst = max(worst, math.Abs(sum))
			s.r[i] = g.v[i] * sum
			s.p[i] = sum / diagonal
			rz += s.r[i] * s.p[i]
		}
		if worst <= stop {
			return true
		}
		for i, c := range g.label {
			if c != unlabelled {
				s.scaled[i] = 0
			}
		}
		for range len(s.part) + 10 {
			for _, i := range s.part {
				s.scaled[i] = g.v[i] * s.p[i]
			}
			var pq float64
			for _, i := range s.part {
				s.q[i] = g.v[i] * ((gamma+s.degree[i])*s.p[i] - g.pull(i))
				pq += s.p[i] * s.q[i]
			}
			if !(pq > 0) {
				break
			}
			alpha := rz / pq
			worst = 0
			var next float64
			for _, i := range s.part {
				l[i] += alpha * s.p[i]
				s.r[i] -= alpha * s.q[i]
				sum := s.r[i] / g.v[i]
				worst = max(worst, math.Abs(sum))
				s.z[i] = sum / (gamma + s.degree[i])
				next += s.r[i] * s.z[i]
			}
			if worst <= stop/2 {
				break
			}
			beta := next / rz
			rz = next
			for _, i := range s.part {
				s.p[i] = s.z[i] + beta*s.p[i]
			}
		}
	}
	return false
}

// pull returns Σ_j w_ij times what is in scaled at j: in four sums, none of which waits for another.
func (g *Graph) pull(i int) float64 {
	edges, x := g.edges[i], g.solver.scaled
	var a, b, c, d float64
	for len(edges) >= 4 {
		e := edges[:4:4]
		a += e[0].w * x[e[0].to]
		b += e[1].w * x[e[1].to]
		c += e[2].w * x[e[2].to]
		d += e[3].w * x[e[3].to]
		edges = edges[4:]
	}
	for _, e := range edges {
		a += e.w * x[e.to]
	}
	return (a + b) + (c + d)
}

func indicator(label, class int) float64 {
	if label == class {
		return 1
	}
	return 0
}

// direct solves by [graph.Harmonic].
func (g *Graph) direct() error {
	x, err := graph.Harmonic(g.Problem())
	if err != nil {
		return fmt.Errorf("solving on %d vertices: %w", g.Len(), err)
	}
	for c := range g.l {
		for i := range g.l[c] {
			g.l[c][i] = 0
			if !x.IsEmpty() {
				g.l[c][i] = x.At(i, c)
			}
		}
	}
	return nil
}

// guess returns the harmonic value of class c at vertex i given those of the vertices before it:
// where the iteration starts for a new vertex.
func (g *Graph) guess(i, c int) float64 {
	if g.label[i] != unlabelled {
		return indicator(g.label[i], c)
	}
	sum, degree := 0.0, g.c.Gamma
	for _, e := range g.edges[i] {
		sum += e.w * g.v[e.to] * g.l[c][e.to]
		degree += e.w * g.v[e.to]
	}
	return sum / degree
}
