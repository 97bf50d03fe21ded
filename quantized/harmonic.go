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
	r      []float64 // residual
	z      []float64 // preconditioned residual
	p, q   []float64 // search direction, and the matrix times it
}

// Solve brings the harmonic solution up to date, starting from the last one, and says how.
//
// Divided by v_i, the equation of an unlabelled vertex i reads
//
//	(gamma + Σ_j w_ij v_j) l_i - Σ_j w_ij v_j l_j = 0,
//
// so a residual of at most ρ in all of them leaves an error of at most ρ/gamma at any vertex: the
// matrix is an M-matrix whose rows sum to at least gamma. The iteration stops at ρ <= gamma·1e-10,
// or at the rounding error of the sums where that is larger, and after as many steps as it would
// take a direct solution to be cheaper, the direct solution takes over.
func (g *Graph) Solve() (Method, error) {
	if g.c.Normalized {
		return Direct, g.direct()
	}
	s := &g.solver
	n := g.Len()
	s.degree = resized(s.degree, n)
	s.r, s.z, s.p, s.q = resized(s.r, n), resized(s.z, n), resized(s.p, n), resized(s.q, n)
	var largest float64
	for i := range n {
		var d float64
		for _, e := range g.edges[i] {
			d += e.w * g.v[e.to]
		}
		s.degree[i] = d
		largest = max(largest, d)
	}
	// A sum of that size is good to a few units in its last place.
	stop := max(g.c.Gamma*tolerance, 8*largest*0x1p-53)
	for c := range g.l {
		for i, class := range g.label {
			if class == c {
				g.l[c][i] = 1
			} else if class != unlabelled {
				g.l[c][i] = 0
			}
		}
		if !g.iterate(g.l[c], stop) {
			return Direct, g.direct()
		}
	}
	return Iterative, nil
}

// iterate solves for one class by conjugate gradients on the symmetric system, each equation times
// v_i, preconditioned by its diagonal. It reports whether every residual came to at most stop.
func (g *Graph) iterate(l []float64, stop float64) bool {
	s := &g.solver
	gamma := g.c.Gamma
	for range 3 { // the residual that the recurrence carries drifts from the true one: look, and go on
		var rz, worst float64
		for i := range l {
			s.r[i], s.p[i] = 0, 0
			if g.label[i] != unlabelled {
				continue
			}
			sum := -(gamma + s.degree[i]) * l[i]
			for _, e := range g.edges[i] {
				sum += e.w * g.v[e.to] * l[e.to]
			}
			worst = max(worst, math.Abs(sum))
			s.r[i] = g.v[i] * sum
			s.p[i] = sum / (gamma + s.degree[i])
			rz += s.r[i] * s.p[i]
		}
		if worst <= stop {
			return true
		}
		for range len(l) + 10 {
			var pq float64
			for i := range l {
				if g.label[i] != unlabelled {
					continue
				}
				sum := (gamma + s.degree[i]) * s.p[i]
				for _, e := range g.edges[i] {
					sum -= e.w * g.v[e.to] * s.p[e.to]
				}
				s.q[i] = g.v[i] * sum
				pq += s.p[i] * s.q[i]
			}
			if !(pq > 0) {
				break
			}
			alpha := rz / pq
			worst = 0
			var next float64
			for i := range l {
				if g.label[i] != unlabelled {
					continue
				}
				l[i] += alpha * s.p[i]
				s.r[i] -= alpha * s.q[i]
				scaled := s.r[i] / g.v[i]
				worst = max(worst, math.Abs(scaled))
				s.z[i] = scaled / (gamma + s.degree[i])
				next += s.r[i] * s.z[i]
			}
			if worst <= stop/2 {
				break
			}
			beta := next / rz
			rz = next
			for i := range l {
				if g.label[i] == unlabelled {
					s.p[i] = s.z[i] + beta*s.p[i]
				}
			}
		}
	}
	return false
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
		if g.label[i] == c {
			return 1
		}
		return 0
	}
	sum, degree := 0.0, g.c.Gamma
	for _, e := range g.edges[i] {
		sum += e.w * g.v[e.to] * g.l[c][e.to]
		degree += e.w * g.v[e.to]
	}
	return sum / degree
}
